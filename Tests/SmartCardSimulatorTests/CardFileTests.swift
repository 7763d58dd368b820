import Foundation
import SmartCard
import SmartCardSimulator
import TestSupport
import Testing

@Suite(.computing) struct CardFileTests {
    static let names = [
        "visa", "mastercard", "two-applications", "multi", "blocked", "phone", "phone-apple",
        "phone-google", "visa-decline", "visa-update",
        "visa-offline", "visa-oda-online", "visa-sda-online", "visa-online-pin", "visa-signature", "visa-cdcvm",
        "visa-oda-fails",
        "visa-oda-fails-online", "visa-oda-fails-switch", "visa-expired", "visa-expired-online", "visa-switch-cash",
        "visa-switch-cashback", "visa-odd-keys", "visa-odd-records", "visa-msd", "visa-without-ttq", "emv-sda",
        "emv-dda", "emv-cda",
        "mastercard-online", "mastercard-decline", "mastercard-cda-fails", "mastercard-odd-keys",
        "mastercard-padded-keys", "mastercard-advance", "mastercard-rrp-slow", "mastercard-rrp-early",
        "mastercard-rrp-mismatch",
        "mastercard-rrp-wrong", "mastercard-torn", "mastercard-torn-lost", "mastercard-balance", "mastercard-stripe",
        "mastercard-stripe-wide", "mastercard-stripe-phone", "mastercard-storage", "mastercard-storage-rrp",
        "mastercard-phone", "mastercard-phone-ready", "maestro",
        "mifare-classic-1k", "ntag213", "ndef-type4", "felica", "iso-dep", "type-b",
        "passport", "passport-im", "passport-cam", "passport-bac", "passport-active", "identity-card",
        "passport-cloned",
        "passport-altered", "passport-expired-signer",
    ]

    @Test func builtIn() throws {
        expectEqual(VirtualCards.all.map(\.name), Self.names)
        for card in VirtualCards.all {
            do {
                try expectEqual(CardFile(parsing: card.text).summary, card.summary)
            } catch {
                Issue.record("\(card.name): \(error)")
            }
            #expect(VirtualCards.named(card.name) != nil)
        }
        #expect(VirtualCards.named("no such card") == nil)
    }

    /// The page that lists the cards has each of them.
    @Test func documented() throws {
        let page = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../Sources/SmartCardSimulator/Documentation.docc/SmartCardSimulator.md")
        let rows = try String(contentsOf: page, encoding: .utf8).split(separator: "\n").filter { $0.hasPrefix("| `") }
        for name in Self.names { #expect(rows.contains { $0.contains("`\(name)`") }, "\(name)") }
    }

    @Test func eachCardIsFresh() throws {
        let file = try CardFile(parsing: try #require(VirtualCards.all.first { $0.name == "ntag213" }).text)
        let (one, other) = (file.makeCard(), file.makeCard())
        expectEqual(one.exchangeNative([0xA2, 0x04, 1, 2, 3, 4]), [])
        expectEqual(other.exchangeNative([0x30, 0x04])?.first, 0x03)
    }

    // MARK: What is right

    /// The same ATQB five ways.
    @Test(arguments: [
        "atqb 50 12 23 45 56 12 53 54 4E 33 81 C3",
        "atqb 501223455612 5354 4e33 81c3  # groups as one likes",
        "atqb 5 0122345561253544E33 81C3",
        "atqb \"P\" 12 \"#EV\" 12 \"STN3\" 81C3",
        "\tatqb\t501223455612 \"STN3\" 81C3\r",
    ])
    func values(line: String) throws {
        let atqb = try [UInt8](hex: "50 12 23 45 56 12 53 54 4E 33 81 C3")
        let file = try CardFile(parsing: "card iso-dep {\ntype-b {\n\(line)\n}\n}")
        expectEqual(file.radio, .typeB(atqb: atqb))
        expectEqual(file.summary, "iso-dep")
    }

    @Test func quotationsAndComments() throws {
        let file = try CardFile(
            parsing: """
                # Größe, in einer Bemerkung
                card iso-dep "a \\"card\\" \\\\ # { }" {   # }
                    type-a {
                        uid 01 02 03 04
                        atqa 0004
                        sak 20
                        ats 01
                    }
                }
                """)
        expectEqual(file.summary, "a \"card\" \\ # { }")
    }

    // MARK: What is wrong, and where

    private static let radio = "type-a {\n uid 01020304\n atqa 0004\n sak 20\n ats 01\n }"  // six lines

    private static let zone =
        "mrz \"P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\" \"L898902C36UTO7408122F1204159ZE184226B<<<<<10\""
    private static let typeF = "type-f {\n idm 0102030405060708\n pmm FFFFFFFFFFFFFFFF\n }"  // four lines
    private static let block = String(repeating: "00", count: 16)
    private static let seventeenSystems = (1...17).map { "system 00\($0 + 10) {\n}" }.joined(separator: "\n")

    /// A file and the line of its first error.
    @Test(arguments: [
        ("", 1, "describes no card"),
        ("# nothing", 1, "describes no card"),
        ("card", 1, "card KIND"),
        ("card telephone {\n}", 1, "card KIND"),
        ("visa {\n}", 1, "card KIND"),
        ("card emv", 1, "block in braces"),
        ("card emv {", 1, "missing for the “{” of line 1"),
        ("card emv {\n\n# more\n", 4, "missing for the “{” of line 1"),
        ("}", 1, "without “{”"),
        ("card emv {\n} }", 2, "line of its own"),
        ("card emv { }", 1, "middle of a line"),
        ("{\n}", 1, "without a word"),
        ("card iso-dep {\n}\ncard iso-dep {\n}", 3, "describes one card"),
        ("card iso-dep \"x {\n}", 1, "quotation does not end"),
        ("card iso-dep \"\\n\" {\n}", 1, "backslash"),
        ("card iso-dep ß {\n}", 1, "ASCII"),
        ("card iso-dep {\n\"type-a\" {\n}\n}", 2, "begins with a quotation mark"),
        ("card iso-dep {\n}", 1, "lacks “type-a”"),
        ("card iso-dep {\n\(radio)\nspeed 1\n}", 8, "not known"),
        ("card iso-dep {\n\(radio)\n\(radio)\n}", 8, "twice"),
        ("card iso-dep {\ntype-a {\nuid 0102030405\n}\n}", 3, "4, 7 or 10"),
        ("card iso-dep {\ntype-a {\nuid 0102030\n}\n}", 3, "odd number"),
        ("card iso-dep {\ntype-a {\nuid 010203xx\n}\n}", 3, "neither hexadecimal"),
        ("card iso-dep {\ntype-a {\nuid 01020304\n}\n}", 2, "lacks “atqa”"),
        ("card iso-dep {\ntype-a {\nuid 01020304\natqa 00\n}\n}", 4, "2 bytes, not 1"),
        ("card iso-dep {\ntype-a {\nuid 01020304\natqa 0004\nsak 20\n}\n}", 5, "needs “ats”"),
        ("card iso-dep {\ntype-a {\nuid 01020304\natqa 0004\nsak 20\nats 02\n}\n}", 6, "TL"),
        ("card iso-dep {\ntype-a {\nuid 01020304\natqa 0004\nsak 08\n}\n}", 1, "14443-4"),
        ("card iso-dep {\ntype-b {\natqb 40 12 23 45 56 12 53 54 4E 33 81 C3\n}\n}", 3, "begins with 50"),
        ("card passport {\n\(radio)\n}", 1, "lacks “mrz”"),
        ("card passport {\n\(radio)\nmrz \"P<UTO\"\n}", 8, "two of 44"),
        ("card passport {\n\(radio)\n\(zone)\ndata-group 1 {\n61 00\n}\n}", 9, "in 2...16"),
        ("card passport {\n\(radio)\n\(zone)\ndata-group 2 {\n61 00\n}\n}", 9, "begins with the tag 75"),
        ("card passport {\n\(radio)\n\(zone)\nsecurity-object signed\n}", 9, "two data groups"),
        ("card passport {\n\(radio)\n\(zone)\nalter 2\n}", 9, "does not have"),
        ("card passport {\n\(radio)\n\(zone)\npace ecdh-gm aes-128\n}", 9, "pace MAPPING CIPHER NUMBER"),
        ("card passport {\n\(radio)\n\(zone)\npace ec-gm aes-128 12\n}", 9, "MAPPING one of dh-gm, ecdh-gm,"),
        ("card passport {\n\(radio)\n\(zone)\npace ecdh-im aes-512 12\n}", 9, "CIPHER one of 3des,"),
        ("card passport {\n\(radio)\n\(zone)\npace ecdh-im aes-128 2\n}", 9, "in 8...18"),
        ("card passport {\n\(radio)\n\(zone)\npace dh-im aes-128 3\n}", 9, "in 0...2"),
        ("card passport {\n\(radio)\n\(zone)\npace ecdh-im aes-128 10\n}", 9, "P-224"),
        ("card passport {\n\(radio)\n\(zone)\npace ecdh-cam 3des 12\n}", 9, "triple DES"),
        ("card passport {\n\(radio)\n\(zone)\nmost-read 15\n}", 9, "in 16...65536"),
        ("card passport {\n\(radio)\n\(zone)\nchip-authentication des 12\n}", 9, "one of 3des"),
        ("card passport {\n\(radio)\n\(zone)\nchip-authentication 3des 7\n}", 9, "in 8...18"),
        ("card passport {\n\(radio)\n\(zone)\npin 12E456\n}", 9, "32 digits"),
        ("card passport {\n\(radio)\n\(zone)\ntries 0\n}", 9, "in 1...15"),
        ("card passport {\n\(radio)\n\(zone)\ntries 3 698\n}", 9, "four hexadecimal digits"),
        ("card passport {\n\(radio)\n\(zone)\ntruncate 2 10\n}", 9, "does not have"),
        ("card passport {\n\(radio)\n\(zone)\ntruncate 1\n}", 9, "truncate NUMBER BYTES"),
        ("card passport {\n\(radio)\n\(zone)\nfault replay 1\n}", 9, "in 2...65536"),
        ("card passport {\n\(radio)\n\(zone)\nfault wrong-mac\n}", 9, "wrong-mac RESPONSE"),
        ("card ntag213 {\n\(radio)\n}", 1, "without ATS"),
        ("card iso-dep {\n\(radio)\ntype-b {\natqb 501223455612535 44E3381C3\n}\n}", 8, "one type"),
        ("card felica {\n\(radio)\nsystem 12FC {\n}\n}", 1, "type F"),
        ("card iso-dep {\n\(typeF)\n}", 1, "14443-4"),
        ("card ntag213 {\n\(typeF)\n}", 1, "without ATS"),
        ("card felica {\n\(typeF)\n}", 1, "lacks “system”"),
        ("card felica {\ntype-f {\nidm 1102030405060708\npmm FFFFFFFFFFFFFFFF\n}\nsystem 12FC {\n}\n}", 3, "0 here"),
        ("card felica {\ntype-f {\nidm 0102030405060708\npmm FFFFFFFFFFFFFF\n}\nsystem 12FC {\n}\n}", 4, "8 bytes"),
        ("card felica {\n\(typeF)\nsystem 12FC 88B4 {\n}\n}", 6, "CODE { … }"),
        ("card felica {\n\(typeF)\nsystem 12 {\n}\n}", 6, "2 bytes"),
        ("card felica {\n\(typeF)\nsystem 12FC {\n}\nsystem 12FC {\n}\n}", 8, "twice"),
        ("card felica {\n\(typeF)\nsystem 12FC {\nservice {\n}\n}\n}", 7, "09 or 0B"),
        ("card felica {\n\(typeF)\nsystem 12FC {\nservice 0009 0008 {\n}\n}\n}", 7, "09 or 0B"),
        ("card felica {\n\(typeF)\nsystem 12FC {\nservice 0009 {\n}\nservice 000B 0009 {\n}\n}\n}", 9, "twice"),
        ("card felica {\n\(typeF)\nsystem 12FC {\nservice 0009 {\nblock 1 \(block)\n}\n}\n}", 8, "next block is 0"),
        ("card felica {\n\(typeF)\nsystem 12FC {\nservice 0009 {\nblock 0 00\n}\n}\n}", 8, "16 bytes, not 1"),
        ("card felica {\n\(typeF)\n\(seventeenSystems)\n}", 38, "up to 16"),
    ])
    func errors(text: String, line: Int, reason: String) { expectError(text, line, reason) }

    private func expectError(_ text: String, _ line: Int, _ reason: String) {
        do throws(CardFileError) {
            _ = try CardFile(parsing: text)
            Issue.record("no error: \(text)")
        } catch {
            expectEqual(error.line, line, "\(error)")
            #expect(error.reason.contains(reason), "\(error)")
        }
    }

    /// An application, whose first line is line 9 of the file, and the line of its first error.
    @Test(arguments: [
        ("82 2000", 9, "not known"),
        ("", 8, "lacks “processing-options”"),
        ("processing-options 78 {\n}", 9, "77"),
        ("processing-options 77", 9, "block"),
        ("processing-options 77 {\n82\n2000 01\n}", 11, "not a BER-TLV tag"),
        ("processing-options 77 {\n9F 02\n}", 10, "not a BER-TLV tag"),
        ("processing-options 77 {\n9F26 cryptogram\n}", 9, "lacks the block “cryptogram”"),
        ("processing-options 77 {\n57 \(String(repeating: "00", count: 300))\n}", 9, "response holds 256"),
        ("processing-options 77 {\n}\nrecord 0 1 {\n}", 11, "1...30"),
        ("processing-options 77 {\n}\nrecord 1 256 {\n}", 11, "1...255"),
        ("processing-options 77 {\n}\nrecord 1 1 {\n}\nrecord 1 1 {\n}", 13, "twice"),
        ("processing-options 77 {\n}\nrecord 1 1 {\n5A cid\n}", 12, "stands for nothing"),
        ("processing-options 77 {\n}\nrecord 1 1 signed {\n9F69 atc\n}", 12, "stands for nothing"),
        ("processing-options 77 {\n}\nrecord 1 1 often {\n}", 11, "[signed]"),
        ("processing-options 77 tc {\n}", 9, "for aac"),
        ("processing-options 77 {\n}\nprocessing-options 77 {\n}", 11, "twice for one case"),
        ("processing-options 77 aac signed {\n}", 9, "an aac is not signed"),
        ("processing-options 77 tc tc {\n}", 9, "[tc|arqc|aac] [signed]"),
        ("processing-options 77 {\n9F4B signed-dynamic-data\n}", 9, "lacks the block “authentication”"),
        ("processing-options 77 {\n}\nrecord 1 1 {\n90 issuer-certificate\n}", 11, "lacks the block “authentication”"),
        ("processing-options 77 {\n}\nstatus reset 6985", 11, "COMMAND, one of"),
        ("processing-options 77 {\n}\nfci {\n9F38 9F66\n}", 8, "9F38"),
        ("processing-options 77 {\n}\noffline sometimes", 11, "offline never"),
        ("processing-options 77 {\n}\ndata {\n9F36 00\n}", 12, "2 bytes"),
        ("processing-options 77 {\n}\nlabel 77 {\n}", 11, "no block"),
        (
            "processing-options 77 {\n9F26 cryptogram\n5A 4761739001010010\n}\ncryptogram {\n"
                + "issuer-key 00112233445566778899AABBCCDDEEFF\nsession-key none\npadding zeros\ndata 9F02\n}", 9,
            "9F02"
        ),
        (
            "processing-options 77 {\n9F26 cryptogram\n}\ncryptogram {\n"
                + "issuer-key 00112233445566778899AABBCCDDEEFF\nsession-key none\npadding zeros\ndata 9F36\n}", 12,
            "account number"
        ),
        (
            "processing-options 77 {\n9F26 cryptogram\n5A 4761739001010010\n}\ncryptogram {\n"
                + "issuer-key 00112233445566778899AABBCCDDEEFF\nsession-key none\npadding zeros\ndata 9F36[2-3]\n}", 9,
            "byte 3"
        ),
        (
            "processing-options 77 {\n9F26 cryptogram\n}\ncryptogram {\nissuer-key 00112233445566778899AABBCCDDEEFF\n"
                + "session-key both\n}", 14, "none, common, mastercard"
        ),
    ])
    func applicationErrors(text: String, line: Int, reason: String) {
        expectError("card emv {\n\(Self.radio)\napplication A0000000031010 {\n\(text)\n}\n}", line, reason)
    }

    /// An application with an account number and a PDOL, then the lines from line 17 on of a block `authentication`.
    @Test(arguments: [
        ("", "", 16, "lacks “authority”"),
        ("authority F2", "", 16, "lacks “issuer”"),
        ("authority F1", "", 17, "only A000000003 F2"),
        ("authority F2F2", "", 17, "1 byte"),
        ("authority F2\nissuer {\nkey nobody\n}", "", 19, "no key “nobody”"),
        ("authority F2\nissuer {\nkey issuer-1152\n}", "", 18, "lacks “expires”"),
        ("authority F2\nissuer {\nkey issuer-1152\nexpires 491231\n}", "", 20, "2 bytes, not 3"),
        ("authority F6\nissuer {\nkey issuer-1152\nexpires 1249\nserial 000001\n}", "", 19, "longer than the one"),
        (
            "authority F2\nissuer {\nkey {\nexponent 03\nmodulus {\n00\n}\nprivate-exponent {\n00\n}\n}\n}", "", 19,
            "not an RSA key"
        ),
        (issuer, "9F4B signed-dynamic-data", 9, "lacks “card”"),
        (issuer + card, "9F4B signed-dynamic-data", 9, "9F69"),
    ])
    func authenticationErrors(text: String, object: String, line: Int, reason: String) {
        expectError(Self.signing(text, object), line, reason)
    }

    private static func signing(_ text: String, _ object: String) -> String {
        """
        card emv {
        \(radio)
        application A0000000031010 {
        processing-options 77 {
        57 4761739001010010D312
        \(object)
        }
        fci {
        9F38 9F3704 9F0206 5F2A02
        }
        authentication {
        \(text)
        }
        }
        }
        """
    }

    @Test func whatASignatureNeeds() throws {
        let text = Self.signing(Self.issuer + Self.card, "9F69 01\n9F4B signed-dynamic-data")
        _ = try CardFile(parsing: text)
        expectError(text.replacing("5F2A02", with: ""), 9, "5F2A of 2 bytes")
        expectError(text.replacing("9F3704", with: "9F3708"), 9, "9F37 of 4 bytes")
        expectError(text.replacing("57 4761739001010010D312", with: "82 2000"), 17, "need the account number")
    }

    private static let issuer = "authority F2\nissuer {\nkey issuer-1152\nexpires 1249\nserial 000001\n}\n"
    private static let card = "card {\nkey card-1024\nexpires 1249\nserial 000002\n}\n"

    @Test(arguments: [
        ("sector 16 {\n}", 7, "0...15"),
        ("sector 1 {\n}\nsector 1 {\n}", 9, "twice"),
        ("sector 1 {\nblock 3 00\n}", 8, "0...2"),
        ("sector 1 {\nblock 0 00\n}", 8, "16 bytes, not 1"),
        ("sector 1 {\nvalue 0 3000000000\n}", 8, "32 bits"),
        ("sector 1 {\nblock 0 \"0123456789ABCDEF\"\nvalue 0 1\n}", 9, "twice"),
        ("sector 1 {\nkey-a 00\n}", 8, "6 bytes"),
    ])
    func classicErrors(text: String, line: Int, reason: String) {
        expectError(
            "card mifare-classic-1k {\ntype-a {\nuid 01020304\natqa 0004\nsak 08\n}\n\(text)\n}", line, reason)
    }

    @Test(arguments: [
        ("page 2 00", 7, "3...44"),
        ("page 44 0000000000", 7, "page 44"),
        ("ndef 00\npage 4 00", 8, "twice"),
        ("ndef \(String(repeating: "00", count: 142))", 7, "141"),
        ("lock 00", 7, "2 bytes"),
    ])
    func ntagErrors(text: String, line: Int, reason: String) {
        expectError(
            "card ntag213 {\ntype-a {\nuid 04020304050607\natqa 0044\nsak 00\n}\n\(text)\n}", line, reason)
    }

    @Test func bounds() {
        expectError("card emv {\n" + String(repeating: "a {\n", count: 40), 17, "nested")
        expectError(String(repeating: "#", count: CardFile.maximumSize + 1), 1, "65536")
        expectError(String(repeating: "\n", count: CardFile.maximumSize - 1), CardFile.maximumSize, "no card")
        expectError("card emv \"" + String(repeating: "x", count: 60_000), 1, "quotation")
        expectError("card iso-dep {\ntype-b {\natqb " + String(repeating: "0", count: 60_000) + "\n}\n}", 3, "30000")
    }

    // MARK: Hostile files

    /// Cut off before its last brace, a file is an error in a line that it has.  Each card is cut at other places.
    @Test(arguments: names)
    func truncated(name: String) throws {
        let bytes = Array(try #require(VirtualCards.all.first { $0.name == name }).text.utf8)
        let end = try #require(bytes.lastIndex(of: UInt8(ascii: "}")))
        for count in stride(from: name.utf8.count % 7, through: end, by: Tier.rounds(49, thorough: 7)) {
            let lines = 1 + bytes[..<count].count { $0 == UInt8(ascii: "\n") }
            do throws(CardFileError) {
                _ = try CardFile(parsing: Array(bytes[..<count]))
                Issue.record("\(count) bytes of \(name) are taken for a card")
            } catch {
                #expect((1...lines).contains(error.line))
            }
        }
    }

    /// Files with lines lost, doubled, exchanged and bytes changed: an error or a card, and the card holds out.
    @Test(arguments: names)
    func damaged(name: String) throws {
        let text = try #require(VirtualCards.all.first { $0.name == name }).text
        var random = SplitMix(state: 2)
        var cards = 0
        for _ in 0..<Tier.rounds(10, thorough: 100) {
            var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { Array($0.utf8) }
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let i = Int.random(in: 0..<lines.count, using: &random)
                switch Int.random(in: 0..<4, using: &random) {
                case 0: lines[i] = []
                case 1: lines.insert(lines[i], at: i)
                case 2: lines.swapAt(i, Int.random(in: 0..<lines.count, using: &random))
                default:
                    guard !lines[i].isEmpty else { continue }
                    let at = Int.random(in: 0..<lines[i].count, using: &random)
                    lines[i][at] = Array("0123456789AF{}\" atc\u{FF}".utf8).randomElement(using: &random) ?? 0
                }
            }
            guard let file = try? CardFile(parsing: Array(lines.joined(separator: [0x0A]))) else { continue }
            cards += 1
            CardFuzzing.attack(file.makeCard(), commands: 10, &random)
        }
        #expect(cards > 0 || !Tier.isThorough)
    }
}

/// Commands that no card expects.
@Suite struct CardFuzzing {
    private static let seeds = [
        CardEMVTests.selectPPSE, CardEMVTests.selectVisa, CardEMVTests.selectMastercard, CardEMVTests.visaGPO,
        "00 A4 04 02 05 A0 00 00 00 03 00", "00 A4 04 00 07 A0 00 00 00 42 10 10 00", "80 A8 00 00 02 83 00 00",
        "80 A8 00 00 12 83 10 36800000 000000001234 11223344 0978 00", "00 B2 01 0C 00", "00 B2 01 14 00",
        "00 B2 02 1C 00", "00 88 00 00 04 11223344 00", CardSignatureTests.offlineGPO, CardSignatureTests.onlineGPO,
        CardEMVTests.generateAC("50", amount: "000000001234"),
        "80 CA 9F 36 00", "80 CA 9F 4F 00", CardEMVTests.generateAC("80", amount: "000000001234"),
        "60 04 FFFFFFFFFFFF 5E8A31C4", "61 08 B0B1B2B3B4B5 5E8A31C4", "60 08 A0A1A2A3A4A5 5E8A31C4", "30 04", "30 08",
        "A0 05 00112233445566778899AABBCCDDEEFF", "C0 08 01000000", "C1 08 FFFFFFFF", "C2 08 00000000", "B0 09",
        "A2 04 01020304", "A2 28 010000BD", "A2 29 040000FF", "3A 00 2C", "1B FFFFFFFF", "60", "39 02",
        "06 00 FFFF 01 03", "12 06 02FE000102030405 01 0B00 02 8000 8001", "0A 0C 02FE000102030405",
        "20 08 02FE000102030405 01 0900 01 8001 00112233445566778899AABBCCDDEEFF",
    ].map { (try? [UInt8](hex: $0)) ?? [] }

    static func attack(_ card: any VirtualCard, commands: Int, _ random: inout SplitMix) {
        for _ in 0..<commands {
            var command: [UInt8]
            if Int.random(in: 0..<4, using: &random) == 0 {
                command = (0..<Int.random(in: 0...300, using: &random)).map { _ in random.next(upperBound: 256) }
                    .map { UInt8(truncatingIfNeeded: $0 as UInt64) }
            } else {
                command = seeds.randomElement(using: &random) ?? []
                for _ in 0..<Int.random(in: 0...2, using: &random) where !command.isEmpty {
                    let i = Int.random(in: 0..<command.count, using: &random)
                    switch Int.random(in: 0..<3, using: &random) {
                    case 0: command[i] = UInt8.random(in: 0...255, using: &random)
                    case 1: command.remove(at: i)
                    default: command.insert(UInt8.random(in: 0...255, using: &random), at: i)
                    }
                }
            }
            if Int.random(in: 0..<8, using: &random) == 0 { card.reset() }
            if let answer = card.exchange(command) { #expect((2...258).contains(answer.count)) }
            if let answer = card.exchangeNative(command) { #expect(answer.count <= 253) }
        }
    }

    @Test(arguments: CardFileTests.names)
    func cards(name: String) throws {
        var random = SplitMix(state: 1)
        let card = try #require(VirtualCards.named(name))
        Self.attack(card, commands: Tier.rounds(200, thorough: 3000), &random)
        card.reset()
        #expect(
            card.exchange([0x00, 0xA4, 0x04, 0x00]) != nil || card.exchangeNative([0x30, 0x00]) != nil
                || card.exchangeNative([0x06, 0x00, 0xFF, 0xFF, 0x00, 0x00]) != nil || name.hasPrefix("mifare"))
    }
}
