import SmartCard
import TestSupport
import Testing

@testable import EMVContactless

/// Integrated data storage, and data exchange with the terminal (EMV Contactless Book C-2, 3.4, 3.5 and 8).
@Suite struct Kernel2StorageTests {
    /// A terminal of the operator 1011121314151617, which answers once what it writes.
    private func bench(_ answer: DataRecord? = nil, version: Int = 1) throws -> Kernel2Bench {
        var bench = try Kernel2Bench.signing
        if version == 2 { bench = bench.relaying }
        bench.data = ["DF810D": "02", "9F5C": "1011121314151617"]
        bench.discretionary = "9F 5D 03 0\(version) 00 00  9F 5E 09 54 13 33 00 89 01 04 34 01"
        bench.answers = answer.map { [$0] } ?? []
        return bench
    }

    private static let slot = "9F 5F 01 20  9F 7F 04 C0 C1 C2 C3"
    private static let summary1 = "9F 7D 08 A1 A2 A3 A4 A5 A6 A7 A8"
    private static let long1 = "9F 7D 10 A1 A2 A3 A4 A5 A6 A7 A8 A9 AA AB AC AD AE AF B0"
    /// DS Input (Card), DS Digest H, DS ODS Info, DS ODS Term.
    private static let dsdol = "9F 5B 0C  DF 60 08  DF 61 08  DF 62 01  DF 63 10"

    private func writing(_ type: String = "40", _ information: String = "80") throws -> DataRecord {
        try answer(
            (0xDF60, "F0 F1 F2 F3 F4 F5 F6 F7"), (0xDF62, "80"), (0xDF63, "D1 D2 D3"), (0xDF8108, type),
            (0xDF8109, "01 02 03 04 05 06 07 08"), (0xDF810A, information))
    }

    @Test func storageIsRead() throws {
        var card = MChipCard()
        card.options = Self.slot + Self.summary1
        let run = try bench().run(card.read + [Kernel2Vectors.storageRead.answered])
        expectEqual(run.outcome.kind, .approved, "\(run.outcome.reason)")
        expectEqual(run[discretionary: 0xDF810B], "80")
        // S1.18 and S3R1.11: what the terminal is told, before it has to decide what to write.
        expectEqual(
            run.exchanges.map(\.dataToSend.encoded.hex),
            [
                joined(
                    "9F5E09541333008901043401", "9F5D03010000", "9F5F0120", "9F7D08A1A2A3A4A5A6A7A8", "9F7F04C0C1C2C3",
                    "9F370411223344")
            ])
    }

    /// What is written goes behind the data for CDOL1, with its digest; the last value is not filled.
    @Test(arguments: [
        // Version, answer, AIP, digest
        (1, Kernel2Vectors.storageWritten, false, Kernel2Vectors.digest1),
        (2, Kernel2Vectors.storageRelay, true, Kernel2Vectors.digest2),
    ])
    func storageIsWritten(_ version: Int, _ answer: String, _ isRelayed: Bool, _ digest: String) throws {
        var card = MChipCard()
        card.options = Self.slot + (version == 1 ? Self.summary1 : Self.long1)
        card.more = Self.dsdol
        if isRelayed {
            card.aip = "19 81"
            card.iccCertificate = Kernel2Vectors.iccCertificateRelay
        }
        let relay = isRelayed ? ["80 0A AA BB CC DD  00 0A  00 50  00 18 90 00"] : []
        let run = try bench(writing(), version: version)
            .run([card.processingOptions] + relay + card.records + [answer.answered])
        expectEqual(run.outcome.kind, .approved, "\(run.outcome.reason)")
        expectEqual(run.commands.last?.hasSuffix("F0F1F2F3F4F5F6F7" + digest + joined("80", "D1D2D3", "00")), true)
        expectEqual(run[discretionary: 0xDF810B], "C0")
        expectEqual(run[discretionary: 0xDF8102]?.hasPrefix("C1C2C3C4"), true)
    }

    /// S910.8 to S910.19
    @Test(arguments: [
        // Answer, DS ODS Info For Reader, error
        (Kernel2Vectors.storageChanged, "80", "000B0000001C"), (Kernel2Vectors.storageRead, "80", "00010000001C"),
        (Kernel2Vectors.tc, "80", "00010000001C"), (Kernel2Vectors.storageNotWritten, "82", "000C0000001C"),
        (Kernel2Vectors.storageNotWritten, "80", "0000000000FF"),
    ])
    func storageThatFails(_ answer: String, _ information: String, _ error: String) throws {
        var card = MChipCard()
        card.options = Self.slot + Self.summary1
        card.more = Self.dsdol
        let run = try bench(writing("40", information)).run(card.read + [answer.answered])
        expectEqual(run.error, error, "\(run.outcome.reason)")
        // What the card may have written is handed out, unless it has certainly not.
        expectEqual(run.outcome.dataRecord != nil, error != "000C0000001C")
    }

    /// S910.18, S910.19 and S11.101: of a card that has certainly not written, no torn record is handed out either.
    @Test func tornRecordOfStorageThatFails() throws {
        var card = MChipCard()
        card.options = Self.slot + Self.summary1
        card.more = Self.dsdol + "9F 51 03 9F 37 04"
        var bench = try bench(writing("40", "82"))
        let torn = try answer(
            (0x5A, "54 13 33 00 89 01 04 34"), (0x5F34, "01"), (0x9F02, "00 00 00 00 12 34"),
            (0x9F03, "00 00 00 00 00 00"), (0x5F2A, "09 78"), (0x9C, "00"), (0xDF8128, "C0"),
            (0x9F7D, "A1 A2 A3 A4 A5 A6 A7 A8"))
        let time = try bench.activation().transaction.time
        _ = bench.tornTransactions.add(TornTransactionLog.Record(data: torn, time: time), maximum: 2)
        let run = try bench.run(card.read + ["69 85", Kernel2Vectors.storageNotWritten.answered])
        #expect(run.instructions.hasSuffix("D0 AE") && run.error == "000C0000001C", "\(run.outcome.reason)")
        #expect(run[discretionary: 0xFF8101] == nil && run.outcome.dataRecord == nil)
    }

    /// The summaries count as the card has signed them; anybody can put others into a record.
    @Test(arguments: [
        // Answer, DF8101 and DF8102 of the record, error
        (Kernel2Vectors.storageRead, "DF 81 02 08 C1 C2 C3 C4 C5 C6 C7 C8", "00010000001C"),
        (Kernel2Vectors.tc, "DF 81 01 08 A1 A2 A3 A4 A5 A6 A7 A8", "00010000001C"),
        (
            Kernel2Vectors.tc, "DF 81 01 08 A1 A2 A3 A4 A5 A6 A7 A8  DF 81 02 08 C1 C2 C3 C4 C5 C6 C7 C8",
            "00010000001C"
        ),
    ])
    func unsignedSummaries(_ answer: String, _ unsigned: String, _ error: String) throws {
        var card = MChipCard()
        card.options = Self.slot + Self.summary1 + unsigned
        card.more = Self.dsdol
        let run = try bench(writing("40", "80")).run(card.read + [answer.answered])
        expectEqual(run.error, error, "\(run.outcome.reason)")
    }

    /// A command holds 255 bytes: what is asked for beyond is not cut off.
    @Test(arguments: [("D1 D2 D3", true), ("D1 D2 D3 D4", false)])
    func longestCommand(_ term: String, _ isSent: Bool) throws {
        var card = MChipCard()
        card.options = Self.slot + Self.summary1
        // CDOL1 asks for 252 bytes, DSDOL for DS ODS Term.
        card.record =
            try TLVList(wire(card.record)).filter { $0.tag != 0x8C }
            .map { $0.tag.encode($0.value).hex }.joined() + "8C 03 9F 02 FC"
        card.more = "9F 5B 03  DF 63 10"
        let answer = try answer((0xDF62, "80"), (0xDF63, term), (0xDF8108, "40"), (0xDF810A, "80"))
        let run = try bench(answer).run(card.read + (isSent ? ["69 85"] : []))
        expectEqual(run.error, isSent ? "00030069851C" : "00060000001C", "\(run.outcome.reason)")
        expectEqual(run.commands.last?.hasPrefix("80AE5000FF".filter { _ in isSent }), true)
        if isSent { expectEqual(run.commands.last?.hasSuffix("1234D1D2D300"), true) }
    }

    /// GAC.5 to GAC.13: which cryptogram the terminal writes with.
    @Test(
        arguments: [
            // DS AC Type, DS ODS Info For Reader, P1 of GENERATE AC; nil ends the application
            ("40", "80", "50", nil), ("80", "80", "90", nil), ("00", "80", "10", nil),
            ("", "80", nil, "000D0000001C"), ("40", "", nil, "000D0000001C"),
        ] as [(String, String, String?, String?)])
    func whichCryptogramWrites(_ type: String, _ information: String, _ control: String?, _ error: String?) throws {
        var card = MChipCard()
        card.options = Self.slot + Self.summary1
        card.more = Self.dsdol
        let run = try bench(writing(type, information)).run(card.read + (control == nil ? [] : ["69 85"]))
        if let control { expectEqual(run.commands.last?.hasPrefix("80AE" + control), true) }
        if let error { expectEqual(run.error, error) }
    }

    /// GAC.9 to GAC.13: above the floor limit the terminal asks for an ARQC, and would write with a TC.
    @Test(
        arguments: [("40", true, nil), ("80", false, nil), ("84", nil, "000E0000001C")] as [(String, Bool?, String?)])
    func theCryptogramDoesNotFit(_ information: String, _ writes: Bool?, _ error: String?) throws {
        var card = MChipCard()
        card.options = Self.slot + Self.summary1
        card.more = Self.dsdol
        var bench = try bench(writing("40", information))
        bench.floorLimit = 0
        let run = try bench.run(card.read + (writes == nil ? [] : ["69 85"]))
        if let writes {
            expectEqual(run.commands.last?.hasPrefix("80AE90"), true)
            expectEqual(run.commands.last?.hasSuffix("D1D2D300"), writes)
        }
        if let error { expectEqual(run.error, error) }
    }

    /// GAC.9 to GAC.13: the terminal declines, and would write with a TC; DS ODS Info For Reader bit 6 is for an AAC.
    @Test(
        arguments: [("20", true, nil), ("C0", false, nil), ("C4", nil, "000E0000001C")] as [(String, Bool?, String?)])
    func theTerminalDeclinesAndWrites(_ information: String, _ writes: Bool?, _ error: String?) throws {
        var card = MChipCard()
        card.options = Self.slot + Self.summary1
        card.more = Self.dsdol
        var bench = try bench(writing("40", information))
        bench.data["DF8121"] = "0000000001"
        let run = try bench.run(card.read + (writes == nil ? [] : ["69 85"]))
        if let writes {
            expectEqual(run.commands.last?.hasPrefix("80AE10"), true)
            expectEqual(run.commands.last?.hasSuffix("D1D2D300"), writes)
        }
        if let error { expectEqual(run.error, error) }
    }

    /// S1.19, S3R1.12 and S456.19: no data storage, no whole slot, or that of another account.
    @Test(
        arguments: [
            // 9F5D and 9F5E, slot, P1 of GENERATE AC, error
            ("9F 5D 03 00 00 00  9F 5E 09 54 13 33 00 89 01 04 34 01", "", "50", nil),
            ("9F 5D 03 01 00 00", "", "50", nil),
            ("9F 5D 03 01 00 00  9F 5E 09 54 13 33 00 89 01 04 34 01", "9F 5F 01 20", "50", nil),
            (
                "9F 5D 03 01 00 00  9F 5E 09 54 13 33 00 89 01 04 34 02", slot + summary1, nil,
                "00060000001C"
            ),
        ] as [(String, String, String?, String?)])
    func noStorage(_ discretionary: String, _ options: String, _ control: String?, _ error: String?) throws {
        var bench = try bench()
        bench.discretionary = discretionary
        var card = MChipCard()
        card.options = options
        let run = try bench.run(card.read + (control == nil ? [] : [Kernel2Vectors.tc.answered]))
        if control != nil { expectEqual(run.outcome.kind, .approved, "\(run.outcome.reason)") }
        if let error { expectEqual(run.error, error) }
    }

    // MARK: Data exchange

    /// Tags to read are taken from what the card gave, by GET DATA, or sent empty; one that is not known is not sent.
    @Test func whatTheTerminalReads() throws {
        var bench = Kernel2Bench()
        bench.data = ["DF8112": "5F24 9F70 9F6E DF7E 5F28".filter { $0 != " " }]
        let run = try bench.run(
            [ShortCard().processingOptions, "6A 88", ShortCard().record, MChipCard.cryptogram("80")])
        #expect(run.instructions == "A8 CA B2 AE" && run.commands[1] == "80CA9F7000")
        expectEqual(
            run.exchanges.map(\.dataToSend.encoded.hex), [joined("9F7000", "5F2403311231", "9F6E00", "5F28020276")])
    }

    /// What the transaction began with is not the terminal's to change, nor what the card says.
    @Test func whatTheTerminalMayNotSet() throws {
        var bench = Kernel2Bench()
        bench.data = ["DF8110": ""]
        bench.answers = [
            try answer(
                (0xDF8110, "01"), (0xDF8121, "FF FF FF FF FF"), (0xDF812D, "99 99 99 99 99 99 99 99 99"),
                (0xDF8118, "00"), (0xDF8119, "00"), (0x9F02, "00 00 00 00 00 01"), (0x95, "FF FF FF FF FF"),
                (0x5F24, "99 12 31"),
                (0x9F37, "00 00 00 00"), (0x9F53, "52"))
        ]
        let run = try bench.run(try ShortCard().read + [MChipCard.cryptogram("80")])
        expectEqual(run.exchanges, [DataExchange(dataNeeded: [0xDF8110])])
        #expect(run[record: 0x9F02] == "000000001234" && run[record: 0x95] == "8000000001")
        #expect(run[record: 0x5F24] == "311231" && run[record: 0x9F37] == "11223344" && run[record: 0x9F53] == "52")
        // The denial codes are those of the configuration: it goes online.
        #expect(run.outcome.kind == .onlineRequest && run[record: 0x9F33] == "E00808")
        // A value of another length is none.
        bench.answers = [try answer((0xDF8110, "01"), (0x9F53, "52 52"))]
        try expectEqual(bench.run(try ShortCard().read + [MChipCard.cryptogram("80")])[record: 0x9F53], nil)
    }
}
