import SmartCard
import SmartCardSimulator
import TestSupport
import Testing

/// A card, and hexadecimal on both sides.
struct CardSession {
    let card: any VirtualCard

    init(_ name: String) throws { card = try #require(VirtualCards.named(name)) }
    init(file: String) throws { card = try CardFile(parsing: file).makeCard() }

    /// The answer to a command APDU.
    func callAsFunction(_ command: String) throws -> String {
        try #require(card.exchange([UInt8](hex: command))).hex
    }

    /// The answer to a native command; nil for a refusal.
    func native(_ command: String) throws -> String? { card.exchangeNative(try [UInt8](hex: command))?.hex }
}

/// Joins lines of hexadecimal, so that a long answer can be read object by object.
func hex(_ parts: String...) throws -> String { try [UInt8](hex: parts.joined(separator: " ")).hex }

@Suite struct CardEMVTests {
    static let selectPPSE = "00 A4 04 00 0E 32 50 41 59 2E 53 59 53 2E 44 44 46 30 31 00"
    static let selectVisa = "00 A4 04 00 07 A0 00 00 00 03 10 10 00"
    static let selectMastercard = "00 A4 04 00 07 A0 00 00 00 04 10 10 00"
    /// TTQ 36 80 00 00: online cryptogram required; 12.34 EUR in Germany on 21 November 2026; UN 11223344.
    static let visaGPO =
        "80 A8 00 00 23 83 21 36800000 000000001234 000000000000 0276 0000000000 0978 261121 00 11223344 00"

    // MARK: Visa

    @Test func visaSelection() throws {
        let send = try CardSession("visa")
        try expectEqual(
            send(Self.selectPPSE),
            hex(
                "6F 34 84 0E 32 50 41 59 2E 53 59 53 2E 44 44 46 30 31",
                "A5 22 BF0C 1F 61 1D 4F 07 A0000000031010 50 0B 56495341 20 435245444954 87 01 01 9F2A 01 03",
                "90 00"
            ))
        try expectEqual(
            send(Self.selectVisa),
            hex(
                "6F 46 84 07 A0000000031010 A5 3B 50 0B 56495341 20 435245444954 87 01 01 5F2D 02 656E",
                "9F38 18 9F6604 9F0206 9F0306 9F1A02 9505 5F2A02 9A03 9C01 9F3704 BF0C 08 9F5A 05 1108400840",
                "90 00"
            ))
    }

    /// The cryptograms were computed with PyEMV 1.5.0, `cvn.VisaCVN18(…).generate_ac`, from the values of the command.
    @Test func visaTransaction() throws {
        let send = try CardSession("visa")
        _ = try send(Self.selectVisa)
        try expectEqual(
            send(Self.visaGPO),
            hex(
                "77 4B 82 02 0000 94 04 08010100 57 11 4761739001010010D31122011143804489 5F34 01 01",
                "9F10 07 06011203A00000 9F26 08 4A8CF7AC9A9378A0 9F27 01 80 9F36 02 0042 9F6C 02 0000",
                "9F6E 04 20700000", "90 00"))
        try expectEqual(
            send("00 B2 01 0C 00"),
            hex(
                "70 29 5A 08 4761739001010010 5F24 03 311231 5F20 0C 5441505045522F5445535341 5F28 02 0840",
                "9F07 02 C080", "90 00"))
        try expectEqual(send("80 CA 9F 36 00"), "9F36020042" + "9000")
        try expectEqual(send("80 CA 9F 17 00"), "9F170103" + "9000")
        // qVSDC has no GENERATE AC.
        try expectEqual(send("80 AE 80 00 00"), "6D00")
    }

    @Test func counterOutlivesTheField() throws {
        let send = try CardSession("visa")
        for count in 0x42...0x44 {
            send.card.reset()
            try expectEqual(send("80 CA 9F 36 00"), "6985")
            _ = try send(Self.selectVisa)
            #expect(try send(Self.visaGPO).contains("9F360200" + [UInt8(count)].hex))
        }
    }

    // MARK: Visa offline

    /// The cryptograms were computed with PyEMV 1.5.0, `cvn.VisaCVN18(…).generate_ac`, from the values of the command and
    /// of the answer.
    @Test(
        "a TC with a signature, an ARQC with one, an ARQC without",
        arguments: [
            // TTQ: EMV mode, online PIN, signature; nothing demanded.
            ("26004000", "000000001234", "2000", "10010200 18010201", "90", "40", "0ABB65E43659756A", true),
            // ODA for online authorizations, and online demanded.
            ("27804000", "000000001234", "2000", "10010200 18010201", "A0", "80", "C949206DD053E07E", true),
            // Online demanded.
            ("26804000", "000000001234", "0000", "18010100", "A0", "80", "4A8CF7AC9A9378A0", false),
        ])
    func visaOffline(
        ttq: String, amount: String, aip: String, afl: String, cvr: String, cid: String, cryptogram: String,
        signed: Bool
    ) throws {
        let send = try CardSession("visa-offline")
        _ = try send(Self.selectVisa)
        let answer = try send(
            "80 A8 00 00 23 83 21 \(ttq) \(amount) 000000000000 0276 0000000000 0978 261121 00 11223344 00")
        let afl = try [UInt8](hex: afl)
        #expect(
            answer.contains(
                try hex(
                    "82 02 \(aip) 94 \([UInt8(afl.count)].hex) \(afl.hex) 57 11 4761739001010010D31122011143804489",
                    "5F34 01 01 9F10 07 060112 03 \(cvr) 0000 9F26 08 \(cryptogram) 9F27 01 \(cid) 9F36 02 0042",
                    "9F6C 02 0000")))
        expectEqual(answer.contains("9F4B8180"), signed)
        #expect(answer.hasPrefix(signed ? "7781" : "774B"))
        #expect(answer.hasSuffix("9000"))
    }

    @Test func visaOfflineAboveItsLimit() throws {
        let send = try CardSession("visa-offline")
        _ = try send(Self.selectVisa)
        let answer = try send(
            "80 A8 00 00 23 83 21 26004000 000000005001 000000000000 0276 0000000000 0978 261121 00 11223344 00")
        #expect(answer.contains("9F270180"))
        #expect(!answer.contains("9F4B"))
    }

    // MARK: Mastercard

    /// CDOL1 filled: amount, none other, Germany, TVR, EUR, date, purchase, UN, terminal type 22, DAC, dynamic number,
    /// CVM results 1F 03 02, time, merchant custom data.
    static func generateAC(_ p1: String, amount: String) -> String {
        "80 AE \(p1) 00 42 \(amount) 000000000000 0276 0000008001 0978 261121 00 11223344 22 0000 0000000000000000"
            + " 1F0302 120000" + String(repeating: " 00", count: 20) + " 00"
    }

    /// The cryptograms were computed with PyEMV 1.5.0, `cvn.MasterCardCVN16(…).generate_ac`, from the values of the
    /// command and the CVR of the answer.
    @Test(arguments: [
        ("80", "000000001234", "80", "A0", "F6CF4323BA67CE07"),  // ARQC asked and given
        ("40", "000000001234", "40", "90", "C8D9810DF92402DE"),  // TC asked, below the card's limit
        ("40", "000000002501", "80", "A0", "2B689AA1D010D6A7"),  // TC asked, above it
        ("00", "000000001234", "00", "80", "D96B732E4324A147"),  // AAC asked and given
    ])
    func mastercardTransaction(p1: String, amount: String, cid: String, cvr: String, cryptogram: String) throws {
        let send = try CardSession("mastercard")
        _ = try send(Self.selectMastercard)
        try expectEqual(send("80 A8 00 00 02 83 00 00"), hex("77 0A 82 02 1880 94 04 10010100", "90 00"))
        #expect(try send("00 B2 01 14 00").hasPrefix("7081"))
        try expectEqual(
            send(Self.generateAC(p1, amount: amount)),
            hex(
                "77 29 9F27 01 \(cid) 9F36 02 0011 9F26 08 \(cryptogram)",
                "9F10 12 0110 \(cvr)4003220000 0000 00000000000000FF", "90 00"))
        // One cryptogram a transaction.
        try expectEqual(send(Self.generateAC(p1, amount: amount)), "6985")
        try expectEqual(send("80 A8 00 00 02 83 00 00"), "6985")
    }

    @Test func mastercardRefuses() throws {
        let send = try CardSession("mastercard")
        try expectEqual(send(Self.generateAC("80", amount: "000000000000")), "6985")
        _ = try send(Self.selectMastercard)
        // M/Chip's records can be read before GET PROCESSING OPTIONS, but it gives no cryptogram.
        #expect(try send("00 B2 01 14 00").hasSuffix("9000"))
        try expectEqual(send(Self.generateAC("80", amount: "000000000000")), "6985")
        _ = try send("80 A8 00 00 02 83 00 00")
        try expectEqual(send("80 AE 80 00 02 00 00 00"), "6700")  // not what CDOL1 asks for
        try expectEqual(send(Self.generateAC("C0", amount: "000000000000")), "6A86")  // reserved
        // CDA, which the AIP does not offer
        try expectEqual(send(Self.generateAC("90", amount: "000000000000")), "6A86")
        try expectEqual(send("80 AE 80 01 00"), "6A86")
        #expect(try send(Self.generateAC("80", amount: "000000000000")).hasSuffix("9000"))
    }

    /// The log is found as EMV Book 3, Annex D says: 9F4D in the FCI, 9F4F by GET DATA, records without template.
    @Test func mastercardLog() throws {
        let send = try CardSession("mastercard")
        #expect(try send(Self.selectMastercard).contains("9F4D020B0A"))
        try expectEqual(send("80 CA 9F 4F 00"), hex("9F4F 11 9F2701 9F0206 5F2A02 9A03 9F3602 9F5206", "90 00"))
        try expectEqual(send("00 B2 01 5C 00"), hex("80 000000004250 0978 261104 0010 A04003220000", "90 00"))
        try expectEqual(send("00 B2 02 5C 00"), hex("40 000000000390 0978 261031 000F 904003220000", "90 00"))
        try expectEqual(send("00 B2 03 5C 00"), "6A83")
    }

    // MARK: Two applications

    @Test func directoryOfTwo() throws {
        let send = try CardSession("two-applications")
        try expectEqual(
            send(Self.selectPPSE),
            hex(
                "6F 45 84 0E 32 50 41 59 2E 53 59 53 2E 44 44 46 30 31 A5 33 BF0C 30",
                "61 14 4F 07 A0000000421010 50 02 4342 87 01 01 9F2A 01 03",
                "61 18 4F 07 A0000000031010 50 0A 56495341204445424954 87 01 02",
                "90 00"))
    }

    /// PyEMV 1.5.0: `cvn.VisaCVN10(…).generate_ac`; for CVN 17 `ac.generate_ac` under the key of `kd.derive_icc_mk_a`.
    @Test func eachApplicationHasItsCryptogram() throws {
        let send = try CardSession("two-applications")
        _ = try send("00 A4 04 00 07 A0 00 00 00 42 10 10 00")
        #expect(try send(Self.visaGPO).contains("9F2608" + "EB30EF895E5D60A0"))
        try expectEqual(send("80 CA 9F 36 00"), "9F360201249000")
        _ = try send(Self.selectVisa)
        try expectEqual(
            send("80 A8 00 00 12 83 10 36800000 000000001234 11223344 0978 00"),
            hex(
                "77 3E 82 02 0000 57 11 4761739001010119D31122011143804489 5F34 01 00 9F10 07 06011103A00000",
                "9F26 08 059F23B98A88369F 9F27 01 80 9F36 02 0008 9F6C 02 0000", "90 00"
            ))
        try expectEqual(send("80 CA 9F 36 00"), "9F360200089000")
    }

    // MARK: What every EMV card keeps to

    /// Partial names find the first application that begins with them, P2 = 02 the next (EMV Book 1, 12.4).
    @Test func partialNames() throws {
        let send = try CardSession("two-applications")
        let next = "00 A4 04 02 05 A0 00 00 00 03 00"
        #expect(try send("00 A4 04 00 05 A0 00 00 00 03 00").contains("8407A0000000031010"))
        try expectEqual(send(next), "6A82")
        #expect(try send("00 A4 04 00 05 A0 00 00 00 42 00").contains("8407A0000000421010"))
        try expectEqual(send("00 A4 04 00 05 A0 00 00 00 04 00"), "6A82")
        try expectEqual(send("00 A4 04 00 08 A0 00 00 00 03 10 10 01 00"), "6A82")  // longer than the card's name
        try expectEqual(send("00 A4 04 00 00"), "6700")
        try expectEqual(send("00 A4 04 00 11 A0000000031010A0000000031010A00000 00"), "6700")
        try expectEqual(send("00 A4 00 00 02 3F 00"), "6A86")
        try expectEqual(send("00 A4 04 01 07 A0 00 00 00 03 10 10 00"), "6A86")
    }

    @Test func nextOccurrence() throws {
        let application = { (pix: String) in
            "application A000000003\(pix) {\n processing-options 77 {\n 82 0000\n }\n }\n"
        }
        let send = try CardSession(
            file: """
                card emv "three" {
                type-a {\n uid 01020304\n atqa 0004\n sak 20\n ats 01\n }
                \(application("1010"))\(application("2010"))\(application("3010"))
                }
                """)
        try expectEqual(send("00 A4 04 02 05 A0 00 00 00 03 00"), "6A82")  // next after nothing
        #expect(try send("00 A4 04 00 05 A0 00 00 00 03 00").contains("A0000000031010"))
        #expect(try send("00 A4 04 02 05 A0 00 00 00 03 00").contains("A0000000032010"))
        #expect(try send("00 A4 04 02 05 A0 00 00 00 03 00").contains("A0000000033010"))
        try expectEqual(send("00 A4 04 02 05 A0 00 00 00 03 00"), "6A82")
    }

    /// The length of GET PROCESSING OPTIONS is the PDOL's (6700, as a Visa card answers `80 A8 00 00 02 83 00 00`), its
    /// template is 83 and comes once.
    @Test func processingOptionsRefuses() throws {
        let send = try CardSession("visa")
        try expectEqual(send(Self.visaGPO), "6985")
        _ = try send(Self.selectPPSE)
        try expectEqual(send(Self.visaGPO), "6985")
        _ = try send(Self.selectVisa)
        try expectEqual(send("00 B2 01 0C 00"), "6985")  // no record before it
        try expectEqual(send("80 A8 00 00 02 83 00 00"), "6700")
        try expectEqual(send("80 A8 00 00 00"), "6700")
        try expectEqual(send("80 A8 00 00 01 83 00"), "6700")
        try expectEqual(send("80 A8 00 00 02 84 00 00"), "6A80")
        try expectEqual(send("80 A8 01 00 02 83 00 00"), "6A86")
        #expect(try send(Self.visaGPO).hasSuffix("9000"))
        try expectEqual(send(Self.visaGPO), "6985")
        // No attempt that failed has counted.
        try expectEqual(send("80 CA 9F 36 00"), "9F3602" + "0042" + "9000")
    }

    @Test func records() throws {
        let send = try CardSession("visa")
        _ = try send(Self.selectVisa)
        _ = try send(Self.visaGPO)
        try expectEqual(send("00 B2 02 0C 00"), "6A83")
        try expectEqual(send("00 B2 01 14 00"), "6A82")
        try expectEqual(send("00 B2 00 0C 00"), "6A86")
        try expectEqual(send("00 B2 01 0D 00"), "6A86")
        try expectEqual(send("00 B2 01 04 00"), "6A86")
    }

    @Test func unknownCommands() throws {
        let send = try CardSession("visa")
        _ = try send(Self.selectVisa)
        try expectEqual(send("00 84 00 00 00"), "6D00")
        try expectEqual(send("80 20 00 80 00"), "6D00")
        try expectEqual(send("90 60 00 00 00"), "6E00")
        try expectEqual(send("80 A4 04 00 05 A0 00 00 00 03 00"), "6E00")
        try expectEqual(send("00 CA 9F 36 00"), "6E00")
        try expectEqual(send("80 CA 9F 4E 00"), "6A88")
        try expectEqual(send("00"), "6700")
        try expectEqual(send("00 A4 04 00 07 A0"), "6700")
        try expectEqual(send("00 A4 04 00 00 00 07 A0 00 00 00 03 10 10 00 00"), "6700")  // extended length
    }

    @Test func blockedApplication() throws {
        let send = try CardSession("blocked")
        let answer = try send(Self.selectVisa)
        #expect(answer.hasPrefix("6F"))
        #expect(answer.hasSuffix("6283"))
        try expectEqual(send("80 A8 00 00 12 83 10 36800000 000000001234 11223344 0978 00"), "6985")
    }

    // MARK: What a file can say

    private func card(_ statements: String, application: String) throws -> CardSession {
        try CardSession(
            file: """
                card emv {
                type-a {\n uid 01020304\n atqa 0004\n sak 20\n ats 01\n }
                \(statements)
                application A0000000031010 {
                \(application)
                }
                }
                """)
    }

    private static let options = "processing-options 77 {\n 82 0000\n }\n"
    private static let processingOptions = "80 A8 00 00 02 83 00 00"

    @Test(arguments: [
        ("ppse none", "6A82"),
        ("ppse {\n status 6A81\n }", "6A81"),
        ("ppse {\n 6F {\n 84 \"X\"\n }\n }", "6F03840158" + "9000"),
        ("ppse {\n bytes 6F 05 84\n status 6283\n }", "6F05846283"),
    ])
    func directories(statement: String, expected: String) throws {
        try expectEqual(card(statement, application: Self.options)(Self.selectPPSE), expected)
    }

    /// EMV Book 3, 6.5.8.4: format 1 is the values of AIP and AFL behind each other, format 2 their objects.  The AFL
    /// that is worked out has an entry for each run of records, without those of files 11 and above.
    @Test func formatsAndLocator() throws {
        let records = [(1, 1), (1, 2), (1, 4), (3, 1), (11, 1)].map {
            "record \($0) \($1) {\n 70 {\n 9F08 0001\n }\n }"
        }
        .joined(separator: "\n")
        for (format, expected) in [
            ("80", "80 0E 1980 08010200 08040400 18010100"),
            ("77", "77 12 82 02 1980 94 0C 08010200 08040400 18010100"),
        ] {
            let send = try card(
                "", application: "processing-options \(format) {\n 82 1980\n 94 afl\n }\n\(records)")
            _ = try send(Self.selectVisa)
            try expectEqual(send(Self.processingOptions), hex(expected, "90 00"))
        }
        // The fourth byte counts the signed ones, which come first in an entry; a signed one is listed in any file.
        let signed = [(1, 1, " signed"), (1, 2, " signed"), (1, 3, ""), (1, 4, " signed"), (12, 1, " signed")].map {
            "record \($0) \($1)\($2) {\n 70 {\n 9F08 0001\n }\n }"
        }
        .joined(separator: "\n")
        let send = try card("", application: "processing-options 80 {\n 82 1980\n 94 afl\n }\n\(signed)")
        _ = try send(Self.selectVisa)
        try expectEqual(send(Self.processingOptions), hex("80 0E 1980 08010302 08040401 60010101", "90 00"))

        let stated = try card(
            "", application: "processing-options 80 {\n 82 1980\n 94 afl\n }\n afl 08 01 FF 01")
        _ = try stated(Self.selectVisa)
        try expectEqual(stated(Self.processingOptions), hex("80 06 1980 0801FF01", "90 00"))
    }

    @Test func wholeTemplateOfTheFile() throws {
        let send = try card(
            "",
            application: "label \"VISA\"\n fci {\n 6F {\n 84 A000000003\n bytes 00 00 A5 81 00\n }\n }\n" + Self.options
        )
        try expectEqual(send(Self.selectVisa), hex("6F 0C 84 05 A000000003 00 00 A5 81 00", "90 00"))
    }

    /// Data come with success and warnings only, and a refusal leaves the card as it was.
    @Test func statuses() throws {
        let send = try card(
            "",
            application: "status gpo 6986\n status get-data 6281\n status read-record 6A81\n"
                + "records-readable-at-once\n record 1 1 {\n bytes 70 00\n }\n data {\n 9F36 0001\n }\n" + Self.options)
        _ = try send(Self.selectVisa)
        try expectEqual(send(Self.processingOptions), "6986")
        try expectEqual(send("80 CA 9F 36 00"), "9F36020001" + "6281")
        try expectEqual(send("00 B2 01 0C 00"), "6A81")
    }

    /// A TC where the terminal's qualifiers (9F66) do not ask for an online cryptogram and the card's limit allows it.
    @Test(arguments: [
        ("up-to 1000", "36000000 000000001000", "40"), ("up-to 1000", "36000000 000000001001", "80"),
        ("up-to 1000", "36800000 000000000001", "80"), ("never", "36000000 000000000001", "80"),
        ("declines", "36800000 000000000001", "00"), ("up-to 1000", "36000000 00000000000A", "80"),
    ])
    func decisions(offline: String, values: String, cid: String) throws {
        let send = try card(
            "",
            application:
                "offline \(offline)\n fci {\n 9F38 9F66 04 9F02 06\n }\n processing-options 77 {\n 9F27 cid\n }")
        _ = try send(Self.selectVisa)
        try expectEqual(send("80 A8 00 00 0C 83 0A \(values) 00"), hex("77 04 9F27 01 \(cid)", "90 00"))
    }

    /// At FFFF an application has made its last transaction.
    @Test func counterEnds() throws {
        let send = try card("", application: "data {\n 9F36 FFFE\n }\n" + Self.options)
        for expected in ["77048202" + "00009000", "6985", "6985"] {
            _ = try send(Self.selectVisa)
            try expectEqual(send(Self.processingOptions), expected)
        }
    }

    // MARK: Published transcripts

    /// The directories and applications of three cards as their readers published them (MichaelsPlayground,
    /// TalkToYourCreditCardPart7: a Visa debit card, a Mastercard debit card, a girocard), described in the format.
    @Test func published() throws {
        let send = try CardSession(
            file: """
                card emv "published" {
                    type-a {
                        uid 0585921AFB9100
                        atqa 0044
                        sak 20
                        ats 01
                    }
                    application A0000000031010 {
                        label "Visa Debit"
                        priority 01
                        directory-entry {
                            9F0A 0001050100000000
                        }
                        processing-options 77 {
                            82 2000
                        }
                    }
                    application A0000000041010 {
                        hidden
                        fci {
                            50 "Debit MasterCard"
                            9F12 "Debit MasterCard"
                            87 01
                            9F11 01
                            5F2D "deen"
                            BF0C {
                                9F0A 00010101
                                9F6E 02800000303000
                            }
                        }
                        processing-options 77 {
                            82 1980
                        }
                    }
                    application A00000005945430100 {
                        hidden
                        label "girocard"
                        priority 01
                        fci {
                            9F38 9F0206 9F1D02
                            5F2D "deen"
                            BF0C {
                                9F4D 190A
                                9F6E 02800000303000
                                9F0A 0001050100000000
                            }
                        }
                        processing-options 77 {
                            82 1980
                        }
                    }
                }
                """)
        try expectEqual(
            send(Self.selectPPSE),
            "6f3a840e325041592e5359532e4444463031a528bf0c2561234f07a0000000031010500a56697361204465626974870101"
                .uppercased() + "9F0A0800010501000000009000")
        try expectEqual(
            send(Self.selectMastercard),
            "6f528407a0000000041010a54750104465626974204d6173746572436172649f12104465626974204d617374657243617264"
                .uppercased() + "8701019F1101015F2D046465656EBF0C119F0A04000101019F6E07028000003030009000")
        try expectEqual(
            send("00a4040009a0000000594543010000"),
            "6f478409a00000005945430100a53a50086769726f636172648701019f38069f02069f1d025f2d046465656e"
                .uppercased() + "BF0C1A9F4D02190A9F6E07028000003030009F0A0800010501000000009000")
    }
}
