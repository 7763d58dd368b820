import EMVContactless
import SmartCard
import TestSupport
import Testing

/// Outcomes of Kernel 2 with their error indication, data record and discretionary data (EMV Contactless Book C-2, A.1 and
/// tables 4.7 to 4.10).
@Suite struct Kernel2OutcomeTests {
    /// Table 4.7
    @Test func mchipDataRecord() throws {
        var bench = try Kernel2Bench.signing
        bench.fci += "50 0A 4D 41 53 54 45 52 43 41 52 44  9F 12 02 4D 43  9F 11 01 01"
        let run = try bench.run(try MChipCard().read + [Kernel2Vectors.tc.answered])
        #expect(run.outcome.kind == .approved && run.outcome.userInterfaceRequest?.message == .approved)
        expectEqual(run.outcome.userInterfaceRequest?.holdTime, 1300)
        let expected = [
            "9F02": "000000001234", "9F03": "000000000000", "9F26": "4A8CF7AC9A9378A0", "5F24": "311231", "82": "1980",
            "50": "4D415354455243415244", "5A": "5413330089010434", "5F34": "01", "9F12": "4D43", "9F36": "0042",
            "9F07": "FFC0", "9F09": "0002", "9F27": "40", "9F34": "1F0302", "84": "A0000000041010",
            "9F10": "0110A04003220000000000000000000000FF", "9F11": "01", "9F33": "E00808", "9F1A": "0276",
            "9F35": "22",
            "95": "0000000001", "57": "5413330089010434D31122010123456789", "5F2A": "0978", "9A": "261121", "9C": "00",
            "9F37": "11223344",
        ]
        let record = try #require(run.outcome.dataRecord)
        expectEqual(
            Dictionary(uniqueKeysWithValues: record.elements.map { ("\($0.tag)", $0.value.hex) }), expected)
        #expect(!"\(run.outcome)".contains("5413330089010434"))
        // Table 4.9
        expectEqual(run.outcome.discretionaryData?.elements.map(\.tag), [0x9F42, 0xDF8115])
        expectEqual(run.outcome.userInterfaceRequest?.languagePreference, ["de", "en"])
    }

    /// S910.74 and S910.75: what an AAC comes to.
    @Test(
        arguments: [
            // Type, DF8117, 9F6E; outcome, message
            (.purchase, "E0", "", .tryAnotherInterface, .insertCard),
            (.cash, "E0", "", .tryAnotherInterface, .insertCard),
            (.purchase, "C0", "", .declined, .notAuthorized),
            (.purchase, "E0", "9F 6E 06 02 76 00 00 30 30", .tryAnotherInterface, .insertCard),
            (.purchase, "E0", "9F 6E 06 02 76 00 00 30 31", .declined, .notAuthorized),
            (.purchase, "E0", "9F 6E 06 02 76 80 00 30 31", .tryAnotherInterface, .insertCard),
            (.refund, "E0", "", .endApplication, .clearDisplay),
        ] as [(Transaction.Kind, String, String, Outcome.Kind, UserInterfaceRequest.Message)])
    func mchipDeclines(
        _ kind: Transaction.Kind, _ capability: String, _ more: String, _ outcome: Outcome.Kind,
        _ message: UserInterfaceRequest.Message
    ) throws {
        var bench = Kernel2Bench()
        bench.kind = kind
        bench.data = ["DF8117": capability]
        var card = ShortCard()
        card.more = more
        let run = try bench.run(card.read + [MChipCard.cryptogram("00")])
        #expect(run.outcome.kind == outcome && run.outcome.userInterfaceRequest?.message == message)
        #expect(run.outcome.dataRecord != nil && run.outcome.start == nil)
    }

    /// The phone message table, DF8131, and a second tap (S910.71 to S910.80).
    @Test(
        arguments: [
            // DF4B, message, whether once more
            ("00 00 00", .authorizing, false), ("00 01 00", .seePhone, true), ("00 02 00", .seePhone, true),
            ("00 00 01", .seePhone, true), ("00 10 00", .authorizing, false), ("00 00 02", .notAuthorized, true),
        ] as [(String, UserInterfaceRequest.Message, Bool)])
    func seePhone(_ information: String, _ message: UserInterfaceRequest.Message, _ isOnceMore: Bool) throws {
        let run = try Kernel2Bench().run(
            try ShortCard().read + [MChipCard.cryptogram("80", "DF 4B 03 \(information)")])
        if isOnceMore {
            #expect(
                run.outcome.kind == .endApplication && run.outcome.start == .b && run.outcome.cvm == Outcome.CVM.none)
            #expect(run.requests.last?.message == message && run.requests.last?.holdTime == 1300)
            expectEqual(run.requests.last?.status, .notReady)
            // The same message stays until the device is presented again.
            let again = UserInterfaceRequest(message, .readyToRead, languagePreference: ["de", "en"])
            expectEqual(run.outcome.userInterfaceRequestOnRestart, again)
            #expect(run.outcome.dataRecord != nil && run.outcome.fieldOff == 1300)
        } else {
            #expect(run.outcome.kind == .onlineRequest && run.outcome.userInterfaceRequest?.message == message)
        }
    }

    /// S15.10: after PUT DATA the phone's message tells that the card has been read.
    @Test func seePhoneAfterPutData() throws {
        let run = try Kernel2Bench.writing(after: 1).run(
            try ShortCard().read + [MChipCard.cryptogram("80", "DF 4B 03 00 01 00"), "90 00"])
        expectEqual(run.requests.map(\.message), [.seePhone])
        expectEqual(run.requests.map(\.status), [.cardReadSuccessfully])
        expectEqual(run.outcome.userInterfaceRequestOnRestart?.message, .seePhone)
        expectEqual(run[discretionary: 0xDF810E], "80")
    }

    /// 7.5 with the terminal's capabilities above and below the limit, DF8118 and DF8119.
    @Test(
        arguments: [
            (49_99, "60", "08", Outcome.CVM.none, "1F0302", "E00808", false),
            (50_00, "60", "08", .onlinePIN, "420300", "E06008", true),
            (50_00, "20", "08", .signature, "1E0300", "E02008", true),
            (50_00, "00", "08", Outcome.CVM.none, "3F0001", "E00008", true),
        ] as [(UInt64, String, String, Outcome.CVM, String, String, Bool)])
    func mchipCVM(
        _ amount: UInt64, _ required: String, _ notRequired: String, _ cvm: Outcome.CVM, _ results: String,
        _ capabilities: String, _ receipt: Bool
    ) throws {
        var bench = Kernel2Bench()
        bench.amount = amount
        bench.data = ["DF8118": required, "DF8119": notRequired]
        let run = try bench.run(try ShortCard().read + [MChipCard.cryptogram("80")])
        #expect(run.outcome.cvm == cvm && run[record: 0x9F34] == results && run[record: 0x9F33] == capabilities)
        expectEqual(run.outcome.receipt, receipt)
    }

    /// BR1, BR2: the balance is handed out, and shown where the card approves.
    @Test func balanceIsShown() throws {
        var bench = try Kernel2Bench.signing
        bench.discretionary = "9F 5D 03 01 02 00"
        bench.data = ["DF8104": "", "DF8105": ""]
        let run = try bench.run(
            try MChipCard().read + [
                "9F 50 06 00 00 00 01 23 45 90 00", Kernel2Vectors.tc.answered, "9F 50 06 00 00 00 01 11 11 90 00",
            ])
        expectEqual(run.outcome.kind, .approved, "\(run.outcome.reason)")
        #expect(run[discretionary: 0xDF8104] == "000000012345" && run[discretionary: 0xDF8105] == "000000011111")
        let euro = try #require(Currency["EUR"])
        expectEqual(run.outcome.userInterfaceRequest?.value, .balance(111_11, currency: euro))
        // Another answer is no balance.
        for answer in ["9F 50 05 00 00 01 11 11 90 00", "9F 50 06 00 00 00 01 11 11 00 90 00"] {
            let none = try bench.run(try MChipCard().read + ["6A 88", Kernel2Vectors.tc.answered, answer])
            #expect(none[discretionary: 0xDF8104] == nil && none.outcome.userInterfaceRequest?.value == nil)
        }
    }

    /// PUT DATA: that all was written is told, where it was.
    @Test func putDataStatus() throws {
        var bench = Kernel2Bench.writing(before: 2, after: 2)
        let run = try bench.run(
            try ShortCard().read + ["90 00", "90 00", MChipCard.cryptogram("80"), "90 00", "90 00"])
        expectEqual(run.commands[2...3], ["80DA9F7502AA00", "80DA9F7602AA01"])
        #expect(run[discretionary: 0xDF810F] == "80" && run[discretionary: 0xDF810E] == "80")
        bench.data["DF8110"] = nil
        let failed = try bench.run(try ShortCard().read + ["6A 88", MChipCard.cryptogram("80"), "6A 88"])
        #expect(failed[discretionary: 0xDF810F] == nil && failed[discretionary: 0xDF810E] == nil)
        expectEqual(failed.outcome.kind, .onlineRequest)
    }

    /// What PUT DATA has no room for is not written, and not cut off: that fails, as if the card had refused it.
    @Test func whatCannotBeWritten() throws {
        var bench = Kernel2Bench()
        let long = TLVTag(0x9F75).encode([UInt8](repeating: 0xAA, count: 256)).hex
        bench.data = ["FF8102": "9F7602AA01" + long, "FF8103": long + "9F7602AA01"]
        let run = try bench.run(try ShortCard().read + ["90 00", MChipCard.cryptogram("80")])
        #expect(run.instructions == "A8 B2 DA AE" && run.commands[2] == "80DA9F7602AA01")
        #expect(run[discretionary: 0xDF810F] == nil && run[discretionary: 0xDF810E] == nil)
        expectEqual(run.outcome.kind, .onlineRequest)
    }

    /// PUT DATA has room for 255 bytes.
    @Test func longestObjectToWrite() throws {
        let value = [UInt8](repeating: 0xAA, count: 255)
        var bench = Kernel2Bench()
        bench.data = ["FF8102": TLVTag(0x9F75).encode(value).hex]
        let run = try bench.run(try ShortCard().read + ["90 00", MChipCard.cryptogram("80")])
        #expect(run.instructions == "A8 B2 DA AE" && run.commands[2] == "80DA9F75FF" + value.hex)
        expectEqual(run[discretionary: 0xDF810F], "80")
    }

    /// A message is held for 99999.9 s at the most, whatever is configured.
    @Test func longestHoldTime() throws {
        var bench = Kernel2Bench()
        bench.data = ["DF812D": "999999999999999999"]
        let run = try bench.run("90 00")
        expectEqual(run.outcome.userInterfaceRequest?.holdTime, 99_999_900)
    }

    /// Neither the kernel nor what holds it tells card data to a log.
    @Test func whatIsPrinted() throws {
        var kernel = Kernel2(try Kernel2Bench().activation())
        var event = KernelEvent.start
        for response in try ShortCard().read {
            _ = kernel.next(event)
            event = .response(try ResponseAPDU(wire(response)), after: .milliseconds(1))
        }
        _ = kernel.next(event)
        expectEqual("\(kernel)", "Kernel 2, S9")
        var dumped = ""
        dump(kernel, to: &dumped)
        dump(try Kernel2Bench().activation(), to: &dumped)
        dump(EntryPoint(configuration: .test), to: &dumped)
        let printed = dumped + String(reflecting: kernel) + "\(kernel.customMirror.children.map { $0 })"
        for digits in ["5413330089010434", "84, 19, 51", "[84, 19", "D3112201"] { #expect(!printed.contains(digits)) }
        #expect(printed.split(separator: "\n").count < 12)
    }

    /// 9F5D byte 2 bit 3: the card notices that the field is off, for DF8130.
    @Test func fieldOffDetection() throws {
        var bench = Kernel2Bench()
        bench.discretionary = "9F 5D 03 01 04 00"
        try expectEqual(bench.run(ShortCard().read + [MChipCard.cryptogram("80")]).outcome.fieldOff, 1300)
        try expectEqual(bench.run("69 85").outcome.fieldOff, nil)
    }

    // MARK: Errors

    @Test(arguments: [
        // Answer to GET PROCESSING OPTIONS, error
        ("80 08 18 80 10 01 01 00 10 02 90 00", "00040000001C"), ("80 04 18 80 10 01 90 00", "00040000001C"),
        ("77 04 82 02 18 80 90 00", "00010000001C"), ("70 04 82 02 18 80 90 00", "00040000001C"),
        ("77 0A 82 02 18 80 94 04 10 02 01 00 90 00", "00060000001C"),  // records 2 to 1
        ("77 08 82 02 18 80 82 02 18 80 90 00", "00040000001C"),
        ("77 0C 82 02 18 80 94 06 10 01 01 00 10 02 90 00", "00040000001C"),
        ("77 0B 82 03 18 80 00 94 04 10 01 01 00 90 00", "00040000001C"), ("90 00", "00040000001C"),
    ])
    func optionsThatMakeNoSense(_ answer: String, _ error: String) throws {
        let run = try Kernel2Bench().run(answer)
        #expect(run.error == error && run.outcome.kind == .endApplication)
        expectEqual(run.outcome.userInterfaceRequest?.message, .insertSwipeOrTryAnotherCard)
        expectEqual(run.outcome.userInterfaceRequest?.status, .notReady)
    }

    /// Format 1: AIP and AFL without tags.
    @Test func optionsInFormat1() throws {
        let run = try Kernel2Bench().run(
            "80 06 18 80 10 01 01 00 90 00", ShortCard().record,
            "80 1D 80 00 42 4A 8C F7 AC 9A 93 78 A0 01 10 A0 40 03 22 00 00 00 00 00 00 00 00 00 00 00 FF 90 00")
        #expect(run.outcome.kind == .onlineRequest && run[record: 0x9F36] == "0042")
        expectEqual(run[record: 0x9F10], "0110A04003220000000000000000000000FF")
    }

    @Test(arguments: [
        ("6A 83", "0003006A831C"), ("90 00", "00040000001C"), ("77 00 90 00", "00040000001C"),
        ("70 03 5F 24 90 00", "00040000001C"), ("70 08 82 02 18 80 5F 34 01 01 90 00", "00040000001C"),
    ])
    func recordsThatMakeNoSense(_ answer: String, _ error: String) throws {
        let run = try Kernel2Bench().run(try ShortCard().processingOptions, answer)
        expectEqual(run.error, error, "\(run.outcome.reason)")
    }

    /// 4.5.4: a tag that nobody knows may come twice; what the terminal has to say makes it malformed, but for the private
    /// class.
    @Test(arguments: [
        ("DF 7E 01 AA  DF 7E 01 BB", "0000000000FF"), ("9F 02 06 00 00 00 00 00 01", "00040000001C"),
        ("95 05 00 00 00 00 00", "00040000001C"), ("9F 33 03 E0 00 00", "00040000001C"),
        ("DF 81 21 05 00 00 00 00 00", "0000000000FF"), ("5F 34 01 01  5F 34 01 01", "00040000001C"),
    ])
    func whatACardMayGive(_ more: String, _ error: String) throws {
        var card = ShortCard()
        card.more = more
        let isRead = error == "0000000000FF"
        let run = try Kernel2Bench().run(card.read + (isRead ? [MChipCard.cryptogram("80")] : []))
        expectEqual(run.error, error, "\(run.outcome.reason)")
    }

    /// A card contradicts itself: another account number in 5A than in track 2.
    @Test(arguments: [("5A085413330089010434", "0000000000FF"), ("5A085413330089010442", "00060000001C")])
    func mchipAccountNumbers(_ number: String, _ error: String) throws {
        let record = Kernel2Vectors.record.replacing("5A085413330089010434", with: number)
        #expect(record != Kernel2Vectors.record || number == "5A085413330089010434")
        let isRead = error == "0000000000FF"
        let run = try Kernel2Bench().run(
            [try ShortCard().processingOptions, try template(0x70, record)]
                + (isRead ? [MChipCard.cryptogram("80")] : []))
        expectEqual(run.error, error, "\(run.outcome.reason)")
    }

    /// Book 3, 10.5: a CVM list without rules counts as absent.  Results: no CVM performed, unknown; TVR byte 1 bit 6.
    @Test func listWithoutRules() throws {
        let record = Kernel2Vectors.record
            .replacing("8E0E000000000000000042031E031F03", with: "8E080000000000000000")
        #expect(record != Kernel2Vectors.record)
        let run = try Kernel2Bench().run(
            [try ShortCard().processingOptions, try template(0x70, record), MChipCard.cryptogram("80")])
        #expect(run.outcome.kind == .onlineRequest && run.outcome.cvm == Outcome.CVM.none)
        expectEqual(run[record: 0x9F34], "3F0000")
        #expect(["20", "A0"].contains(run[record: 0x95]?.prefix(2)), "\(run[record: 0x95] ?? "-")")
    }

    /// One that the terminal has set without a value counts, and then only once.
    @Test func whatTheTerminalKnows() throws {
        var bench = Kernel2Bench()
        bench.data = ["DF7E": "", "DF8112": "DF7E"]
        var card = ShortCard()
        card.more = "DF 7E 01 AA"
        let run = try bench.run(card.read + [MChipCard.cryptogram("80")])
        expectEqual(run.exchanges.map(\.dataToSend.encoded.hex), ["DF7E01AA"])
        card.more += "DF 7E 01 BB"
        try expectEqual(bench.run(card.read).error, "00040000001C")
    }

    /// S456.16
    @Test(arguments: [
        "5A 08 54 13 33 00 89 01 04 34  8C 03 9F 37 04", "5F 24 03 31 12 31  8C 03 9F 37 04",
        "5A 08 54 13 33 00 89 01 04 34  5F 24 03 31 12 31",
    ])
    func mchipMandatoryData(_ record: String) throws {
        let run = try Kernel2Bench().run(try ShortCard().processingOptions, template(0x70, record))
        expectEqual(run.error, "00010000001C")
    }

    /// S9.16 to S9.24
    @Test(arguments: [
        ("69 85", "00030069851C"), ("90 00", "00040000001C"), ("77 03 9F 27 00 90 00", "00010000001C"),
        ("77 04 9F 27 01 80 90 00", "00010000001C"),
        ("77 09 9F 27 01 80 9F 36 02 00 42 90 00", "00010000001C"),
        ("77 09 9F 27 01 40 9F 36 02 00 42 90 00", "00060000001C"),  // TC for ARQC
        ("77 09 9F 27 01 C0 9F 36 02 00 42 90 00", "00060000001C"),
        ("80 0A 80 00 42 4A 8C F7 AC 9A 93 78 90 00", "00040000001C"),
    ])
    func cryptogramsThatMakeNoSense(_ answer: String, _ error: String) throws {
        let run = try Kernel2Bench().run(try ShortCard().read + [answer])
        expectEqual(run.error, error, "\(run.outcome.reason)")
        #expect(run.outcome.kind == .endApplication && run.outcome.start == nil && run.outcome.dataRecord == nil)
    }

    /// The limits: of the combination, or DF8124 and DF8125.
    @Test func mchipLimits() throws {
        var bench = Kernel2Bench()
        bench.transactionLimit = 12_34
        let run = try bench.run(try ShortCard().read)
        #expect(run.outcome.kind == .selectNext && run.outcome.start == .c && run.error == "0005000000FF")
        bench.transactionLimit = 12_35
        try expectEqual(bench.run(ShortCard().read + [MChipCard.cryptogram("80")]).outcome.kind, .onlineRequest)
        // A device that verifies its holder has a limit of its own.
        bench.data = ["DF8124": "000000001233", "DF8125": "000000001234"]
        try expectEqual(bench.run(ShortCard().read).outcome.kind, .selectNext)
        let device = try bench.run(
            template(0x77, "82 02 1A 80 94 04 10 01 01 00"), ShortCard().record, MChipCard.cryptogram("00"))
        expectEqual(device.outcome.kind, .tryAnotherInterface)
    }

    /// 7.8: without action codes of the card's everything goes online but that relay resistance was not performed.
    @Test func withoutActionCodes() throws {
        var bench = Kernel2Bench()
        // What speaks of offline data authentication is in no action code here.
        bench.data = ["DF8120": "0000000000", "DF8121": "0000000000", "DF8122": "0000000000"]
        let bare = "5A 08 54 13 33 00 89 01 04 34  5F 24 03 31 12 31  8C 02 95 05"
        let run = try bench.run(try ShortCard().processingOptions, template(0x70, bare), MChipCard.cryptogram("80"))
        // ODA not performed, ICC data missing (no CVM list): online.
        expectEqual(run.commands.last, joined("80AE800005", "A000000001", "00"))
        expectEqual(run.outcome.reason, "the terminal requires an online cryptogram")
        // CDA, and a terminal that is fine: nothing but that bit.
        var signing = try Kernel2Bench.signing
        signing.data = bench.data
        let options = try template(0x77, "82 02 09 80  94 08  10 01 01 00  18 01 02 00")
        let full = try signing.run(
            [options, template(0x70, bare, "9F 4A 01 82")] + MChipCard().records.dropFirst() + ["69 85"])
        expectEqual(full.commands.last, joined("80AE500005", "0000000001", "00"))
    }

    /// An event that does not follow ends it.
    @Test func kernel2EventsOutOfTurn() throws {
        for event in [
            KernelEvent.response(ResponseAPDU(status: .success), after: .zero), .communicationError(.timeout),
            .terminalData(DataRecord()),
        ] {
            var kernel = Kernel2(try Kernel2Bench().activation())
            guard case .outcome(let outcome) = kernel.next(event).action else {
                Issue.record("no outcome")
                continue
            }
            expectEqual(outcome.kind, .endApplication)
        }
        var kernel = Kernel2(try Kernel2Bench().activation())
        _ = kernel.next(.start)
        guard case .outcome(let outcome) = kernel.next(.start).action else {
            Issue.record("no outcome")
            return
        }
        expectEqual(outcome.kind, .endApplication)
    }
}
