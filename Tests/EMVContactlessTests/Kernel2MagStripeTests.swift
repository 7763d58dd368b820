import EMVContactless
import SmartCard
import TestSupport
import Testing

/// Mag-stripe mode (EMV Contactless Book C-2, 6: S7, S78, S13 and S14).  The expected digits are placed by hand.
@Suite struct Kernel2MagStripeTests {
    /// CVC3 4660 and 3000, the 66th transaction; the number for 9F6A is 1432778632, the last three digits of it are used.
    @Test func digitsArePlaced() throws {
        var bench = Kernel2Bench()
        bench.fci += "50 0A 4D 41 53 54 45 52 43 41 52 44  9F 12 02 4D 43  9F 11 01 01"
        var card = MagStripeCard()
        let reference = "51 30 30 31 33 50 52 5A 38 37 36 34 33 35 36 31 58 4B 32 35 42 4D 38 37 32 48 4A 47 36"
        card.more = "9F 24 1D" + reference
        let run = try bench.run(try card.read + [MagStripeCard.checksum()])
        #expect(run.outcome.kind == .onlineRequest && run.outcome.cvm == Outcome.CVM.none, "\(run.outcome.reason)")
        // The default UDOL asks for 9F6A alone.
        expectEqual(run.commands, ["80A800000383012200", "00B2010C00", "802A8E800400000632" + "00"])
        // From the end: 3 digits; 660 of the CVC3 in 1 to 3; 632 in 4 to 6; 066 of the counter in 9 to 11.
        expectEqual(run[record: 0x9F6B], joined("5413330089010434D3112201", "9066996326603", "F"))
        // 000 of the CVC3.
        let track1 = String(decoding: try #require(run.outcome.dataRecord?[0x56]), as: UTF8.self)
        expectEqual(track1, "B5413330089010434^TAPPER/TESSA^3112201" + "9066996320003")
        // DD Card: what the card gave.
        expectEqual(run[discretionary: 0xDF812B], "9999999999999F")
        expectEqual(run[discretionary: 0xDF812A], String(repeating: "39", count: 13))
        #expect(run[record: 0x9F6D] == "0001" && run[record: 0x84] == "A0000000041010")
        // Table 4.10
        expectEqual(
            run.outcome.dataRecord?.elements.map(\.tag), [0x50, 0x9F12, 0x84, 0x9F11, 0x9F6D, 0x9F24, 0x56, 0x9F6B])
        expectEqual(run.requests.map(\.message), [.clearDisplay])
        #expect(!"\(run.outcome)".contains("5413330089010434"))
    }

    /// Other positions, by hand: from the end, 0 is the last digit.
    @Test(arguments: [
        // 9F65, 9F66, 9F67; discretionary data
        // No unpredictable digits and no counter: CVC3 60 in 4 and 5; the last digit is 0.
        ("00 30", "00 00", "00", "9999999609990"),
        // Eight unpredictable digits in 1 to 8: 1432778632, without the first two; CVC3 4660 in 9 to 12.
        ("1E 00", "01 FE", "00", "4660327786328"),
        // CVC3 in five positions, with a zero before it; one unpredictable digit in 6, and five of the counter.
        ("00 3E", "0F C0", "05", "9000662046601"),
        // They may be anywhere: CVC3 in 1, 3, 5; number in 2, 4; counter in 6, 8.
        ("00 2A", "01 54", "02", "9999696636202"),
    ])
    func magStripePositions(_ checksum: String, _ map: String, _ counter: String, _ expected: String) throws {
        var card = MagStripeCard()
        card.hasTrack1 = false
        card.track2 = "9F 65 02 \(checksum)  9F 66 02 \(map)  9F 67 01 \(counter)"
        let run = try Kernel2Bench().run(card.read + [MagStripeCard.checksum(without: ["9F60"])])
        expectEqual(run[record: 0x9F6B], "5413330089010434D3112201\(expected)F", "\(run.outcome.reason)")
    }

    /// nUN' of a device that has verified its holder: 8 + 5, of which the last digit counts (S14.29).
    @Test func indicatorOfEightDigits() throws {
        var card = MagStripeCard()
        card.aip = "02 00"
        card.hasTrack1 = false
        card.track2 = "9F 65 02 1E 00  9F 66 02 01 FE  9F 67 01 00"
        var bench = Kernel2Bench()
        bench.amount = 50_00
        let run = try bench.run(card.read + [MagStripeCard.checksum("DF 4B 03 00 10 00", without: ["9F60"])])
        expectEqual(run[record: 0x9F6B], "5413330089010434D31122014660327786323F", "\(run.outcome.reason)")
    }

    /// The card's own list, with the indicator that it is a mobile's reader: 9F7E; amount and type.
    @Test func unpredictableDataObjectList() throws {
        var card = MagStripeCard()
        card.more = "9F 69 0B  9F 6A 04  9F 7E 01  9F 02 06  9C 01"
        let run = try Kernel2Bench().run(card.read + [MagStripeCard.checksum()])
        expectEqual(run.commands.last, joined("802A8E800C", "00000632", "01", "000000001234", "00", "00"))
        // Above the limit a device is told that its holder has to be verified.
        card.aip = "02 00"
        var bench = Kernel2Bench()
        bench.amount = 50_00
        let device = try bench.run(card.read + [MagStripeCard.checksum("DF 4B 03 00 10 00")])
        expectEqual(device.commands.last, joined("802A8E800C", "00000632", "03", "000000005000", "00", "00"))
        #expect(device.outcome.cvm == .deviceCVM && device.outcome.receipt)
        // nUN' = 3 + 5: the device has verified its holder.
        expectEqual(device[record: 0x9F6B], "5413330089010434D31122019066996326608F")
    }

    /// S13.24 to S13.26 and S14.32 to S14.34
    @Test(
        arguments: [
            // AIP, amount, DF811E and DF812C, more of the answer; CVM, receipt
            ("00 00", 49_99, "10", "00", "", Outcome.CVM.none, false),
            ("00 00", 50_00, "10", "00", "", .signature, true),
            ("00 00", 50_00, "20", "00", "", .onlinePIN, true),
            ("00 00", 49_99, "10", "10", "", .signature, true),
            ("00 00", 49_99, "10", "F0", "", nil, false),
            ("02 00", 49_99, "10", "10", "DF 4B 03 00 00 00", Outcome.CVM.none, false),
            ("02 00", 49_99, "10", "10", "DF 4B 03 00 10 00", .deviceCVM, false),
        ] as [(String, UInt64, String, String, String, Outcome.CVM?, Bool)])
    func magStripeCVM(
        _ aip: String, _ amount: UInt64, _ required: String, _ notRequired: String, _ more: String,
        _ cvm: Outcome.CVM?, _ receipt: Bool
    ) throws {
        var bench = Kernel2Bench()
        bench.amount = amount
        bench.data = ["DF811E": required, "DF812C": notRequired]
        var card = MagStripeCard()
        card.aip = aip
        let run = try bench.run(card.read + [MagStripeCard.checksum(more)])
        #expect(run.outcome.kind == .onlineRequest && run.outcome.cvm == cvm && run.outcome.receipt == receipt)
    }

    /// S7.20 to S7.24
    @Test(
        arguments: [
            // Track 2's maps, track 1's maps, error
            ("9F 65 02 00 0E  9F 66 02 0E 70", nil, "00010000001C"),
            ("9F 65 02 00 0E  9F 66 02 0E 70  9F 67 01 07", nil, "00060000001C"),  // -1 digits
            ("9F 65 02 00 0E  9F 66 02 FF F0  9F 67 01 00", nil, "00060000001C"),  // 12 digits
            ("9F 65 02 00 0E  9F 66 02 03 FE  9F 67 01 00", nil, "00060000001C"),  // 9 digits
            ("9F 65 02 00 0E  9F 66 02 0E 70  9F 67 01 03", "", "00060000001C"),
            (
                "9F 65 02 00 0E  9F 66 02 0E 70  9F 67 01 03",
                "9F 62 06 00 00 00 00 00 0E  9F 63 06 00 00 00 00 0E 70  9F 64 01 02", "00060000001C"
            ),
        ] as [(String, String?, String)])
    func mapsThatDoNotFit(_ track2: String, _ track1: String?, _ error: String) throws {
        var card = MagStripeCard()
        card.track2 = track2
        if let track1 { card.track1 = track1 } else { card.hasTrack1 = false }
        try expectEqual(Kernel2Bench().run(card.read).error, error)
    }

    /// A position in front of the discretionary data: 13 digits have none of number 13.
    @Test(arguments: ["9F 65 02 20 00  9F 66 02 0E 70  9F 67 01 03", "9F 65 02 00 0E  9F 66 02 20 00  9F 67 01 01"])
    func placesThatAreNotThere(_ track2: String) throws {
        var card = MagStripeCard()
        card.hasTrack1 = false
        card.track2 = track2
        try expectEqual(Kernel2Bench().run(card.read + [MagStripeCard.checksum()]).error, "00060000001C")
    }

    /// S13.14 to S13.16, S13.41 to S13.45, S14.14 to S14.23
    @Test(
        arguments: [
            // AIP, amount, left away, more; outcome, error
            ("00 00", 1_00, ["9F36"], "", .endApplication, "00010000001C"),
            ("00 00", 1_00, ["9F61"], "", .endApplication, "00010000001C"),
            ("00 00", 1_00, ["9F60"], "", .endApplication, "00010000001C"),
            ("00 00", 1_00, ["9F61"], "DF 4B 03 00 00 00", .declined, "0000000000FF"),
            ("02 00", 1_00, [], "", .endApplication, "00010000001C"),
            ("02 00", 1_00, ["9F61"], "DF 4B 03 00 00 00", .declined, "0000000000FF"),
            ("02 00", 60_00, [], "DF 4B 03 00 00 00", .endApplication, "00060000001C"),
            ("02 00", 60_00, ["9F60"], "DF 4B 03 00 00 00", .endApplication, "00010000001C"),
        ] as [(String, UInt64, Set<String>, String, Outcome.Kind, String)])
    func checksumsThatAreNone(
        _ aip: String, _ amount: UInt64, _ without: Set<String>, _ more: String, _ kind: Outcome.Kind, _ error: String
    ) throws {
        var bench = Kernel2Bench()
        bench.amount = amount
        var card = MagStripeCard()
        card.aip = aip
        let run = try bench.run(card.read + [MagStripeCard.checksum(more, without: without)])
        #expect(run.outcome.kind == kind && run.error == error, "\(run.outcome.reason)")
        expectEqual(run.outcome.dataRecord != nil, kind == .declined)
        expectEqual(
            run.outcome.userInterfaceRequest?.message,
            kind == .declined ? .notAuthorized : .insertSwipeOrTryAnotherCard)
    }

    /// The device gives no checksum before its holder has been verified: message 20, and once more.
    @Test(arguments: ["00 00", "02 00"]) func magStripeSecondTap(_ aip: String) throws {
        var card = MagStripeCard()
        card.aip = aip
        let run = try Kernel2Bench().run(
            card.read + [MagStripeCard.checksum("DF 4B 03 00 01 00", without: ["9F61"])])
        #expect(run.outcome.kind == .endApplication && run.outcome.start == .b)
        expectEqual(run.requests.map(\.message), [.clearDisplay, .seePhone])
        #expect(run.requests.last?.status == .notReady && run.requests.last?.holdTime == 1300)
        let again = UserInterfaceRequest(.seePhone, .readyToRead, languagePreference: ["de", "en"])
        expectEqual(run.outcome.userInterfaceRequestOnRestart, again)
        expectEqual(run.outcome.fieldOff, 1300)
    }

    /// S3.16 to S3.18, S78.10: the kernel's configuration, and its limit.
    @Test func magStripeModeIsNotSupported() throws {
        var bench = Kernel2Bench()
        bench.data = ["DF811B": "B0"]
        try expectEqual(bench.run(MagStripeCard().processingOptions).error, "00070000001C")
        // Without EMV mode a card of both modes is in mag-stripe mode.
        bench.data = ["DF811B": "70"]
        var card = MagStripeCard()
        card.aip = "18 80"
        try expectEqual(bench.run(card.read + [MagStripeCard.checksum()]).outcome.kind, .onlineRequest)
        var above = Kernel2Bench()
        above.transactionLimit = 12_34
        let run = try above.run(MagStripeCard().read)
        #expect(run.outcome.kind == .selectNext && run.outcome.start == .c && run.error == "0005000000FF")
    }
}
