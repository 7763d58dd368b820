import EMVContactless
import SmartCard
import TestSupport
import Testing

/// EMV Contactless Book C-3, 4.1, 4.3, 5.8, 5.9 and 6, and Annex B: what comes out.
@Suite struct Kernel3OutcomeTests {
    /// Annex B, and the order of the objects in it.
    @Test func approved() throws {
        let outcome = try Kernel3Bench.signing.run(SigningCard().responses).outcome
        #expect(outcome.kind == .approved && outcome.cvm == Outcome.CVM.none)
        #expect(outcome.start == nil && outcome.onlineResponseData == nil && outcome.fieldOff == nil)
        expectEqual(
            outcome.userInterfaceRequest,
            UserInterfaceRequest(.approved, .cardReadSuccessfully, languagePreference: ["de", "en"]))
        #expect(outcome.userInterfaceRequestOnRestart == nil && outcome.alternateInterfacePreference == nil)
        #expect(outcome.discretionaryData == nil && !outcome.receipt && outcome.removalTimeout == 0)
        expectEqual(
            outcome.dataRecord?.encoded.hex,
            try wire(
                """
                9F 02 06 00 00 00 00 12 34         # amount
                9F 26 08 4A 8C F7 AC 9A 93 78 A0
                82 02 20 00
                9F 36 02 00 42
                5F 34 01 01
                9F 10 07 06 01 12 03 A0 00 00
                9F 39 01 07                        # POS entry mode: contactless chip
                9F 33 03 E0 28 C8
                9F 1A 02 02 76
                95 05 00 00 00 00 00
                57 11 47 61 73 90 01 01 00 10 D3 11 22 01 11 43 80 44 89
                5F 2A 02 09 78
                9A 03 26 11 21
                9C 01 00
                9F 37 04 11 22 33 44
                """
            ).hex)
    }

    /// ISO 8583, field 22: an acquirer may want another POS entry mode than 07.
    @Test(arguments: [(nil, "07"), ("91", "91")] as [(String?, String)])
    func posEntryMode(_ configured: String?, _ expected: String) throws {
        var bench = try Kernel3Bench.signing
        bench.posEntryMode = configured
        let outcome = try bench.run(SigningCard().responses).outcome
        expectEqual(outcome.dataRecord?[0x9F39]?.hex, expected)
    }

    @Test func approvedWithSignature() throws {
        let outcome = try Kernel3Bench.signing.run(SigningCard(qualifiers: "40 00").responses).outcome
        #expect(outcome.kind == .approved && outcome.cvm == .signature)
        expectEqual(outcome.userInterfaceRequest?.message, .approvedSign)
    }

    @Test func declined() throws {
        var outcome = try Kernel3Bench().run(processingOptions(cryptogram: "00")).outcome
        #expect(outcome.receiptFacts != nil)
        outcome.receiptFacts = nil
        expectEqual(
            outcome,
            Outcome(
                .declined, cvm: Outcome.CVM.none,
                userInterfaceRequest: UserInterfaceRequest(
                    .notAuthorized, .cardReadSuccessfully, languagePreference: ["de", "en"]),
                reason: "the card declines"))
    }

    /// 5.8.1.1, and what a card may give beside: customer exclusive data, form factor, payment account reference.
    @Test func onlineRequest() throws {
        var bench = Kernel3Bench()
        (bench.kind, bench.amountOther) = (.purchaseWithCashback, 2_34)
        bench.options.checksUsageForCashback = false
        let run = try bench.run(
            processingOptions(
                "9F 7C 02 CE D0  9F 6E 04 20 70 00 07",
                "9F 24 1D 56 30 30 31 30 30 31 33 30 31 37 32 37 32 36 35 39 38 36 32 31 38 31 36 32 31 34 32 31"))
        let outcome = run.outcome
        #expect(outcome.kind == .onlineRequest && outcome.start == nil && outcome.onlineResponseData == nil)
        expectEqual(
            outcome.userInterfaceRequest,
            UserInterfaceRequest(.authorizing, .cardReadSuccessfully, languagePreference: ["de", "en"]))
        let record = try #require(outcome.dataRecord)
        #expect(record[0x9F03]?.hex == "000000000234" && record[0x9C] == [0x00])
        #expect(record[0x9F7C]?.hex == "CED0" && record[0x9F24]?.count == 29)
        // 4.1.1.1: the lower half of byte 4 is not the card's to fill.
        expectEqual(record[0x9F6E]?.hex, "20700000")
        #expect(record[0x9F27] == nil && record[0x5A] == nil)
    }

    @Test func onlinePIN() throws {
        let outcome = try Kernel3Bench().run(processingOptions(qualifiers: "80 00")).outcome
        #expect(outcome.cvm == .onlinePIN && outcome.userInterfaceRequest?.message == .enterPIN)
    }

    /// 5.8.1.2: card and reader both have to know issuer update processing.
    @Test(
        arguments: [
            ("00 40", "36 00 C0 00", true), ("00 40", "36 00 40 00", false), ("00 00", "36 00 C0 00", false),
            (nil, "36 00 C0 00", false),
        ] as [(String?, String, Bool)])
    func cardToBePresentedAgain(_ card: String?, _ reader: String, _ isExpected: Bool) throws {
        var bench = Kernel3Bench()
        bench.qualifiers = reader
        let outcome = try bench.run(processingOptions(qualifiers: card)).outcome
        expectEqual(outcome.kind, .onlineRequest)
        expectEqual(outcome.start, isExpected ? .b : nil)
        expectEqual(outcome.onlineResponseData, isExpected ? .emvData : nil)
        expectEqual(
            outcome.userInterfaceRequestOnRestart,
            isExpected
                ? UserInterfaceRequest(.presentCardAgain, .readyToRead, languagePreference: ["de", "en"]) : nil)
    }

    /// 4.3.1.1: tag 9F5D, twelve digits, with every final outcome.
    @Test(arguments: ["80", "00"])
    func balance(_ cryptogram: String) throws {
        var bench = Kernel3Bench()
        let card = try processingOptions(cryptogram: cryptogram, "9F 5D 06 00 00 00 01 23 45")
        let silent = try bench.run(card).outcome
        #expect(silent.userInterfaceRequest?.value == nil && silent.discretionaryData == nil)

        bench.options.displaysAvailableOfflineSpendingAmount = true
        let outcome = try bench.run(card).outcome
        let euro = try #require(Currency["978"])
        expectEqual(outcome.userInterfaceRequest?.value, .balance(12_345, currency: euro))
        expectEqual(outcome.discretionaryData, DataRecord([.init(0x9F5D, [0, 0, 0, 1, 0x23, 0x45])]))
        // What is no amount is not shown.
        for nonsense in ["9F 5D 05 00 00 00 01 23", "9F 5D 06 00 00 00 00 00 AB", ""] {
            let outcome = try bench.run(processingOptions(cryptogram: cryptogram, nonsense)).outcome
            #expect(outcome.userInterfaceRequest?.value == nil && outcome.discretionaryData == nil)
        }
    }

    /// 5F2D: one to four codes, of either case; anything else is none.
    @Test(
        arguments: [
            ("5F 2D 02 65 6E", ["en"]), ("5F 2D 08 44 45 45 4E 66 72 69 74", ["de", "en", "fr", "it"]), ("", []),
            ("5F 2D 00", []), ("5F 2D 03 65 6E 64", []), ("5F 2D 02 31 32", []),
            ("5F 2D 0A 44 45 45 4E 66 72 69 74 65 73", []),
        ])
    func languages(_ object: String, _ expected: [String]) throws {
        var bench = Kernel3Bench()
        let proprietary = TLVTag(0xA5).encode(try wire("9F 38 03 9F 66 04" + object)).hex
        bench.fci = TLVTag(0x6F).encode(try wire(proprietary)).hex
        let run = try bench.run(processingOptions())
        expectEqual(run.requests.map(\.languagePreference), [expected])
        expectEqual(run.outcome.userInterfaceRequest?.languagePreference, expected)
    }

    /// Book A, 6.3: with whatever outcome; the first four are without the card's data, the last is after the issuer's answer.
    @Test(
        arguments: [
            (["69 84"], .tryAnotherInterface), (["69 86"], .tryAgain), (["6F 00"], .endApplication), (["-"], .tryAgain),
            (["77 00 90 00"], .endApplication), ([], .endApplication),
        ] as [([String], Outcome.Kind)])
    func languagesOfEveryOutcome(_ responses: [String], _ kind: Outcome.Kind) throws {
        var bench = Kernel3Bench()
        if responses.isEmpty { bench.onlineResponse = OnlineResponse() }
        let run = try bench.run(responses)
        expectEqual(run.outcome.kind, kind)
        let requests =
            run.requests
            + [run.outcome.userInterfaceRequest, run.outcome.userInterfaceRequestOnRestart].compactMap(\.self)
        #expect(!requests.isEmpty)
        for request in requests { expectEqual(request.languagePreference, ["de", "en"], "\(request)") }
    }

    // MARK: Issuer update processing

    /// 6.2.1.1: EXTERNAL AUTHENTICATE comes first, and whatever the card says to it, the scripts follow.
    @Test(arguments: ["90 00", "63 00", "69 85"])
    func issuerUpdates(_ status: String) throws {
        var bench = Kernel3Bench()
        bench.onlineResponse = OnlineResponse(
            authorizationResponseCode: Array("00".utf8),
            issuerAuthenticationData: try wire("A1 A2 A3 A4 A5 A6 A7 A8 00 12"),
            scripts: [
                try wire("71 0F 9F 18 04 11 22 33 44 86 06 84 1E 00 00 01 FF"),
                try wire("72 0E 86 05 84 24 00 00 00  86 05 84 18 00 00 00"),
            ])
        let run = try bench.run(status, "90 00", "62 00", "69 82")
        expectEqual(
            run.commands,
            [
                "008200000A" + "A1A2A3A4A5A6A7A80012", "841E000001FF", "8424000000", "8418000000",
            ])
        #expect(run.requests.isEmpty)
        #expect(
            run.outcome
                == Outcome(
                    .endApplication,
                    userInterfaceRequest: UserInterfaceRequest(
                        .cardReadRemoveCard, .cardReadSuccessfully, languagePreference: ["de", "en"]),
                    discretionaryData: DataRecord([
                        // The first one done; of the second one command 2 failed, and it has no identifier.
                        .init(0x9F5B, try wire("20 11 22 33 44  12 00 00 00 00"))
                    ]), reason: "the issuer's message has been passed on to the card"))
    }

    /// EMV Book 4, Annex A5, and Book 3, 10.10.
    @Test(
        arguments: [
            // Scripts, statuses, commands sent, 9F5B
            (["71 07 86 05 84 24 00 00 00"], ["90 00"], 1, "20 00 00 00 00"),
            (["71 07 86 05 84 24 00 00 00"], ["63 C1"], 1, "20 00 00 00 00"),
            (["71 07 86 05 84 24 00 00 00"], ["6A 80"], 1, "11 00 00 00 00"),
            // What follows the command that failed is not sent; the next script is.
            (
                ["71 0E 86 05 84 24 00 00 00 86 05 84 18 00 00 00", "72 07 86 05 84 16 00 00 00"], ["69 85", "90 00"],
                2,
                "11 00 00 00 00 20 00 00 00 00"
            ),
            // No command, no identifier of four bytes, no template, cut off, two templates, nothing
            (["71 07 9F 18 04 01 02 03 04"], [], 0, "00 01 02 03 04"),
            (["71 0A 9F 18 00 86 05 84 24 00 00 00"], ["90 00"], 1, "20 00 00 00 00"),
            (["86 05 84 24 00 00 00"], [], 0, "00 00 00 00 00"), (["71 07 86 05 84 24"], [], 0, "00 00 00 00 00"),
            (["71 00 72 00"], [], 0, "00 00 00 00 00"), ([""], [], 0, "00 00 00 00 00"),
            // What is not a command APDU fails without being sent.
            (["71 0B 86 05 84 24 00 00 00 86 02 84 24"], ["90 00"], 1, "12 00 00 00 00"),
            // The fifteenth command and all behind it are F.
            (
                ["71 70" + String(repeating: " 86 05 84 24 00 00 00", count: 16)],
                Array(repeating: "90 00", count: 15) + ["69 85"], 16, "1F 00 00 00 00"
            ),
        ] as [([String], [String], Int, String)])
    func scripts(_ scripts: [String], _ statuses: [String], _ sent: Int, _ results: String) throws {
        var bench = Kernel3Bench()
        bench.onlineResponse = OnlineResponse(scripts: try scripts.map { try wire($0) })
        let run = try bench.run(statuses)
        expectEqual(run.commands.count, sent)
        expectEqual(run.outcome.kind, .endApplication)
        expectEqual(run.outcome.discretionaryData?[0x9F5B]?.hex, try wire(results).hex)
    }

    @Test func anAnswerWithoutDataForTheCard() throws {
        var bench = Kernel3Bench()
        bench.onlineResponse = OnlineResponse(authorizationResponseCode: Array("05".utf8))
        let run = try bench.run()
        #expect(run.commands.isEmpty && run.outcome.kind == .endApplication)
        expectEqual(run.outcome.discretionaryData, nil)
    }

    /// The card goes before all is done: what the issuer has decided stands, and how far it came is told (EMV Book 4, Annex
    /// A5: 2, all done; 1, failed at that command; 0, not performed).
    @Test(
        arguments: [
            // Statuses, 9F5B: two scripts, of two commands and of one
            (["-"], "00 01 02 03 04  00 00 00 00 00"), (["90 00", "-"], "11 01 02 03 04  00 00 00 00 00"),
            (["90 00", "90 00", "-"], "12 01 02 03 04  00 00 00 00 00"),
            (["90 00", "90 00", "90 00", "-"], "20 01 02 03 04  11 00 00 00 00"),
            (["90 00", "69 85", "-"], "11 01 02 03 04  11 00 00 00 00"),
        ])
    func theCardGoesDuringTheUpdate(_ statuses: [String], _ results: String) throws {
        var bench = Kernel3Bench()
        bench.onlineResponse = OnlineResponse(
            issuerAuthenticationData: try wire("A1 A2 A3 A4 A5 A6 A7 A8"),
            scripts: [
                try wire("71 15 9F 18 04 01 02 03 04 86 05 84 24 00 00 00 86 05 84 18 00 00 00"),
                try wire("72 07 86 05 84 16 00 00 00"),
            ])
        let run = try bench.run(statuses)
        #expect(run.outcome.kind == .endApplication && run.outcome.start == nil)
        expectEqual(run.outcome.discretionaryData?[0x9F5B]?.hex, try wire(results).hex)
        #expect(run.outcome.reason.contains("left"))
    }

    // MARK: With Entry Point

    /// From the PPSE to the issuer's scripts.
    @Test func throughEntryPoint() throws {
        let activation = try Kernel3Bench().activation()
        var entryPoint = EntryPoint(
            configuration: try ReaderConfiguration(
                environment: .test, abilities: [.pinPad, .paper, .contacts, .magneticStripe, .manualKeyEntry],
                terminal: activation.terminalData.filter { [0x9F1A, 0x9F33].contains($0.key) },
                combinations: [activation.combination]
            ).validated())
        func respond(_ response: String) throws -> EntryPoint.Step {
            entryPoint.next(.response(try ResponseAPDU(wire(response)), after: .zero))
        }
        _ = entryPoint.next(.startA(activation.transaction))
        _ = entryPoint.next(.cardPresent)
        let ppse = """
            6F 23 84 0E 32 50 41 59 2E 53 59 53 2E 44 44 46 30 31
               A5 11 BF 0C 0E 61 0C 4F 07 A0 00 00 00 03 10 10 87 01 01 90 00
            """
        _ = try respond(ppse)
        guard case .send(let options) = try respond(Kernel3Bench().fci + "\n90 00").action else {
            Issue.record("no GET PROCESSING OPTIONS")
            return
        }
        expectEqual(options.bytes.hex, try wire(Kernel3Bench.gpo).hex)
        let decision = try respond(processingOptions(qualifiers: "00 40"))
        expectEqual(decision.userInterfaceRequests.map(\.message), [.cardReadRemoveCard, .authorizing])
        guard case .finish(let final) = decision.action else {
            Issue.record("no outcome")
            return
        }
        #expect(final.kernel == 3 && final.outcome.kind == .onlineRequest)

        let again = entryPoint.next(.onlineResponse(OnlineResponse(scripts: [try wire("71 07 86 05 84 24 00 00 00")])))
        expectEqual(again.userInterfaceRequests.map(\.message), [.presentCardAgain])
        guard case .send(let select) = entryPoint.next(.cardPresent).action else {
            Issue.record("no SELECT")
            return
        }
        expectEqual(select.bytes.hex, "00A4040007A000000003101000")
        guard case .send(let script) = try respond(Kernel3Bench().fci + "\n90 00").action else {
            Issue.record("no script")
            return
        }
        expectEqual(script.bytes.hex, "8424000000")
        guard case .finish(let last) = try respond("90 00").action else {
            Issue.record("no outcome")
            return
        }
        expectEqual(last.outcome.discretionaryData?[0x9F5B]?.hex, "2000000000")
    }
}
