import EMVContactless
import SmartCard
import TestSupport
import Testing

/// EMV Contactless Book C-3, 5.1 to 5.4: up to the point where the card may leave.
@Suite(.computing) struct Kernel3Tests {
    // MARK: Initiate application processing

    /// One command is all it takes where the card gives no AFL.
    @Test func allInTheProcessingOptions() throws {
        let run = try Kernel3Bench().run(processingOptions())
        expectEqual(run.commands, [try wire(Kernel3Bench.gpo).hex])
        expectEqual(run.outcome.kind, .onlineRequest)
        // 5.4.1.1
        expectEqual(
            run.requests,
            [
                UserInterfaceRequest(
                    .cardReadRemoveCard, .cardReadSuccessfully, languagePreference: ["de", "en"])
            ])
    }

    /// EMV Book 3, 5.4: what the terminal does not have is zeros.
    @Test func theListIsAnswered() throws {
        var bench = Kernel3Bench()
        (bench.kind, bench.amount, bench.amountOther) = (.purchaseWithCashback, 50_00, 20_00)
        bench.fci = """
            6F 2F 84 07 A0 00 00 00 03 10 10 A5 24 9F 38 21
               9F 66 04  9F 02 06  9F 03 06  9F 1A 02  95 05  5F 2A 02  9A 03  9C 01  9F 37 04
               9F 7A 01    # VLP terminal support indicator, which no terminal has any longer
               BF 0C 02    # a template
               9F 33 02    # the first two bytes of three
            """
        let run = try bench.run(processingOptions())
        expectEqual(
            run.commands,
            [
                try wire(
                    """
                    80 A8 00 00 28 83 26
                    36 00 C0 00  00 00 00 00 50 00  00 00 00 00 20 00  02 76  00 00 00 00 00  09 78
                    26 11 21     # date
                    00           # Book C-3, Annex A: of cashback as well
                    11 22 33 44  00  00 00  E0 28
                    00
                    """
                ).hex
            ])
    }

    /// 5.1.2.1: the reader's identifier is the card's, or its beginning; the longest counts.
    @Test(
        arguments: [
            // The card's identifier, the TTQ that it is told: by the combination CVM is required, and nothing else.
            (nil, "36 40 C0 00"), ("31 02 69 27", "36 40 C0 00"), ("31 02", "36 40 C0 00"), ("", "36 40 C0 00"),
            ("31 02 68", "36 80 C0 00"), ("31 02 68 25", "36 80 C0 00"), ("31 02 68 27", "36 80 C0 00"),
            ("31 02 68 26", "36 C0 C0 00"), ("31 02 68 26 20 00 00", "36 C0 C0 00"),
            ("99", "36 00 C0 00"), ("77", "36 80 C0 00"), ("66", "36 00 C0 00"),
        ] as [(String?, String)])
    func dynamicReaderLimits(_ identifier: String?, _ expected: String) throws {
        var bench = Kernel3Bench()
        (bench.amount, bench.cvmRequiredLimit) = (1_00, 50)
        bench.options.dynamicReaderLimits = [
            try limits("31 02 68", floorLimit: 50),
            try limits("31 02 68 26", floorLimit: 50, cvmRequiredLimit: 50),
            try limits("31 02 68 27 00", transactionLimit: 1),
            try limits("99"), try limits("77", statusCheck: true), try limits("66", zeroAmountAllowed: false),
        ]
        let discretionary = try identifier.map { TLVTag(0xBF0C).encode(TLVTag(0x9F5A).encode(try wire($0))).hex } ?? ""
        let proprietary = TLVTag(0xA5).encode(try wire("9F 38 03 9F 66 04" + discretionary)).hex
        bench.fci = TLVTag(0x6F).encode(try wire("84 07 A0 00 00 00 03 10 10" + proprietary)).hex
        let run = try bench.run("6F 00")
        expectEqual(run.commands, [try wire("80 A8 00 00 06 83 04 \(expected) 00").hex])
    }

    /// A.2: a reader that is online only, by its type or by the combination, asks for an online cryptogram whatever
    /// pre-processing has taken out, and does not approve what the card would.
    @Test(
        arguments: [
            ("11", "36 00 C0 00", true), ("14", "36 00 C0 00", true), ("21", "36 00 C0 00", true),
            ("24", "36 00 C0 00", true), ("22", "36 80 C0 00", true), (nil, "36 80 C0 00", true),
            ("22", "36 00 C0 00", false), ("25", "36 00 C0 00", false), (nil, "36 00 C0 00", false),
        ] as [(String?, String, Bool)])
    func onlineOnly(_ terminalType: String?, _ qualifiers: String, _ isOnlineOnly: Bool) throws {
        var bench = try Kernel3Bench.signing
        (bench.terminalType, bench.qualifiers) = (terminalType, qualifiers)
        let run = try bench.run(SigningCard().responses)
        let sent = isOnlineOnly ? "36 80 C0 00" : "36 00 C0 00"
        expectEqual(run.commands.first?.hasPrefix(try wire("80 A8 00 00 12 83 10" + sent).hex), true)
        expectEqual(run.outcome.kind, isOnlineOnly ? .onlineRequest : .approved, "\(run.outcome.reason)")
        // The limits of a program do not change that.
        bench.options.dynamicReaderLimits = [try limits("31")]
        bench.fci = "6F 1B 84 07 A0 00 00 00 03 10 10 A5 10 9F 38 03 9F 66 04 BF 0C 07 9F 5A 04 31 02 68 26"
        let limited = try bench.run("6F 00")
        expectEqual(limited.commands, [try wire("80 A8 00 00 06 83 04 \(sent) 00").hex])
    }

    /// 5.1.2
    @Test(arguments: [(UInt64(99), false), (100, true), (0, true)])
    func aLimitOfTheProgramIsExceeded(_ amount: UInt64, _ isExceeded: Bool) throws {
        var bench = Kernel3Bench()
        bench.amount = amount
        bench.options.dynamicReaderLimits = [try limits("31", transactionLimit: 100, zeroAmountAllowed: false)]
        bench.fci = "6F 1B 84 07 A0 00 00 00 03 10 10 A5 10 9F 38 03 9F 66 04 BF 0C 07 9F 5A 04 31 02 68 26"
        let run = isExceeded ? try bench.run() : try bench.run("6F 00")
        expectEqual(run.outcome.kind, isExceeded ? .selectNext : .endApplication)
        expectEqual(run.commands.isEmpty, isExceeded)
    }

    private func limits(
        _ identifier: String, transactionLimit: UInt64? = nil, floorLimit: UInt64? = nil,
        cvmRequiredLimit: UInt64? = nil, statusCheck: Bool? = nil, zeroAmountAllowed: Bool? = nil
    ) throws -> Kernel3.DynamicReaderLimits {
        let identifier = try wire(identifier)
        return try #require(
            Kernel3.DynamicReaderLimits(
                applicationProgramIdentifier: identifier, transactionLimit: transactionLimit, floorLimit: floorLimit,
                cvmRequiredLimit: cvmRequiredLimit, statusCheck: statusCheck, zeroAmountAllowed: zeroAmountAllowed))
    }

    @Test(arguments: [
        ("", "cannot be read"), ("6F 10 84 07 A0 00 00", "cannot be read"),
        ("84 07 A0 00 00 00 03 10 10", "cannot be read"),
        ("6F 09 84 07 A0 00 00 00 03 10 10", "cannot be read"), ("6F 02 A5 00", "9F38"),
        ("6F 05 A5 03 9F 38 00", "9F38"), ("6F 07 A5 05 9F 38 02 9F 66", "PDOL"),
        // 255 bytes; a tag without end
        ("6F 08 A5 06 9F 38 03 9F 66 FF", "PDOL"), ("6F 0A A5 08 9F 38 05 9F FF FF FF FF", "PDOL"),
    ])
    func theFCIMakesNoSense(_ fci: String, _ complaint: String) throws {
        var bench = Kernel3Bench()
        bench.fci = fci
        let run = try bench.run()
        #expect(run.outcome.kind == .endApplication && run.commands.isEmpty)
        #expect(run.outcome.reason.contains(complaint), "\(run.outcome.reason)")
    }

    /// 5.2.2.2: each status word has one outcome; in the fast tier each with 69, and some of the others.
    @Test func statusOfProcessingOptions() throws {
        for sw1 in Array(UInt8(0x60)...0x6F) + Array(0x90...0x9F) {
            for sw2 in sw1 == 0x69 ? Array(UInt8.min...UInt8.max) : Tier.few(UInt8.min...UInt8.max, 16)
            where (sw1, sw2) != (0x90, 0x00) {
                let outcome = try Kernel3Bench().run([sw1, sw2].hex).outcome
                let expected: Outcome.Kind =
                    switch (sw1, sw2) {
                    case (0x69, 0x84): .tryAnotherInterface
                    case (0x69, 0x85): .selectNext
                    case (0x69, 0x86): .tryAgain
                    default: .endApplication
                    }
                expectEqual(outcome.kind, expected, "\([sw1, sw2].hex)")
            }
        }
    }

    @Test func theCardWantsTheContacts() throws {
        let outcome = try Kernel3Bench().run("69 84").outcome
        #expect(outcome.kind == .tryAnotherInterface && outcome.start == nil)
        expectEqual(
            outcome.userInterfaceRequest,
            UserInterfaceRequest(.insertCard, .processingError, languagePreference: ["de", "en"]))
        expectEqual(outcome.alternateInterfacePreference, .contactChip)
        #expect(outcome.cvm == nil && outcome.dataRecord == nil && outcome.fieldOff == nil)
    }

    @Test func theCardIsNotForThis() throws {
        let outcome = try Kernel3Bench().run("69 85").outcome
        #expect(outcome.kind == .selectNext && outcome.start == .c && outcome.userInterfaceRequest == nil)
    }

    /// The cardholder has 1300 ms to look at the device, with the field off, and taps again.
    @Test func thePhoneAsksForConfirmation() throws {
        let outcome = try Kernel3Bench().run("69 86").outcome
        #expect(outcome.kind == .tryAgain && outcome.start == .b)
        #expect(outcome.onlineResponseData == nil && outcome.cvm == nil)
        expectEqual(
            outcome.userInterfaceRequest,
            UserInterfaceRequest(
                .seePhone, .processingError, holdTime: 1300, languagePreference: ["de", "en"]))
        expectEqual(
            outcome.userInterfaceRequestOnRestart,
            UserInterfaceRequest(nil, .readyToRead, languagePreference: ["de", "en"]))
        expectEqual(outcome.fieldOff, 1300)
    }

    // MARK: Read application data

    /// Format 1, and two records: as many commands as there are things to read.
    @Test func recordsAreRead() throws {
        let run = try Kernel3Bench().run(
            """
            80 0A 00 00              # AIP
               08 01 01 00           # SFI 1, record 1
               F0 FF FF 00  90 00    # SFI 30, record 255
            """,
            """
            70 24 57 11 47 61 73 90 01 01 00 10 D3 11 22 01 11 43 80 44 89
               9F 10 07 06 01 12 03 A0 00 00  9F 27 01 80
               00 00 00  90 00       # filling
            """,
            // The length field takes a byte more than it needs.
            "70 81 10 9F 26 08 4A 8C F7 AC 9A 93 78 A0 9F 36 02 00 42 90 00")
        expectEqual(run.commands, [try wire(Kernel3Bench.gpo).hex, "00B2010C00", "00B2FFF400"])
        expectEqual(run.outcome.kind, .onlineRequest)
        expectEqual(run.requests.map(\.message), [.cardReadRemoveCard])
    }

    /// Whatever a file beyond SFI 10 holds, it is not for the kernel unless it is a template 70 (EMV Book 3, 6.5.11.4).
    @Test func proprietaryRecords() throws {
        let run = try Kernel3Bench().run(
            processingOptions("94 0C  58 01 01 00  58 02 02 00  58 03 03 00"), "01 02 90 00", "90 00",
            "84 02 57 00 90 00")
        expectEqual(run.outcome.kind, .onlineRequest)
    }

    @Test(
        arguments: [
            (["90 00"], "not one template"), (["77 10 82 90 00"], "TLV"), (["82 02 00 00 90 00"], "neither"),
            (["77 04 82 02 00 00 77 00 90 00"], "not one template"), (["70 00 90 00"], "neither"),
            (["77 00 90 00"], "82"),
            // Template 80 of one byte, of an AFL that is cut off
            (["80 01 00 90 00"], "template 80"), (["80 00 90 00"], "template 80"),
            (["80 05 00 00 08 01 01 90 00"], "AFL"),
            (["77 07 82 03 00 00 00 94 00 90 00"], "82 has 3 bytes"),
            // SFI 0 and 31, bits beside it; record 0, the last before the first, more signed than there are
            (["80 06 00 00 00 01 01 00 90 00"], "AFL"), (["80 06 00 00 F8 01 01 00 90 00"], "AFL"),
            (["80 06 00 00 0C 01 01 00 90 00"], "AFL"), (["80 06 00 00 08 00 01 00 90 00"], "AFL"),
            (["80 06 00 00 08 02 01 00 90 00"], "AFL"), (["80 06 00 00 08 01 01 02 90 00"], "AFL"),
            // 129 records
            (["80 06 00 00 08 01 81 00 90 00"], "AFL"), (["80 0A 00 00 08 01 FF 00 10 01 FF 00 90 00"], "AFL"),
            // Records: not found, blocked, not what they should be
            (["80 06 00 00 08 01 01 00 90 00", "6A 83"], "6A83"), (["80 06 00 00 08 01 01 00 90 00", "62 83"], "6283"),
            (["80 06 00 00 08 01 01 00 90 00", "90 00"], "template 70"),
            (["80 06 00 00 08 01 01 00 90 00", "70 02 57 90 00"], "TLV"),
            (["80 06 00 00 08 01 01 00 90 00", "77 00 90 00"], "template 70"),
            (["80 06 00 00 08 01 01 00 90 00", "70 00 70 00 90 00"], "template 70"),
        ] as [([String], String)])
    func theCardMakesNoSense(_ responses: [String], _ complaint: String) throws {
        var kernel = Kernel3(try Kernel3Bench().activation())
        var step = kernel.next(.start)
        for response in responses {
            guard case .send = step.action else { break }
            step = kernel.next(.response(try ResponseAPDU(wire(response)), after: .zero))
        }
        guard case .outcome(let outcome) = step.action else {
            Issue.record("no outcome")
            return
        }
        #expect(outcome.kind == .endApplication && outcome.reason.contains(complaint), "\(outcome.reason)")
        expectEqual(
            outcome.userInterfaceRequest,
            UserInterfaceRequest(
                .insertSwipeOrTryAnotherCard, .processingError, languagePreference: ["de", "en"]))
    }

    /// 5.4.2.2: twice in one answer, in two, and with the same value; empty objects count.
    @Test(
        arguments: [
            (["9F 6C 02 00 00"], "9F6C"), (["94 04 08 01 01 00", "70 04 82 02 00 00"], "82"),
            (["94 04 08 01 02 00", "70 03 5F 20 00", "70 05 5F 20 02 20 2F"], "5F20"),
            // A tag that nobody knows
            (["94 04 08 01 02 00", "70 04 DF 7E 01 00", "70 04 DF 7E 01 01"], "DF7E"),
        ] as [([String], String)])
    func redundantData(_ answers: [String], _ tag: String) throws {
        var kernel = Kernel3(try Kernel3Bench().activation())
        _ = kernel.next(.start)
        var step = kernel.next(.response(try ResponseAPDU(wire(processingOptions(answers[0]))), after: .zero))
        for answer in answers.dropFirst() {
            step = kernel.next(.response(try ResponseAPDU(wire(answer + "90 00")), after: .zero))
        }
        guard case .outcome(let outcome) = step.action else {
            Issue.record("no outcome")
            return
        }
        #expect(outcome.kind == .endApplication && outcome.reason == "the card gives \(tag) twice")
    }

    /// EMV Book 3, 7.5: the card has no say in what the terminal or the issuer supplies.
    @Test func whatIsNotTheCardsToSayIsIgnored() throws {
        let run = try Kernel3Bench().run(
            processingOptions(
                "9F 02 06 00 00 00 00 00 01  9F 02 06 00 00 00 00 00 01  9F 37 04 FF FF FF FF  95 05 FF FF FF FF FF"))
        expectEqual(run.outcome.kind, .onlineRequest)
        expectEqual(run.outcome.dataRecord?[0x9F02]?.hex, "000000001234")
        expectEqual(run.outcome.dataRecord?[0x9F37]?.hex, "11223344")
        expectEqual(run.outcome.dataRecord?[0x95]?.hex, "0000000000")
    }

    // MARK: Card read complete

    /// 5.4.2.1
    @Test(arguments: ["82", "57", "9F10", "9F26", "9F36"])
    func mandatoryData(_ tag: String) throws {
        let run = try Kernel3Bench().run(processingOptions(without: [tag]))
        expectEqual(run.outcome.kind, .endApplication)
        expectEqual(run.outcome.reason, "the card does not give \(tag)")
        // The card has been read nevertheless, and may leave.
        expectEqual(run.requests.map(\.message), [.cardReadRemoveCard])
        // Empty is as good as not there.
        let empty = try Kernel3Bench().run(processingOptions(without: [tag], tag + "00"))
        expectEqual(empty.outcome.reason, "the card does not give \(tag)")
    }

    @Test(arguments: [
        ("82", "82 01 00"), ("9F26", "9F 26 07 00 00 00 00 00 00 00"), ("9F36", "9F 36 01 00"),
        ("57", "57 08 47 61 73 90 01 01 00 10"), ("9F27", "9F 27 02 80 00"), ("9F6C", "9F 6C 01 00"),
        ("9F10", "9F 10 21" + String(repeating: "00", count: 33)),
    ])
    func dataOfWrongLength(_ tag: String, _ object: String) throws {
        let run = try Kernel3Bench().run(processingOptions(without: [tag], object))
        #expect(run.outcome.kind == .endApplication && run.outcome.reason.contains(tag))
    }

    @Test func differentAccountNumbers() throws {
        let same = try Kernel3Bench().run(processingOptions("5A 08 47 61 73 90 01 01 00 10"))
        expectEqual(same.outcome.kind, .onlineRequest)
        let filled = try Kernel3Bench().run(processingOptions("5A 0A 47 61 73 90 01 01 00 10 FF FF"))
        expectEqual(filled.outcome.kind, .onlineRequest)
        for other in ["5A 08 47 61 73 90 01 01 00 11", "5A 02 47 61"] {
            try expectEqual(Kernel3Bench().run(processingOptions(other)).outcome.kind, .endApplication)
        }
    }

    /// A card that knows mag-stripe mode only gives track 2 and no cryptogram, and says so in AIP byte 2 bit 8.
    @Test func magStripeMode() throws {
        let run = try Kernel3Bench().run(
            processingOptions(aip: "00 80", without: ["9F10", "9F26", "9F27", "9F36", "9F6C"]))
        expectEqual(run.outcome.kind, .endApplication)
        #expect(run.outcome.reason.contains("MSD"))
    }

    // MARK: Events

    /// 4.1.1.2: the card leaves, whatever the kernel waits for.
    @Test func communicationErrors() throws {
        let afl = try processingOptions("94 04 08 01 02 00")
        for responses in [["-"], [afl, "-"], [afl, "70 00 90 00", "-"]] {
            var kernel = Kernel3(try Kernel3Bench().activation())
            var step = kernel.next(.start)
            for response in responses {
                step = kernel.next(
                    response == "-"
                        ? .communicationError(.protocol)
                        : .response(try ResponseAPDU(wire(response)), after: .zero))
            }
            guard case .outcome(let outcome) = step.action else {
                Issue.record("no outcome")
                continue
            }
            #expect(outcome.kind == .tryAgain && outcome.start == .b && outcome.userInterfaceRequest == nil)
            expectEqual(
                outcome.userInterfaceRequestOnRestart,
                UserInterfaceRequest(.presentCardAgain, .readyToRead, languagePreference: ["de", "en"]))
            #expect(step.userInterfaceRequests.isEmpty)
        }
    }

    @Test func eventsOutOfTurn() throws {
        let response = KernelEvent.response(ResponseAPDU(status: .success), after: .zero)
        for events in [[response], [.communicationError(.timeout)], [.start, .start]] as [[KernelEvent]] {
            var kernel = Kernel3(try Kernel3Bench().activation())
            let steps = events.map { kernel.next($0) }
            guard case .outcome(let outcome) = steps.last?.action else {
                Issue.record("no outcome")
                continue
            }
            expectEqual(outcome.kind, .endApplication)
            // After an outcome there is no other.
            guard case .outcome(let second) = kernel.next(response).action else {
                Issue.record("no outcome")
                continue
            }
            expectEqual(second.kind, .endApplication)
        }
    }

    /// Answers cut off anywhere, and answers of nonsense: there is an outcome, and no end of commands never comes.
    @Test func everyAnswerLeadsToAnOutcome() throws {
        let whole = try wire(processingOptions("94 08 08 01 02 01 10 01 01 00"))
        var answers = (0..<whole.count - 2).map { Array(whole.prefix($0)) + [0x90, 0x00] }
        var random = SplitMix(state: 3)
        for _ in 0..<Tier.rounds(200, thorough: 2_000) {
            var answer = whole
            for _ in 0...random.next() % 3 {
                answer[Int(random.next() % UInt64(whole.count - 2))] = UInt8(truncatingIfNeeded: random.next())
            }
            answers.append(answer)
        }
        for answer in answers {
            var kernel = Kernel3(try Kernel3Bench().activation())
            var step = kernel.next(.start)
            var commands = 0
            while case .send = step.action {
                commands += 1
                try #require(commands <= 130, "\(answer.hex)")
                step = kernel.next(.response(try ResponseAPDU(answer), after: .zero))
            }
        }
    }
}
