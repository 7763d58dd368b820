import SmartCard
import SmartCardSimulator
import TestSupport
import Testing

/// Each personality walked by the commands that a reader sends it.
@Suite struct CardPersonalityTests {
    private static func options(_ ttq: String, _ amount: String = "000000001234") -> String {
        "80 A8 00 00 23 83 21 \(ttq) \(amount) 000000000000 0276 0000000000 0978 261121 00 11223344 00"
    }

    /// EMV mode, contact, online PIN, signature; nothing demanded.
    private static let offline = "36004000"

    // MARK: Visa

    /// The cryptogram was computed with PyEMV 1.5.0, `cvn.VisaCVN18(…).generate_ac`.
    @Test(arguments: ["36004000", "36804000"]) func declines(ttq: String) throws {
        let send = try CardSession("visa-decline")
        _ = try send(CardEMVTests.selectVisa)
        try expectEqual(
            send(Self.options(ttq)),
            hex(
                "77 4B 82 02 0000 94 04 08010100 57 11 4761739001010010D31122011143804489 5F34 01 01",
                "9F10 07 06011203800000 9F26 08 EDE11561646F7441 9F27 01 00 9F36 02 0042 9F6C 02 0000",
                "9F6E 04 20700000", "90 00"))
    }

    @Test(
        "an ARQC whatever the amount, with a signature if the reader takes one",
        arguments: [("26004000", false), ("27004000", true), ("27804000", true)])
    func online(ttq: String, signed: Bool) throws {
        let send = try CardSession("visa-oda-online")
        _ = try send(CardEMVTests.selectVisa)
        let answer = try send(Self.options(ttq, "000000000001"))
        #expect(answer.contains("9F270180"))
        expectEqual(answer.contains("9F4B8180"), signed)
        #expect(answer.contains(signed ? "82022000" : "82020000"))
    }

    /// EMV Contactless Book C-3, Annex A: Card Transaction Qualifiers, which stand in the answer and, signed, in 9F69.
    @Test(arguments: [
        ("visa-online-pin", "8000", "311231"), ("visa-signature", "4000", "311231"),
        ("visa-oda-fails", "0000", "311231"), ("visa-oda-fails-online", "2000", "311231"),
        ("visa-oda-fails-switch", "1000", "311231"), ("visa-expired-online", "0800", "201231"),
        ("visa-expired", "0000", "201231"), ("visa-switch-cash", "0400", "311231"),
        ("visa-switch-cashback", "0200", "311231"), ("visa-cdcvm", "0080", "311231"),
    ])
    func qualifiers(name: String, ctq: String, expiration: String) throws {
        let send = try CardSession(name)
        _ = try send(CardEMVTests.selectVisa)
        let answer = try send(Self.options(Self.offline))
        #expect(answer.contains("9F270140"))
        #expect(answer.contains("9F6C02" + ctq))
        #expect(try send("00 B2 01 1C 00").contains("5F2403" + expiration))
        #expect(try send("00 B2 02 1C 00").hasSuffix(ctq + "9000"))
    }

    /// Magnetic stripe data only: byte 2, bit 8 of the AIP, and no cryptogram.
    @Test func stripe() throws {
        let send = try CardSession("visa-msd")
        #expect(try send(CardEMVTests.selectVisa).contains("9F380C9F66049F02069F37045F2A02"))
        try expectEqual(
            send("80 A8 00 00 12 83 10 36004000 000000001234 11223344 0978 00"),
            hex("80 06 0080 08010100", "9000"))
        try expectEqual(
            send("00 B2 01 0C 00"),
            hex(
                "70 22 57 11 4761739001010010D31121011143804489 5F20 0C 5441505045522F5445535341", "9000"))
        let old = try CardSession("visa-without-ttq")
        #expect(try old(CardEMVTests.selectVisa).contains("9F38099F02069F37045F2A02"))
        try expectEqual(
            old("80 A8 00 00 0E 83 0C 000000001234 11223344 0978 00"), hex("80 06 0080 08010100", "9000"))
    }

    // MARK: Telephone

    /// Unlocked between two presentations.  The cryptogram was computed with PyEMV 1.5.0, `cvn.VisaCVN22(…).generate_ac`.
    @Test func telephone() throws {
        let send = try CardSession("phone")
        for count: UInt8 in [0x01, 0x02] {
            _ = try send(CardEMVTests.selectPPSE)
            _ = try send(CardEMVTests.selectVisa)
            try expectEqual(send(Self.options("36C04000")), "6986")
            try expectEqual(send("00 B2 01 0C 00"), "6985")
            send.card.reset()
            _ = try send(CardEMVTests.selectVisa)
            let answer = try send(Self.options("36C04000"))
            #expect(answer.hasSuffix("9000"))
            #expect(answer.contains("9F3602" + "02" + [count].hex))
            #expect(!answer.contains("5A08"))
            if count == 1 {
                expectEqual(
                    answer,
                    try hex(
                        "77 64 82 02 0000 94 04 08010100 57 11 4761739001010010D31122011143804489 5F34 01 00",
                        "9F10 20 1F2201A000000000 000000000000000000000000000000000000000000000000",
                        "9F26 08 AA0455F6C893172C 9F27 01 80 9F36 02 0201 9F6C 02 0080 9F6E 04 238C0000", "9000"))
            }
            try expectEqual(
                send("00 B2 01 0C 00"),
                hex("70 13 5F28 02 0840 9F07 02 C080 9F19 06 040012345678", "9000"))
            send.card.reset()
        }
    }

    // MARK: SDA

    /// GENERATE AC of format 1.  The cryptograms were computed with PyEMV 1.5.0, `cvn.VisaCVN10(…).generate_ac`.
    @Test(arguments: [
        ("40", "90", "40", "E53F829BAF163D91"), ("80", "A0", "80", "F085F53CB2937DA5"),
        ("00", "80", "00", "98B4B6A16B9E1EE2"),
    ])
    func staticData(p1: String, cvr: String, cid: String, cryptogram: String) throws {
        let send = try CardSession("emv-sda")
        try expectEqual(
            send(CardEMVTests.selectVisa),
            hex("6F 1B 84 07 A0000000031010 A5 10 50 0B 56495341 20 435245444954 87 01 01", "9000"))
        try expectEqual(send("80 A8 00 00 02 83 00 00"), hex("80 0A 5800 08010200 10010201", "9000"))
        try expectEqual(send("00 88 00 00 04 11223344 00"), "6D00")
        try expectEqual(
            send(
                "80 AE \(p1) 00 1D 000000001234 000000000000 0276 0000008000 0978 261121 00 11223344 00"),
            hex("80 12 \(cid) 0011 \(cryptogram) 06010A03\(cvr)0000", "9000"))
        // This card signs no cryptogram.
        try expectEqual(
            send("80 AE 50 00 1D 000000001234 000000000000 0276 0000008000 0978 261121 00 11223344 00"), "6A86")
    }

    // MARK: Many applications

    @Test func fourApplications() throws {
        let send = try CardSession("multi")
        try expectEqual(
            send(CardEMVTests.selectPPSE),
            hex(
                "6F 81 8D 84 0E 325041592E5359532E4444463031 A5 7B BF0C 78",
                "61 1A 4F 08 A000000003101001 50 0B 5649534120435245444954 87 01 02",
                "61 19 4F 08 A000000003101002 50 0A 56495341204445424954 87 01 01",
                "61 1C 4F 07 A0000000041010 50 0A 4D415354455243415244 87 01 04 9F2A 01 02",
                "61 21 4F 07 A0000000041010 50 0A 4D415354455243415244 87 01 03 9F2A 01 02 9F29 02 4D01",
                "9000"))
        // PyEMV 1.5.0: `ac.generate_ac` under the key of `kd.derive_icc_mk_a`.
        for (name, cryptogram) in [("01", "749C4226E9F3DC9D"), ("02", "F0FB90C30D67DFFF")] {
            _ = try send("00 A4 04 00 08 A0000000031010 \(name) 00")
            #expect(
                try send("80 A8 00 00 12 83 10 36804000 000000001234 11223344 0978 00").contains("9F2608" + cryptogram))
        }
    }

    // MARK: Blocked

    /// A warning with the FCI, and no transaction (EMV Book 1, 11.3.5; Book 3, 6.5.8.5).
    @Test func blocked() throws {
        let send = try CardSession("blocked")
        #expect(try send(CardEMVTests.selectVisa).hasSuffix("6283"))
        try expectEqual(send("80 A8 00 00 12 83 10 36004000 000000001234 11223344 0978 00"), "6985")
    }
}
