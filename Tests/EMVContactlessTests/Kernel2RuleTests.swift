import EMVContactless
import SmartCard
import TestSupport
import Testing

/// Single rules of Kernel 2 (EMV Contactless Book C-2).
@Suite struct Kernel2RuleTests {
    /// Table 4.3: what the terminal has to say where nothing of DF8117 to DF8137 is set.  Every amount is above the limits
    /// but for those of the combination, no CVM is supported, and the action codes of the book's decline what has no ODA.
    @Test func defaultValues() throws {
        var bench = Kernel2Bench()
        for tag in Kernel2Bench.terminal.keys where tag.hasPrefix("DF") { bench.data[tag] = .some(nil) }
        bench.fci = "9F 38 15  9F 09 02  9F 40 05  9F 6D 02  DF 81 0C 01  DF 81 1C 02  DF 81 1D 01"
        let run = try bench.run(try ShortCard().read + [MChipCard.cryptogram("00")])
        expectEqual(run.commands[0], joined("80A800000F830D", "0002", "0000000000", "0001", "02", "012C", "02", "00"))
        // AAC: the denial code 840000000C has "ODA not performed"; CVM: "no CVM performed, failed".
        expectEqual(run.commands.last?.hasPrefix("80AE00"), true)
        #expect(run[record: 0x9F33] == "000000" && run[record: 0x9F34] == "3F0001" && run[record: 0x95] == "8000800001")
        expectEqual(run.outcome.kind, .declined)
    }

    /// Without what the terminal has to say of itself there is no transaction: it does not begin.
    @Test(arguments: ["9F1A", "9F33", "9F35", "9F40"]) func withoutTheTerminalsData(_ tag: String) throws {
        var bench = Kernel2Bench()
        bench.data[tag] = .some(nil)
        let run = try bench.run()
        #expect(run.outcome.kind == .endApplication && run.outcome.start == nil && run.commands.isEmpty)
        expectEqual(run.outcome.reason, "the terminal has no \(tag)")
    }

    /// S3.4, S3.5: before the card has told anything.
    @Test func lostAtProcessingOptions() throws {
        let run = try Kernel2Bench().run("-")
        #expect(run.outcome.kind == .tryAgain && run.outcome.start == .b && run.error == "0100000000FF")
        expectEqual(run.outcome.userInterfaceRequestOnRestart, nil)
    }

    /// S9.6 to S9.8: the card may have written.
    @Test func lostWhileItIsWritten() throws {
        var bench = try Kernel2Bench.signing
        bench.data = ["DF810D": "02", "9F5C": "1011121314151617", "DF8110": ""]
        bench.discretionary = "9F 5D 03 01 00 00  9F 5E 09 54 13 33 00 89 01 04 34 01"
        bench.answers = [
            DataRecord(),
            try answer((0xDF8110, "01"), (0xDF62, "80"), (0xDF63, "D1"), (0xDF8108, "40"), (0xDF810A, "80")),
        ]
        var card = MChipCard()
        card.options = "9F 5F 01 20  9F 7F 04 C0 C1 C2 C3  9F 7D 08 A1 A2 A3 A4 A5 A6 A7 A8"
        card.more = "9F 5B 03  DF 63 10"
        let run = try bench.run(card.read + ["-"])
        #expect(run.outcome.kind == .endApplication && run.outcome.start == nil)
        #expect(run.error == "01000000001C" && run.outcome.dataRecord != nil)
        expectEqual(run.outcome.tornTransactions?.isEmpty, true)
    }

    /// S3.30 to S3.32 and S3.70 to S3.72: the record for the other mode is not read.
    @Test func magStripeEntry() throws {
        let both = "94 08  08 01 01 00  10 01 01 00"
        let chip = try Kernel2Bench().run(
            template(0x77, "82 02 18 80", both), ShortCard().record, MChipCard.cryptogram("80"))
        expectEqual(chip.commands[1], "00B2011400")
        var bench = Kernel2Bench()
        bench.data = ["DF811B": "B0"]  // no mag-stripe mode: all are read
        let all = try bench.run(
            template(0x77, "82 02 18 80", both), template(0x70, "5F 20 02 41 42"), ShortCard().record,
            MChipCard.cryptogram("80"))
        expectEqual(all.instructions, "A8 B2 B2 AE")
        let stripe = try Kernel2Bench().run(
            template(0x77, "82 02 00 00", both), MagStripeCard().record, MagStripeCard.checksum())
        #expect(stripe.commands[1] == "00B2010C00" && stripe.instructions == "A8 B2 2A")
    }

    /// S3R1.5 and S3R1.6
    @Test func noRecords() throws {
        try expectEqual(Kernel2Bench().run(template(0x77, "82 02 18 80  94 04 08 01 01 00")).error, "00060000001C")
    }

    /// S4.34 and S4.35: what no template 70 is in file 11 cannot be verified; the transaction goes on.
    @Test func aSignedRecordOfAnotherForm() throws {
        var card = MChipCard()
        card.options = ""
        let options = try template(0x77, "82 02 19 80  94 0C  10 01 01 01  18 01 02 00  58 01 01 01")
        let run = try Kernel2Bench.signing.run(
            [options] + card.records + ["80 02 AA BB 90 00", MChipCard.cryptogram("80")])
        #expect(run[record: 0x95] == "0400000001" && run.commands.last?.hasPrefix("80AE80") == true)
    }

    /// 7.7, with the terminal's version of DF: expired, not yet effective, not allowed, another version.
    @Test(
        arguments: [
            // Day, kind, 9F09; TVR byte 2
            ("26 11 21", .purchase, "0002", "00"), ("31 12 31", .purchase, "0002", "00"),
            ("32 01 01", .purchase, "0002", "40"), ("23 12 31", .purchase, "0002", "20"),
            ("26 11 21", .purchase, "0003", "80"), ("26 11 21", .cash, "0002", "00"),
        ] as [(String, Transaction.Kind, String, String)])
    func mchipRestrictions(_ day: String, _ kind: Transaction.Kind, _ version: String, _ results: String) throws {
        var bench = Kernel2Bench()
        bench.date = day
        bench.kind = kind
        bench.data = ["9F09": version]
        let run = try bench.run(try ShortCard().read + [MChipCard.cryptogram("80")])
        expectEqual(run[record: 0x95], "80" + results + "000001")
    }
}
