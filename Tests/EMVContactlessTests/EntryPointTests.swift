import EMVContactless
import SmartCard
import TestSupport
import Testing

/// EMV Contactless Book B.  A kernel that does what it is told stands for the real ones.
@Suite struct EntryPointTests {
    // MARK: Pre-processing (3.1)

    /// Amounts at, below and above each limit.
    @Test(
        arguments: [
            // 3.1.1.5: the transaction limit is reached by the amount that equals it.
            (Combination.visa(transactionLimit: 1000), 999, [], []),
            (.visa(transactionLimit: 1000), 1000, [.notAllowed], []),
            // 3.1.1.6: the floor limit is exceeded by more than it.
            (.visa(floorLimit: 1000), 1000, [], []),
            (.visa(floorLimit: 1000), 1001, [.floorLimit], [.onlineCryptogramRequired]),
            // 3.1.1.7: the terminal's floor limit, binary, stands in for it.
            (.visa(data: [0x9F1B: [0x00, 0x00, 0x03, 0xE8]]), 1000, [], []),
            (.visa(data: [0x9F1B: [0x00, 0x00, 0x03, 0xE8]]), 1001, [.floorLimit], [.onlineCryptogramRequired]),
            (.visa(floorLimit: 2000, data: [0x9F1B: [0x00, 0x00, 0x03, 0xE8]]), 1001, [], []),
            // 3.1.1.8, 3.1.1.12: the CVM limit is reached by the amount that equals it.
            (.visa(cvmRequiredLimit: 1000), 999, [], []),
            (.visa(cvmRequiredLimit: 1000), 1000, [.cvmLimit], [.cvmRequired]),
            // 3.1.1.3, 3.1.1.10: one unit of the currency.
            (.visa(statusCheck: true), 100, [.statusCheck], [.onlineCryptogramRequired]),
            (.visa(statusCheck: true), 101, [], []), (.visa(statusCheck: true), 1, [], []),
            (.visa(statusCheck: false), 100, [], []), (.visa(), 100, [], []),
            // 3.1.1.4, 3.1.1.11: nothing at all.
            (.visa(), 0, [.zeroAmount], [.onlineCryptogramRequired]),
            (.visa(zeroAmountAllowed: true), 0, [.zeroAmount], [.onlineCryptogramRequired]),
            (.visa(zeroAmountAllowed: false), 0, [.notAllowed], []),
            (.visa(qualifiers: [.emvMode, .offlineOnlyReader]), 0, [.zeroAmount, .notAllowed], [.offlineOnlyReader]),
            // 3.1.1.2: what the configuration says of both bits is forgotten.
            (.visa(qualifiers: [.emvMode, .onlineCryptogramRequired, .cvmRequired]), 1, [], []),
        ] as [(Combination, UInt64, Set<Indicator>, TerminalTransactionQualifiers)])
    func preProcessing(
        _ combination: Combination, _ amount: UInt64, _ expected: Set<Indicator>, _ bits: TerminalTransactionQualifiers
    ) throws {
        let indicators = PreProcessingIndicators(combination, try purchase(amount))
        expectEqual(Indicator.all(in: indicators), expected)
        expectEqual(indicators.terminalTransactionQualifiers, bits.union(.emvMode))
    }

    /// 3.1.1.7: the terminal has one floor limit for all combinations that have none of their own, 10.00 here.
    @Test(arguments: [
        (Combination.visa(), "20800000"), (.visa(data: [0x9F1B: [0x00, 0x00, 0x07, 0xD0]]), "20000000"),
        (.visa(floorLimit: 2000), "20000000"),
    ])
    func theTerminalsFloorLimit(_ combination: Combination, _ qualifiers: String) throws {
        var play = try Play([combination], terminal: [0x9F1B: [0x00, 0x00, 0x03, 0xE8]])
        _ = play.next(.startA(try purchase(1001)))
        let final = try play.select(ppse: "61 09 4F 07 A0 00 00 00 03 10 10", kernelSays: .approved)
        expectEqual(final.outcome.dataRecord?[0x9F66]?.hex, qualifiers)
    }

    /// 3.1.1.3: of a currency without minor unit, one is one.
    @Test func aUnitOfYen() throws {
        let indicators = PreProcessingIndicators(.visa(statusCheck: true), try purchase(1, currency: "JPY"))
        #expect(indicators.statusCheckRequested)
    }

    /// 3.1.1.13
    @Test func nothingAllowed() throws {
        var play = try Play([.visa(transactionLimit: 10), .mastercard(transactionLimit: 10)])
        let step = play.next(.startA(try purchase(10)))
        let final = try #require(step.final)
        #expect(final.outcome.kind == .tryAnotherInterface && final.outcome.start == nil)
        expectEqual(step.userInterfaceRequests, [.init(.insertOrSwipeCard, .processingError)])
    }

    @Test func combinationsOfOtherTransactionTypesDoNotCount() throws {
        var refunds = Combination.visa()
        refunds.transactionTypes = [.refund]
        var play = try Play([refunds])
        expectEqual(play.next(.startA(try purchase(10))).final?.outcome.kind, .tryAnotherInterface)
    }

    // MARK: Protocol activation (3.2)

    /// 3.2.1.1: begun at Start B there was no pre-processing, and the TTQ are as configured.
    @Test func startB() throws {
        var play = try Play([.visa(cvmRequiredLimit: 1, qualifiers: [.emvMode, .cvmRequired])])
        _ = play.next(.startB(try purchase(10_000)))
        let final = try play.select(ppse: "61 09 4F 07 A0 00 00 00 03 10 10", kernelSays: .approved)
        expectEqual(final.outcome.dataRecord?[0x9F66]?.hex, "20400000")
        expectEqual(final.outcome.discretionaryData?[0xDF01], [0])
    }

    /// 3.2.1.2, 3.2.1.4, 3.2.1.5
    @Test func collision() throws {
        var play = try Play([.visa()])
        #expect(play.next(.startA(try purchase(1))).shows([(.presentCard, .readyToRead)], then: "field"))
        #expect(play.next(.collision).shows([(.presentOneCardOnly, .processingError)], then: "field"))
        #expect(play.next(.collisionOver).shows([(.presentOneCardOnly, .readyToRead)], then: "field"))
        #expect(play.next(.cardPresent).shows([], then: "00A404000E325041592E5359532E444446303100"))
    }

    /// Book C-3, 5.1.2: the limits of a card's program count whether there was pre-processing or not, and so they do for a
    /// transaction that they do not allow.
    @Test(arguments: [false, true])
    func dynamicReaderLimitsAfterStartB(_ startsAtB: Bool) throws {
        var combination = Combination.visa(qualifiers: [.emvMode])
        var limits = try #require(Kernel3.DynamicReaderLimits(applicationProgramIdentifier: [0x31]))
        (limits.floorLimit, limits.cvmRequiredLimit, limits.transactionLimit) = (1_00, 2_00, 10_00)
        combination.options = Kernel3.Options(dynamicReaderLimits: [limits])
        for (amount, expected) in [(UInt64(1_00), "20000000"), (1_50, "20800000"), (5_00, "20C00000"), (10_00, nil)] {
            var play = try Play([combination], kernels: [3: Kernel3.self])
            _ = play.next(startsAtB ? .startB(try purchase(amount)) : .startA(try purchase(amount)))
            _ = play.next(.cardPresent)
            _ = play.next(try answer(ppse("61 09 4F 07 A0 00 00 00 03 10 10") + "90 00"))
            let step = play.next(
                try answer("6F 18 84 07 A0 00 00 00 03 10 10 A5 0D 9F 38 03 9F 66 04 BF 0C 04 9F 5A 01 31 90 00"))
            guard let expected else {
                expectEqual(step.final?.outcome.kind, .endApplication, "no other combination is left")
                continue
            }
            guard case .send(let command) = step.action else { throw CardError(.other) }
            expectEqual(command.bytes.hex, "80A80000068304\(expected)00")
        }
    }

    // MARK: Combination selection (3.3)

    /// What stands in the PPSE, and in which order applications are selected, with every SELECT refused.
    @Test(
        arguments: [
            // 3.3.2.3, 3.3.2.4: a PPSE without entries, empty, or nonsense
            ("6F 14 84 0E 32 50 41 59 2E 53 59 53 2E 44 44 46 30 31 A5 02 88 00", []), ("", []), ("6F 05 84", []),
            // 3.3.2.5 A: no name, a name of four bytes, one of 17
            (ppse("61 03 87 01 01"), []), (ppse("61 06 4F 04 A0 00 00 00"), []),
            (ppse("61 13 4F 11 A0 00 00 00 03 10 10 00 00 00 00 00 00 00 00 00 00"), []),
            // A sound entry behind one that is none.
            (ppse("61 03 87 01 01 61 09 4F 07 A0 00 00 00 03 10 10"), ["A0000000031010"]),
            // 3.3.2.5 B: the name may be longer than the reader's AID, not shorter.
            (ppse("61 0A 4F 08 A0 00 00 00 03 10 10 01"), ["A000000003101001"]),
            (ppse("61 08 4F 06 A0 00 00 00 03 10"), []), (ppse("61 09 4F 07 A0 00 00 00 03 20 10"), []),
            // 3.3.2.5 C, D: the kernel that the entry asks for; zero and none at all, an empty one, another's, a domestic one
            (ppse("61 0D 4F 07 A0 00 00 00 03 10 10 9F 2A 01 00"), ["A0000000031010"]),
            (ppse("61 0C 4F 07 A0 00 00 00 03 10 10 9F 2A 00"), ["A0000000031010"]),
            (ppse("61 0D 4F 07 A0 00 00 00 03 10 10 9F 2A 01 03"), ["A0000000031010"]),
            (ppse("61 14 4F 07 A0 00 00 00 03 10 10 9F 2A 08 03 00 00 00 00 00 00 00"), ["A0000000031010"]),
            (ppse("61 0D 4F 07 A0 00 00 00 03 10 10 9F 2A 01 02"), []),
            (ppse("61 0D 4F 07 A0 00 00 00 03 10 10 9F 2A 01 43"), []),
            (ppse("61 0D 4F 07 A0 00 00 00 03 10 10 9F 2A 01 83"), []),
            (ppse("61 0F 4F 07 A0 00 00 00 03 10 10 9F 2A 03 83 00 01"), []),
            // 3.3.3.1, 3.3.3.2: by priority; without one, or with 0, last; bit 8 does not count; equals as they stand
            (
                ppse("61 0C 4F 07 A0 00 00 00 03 10 10 87 01 02 61 0C 4F 07 A0 00 00 00 04 10 10 87 01 01"),
                ["A0000000041010", "A0000000031010"]
            ),
            (
                ppse("61 09 4F 07 A0 00 00 00 03 10 10 61 0C 4F 07 A0 00 00 00 04 10 10 87 01 0F"),
                ["A0000000041010", "A0000000031010"]
            ),
            (
                ppse("61 0C 4F 07 A0 00 00 00 03 10 10 87 01 80 61 0C 4F 07 A0 00 00 00 04 10 10 87 01 0F"),
                ["A0000000041010", "A0000000031010"]
            ),
            (
                ppse("61 0C 4F 07 A0 00 00 00 03 10 10 87 01 81 61 0C 4F 07 A0 00 00 00 04 10 10 87 01 02"),
                ["A0000000031010", "A0000000041010"]
            ),
            (
                ppse("61 0C 4F 07 A0 00 00 00 04 10 10 87 01 01 61 0C 4F 07 A0 00 00 00 03 10 10 87 01 01"),
                ["A0000000041010", "A0000000031010"]
            ),
            // The same AID twice, as cards with two ADFs have it.
            (
                ppse("61 0A 4F 08 A0 00 00 00 03 10 10 01 61 0A 4F 08 A0 00 00 00 03 10 10 02"),
                ["A000000003101001", "A000000003101002"]
            ),
        ] as [(String, [String])])
    func candidates(_ fci: String, _ names: [String]) throws {
        var play = try Play([.visa(), .mastercard()])
        _ = play.next(.startA(try purchase(1)))
        _ = play.next(.cardPresent)
        var step = play.next(try answer(fci + " 90 00"))
        for name in names {
            expectEqual(step.command, "00A40400" + hex(name.count / 2) + name + "00")
            expectEqual(play.candidates.next?.name.hex, name)
            step = play.next(try answer("6A 82"))
        }
        // The list stays, for whoever wants to see it.
        expectEqual(play.candidates.map(\.name.hex), names)
        #expect(play.candidates.passedOver == names.count && play.candidates.next == nil)
        // 3.3.2.7
        expectEqual(step.final?.outcome.kind, .endApplication)
        expectEqual(step.userInterfaceRequests, [.init(.insertSwipeOrTryAnotherCard, .readyToRead)])
    }

    /// A PPSE of extended length, with entries that the reader supports, and with others; and more combinations than one for
    /// each entry.
    @Test(
        arguments: [
            ("A0 00 00 00 03 10 10", 1, 128, 128, false), ("A0 00 00 00 03 10 10", 1, 129, 128, true),
            ("A0 00 00 00 03 10 10", 1, 5_000, 128, true), ("A0 00 00 00 03 10 10", 2, 65, 128, true),
            ("A0 00 00 00 03 10 10", 2, 64, 128, false), ("A0 00 00 00 99 10 10", 1, 5_000, 0, true),
        ])
    func candidatesAreBounded(
        _ name: String, _ combinations: Int, _ entries: Int, _ expected: Int, _ isCut: Bool
    ) throws {
        let shorter = Combination(
            aid: try #require(AID(wire("A0 00 00 00 03"))), kernel: 3, terminalTransactionQualifiers: .emvMode)
        var play = try Play(Array([.visa(), shorter].prefix(combinations)))
        _ = play.next(.startA(try purchase(1)))
        _ = play.next(.cardPresent)
        let entry = "61 0C 4F 07 \(name) 87 01 01"
        var step = play.next(try answer(ppse(String(repeating: entry, count: entries)) + "90 00"))
        expectEqual(step.notes.contains { $0.contains("more than 128 applications") }, isCut)
        var count = 0
        while step.command.hasPrefix("00A40400"), count <= 6_000 {
            count += 1
            step = play.next(try answer("6A 82"))
        }
        expectEqual(count, expected)
        expectEqual(step.final?.outcome.kind, .endApplication)
    }

    /// 3.3.2.3: whatever the status word, an FCI beside it does not count.
    @Test(arguments: ["6A 82", "62 83", "6E 00"]) func noPPSE(_ status: String) throws {
        var play = try Play([.visa()])
        _ = play.next(.startA(try purchase(1)))
        _ = play.next(.cardPresent)
        let step = play.next(try answer(ppse("61 09 4F 07 A0 00 00 00 03 10 10") + status))
        expectEqual(step.final?.outcome.kind, .endApplication)
    }

    /// 3.3.2.5: combinations that are not allowed do not take part.
    @Test func whatIsNotAllowedIsNoCandidate() throws {
        var play = try Play([.visa(transactionLimit: 1), .mastercard()])
        _ = play.next(.startA(try purchase(1)))
        _ = play.next(.cardPresent)
        let step = play.next(
            try answer(ppse("61 09 4F 07 A0 00 00 00 03 10 10 61 09 4F 07 A0 00 00 00 04 10 10") + "90 00"))
        expectEqual(step.command, "00A4040007A000000004101000")
    }

    /// 3.3.3.3
    @Test(arguments: [(nil, ""), (false, ""), (true, "0102")] as [(Bool?, String)])
    func extendedSelection(_ isSupported: Bool?, _ appended: String) throws {
        var combination = Combination.visa()
        combination.extendedSelection = isSupported
        var play = try Play([combination])
        _ = play.next(.startA(try purchase(1)))
        _ = play.next(.cardPresent)
        let step = play.next(try answer(ppse("61 0E 4F 07 A0 00 00 00 03 10 10 9F 29 02 01 02") + "90 00"))
        expectEqual(step.command, "00A40400" + (appended.isEmpty ? "07" : "09") + "A0000000031010" + appended + "00")
    }

    /// 3.3.3.3: a name has at most 16 bytes; an extension for which there is no room is left out whole.
    @Test(arguments: [(9, true), (10, false), (16, false), (20, false)])
    func longExtendedSelection(_ count: Int, _ isAppended: Bool) throws {
        var combination = Combination.visa()
        combination.extendedSelection = true
        var play = try Play([combination])
        _ = play.next(.startA(try purchase(1)))
        _ = play.next(.cardPresent)
        let extension29 = TLVTag(0x9F29).encode([UInt8](repeating: 0x5A, count: count))
        let entry = TLVTag(0x61).encode(TLVTag(0x4F).encode(visaAID.bytes) + extension29)
        let step = play.next(try answer(ppse(entry.hex) + "90 00"))
        let name = visaAID.bytes + [UInt8](repeating: 0x5A, count: isAppended ? count : 0)
        expectEqual(step.command, "00A40400" + hex(name.count) + name.hex + "00")
    }

    /// 3.3.3.6 asks for a PDOL that is absent or lacks the TTQ, not for one that cannot be read: the kernel says so.
    @Test(arguments: [
        "",  // nothing
        "6F 11 84 07 A0 00 00 00 03 10 10 A5 06 9F 38",  // FCI: cut off
        "84 07 A0 00 00 00 03 10 10",  // no FCI template
        "6F 10 84 07 A0 00 00 00 03 10 10 A5 05 9F 38 02 9F 66",  // PDOL: a tag without length
    ])
    func unreadableFCI(_ fci: String) throws {
        for kernels: Kernels in [[1: Kernel3.self, 3: Kernel3.self], [3: Kernel3.self]] {
            var play = try Play([.visa()], kernels: kernels)
            _ = play.next(.startA(try purchase(1)))
            _ = play.next(.cardPresent)
            _ = play.next(try answer(ppse("61 09 4F 07 A0 00 00 00 03 10 10") + "90 00"))
            let step = play.next(try answer(fci + "90 00"))
            #expect(step.final?.outcome.kind == .endApplication && step.final?.kernel == 3)
        }
    }

    /// 3.3.3.6: a Visa card whose PDOL does not ask for the TTQ is none of Kernel 3's.
    @Test(arguments: [
        "6F 0B 84 07 A0 00 00 00 03 10 10 A5 00",  // no PDOL
        "6F 11 84 07 A0 00 00 00 03 10 10 A5 06 9F 38 03 9F 37 04",  // PDOL: unpredictable number alone
    ])
    func withoutTTQ(_ fci: String) throws {
        for hasKernel1 in [false, true] {
            var play = try Play(
                [.visa()], kernels: hasKernel1 ? [1: Obedient.self, 3: Obedient.self] : [3: Obedient.self])
            _ = play.next(.startA(try purchase(1)))
            _ = play.next(.cardPresent)
            _ = play.next(try answer(ppse("61 09 4F 07 A0 00 00 00 03 10 10") + "90 00"))
            let step = play.next(try answer(fci + "90 00"))
            if hasKernel1 {
                expectEqual(step.command, Obedient.command)
                expectEqual(play.next(try answer("03 90 00")).final?.kernel, 1)
            } else {
                expectEqual(step.final?.outcome.kind, .endApplication)
                #expect(step.notes.contains { $0.contains("Kernel 1") })
            }
        }
    }

    /// 3.3.3.7
    @Test func communicationErrorsLeadBackToTheField() throws {
        var play = try Play([.visa()])
        _ = play.next(.startA(try purchase(1)))
        _ = play.next(.cardPresent)
        #expect(play.next(.communicationError(.timeout)).shows([(.presentCard, .readyToRead)], then: "field"))
        #expect(play.next(.communicationError(.protocol)).shows([(.presentCard, .readyToRead)], then: "field"))
        _ = play.next(.cardPresent)
        _ = play.next(try answer(ppse("61 09 4F 07 A0 00 00 00 03 10 10") + "90 00"))
        #expect(play.next(.communicationError(.transmission)).shows([(.presentCard, .readyToRead)], then: "field"))
        expectEqual(play.next(.cardPresent).command, "00A404000E325041592E5359532E444446303100")
    }

    /// A card that never gets further is given up.
    @Test func notForEver() throws {
        var play = try Play([.visa()])
        _ = play.next(.startA(try purchase(1)))
        for _ in 1..<EntryPoint.maximumActivations {
            expectEqual(play.next(.communicationError(.timeout)).command, "field")
        }
        expectEqual(play.next(.communicationError(.timeout)).final?.outcome.kind, .endApplication)
    }

    // MARK: Kernel activation (3.4)

    /// 3.4, and the Restart Flag: from Start A on, after Try Again from B on, after Select Next from C on, and where an
    /// online request says.
    @Test(arguments: [
        ([], "A false 3"), (["tryAgain"], "B true 3"), (["selectNext"], "C true 3"),
        (["selectNext", "tryAgain"], "B true 3"), (["A"], "A true 3"), (["B"], "B true 3"), (["D"], "D true 3"),
    ])
    func startOfAnActivation(_ outcomes: [String], _ expected: String) throws {
        var play = try Play([.visa()])
        _ = play.next(.startA(try purchase(1)))
        func told(_ answer: String) throws -> EntryPoint.Step { play.next(try EMVContactlessTests.answer(answer)) }
        let entries = ppse(String(repeating: "61 09 4F 07 A0 00 00 00 03 10 10", count: 2)) + "90 00"
        /// Leads to an active kernel.
        func activate(_ step: EntryPoint.Step) throws {
            switch step.command {
            case "off 1300": try activate(play.next(.fieldIsOff))
            case "field": try activate(play.next(.cardPresent))
            case let command where command.hasPrefix("00A404000E"): try activate(try told(entries))
            case let command where command.hasPrefix("00A40400"): try activate(try told(visaFCI + "90 00"))
            default: expectEqual(step.command, Obedient.command)
            }
        }
        try activate(play.next(.cardPresent))
        for outcome in outcomes {
            if let kind = Outcome.Kind(rawValue: outcome) {
                try activate(try told([Obedient.code(of: kind)].hex + "90 00"))
            } else {
                try expectEqual(told(Obedient.onlineRequest(outcome)).final?.outcome.kind, .onlineRequest)
                try activate(play.next(.onlineResponse(OnlineResponse(authorizationResponseCode: [0x30, 0x30]))))
            }
        }
        let final = try #require(try told([Obedient.code(of: .declined)].hex + "90 00").final)
        expectEqual(final.outcome.dataRecord?[0xDF02].map { String(decoding: $0, as: UTF8.self) }, expected)
    }

    /// 3.4.1.1: a kernel that the reader does not have is named, and the next one is taken.
    @Test func kernelsThatAreMissing() throws {
        var play = try Play([.visa(), .mastercard()], kernels: [3: Obedient.self])
        _ = play.next(.startA(try purchase(1)))
        _ = play.next(.cardPresent)
        let two = ppse("61 0C 4F 07 A0 00 00 00 04 10 10 87 01 01 61 0C 4F 07 A0 00 00 00 03 10 10 87 01 02")
        expectEqual(play.next(try answer(two + "90 00")).command, "00A4040007A000000004101000")
        let step = play.next(try answer("6F 02 A5 00 90 00"))
        #expect(step.notes.contains { $0.contains("Kernel 2 (Mastercard)") })
        expectEqual(step.command, "00A4040007A000000003101000")
    }

    /// 3.3.2.5, 3.4.1.1: one card of each scheme whose kernel the test terminal does not have.  AIDs as the schemes publish
    /// them; Kernel 8 is asked for by tag 9F2A (Book B, table 3-5).
    @Test(arguments: [
        ("A0 00 00 00 25 01 07 01", "", "Kernel 4 (American Express)"),
        ("A0 00 00 00 65 10 10", "9F 2A 01 05", "Kernel 5 (JCB)"),
        ("A0 00 00 01 52 30 10", "", "Kernel 6 (Discover)"),
        ("A0 00 00 03 33 01 01 02", "9F 2A 01 07", "Kernel 7 (UnionPay)"),
        ("A0 00 00 00 04 10 10", "9F 2A 01 08", "Kernel 8 (EMVCo)"),
        ("A0 00 00 00 04 30 60", "9F 2A 01 08", "Kernel 8 (EMVCo)"),
    ])
    func kernelsThatAreNotThere(_ name: String, _ kernel: String, _ expected: String) throws {
        func entry(_ name: String, _ more: String) throws -> String {
            TLVTag(0x61).encode(TLVTag(0x4F).encode(try [UInt8](hex: name)) + (try [UInt8](hex: more))).hex
        }
        let first = try entry(name, "87 01 01" + kernel)
        for hasVisa in [false, true] {
            var entryPoint = EntryPoint(configuration: .test)
            _ = entryPoint.next(.startA(try purchase(1)))
            _ = entryPoint.next(.cardPresent)
            let second = hasVisa ? try entry("A0 00 00 00 03 10 10", "87 01 02") : ""
            let select = entryPoint.next(try answer(ppse(first + second) + "90 00"))
            let digits = try [UInt8](hex: name).hex
            expectEqual(select.command, "00A40400" + hex(digits.count / 2) + digits + "00")
            let step = entryPoint.next(try answer("6F 02 A5 00 90 00"))
            expectEqual(step.notes, ["select next: this reader does not have \(expected)"])
            if hasVisa {
                expectEqual(step.command, "00A4040007A000000003101000")
            } else {
                #expect(step.final?.outcome.kind == .endApplication && step.final?.kernel == nil)
            }
        }
    }

    /// What a card puts behind the reader's AID may be an account number, and stays out of the log.
    @Test func namesInTheLog() throws {
        var play = try Play([.visa()])
        _ = play.next(.startA(try purchase(1)))
        _ = play.next(.cardPresent)
        // The published test account number, in an ADF name.
        _ = play.next(try answer(ppse("61 11 4F 0F A0 00 00 00 03 10 10 47 61 73 90 01 01 00 10") + "90 00"))
        let step = play.next(try answer("6A 82"))
        let status = StatusWord.fileNotFound
        expectEqual(step.notes, ["SELECT A0000000031010****************: \(status)"])
    }

    /// 3.4.1.2, 3.4.1.3: what the kernel is given.
    @Test func whatAKernelIsGiven() throws {
        var play = try Play([.visa(cvmRequiredLimit: 1234)])
        _ = play.next(.startA(try purchase(1234)))
        let record = try #require(
            try play.select(ppse: "61 0A 4F 08 A0 00 00 00 03 10 10 01", kernelSays: .approved).outcome.dataRecord)
        expectEqual(record[0x9F66]?.hex, "20400000")  // CVM required
        expectEqual(record[0x9F02]?.hex, "000000001234")
        expectEqual(record[0x9F03]?.hex, "000000000000")
        expectEqual(record[0x5F2A]?.hex, "0978")
        expectEqual(record[0x9A]?.hex, "261121")
        expectEqual(record[0x9F21]?.hex, "123456")
        expectEqual(record[0x9C]?.hex, "00")
        expectEqual(record[0x9F37]?.hex, "01020304")
        expectEqual(record[0x9F41]?.hex, "00000042")
        expectEqual(record[0x9F06]?.hex, "A0000000031010")
        expectEqual(record[0x9F1A]?.hex, "0276")
        expectEqual(record[0x84]?.hex, "A000000003101001")
    }

    // MARK: Outcome processing (3.5)

    /// 3.5.1.1, 3.5.1.2, 3.5.1.3: see the phone, the field off for 1.3 s, and from Start B with the message kept.
    @Test func tryAgain() throws {
        var play = try Play([.visa()])
        _ = play.next(.startA(try purchase(1)))
        _ = play.next(.cardPresent)
        _ = play.next(try answer(ppse("61 09 4F 07 A0 00 00 00 03 10 10") + "90 00"))
        _ = play.next(try answer(visaFCI + "90 00"))
        let off = play.next(try answer("01 90 00"))
        expectEqual(off.userInterfaceRequests, [.init(.seePhone, .processingError)])
        expectEqual(off.command, "off 1300")
        #expect(play.next(.fieldIsOff).shows([(.presentCardAgain, .readyToRead)], then: "field"))
        expectEqual(play.next(.cardPresent).command, "00A404000E325041592E5359532E444446303100")
    }

    /// 3.5.1.4
    @Test func selectNext() throws {
        var play = try Play([.visa(), .mastercard()])
        _ = play.next(.startA(try purchase(1)))
        _ = play.next(.cardPresent)
        _ = play.next(
            try answer(ppse("61 09 4F 07 A0 00 00 00 03 10 10 61 09 4F 07 A0 00 00 00 04 10 10") + "90 00"))
        _ = play.next(try answer(visaFCI + "90 00"))
        expectEqual(play.next(try answer("00 90 00")).command, "00A4040007A000000004101000")
        _ = play.next(try answer("6F 00 90 00"))
        expectEqual(play.next(try answer("00 90 00")).final?.outcome.kind, .endApplication)
    }

    /// 3.5.1.5, and what comes back from the issuer: Start B with data for the card skips the PPSE (3.3.2.1).
    @Test func onlineResponses() throws {
        let issuer = OnlineResponse(
            authorizationResponseCode: Array("00".utf8), issuerAuthenticationData: [1, 2, 3, 4])
        var play = try Play([.visa()])
        _ = play.next(.startA(try purchase(1)))
        let final = try play.select(ppse: "61 09 4F 07 A0 00 00 00 03 10 10", kernelSays: .onlineRequest)
        #expect(final.name?.hex == "A0000000031010" && final.kernel == 3)
        #expect(final.outcome.isRestarted(by: issuer))
        #expect(!final.outcome.isRestarted(by: OnlineResponse(authorizationResponseCode: Array("00".utf8))))
        #expect(play.next(.onlineResponse(issuer)).shows([(.presentCardAgain, .readyToRead)], then: "field"))
        expectEqual(play.next(.cardPresent).command, "00A4040007A000000003101000")
        var refused = play
        // 3.3.3.5
        expectEqual(refused.next(try answer("6A 82")).final?.outcome.kind, .endApplication)
        expectEqual(play.next(try answer(visaFCI + "90 00")).command, Obedient.command)
        expectEqual(play.next(try answer("03 90 00")).final?.outcome.dataRecord?[0x91]?.hex, "01020304")
    }

    /// Book A, 8.1.1.9: where the outcome says, with the issuer's answer, and with the field as it is but for A and B.
    ///
    /// A: pre-processing (3.1.1.1), the message of the outcome (3.2.1.2), the PPSE; B without data for the card: the PPSE
    /// (3.3.2.2); B with them: the application of before (3.3.2.1); C: the candidates that are left (3.3.2.6); D: the
    /// kernel, without a command before its own (3.4.1.1).
    @Test(
        arguments: [
            ("A", true, ["field", selectPPSE, selectFirst]), ("A", false, ["field", selectPPSE, selectFirst]),
            ("B", true, ["field", selectFirst]), ("B", false, ["field", selectPPSE, selectFirst]),
            ("C", true, [selectFirst]), ("C", false, [selectFirst]), ("D", true, []), ("D", false, []),
        ])
    func restarts(_ start: String, _ hasData: Bool, _ steps: [String]) throws {
        var play = try Play([.visa(cvmRequiredLimit: 1), .mastercard()])
        _ = play.next(.startB(try purchase(1)))
        _ = play.next(.cardPresent)
        _ = play.next(try answer(Self.two + "90 00"))
        _ = play.next(try answer(visaFCI + "90 00"))
        let asked = try #require(play.next(try answer(Obedient.onlineRequest(start))).final)
        #expect(asked.outcome.kind == .onlineRequest && asked.outcome.discretionaryData?[0xDF01] == [0])

        let issuer = OnlineResponse(
            authorizationResponseCode: Array("00".utf8), issuerAuthenticationData: hasData ? [1, 2, 3, 4] : nil)
        var step = play.next(.onlineResponse(issuer))
        for expected in steps {
            expectEqual(step.command, expected)
            switch expected {
            case "field":
                expectEqual(step.userInterfaceRequests, [.init(.presentCardAgain, .readyToRead)])
                step = play.next(.cardPresent)
            case Self.selectPPSE: step = play.next(try answer(Self.two + "90 00"))
            default: step = play.next(try answer(visaFCI + "90 00"))
            }
            #expect(expected == "field" || step.userInterfaceRequests.isEmpty)
        }
        expectEqual(step.command, Obedient.command)
        let outcome = try #require(play.next(try answer("02 90 00")).final)
        #expect(outcome.outcome.kind == .approved && outcome.name?.hex == "A0000000031010")
        expectEqual(outcome.outcome.dataRecord?[0x8A], Array("00".utf8))
        expectEqual(outcome.outcome.dataRecord?[0x91], hasData ? [1, 2, 3, 4] : nil)
        // 3.1.1.8: begun at Start B there was no pre-processing; from Start A on there is.
        expectEqual(outcome.outcome.discretionaryData?[0xDF01], [start == "A" ? 1 : 0])
    }

    /// An application that can no longer be selected: the end where the issuer's data are for it (3.3.3.5), else the next.
    @Test(arguments: [
        ("A", true, true), ("A", false, false), ("B", true, true), ("B", false, false), ("C", true, true),
        ("C", false, false),
    ])
    func restartsWithoutTheApplication(_ start: String, _ hasData: Bool, _ isEnd: Bool) throws {
        var play = try Play([.visa(), .mastercard()])
        _ = play.next(.startA(try purchase(1)))
        _ = play.next(.cardPresent)
        _ = play.next(try answer(Self.two + "90 00"))
        _ = play.next(try answer(visaFCI + "90 00"))
        _ = play.next(try answer(Obedient.onlineRequest(start)))
        var step = play.next(.onlineResponse(OnlineResponse(issuerAuthenticationData: hasData ? [1] : nil)))
        if step.command == "field" { step = play.next(.cardPresent) }
        if step.command == Self.selectPPSE { step = play.next(try answer(Self.two + "90 00")) }
        expectEqual(step.command, Self.selectFirst)
        step = play.next(try answer("6A 82"))
        #expect(isEnd ? step.final?.outcome.kind == .endApplication : step.command == "00A4040007A000000004101000")
    }

    /// 3.3.3.5: that is the end also where the card names the same application twice.
    @Test(arguments: ["A", "C"]) func restartsWithoutTheApplicationThatIsThereTwice(_ start: String) throws {
        var play = try Play([.visa()])
        _ = play.next(.startA(try purchase(1)))
        _ = play.next(.cardPresent)
        let visa = "61 09 4F 07 A0 00 00 00 03 10 10"
        let directory = try answer(ppse(visa + visa) + "90 00")
        _ = play.next(directory)
        _ = play.next(try answer(visaFCI + "90 00"))
        _ = play.next(try answer(Obedient.onlineRequest(start)))
        var step = play.next(.onlineResponse(OnlineResponse(issuerAuthenticationData: [1])))
        if step.command == "field" { step = play.next(.cardPresent) }
        if step.command == Self.selectPPSE { step = play.next(directory) }
        expectEqual(step.command, Self.selectFirst)
        expectEqual(play.next(try answer("6A 82")).final?.outcome.kind, .endApplication)
    }

    /// The issuer's data reach no other application: neither when the kernel, activated again, wants the next one (3.5.1.4),
    /// nor when the card now answers the SELECT as one for Kernel 1 (3.3.3.6).
    @Test(arguments: [(visaFCI + "90 00", true), ("6F 09 84 07 A0 00 00 00 03 10 10 90 00", false)])
    func theIssuersDataAreForOneApplication(_ fci: String, _ reachesKernel: Bool) throws {
        var play = try Play([.visa(), .mastercard()])
        _ = play.next(.startA(try purchase(1)))
        _ = play.next(.cardPresent)
        _ = play.next(try answer(Self.two + "90 00"))
        _ = play.next(try answer(visaFCI + "90 00"))
        _ = play.next(try answer(Obedient.onlineRequest("B")))
        _ = play.next(.onlineResponse(OnlineResponse(issuerAuthenticationData: [1])))
        expectEqual(play.next(.cardPresent).command, Self.selectFirst)
        var step = play.next(try answer(fci))
        expectEqual(step.command == Obedient.command, reachesKernel)
        if reachesKernel { step = play.next(try answer([Obedient.code(of: .selectNext)].hex + "90 00")) }
        expectEqual(step.final?.outcome.kind, .endApplication)
        expectEqual(step.userInterfaceRequests, [.init(.insertSwipeOrTryAnotherCard, .readyToRead)])
    }

    /// A card that is lost in the selection leads to Start B, where the application of before is selected without the PPSE
    /// (3.3.2.1); so does Try Again of the kernel that was restarted at Start D.
    @Test(arguments: ["A", "B", "C", "D"], [true, false])
    func theIssuersDataAfterTryAgain(_ start: String, _ isThere: Bool) throws {
        var play = try Play([.visa(), .mastercard()])
        _ = play.next(.startA(try purchase(1)))
        _ = play.next(.cardPresent)
        _ = play.next(try answer(Self.two + "90 00"))
        _ = play.next(try answer(visaFCI + "90 00"))
        _ = play.next(try answer(Obedient.onlineRequest(start)))
        var step = play.next(.onlineResponse(OnlineResponse(issuerAuthenticationData: [1])))
        while step.command != Obedient.command {
            switch step.command {
            case "field": step = play.next(.cardPresent)
            case Self.selectPPSE: step = play.next(try answer(Self.two + "90 00"))
            default: step = play.next(try answer(visaFCI + "90 00"))
            }
        }
        expectEqual(play.next(try answer([Obedient.code(of: .tryAgain)].hex + "90 00")).command, "off 1300")
        expectEqual(play.next(.fieldIsOff).command, "field")
        expectEqual(play.next(.cardPresent).command, Self.selectFirst)
        expectEqual(play.next(.communicationError(.timeout)).command, "field")
        expectEqual(play.next(.cardPresent).command, Self.selectFirst)
        if isThere {
            _ = play.next(try answer(visaFCI + "90 00"))
            expectEqual(play.next(try answer("02 90 00")).final?.outcome.dataRecord?[0x91], [1])
        } else {
            expectEqual(play.next(try answer("6A 82")).final?.outcome.kind, .endApplication)
        }
    }

    /// From Start A the PPSE is read again: now the card puts another application first, or has that one alone.
    @Test(arguments: [true, false]) func theIssuersDataAndAnotherDirectory(_ isThere: Bool) throws {
        var play = try Play([.visa(), .mastercard()])
        _ = play.next(.startA(try purchase(1)))
        _ = play.next(.cardPresent)
        _ = play.next(try answer(Self.two + "90 00"))
        _ = play.next(try answer(visaFCI + "90 00"))
        _ = play.next(try answer(Obedient.onlineRequest("A")))
        _ = play.next(.onlineResponse(OnlineResponse(scripts: [[0x72, 0x00]])))
        _ = play.next(.cardPresent)
        let visa = "61 09 4F 07 A0 00 00 00 03 10 10"
        let step = play.next(
            try answer(ppse("61 09 4F 07 A0 00 00 00 04 10 10" + (isThere ? visa : "")) + "90 00"))
        #expect(isThere ? step.command == Self.selectFirst : step.final?.outcome.kind == .endApplication)
    }

    /// 3.3.3.6: with the same AID, but for Kernel 1 where Kernel 3 asked the issuer.
    @Test func theIssuersDataAreForOneKernel() throws {
        var play = try Play([.visa()], kernels: [1: Obedient.self, 3: Obedient.self])
        _ = play.next(.startA(try purchase(1)))
        _ = play.next(.cardPresent)
        _ = play.next(try answer(Self.two + "90 00"))
        _ = play.next(try answer(visaFCI + "90 00"))
        _ = play.next(try answer(Obedient.onlineRequest("B")))
        _ = play.next(.onlineResponse(OnlineResponse(issuerAuthenticationData: [1])))
        _ = play.next(.cardPresent)
        let step = play.next(try answer("6F 09 84 07 A0 00 00 00 03 10 10 90 00"))
        expectEqual(step.final?.outcome.kind, .endApplication)
    }

    /// Book A, table 6-1: the request on restart is shown at every start; from C on without field and PPSE.
    @Test(arguments: [
        ("A", ["field", selectPPSE, selectFirst]), ("B", ["field", selectPPSE, selectFirst]),
        ("C", [selectFirst]), ("D", []),
    ])
    func requestOnRestart(_ start: String, _ steps: [String]) throws {
        // End Application restarts at A and B alone.
        for kind in [Outcome.Kind.onlineRequest, .endApplication] where kind == .onlineRequest || steps.count == 3 {
            var play = try Play([.visa(cvmRequiredLimit: 1), .mastercard()])
            _ = play.next(.startB(try purchase(1)))
            _ = play.next(.cardPresent)
            _ = play.next(try answer(Self.two + "90 00"))
            _ = play.next(try answer(visaFCI + "90 00"))
            // End Application waits for no issuer, and restarts at once.
            var step = play.next(try answer(([Obedient.code(of: kind)] + Array(start.utf8)).hex + "90 00"))
            if kind == .onlineRequest {
                #expect(step.final != nil && step.userInterfaceRequests.isEmpty)
                step = play.next(.onlineResponse(OnlineResponse()))
            }
            expectEqual(step.userInterfaceRequests, [.init(.presentCardAgain, .readyToRead)])
            for expected in steps {
                expectEqual(step.command, expected)
                switch expected {
                case "field": step = play.next(.cardPresent)
                case Self.selectPPSE: step = play.next(try answer(Self.two + "90 00"))
                default: step = play.next(try answer(visaFCI + "90 00"))
                }
                #expect(step.userInterfaceRequests.isEmpty)
            }
            expectEqual(step.command, Obedient.command)
            let record = try #require(play.next(try answer("02 90 00")).final).outcome
            expectEqual(record.dataRecord?[0xDF02].map { String(decoding: $0, as: UTF8.self) }, "\(start) true 3")
            // 3.1.1.8: from Start A on there is pre-processing.
            expectEqual(record.discretionaryData?[0xDF01], [start == "A" ? 1 : 0])
        }
    }

    /// A kernel that restarts for ever.
    @Test(arguments: ["A", "B"]) func restartsForEver(_ start: String) throws {
        var play = try Play([.visa()])
        _ = play.next(.startA(try purchase(1)))
        var step = play.next(.cardPresent)
        var steps = 0
        while step.final == nil, steps < 10_000 {
            steps += 1
            switch step.command {
            case "field": step = play.next(.cardPresent)
            case Self.selectPPSE: step = play.next(try answer(Self.two + "90 00"))
            case Self.selectFirst: step = play.next(try answer(visaFCI + "90 00"))
            default:
                step = play.next(
                    try answer(([Obedient.code(of: .endApplication)] + Array(start.utf8)).hex + "90 00"))
            }
        }
        expectEqual(step.final?.outcome.kind, .endApplication)
    }

    /// From Start A again, the limits count again: here nothing is allowed (3.1.1.13).
    @Test func restartAtAWithoutAnyCombination() throws {
        var play = try Play([.visa(transactionLimit: 1)])
        _ = play.next(.startB(try purchase(1)))
        _ = play.next(.cardPresent)
        _ = play.next(try answer(Self.two + "90 00"))
        _ = play.next(try answer(visaFCI + "90 00"))
        _ = play.next(try answer(Obedient.onlineRequest("A")))
        let step = play.next(.onlineResponse(OnlineResponse()))
        expectEqual(step.final?.outcome.kind, .tryAnotherInterface)
        expectEqual(step.userInterfaceRequests, [.init(.insertOrSwipeCard, .processingError)])
    }

    private static let selectPPSE = "00A404000E325041592E5359532E444446303100"
    private static let selectFirst = "00A4040007A000000003101000"
    /// A PPSE with Visa before Mastercard.
    private static let two = ppse("61 09 4F 07 A0 00 00 00 03 10 10 61 09 4F 07 A0 00 00 00 04 10 10")

    @Test func anOnlineResponseThatNobodyAskedFor() throws {
        var play = try Play([.visa()])
        _ = play.next(.startA(try purchase(1)))
        let final = try play.select(ppse: "61 09 4F 07 A0 00 00 00 03 10 10", kernelSays: .approved)
        let response = OnlineResponse(issuerAuthenticationData: [1])
        #expect(!final.outcome.isRestarted(by: response))
        expectEqual(play.next(.onlineResponse(response)).final?.outcome.kind, .endApplication)
    }

    /// A kernel that would go on for ever.
    @Test func aKernelWithoutEnd() throws {
        var play = try Play([.visa()])
        _ = play.next(.startA(try purchase(1)))
        _ = play.next(.cardPresent)
        _ = play.next(try answer(ppse("61 09 4F 07 A0 00 00 00 03 10 10") + "90 00"))
        var step = play.next(try answer(visaFCI + "90 00"))
        var commands = 0
        while step.command == Obedient.command, commands <= EntryPoint.maximumCommands {
            commands += 1
            step = play.next(try answer("FF 90 00"))
        }
        expectEqual(commands, EntryPoint.maximumCommands)
        expectEqual(step.final?.outcome.kind, .endApplication)
    }

    @Test func eventsOutOfOrderEndTheTransaction() throws {
        var play = try Play([.visa()])
        expectEqual(play.next(.cardPresent).final?.outcome.kind, .endApplication)
        _ = play.next(.startA(try purchase(1)))
        expectEqual(play.next(.fieldIsOff).final?.outcome.kind, .endApplication)
        // And another one can begin.
        expectEqual(play.next(.startA(try purchase(1))).command, "field")
    }
}

/// What Entry Point keeps from one card, one restart and one transaction to the next, and how often it does something.
@Suite struct EntryPointBoundaryTests {
    private static let selectPPSE = "00A404000E325041592E5359532E444446303100"
    private static let visaEntry = "61 09 4F 07 A0 00 00 00 03 10 10"

    /// 3.3.2.1: the issuer's data, and the way round the PPSE, belong to the transaction that they were for.
    @Test("a transaction after a restart with issuer data reads the PPSE, and has neither its data nor its start")
    func theNextTransaction() throws {
        let issuer = OnlineResponse(
            authorizationResponseCode: Array("00".utf8), issuerAuthenticationData: [1, 2, 3, 4])
        for isApplicationThere in [true, false] {
            var play = try Play([.visa()])
            _ = play.next(.startA(try purchase(1)))
            _ = try play.select(ppse: Self.visaEntry, kernelSays: .onlineRequest)
            _ = play.next(.onlineResponse(issuer))
            expectEqual(play.next(.cardPresent).command, "00A4040007A000000003101000")
            if isApplicationThere {
                _ = play.next(try answer(visaFCI + "90 00"))
                expectEqual(play.next(try answer("02 90 00")).final?.outcome.dataRecord?[0x91], [1, 2, 3, 4])
            } else {
                expectEqual(play.next(try answer("6A 82")).final?.outcome.kind, .endApplication)
            }
            #expect(play.next(.startA(try purchase(1))).shows([(.presentCard, .readyToRead)], then: "field"))
            #expect(play.candidates.isEmpty)
            var again = play
            expectEqual(again.next(.cardPresent).command, Self.selectPPSE)
            let record = try play.select(ppse: Self.visaEntry, kernelSays: .approved).outcome.dataRecord
            #expect(record?[0x8A] == nil && record?[0x91] == nil)
            expectEqual(record?[0xDF02].map { String(decoding: $0, as: UTF8.self) }, "A false 3")
        }
    }

    /// The reader's preference goes before the card's priorities, in its own order.
    @Test(
        "two preferred applications, in either order",
        arguments: [
            (["A000000003101002", "A0000000041010"], ["A000000003101002", "A0000000041010", "A000000003101001"]),
            (["A0000000041010", "A000000003101002"], ["A0000000041010", "A000000003101002", "A000000003101001"]),
            // An AID stands for all that begin with it; these stay in the card's order.
            (["A000000003", "A0000000041010"], ["A000000003101001", "A000000003101002", "A0000000041010"]),
            (["A0000000041010", "A000000003"], ["A0000000041010", "A000000003101001", "A000000003101002"]),
            (["A000000003101002"], ["A000000003101002", "A000000003101001", "A0000000041010"]),
            (["A000000025010701"], ["A000000003101001", "A0000000041010", "A000000003101002"]),
        ])
    func preferredApplications(_ preferred: [String], _ names: [String]) throws {
        let aids = try preferred.map { try #require(AID([UInt8](hex: $0))) }
        var play = try Play([.visa(), .mastercard()], preferring: aids)
        _ = play.next(.startA(try purchase(1)))
        _ = play.next(.cardPresent)
        _ = play.next(
            try answer(
                ppse(
                    """
                    61 0D 4F 08 A0 00 00 00 03 10 10 01 87 01 01 61 0D 4F 08 A0 00 00 00 03 10 10 02 87 01 03 \
                    61 0C 4F 07 A0 00 00 00 04 10 10 87 01 02
                    """) + "90 00"))
        expectEqual(play.candidates.map(\.name.hex), names)
    }

    /// The count begins again with a transaction and with a restart, and two cards in the field are no activation.
    @Test("sixteen activations of the field are allowed in each transaction, and after each restart")
    func activations() throws {
        var play = try Play([.visa()])
        for _ in 0..<2 {
            _ = play.next(.startA(try purchase(1)))
            for _ in 0..<20 {
                expectEqual(play.next(.collision).command, "field")
                expectEqual(play.next(.collisionOver).command, "field")
            }
            for _ in 1..<16 { expectEqual(play.next(.communicationError(.timeout)).command, "field") }
            _ = try play.select(ppse: Self.visaEntry, kernelSays: .onlineRequest)
            expectEqual(play.next(.onlineResponse(OnlineResponse(issuerAuthenticationData: [1]))).command, "field")
            for _ in 1..<16 { expectEqual(play.next(.communicationError(.timeout)).command, "field") }
            expectEqual(play.next(.communicationError(.timeout)).final?.outcome.kind, .endApplication)
        }
    }

    @Test("a kernel asks the terminal as often as it may send commands")
    func exchanges() throws {
        var play = try Play([.visa()], kernels: [3: Asking.self])
        _ = play.next(.startA(try purchase(1)))
        _ = play.next(.cardPresent)
        _ = play.next(try answer(ppse(Self.visaEntry) + "90 00"))
        var step = play.next(try answer(visaFCI + "90 00"))
        for _ in 0..<1024 {
            expectEqual(step.command, "exchange")
            step = play.next(.terminalData(DataRecord()))
        }
        expectEqual(step.final?.outcome.kind, .endApplication)
    }

    /// Book A, table 6-1, Start; Book B, 3.3.3.7.
    @Test("Kernel 2's End Application with Start B is a restart, a card lost in the selection is none")
    func startBOfKernel2() throws {
        for isLost in [true, false] {
            var play = try Play([.visa()])
            _ = play.next(.startA(try purchase(1)))
            _ = play.next(.cardPresent)
            _ = play.next(try answer(ppse(Self.visaEntry) + "90 00"))
            if isLost {
                expectEqual(play.next(.communicationError(.timeout)).command, "field")
            } else {
                _ = play.next(try answer(visaFCI + "90 00"))
                expectEqual(
                    play.next(try answer([Obedient.code(of: .endApplication), 0x42].hex + "90 00")).command, "field")
            }
            let record = try play.select(ppse: Self.visaEntry, kernelSays: .approved).outcome.dataRecord
            expectEqual(record?[0xDF02].map { String(decoding: $0, as: UTF8.self) }, "B \(!isLost) 3")
        }
    }

    @Test("a transaction that pre-processing refuses has no candidates of the one before")
    func candidatesOfTheOneBefore() throws {
        var play = try Play([.visa(transactionLimit: 10)])
        _ = play.next(.startA(try purchase(1)))
        _ = try play.select(ppse: Self.visaEntry, kernelSays: .approved)
        expectEqual(play.candidates.count, 1)
        let refused = try #require(play.next(.startA(try purchase(10))).final)
        #expect(refused.outcome.kind == .tryAnotherInterface && refused.name == nil && refused.kernel == nil)
        #expect(play.candidates.isEmpty)
    }

    /// 3.3.3.6 is about Visa's cards.
    @Test("another scheme's application without a PDOL is Kernel 3's, where the combination says so")
    func anotherSchemeWithoutTTQ() throws {
        let combination = Combination(
            aid: aid(0xA0, 0, 0, 9, 0x99, 0x10, 0x10), kernel: 3, terminalTransactionQualifiers: .emvMode)
        var play = try Play([combination])
        _ = play.next(.startA(try purchase(1)))
        _ = play.next(.cardPresent)
        _ = play.next(try answer(ppse("61 0D 4F 07 A0 00 00 09 99 10 10 9F 2A 01 03") + "90 00"))
        let step = play.next(try answer("6F 0B 84 07 A0 00 00 09 99 10 10 A5 00 90 00"))
        expectEqual(step.command, Obedient.command)
    }

    @Test("a combination's data count before the terminal's")
    func dataOfTheCombination() throws {
        var play = try Play([.visa(data: [0x9F1A: [0x00, 0x56]])], terminal: [0x9F1A: [0x02, 0x76]])
        _ = play.next(.startA(try purchase(1)))
        let record = try play.select(ppse: Self.visaEntry, kernelSays: .approved).outcome.dataRecord
        expectEqual(record?[0x9F1A]?.hex, "0056")
    }

    // MARK: Transactions

    /// 9F02 and 9F03 have twelve digits, 9F41 has eight; cashback is part of the amount.
    @Test(
        "the largest transaction, and those that are larger",
        arguments: [
            (.purchase, 999_999_999_999, 0, 99_999_999, true), (.purchase, 1_000_000_000_000, 0, 1, false),
            (.purchase, 1, 0, 100_000_000, false), (.purchaseWithCashback, 10, 10, 1, true),
            (.purchaseWithCashback, 10, 11, 1, false), (.purchase, 10, 1, 1, false), (.cash, 10, 1, 1, false),
            (.refund, 10, 1, 1, false), (.purchaseWithCashback, 10, 0, 1, true),
        ] as [(Transaction.Kind, UInt64, UInt64, UInt32, Bool)])
    func transactions(
        _ kind: Transaction.Kind, _ amount: UInt64, _ other: UInt64, _ counter: UInt32, _ isSound: Bool
    ) throws {
        let time = try purchase(1).time
        let currency = try #require(Currency["EUR"])
        let transaction = Transaction(
            kind, amount: amount, amountOther: other, currency: currency, time: time,
            unpredictableNumber: [1, 2, 3, 4], sequenceCounter: counter)
        expectEqual(transaction != nil, isSound)
    }

    @Test("a combination's limit has twelve digits at the most")
    func longestLimits() throws {
        for (limit, isSound) in [(UInt64(999_999_999_999), true), (1_000_000_000_000, false)] {
            for combination in [
                Combination.visa(transactionLimit: limit), .visa(floorLimit: limit), .visa(cvmRequiredLimit: limit),
            ] {
                expectEqual((try? Play([combination])) != nil, isSound)
            }
        }
    }

    @Test("a given number of other than four bytes is replaced by a random one")
    func givenNumbers() {
        let numbers = UnpredictableNumbers([[1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4, 5]])
        let drawn = (0..<4).map { _ in numbers.next() }
        #expect(drawn.allSatisfy { $0.count == 4 } && drawn[1] == [1, 2, 3, 4] && numbers.drawn == drawn)
    }

    /// A card that is presented anew gets as many commands as the first one.
    @Test("the commands of a kernel are counted for each activation alone")
    func commandsOfEachActivation() throws {
        var play = try Play([.visa()])
        _ = play.next(.startA(try purchase(1)))
        for _ in 0..<2 {
            _ = play.next(.cardPresent)
            _ = play.next(try answer(ppse(Self.visaEntry) + "90 00"))
            _ = play.next(try answer(visaFCI + "90 00"))
            for _ in 1..<1024 { expectEqual(play.next(try answer("FF 90 00")).command, Obedient.command) }
            expectEqual(play.next(try answer([Obedient.code(of: .tryAgain)].hex + "90 00")).command, "off 1300")
            expectEqual(play.next(.fieldIsOff).command, "field")
        }
    }
}

// MARK: - What the tests speak in

enum Indicator: Hashable {
    case notAllowed, zeroAmount, statusCheck, floorLimit, cvmLimit

    static func all(in indicators: PreProcessingIndicators) -> Set<Indicator> {
        Set(
            [
                indicators.contactlessApplicationNotAllowed ? .notAllowed : nil,
                indicators.zeroAmount ? .zeroAmount : nil, indicators.statusCheckRequested ? .statusCheck : nil,
                indicators.floorLimitExceeded ? .floorLimit : nil,
                indicators.cvmRequiredLimitExceeded ? .cvmLimit : nil,
            ].compactMap { $0 })
    }
}

/// The FCI of a PPSE with these directory entries.
private func ppse(_ entries: String) -> String {
    let bytes = (try? [UInt8](hex: entries)) ?? []
    return TLVTag(0x6F).encode(
        TLVTag(0x84).encode(Array("2PAY.SYS.DDF01".utf8)) + TLVTag(0xA5).encode(TLVTag(0xBF0C).encode(bytes))
    ).hex
}

/// FCI: DF name, PDOL: TTQ
private let visaFCI = "6F 11 84 07 A0 00 00 00 03 10 10 A5 06 9F 38 03 9F 66 04"

private func answer(_ text: String) throws -> EntryPoint.Event {
    .response(try ResponseAPDU([UInt8](hex: text)), after: .milliseconds(10))
}

private func hex(_ number: Int) -> String { [UInt8(number)].hex }

func purchase(_ amount: UInt64, currency: String = "EUR") throws -> Transaction {
    let date = try #require(CalendarDate(year: 2026, month: 11, day: 21))
    let time = try #require(TerminalTime(date, hour: 12, minute: 34, second: 56))
    let currency = try #require(Currency[currency])
    return try #require(
        Transaction(
            .purchase, amount: amount, currency: currency, time: time, unpredictableNumber: [1, 2, 3, 4],
            sequenceCounter: 42))
}

extension Combination {
    fileprivate static func visa(
        transactionLimit: UInt64? = nil, floorLimit: UInt64? = nil, cvmRequiredLimit: UInt64? = nil,
        qualifiers: TerminalTransactionQualifiers = .emvMode, statusCheck: Bool? = nil, zeroAmountAllowed: Bool? = nil,
        data: [TLVTag: [UInt8]] = [:]
    ) -> Combination {
        Combination(
            aid: visaAID, kernel: 3, transactionLimit: transactionLimit,
            floorLimit: floorLimit, cvmRequiredLimit: cvmRequiredLimit, terminalTransactionQualifiers: qualifiers,
            statusCheck: statusCheck, zeroAmountAllowed: zeroAmountAllowed, data: data)
    }

    fileprivate static func mastercard(transactionLimit: UInt64? = nil) -> Combination {
        Combination(
            aid: mastercardAID, kernel: 2, transactionLimit: transactionLimit)
    }
}

/// An Entry Point with kernels that do what the card tells them.
private struct Play {
    private var entryPoint: EntryPoint

    init(
        _ combinations: [Combination], terminal: [TLVTag: [UInt8]] = [:],
        kernels: Kernels = [2: Obedient.self, 3: Obedient.self], preferring preferred: [AID] = []
    ) throws {
        var configuration = ReaderConfiguration.test
        configuration.abilities = []
        // They follow from the abilities.
        configuration.terminal[0x9F33] = nil
        configuration.terminal[0x9F40] = nil
        configuration.terminal.merge(terminal) { $1 }
        configuration.combinations = combinations
        entryPoint = EntryPoint(
            configuration: try configuration.validated(for: kernels), preferredApplications: preferred)
    }

    var candidates: CandidateList { entryPoint.candidates }

    mutating func next(_ event: EntryPoint.Event) -> EntryPoint.Step { entryPoint.next(event) }

    /// From a card in the field to an outcome.
    mutating func select(ppse entries: String, kernelSays kind: Outcome.Kind) throws -> FinalOutcome {
        _ = next(.cardPresent)
        _ = next(try answer(ppse(entries) + "90 00"))
        _ = next(try answer(visaFCI + "90 00"))
        return try #require(next(try answer([Obedient.code(of: kind)].hex + "90 00")).final)
    }
}

/// A kernel that asks the card what its outcome is to be.
private struct Obedient: ActivatableKernel {
    static let command = "80CA9F3600"
    private let activation: KernelActivation

    init(_ activation: KernelActivation) { self.activation = activation }

    /// The answer that makes it an online request which any response restarts, at `start`.
    static func onlineRequest(_ start: String) -> String {
        ([code(of: .onlineRequest)] + Array(start.utf8)).hex + "90 00"
    }

    static func code(of kind: Outcome.Kind) -> UInt8 { UInt8(Outcome.Kind.allCases.firstIndex(of: kind) ?? 0) }

    mutating func next(_ event: KernelEvent) -> KernelStep {
        guard case .response(let response, _) = event, let code = response.data.first,
            Outcome.Kind.allCases.indices.contains(Int(code))
        else { return KernelStep(.send(.getData(0x9F36))) }
        var outcome = Outcome(Outcome.Kind.allCases[Int(code)], reason: "the card says so")
        switch outcome.kind {
        case .tryAgain:
            outcome.start = .b
            outcome.fieldOff = 1300
            outcome.userInterfaceRequest = .init(.seePhone, .processingError)
            outcome.userInterfaceRequestOnRestart = .init(.presentCardAgain, .readyToRead)
        case .endApplication where response.data.count > 1:
            outcome.start = Outcome.Start(rawValue: String(decoding: response.data.dropFirst(), as: UTF8.self))
            outcome.userInterfaceRequestOnRestart = .init(.presentCardAgain, .readyToRead)
        case .onlineRequest:
            outcome.start = .b
            outcome.onlineResponseData = .emvData
            if response.data.count > 1 {
                outcome.start = Outcome.Start(rawValue: String(decoding: response.data.dropFirst(), as: UTF8.self))
                outcome.onlineResponseData = .any
            }
            outcome.userInterfaceRequestOnRestart = .init(.presentCardAgain, .readyToRead)
        default: break
        }
        var record = DataRecord(activation.terminalData.map { .init($0, $1) })
        record[0x84] = activation.name
        let (start, kernel) = (activation.start.rawValue, activation.kernel.rawValue)
        record[0xDF02] = Array("\(start) \(activation.isRestart) \(kernel)".utf8)
        record[0x8A] = activation.onlineResponse?.authorizationResponseCode
        record[0x91] = activation.onlineResponse?.issuerAuthenticationData
        outcome.dataRecord = record
        outcome.discretionaryData = DataRecord([.init(0xDF01, [activation.indicators.cvmRequiredLimitExceeded ? 1 : 0])]
        )
        return KernelStep(.outcome(outcome))
    }
}

/// A kernel that asks the terminal for ever.
private struct Asking: ActivatableKernel {
    init(_ activation: KernelActivation) {}

    mutating func next(_ event: KernelEvent) -> KernelStep { KernelStep(.exchange(DataExchange())) }
}

extension EntryPoint.Step {
    fileprivate var final: FinalOutcome? {
        if case .finish(let final) = action { final } else { nil }
    }

    /// The command in hexadecimal digits, or a word for another action.
    fileprivate var command: String {
        switch action {
        case .send(let command): command.bytes.hex
        case .activateField: "field"
        case .exchange: "exchange"
        case .switchFieldOff(let milliseconds): "off \(milliseconds)"
        case .finish(let final): "\(final.outcome.kind): \(final.outcome.reason)"
        }
    }

    fileprivate func shows(
        _ requests: [(UserInterfaceRequest.Message, UserInterfaceRequest.Status)], then command: String
    ) -> Bool {
        userInterfaceRequests == requests.map { .init($0, $1) } && self.command == command
    }
}

private func aid(_ bytes: UInt8...) -> AID {
    guard let aid = AID(bytes) else { preconditionFailure("an AID has 5 to 16 bytes") }
    return aid
}

private let visaAID = aid(0xA0, 0, 0, 0, 3, 0x10, 0x10)
private let mastercardAID = aid(0xA0, 0, 0, 0, 4, 0x10, 0x10)
