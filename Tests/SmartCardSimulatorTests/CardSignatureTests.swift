import Foundation
import SmartCard
import TestSupport
import Testing

@testable import SmartCardSimulator

/// Recovers what signatures carry, with the integers of Python.
struct Recovery {
    struct Signature {
        var modulus: [UInt8]
        var exponent: [UInt8]
        var bytes: [UInt8]
        /// What is hashed behind the part that the signature carries.
        var rest: [UInt8]
    }

    /// Each signature's block, most significant byte first, its 20 bytes of hash replaced with `hash` if they are SHA-1 over
    /// the part before them, without the header, and the rest; with `wrong` if not.
    static func blocks(_ signatures: [Signature]) async throws -> [String] {
        let program = """
            import hashlib, sys
            for line in sys.stdin:
                n, e, s, rest = (bytes.fromhex(part) for part in line.rstrip("\\n").split(","))
                x = pow(int.from_bytes(s, "big"), int.from_bytes(e, "big"), int.from_bytes(n, "big"))
                x = x.to_bytes(len(n), "big")
                right = hashlib.sha1(x[1:-21] + rest).digest() == x[-21:-1]
                print(x[:-21].hex().upper(), "hash" if right else "wrong", x[-1:].hex().upper())
            """
        let input = signatures.map {
            [$0.modulus, $0.exponent, $0.bytes, $0.rest].map(\.hex).joined(separator: ",") + "\n"
        }
        let outcome = try await Program.run(
            ["python3", "-c", program], input: input.joined(), timeout: .seconds(60))
        expectEqual(outcome.status, 0, "\(outcome)")
        return outcome.output.split(separator: "\n").map(String.init)
    }
}

/// Certificates and signatures as another program reads them; what they carry is written out here from the tables of EMV
/// Book 2.
@Suite(.enabled(if: Program.isInstalled("python3"), "python3 is not installed"))
struct CardSignatureTests {
    /// The answers of a transaction, and their objects by tag.
    struct Objects {
        var answers: [String] = []

        subscript(tag: TLVTag) -> [UInt8] {
            for answer in answers {
                guard let bytes = try? [UInt8](hex: answer), let list = try? TLVList(bytes.dropLast(2)) else {
                    continue
                }
                if let object = list.firstAnywhere(tag) { return Array(object.value) }
            }
            return []
        }
    }

    private static func authority(_ rid: String, _ index: UInt8) throws -> CertificationAuthorityKey {
        let rid = try [UInt8](hex: rid)
        return try #require(VirtualCards.certificationAuthorityKeys.first { $0.rid == rid && $0.index == index })
    }

    private static func key(_ name: String) throws -> RSAKey { try #require(TestKeys.builtIn.keys[name]) }

    private static func filling(_ count: Int) -> String { String(repeating: "BB", count: count) }

    // MARK: Keys

    /// The keys are those of the program that mints them, and their checksums those of hashlib.
    @Test func keysAreMinted() async throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
        let minted = try await Program.run([folder.appending(path: "mint-test-keys").path], timeout: .seconds(120))
        expectEqual(minted.status, 0, "\(minted.error)")
        expectEqual(minted.output, String(decoding: PackageResources.test_keys, as: UTF8.self))
        try expectEqual(TestKeys(parsing: Array(minted.output.utf8)).keys.count, 8)
        for key in VirtualCards.certificationAuthorityKeys {
            let parts = key.rid + [key.index] + key.modulus + key.exponent
            let sum = try await Program.run([
                "python3", "-c", "import hashlib; print(hashlib.sha1(bytes.fromhex('\(parts.hex)')).hexdigest())",
            ])
            expectEqual(sum.output.prefix(40).uppercased(), key.checksum.hex, "\(sum)")
            expectEqual(key.expires.hex, "491231")
        }
    }

    // MARK: fDDA

    static let offlineGPO =
        "80 A8 00 00 23 83 21 26004000 000000001234 000000000000 0276 0000000000 0978 261121 00 11223344 00"
    static let onlineGPO =
        "80 A8 00 00 23 83 21 27804000 000000001234 000000000000 0276 0000000000 0978 261121 00 11223344 00"

    /// EMV Book 2, tables 6, 14 and 17; EMV Contactless Book C-3: format 05 with a TC, 95 with an ARQC; the ICC Dynamic
    /// Number is the ATC, as in published transactions.
    @Test(arguments: [(Self.offlineGPO, "05"), (Self.onlineGPO, "95")])
    func fastDynamicData(options: String, format: String) async throws {
        let send = try CardSession("visa-offline")
        _ = try send(CardEMVTests.selectVisa)
        var card = Objects()
        for command in [options, "00 B2 01 14 00", "00 B2 02 14 00", "00 B2 01 1C 00", "00 B2 02 1C 00"] {
            card.answers.append(try send(command))
        }
        let authority = try Self.authority("A000000003", 0xF2)
        let (issuer, icc) = (try Self.key("issuer-1152"), try Self.key("card-1024"))
        let related = card[0x9F69]
        expectEqual(card.answers[4], "700A" + "9F6907" + related.hex + "9000")
        #expect(related.count == 7 && related.hex.hasPrefix("01") && related.hex.hasSuffix("0000"))
        let blocks = try await Recovery.blocks([
            .init(
                modulus: authority.modulus, exponent: [3], bytes: card[0x90], rest: card[0x92] + card[0x9F32]),
            .init(
                modulus: issuer.modulus, exponent: [3], bytes: card[0x9F46],
                rest: card[0x9F48] + card[0x9F47]
                    + [UInt8](
                        hex: "5A08 4761739001010010 5F2403 311231 5F2802 0840 9F0702 FFC0 9F4A01 82" + "2000")),
            .init(
                modulus: icc.modulus, exponent: [3], bytes: card[0x9F4B],
                rest: [UInt8](hex: "11223344 000000001234 0978") + related),
        ])
        #expect(
            blocks == [
                // Header, format, issuer identifier, MMYY, serial number, SHA-1, RSA, lengths of key and exponent.
                try hex("6A 02 476173FF 1249 000001 01 01 90 01") + issuer.modulus.prefix(140).hex + " hash BC",
                // Account number, and the rest alike.
                try hex("6A 04 4761739001010010FFFF 1249 000002 01 01 80 01") + icc.modulus.prefix(102).hex
                    + " hash BC",
                // Format, SHA-1, length of the ICC Dynamic Data: number of bytes, ATC; filling.
                try hex("6A \(format) 01 03 02 0042") + Self.filling(128 - 25 - 3) + " hash BC",
            ])
        expectEqual(card[0x92], Array(issuer.modulus.suffix(4)))
        expectEqual(card[0x9F48], Array(icc.modulus.suffix(26)))
        #expect(card[0x9F32] == [3] && card[0x9F47] == [3] && card[0x8F] == [0xF2])
    }

    /// What `visa-offline` and its variants tell about their keys: certificates and signature recovered, the first hashed
    /// with remainder and exponent, the second with `signed` behind them, the third with 9F69 behind the reader's data.
    private func fastChain(
        _ name: String, authority index: UInt8, issuer issuerName: String, card cardName: String,
        signed: String = "5A08 4761739001010010 5F2403 311231 5F2802 0840 9F0702 FFC0 9F4A01 82" + "2000"
    ) async throws -> (blocks: [String], issuer: RSAKey, icc: RSAKey, card: Objects) {
        let send = try CardSession(name)
        _ = try send(CardEMVTests.selectVisa)
        var card = Objects()
        for command in [Self.offlineGPO, "00 B2 01 14 00", "00 B2 02 14 00", "00 B2 01 1C 00", "00 B2 02 1C 00"] {
            card.answers.append(try send(command))
        }
        let authority = try Self.authority("A000000003", index)
        let (issuer, icc) = (try Self.key(issuerName), try Self.key(cardName))
        let blocks = try await Recovery.blocks([
            .init(
                modulus: authority.modulus, exponent: authority.exponent, bytes: card[0x90],
                rest: card[0x92] + card[0x9F32]),
            .init(
                modulus: issuer.modulus, exponent: card[0x9F32], bytes: card[0x9F46],
                rest: card[0x9F48] + card[0x9F47] + [UInt8](hex: signed)),
            .init(
                modulus: icc.modulus, exponent: card[0x9F47], bytes: card[0x9F4B],
                rest: [UInt8](hex: "11223344 000000001234 0978") + card[0x9F69]),
        ])
        return (blocks, issuer, icc, card)
    }

    /// Keys of 1008 and 992 bits run over into remainders of 36 and 40 bytes; an exponent of three bytes is hashed whole.
    @Test func oddKeys() async throws {
        let chain = try await fastChain(
            "visa-odd-keys", authority: 0xF6, issuer: "issuer-1008", card: "card-992")
        expectEqual(
            chain.blocks,
            [
                try hex("6A 02 476173FF 1249 000001 01 01 7E 03") + chain.issuer.modulus.prefix(90).hex + " hash BC",
                try hex("6A 04 4761739001010010FFFF 1249 000002 01 01 7C 01") + chain.icc.modulus.prefix(84).hex
                    + " hash BC",
                try hex("6A 05 01 03 02 0042") + Self.filling(124 - 25 - 3) + " hash BC",
            ])
        #expect(chain.card[0x9F32] == [1, 0, 1] && chain.card[0x9F47] == [3])
        #expect(chain.card[0x92].count == 36 && chain.card[0x9F48].count == 40)
        expectEqual(chain.card[0x92], Array(chain.issuer.modulus.suffix(36)))
    }

    /// Filling and long lengths are hashed as the card sends them.
    @Test func oddRecords() async throws {
        let sent =
            "5A08 4761739001010010 5F2403 311231 5F2802 0840 9F0702 FFC0 9F4A01 82 00FF 5F258103 240101 0000"
        let chain = try await fastChain(
            "visa-odd-records", authority: 0xF2, issuer: "issuer-1152", card: "card-1024", signed: sent + "2000")
        #expect(chain.blocks.allSatisfy { $0.hasSuffix(" hash BC") })
        expectEqual(chain.card.answers[3], try hex("70 29", sent, "9000"))
    }

    /// The certificate of a card whose offline data authentication is to fail is sound, and out of date.
    @Test(arguments: ["visa-oda-fails", "visa-oda-fails-online", "visa-oda-fails-switch"])
    func expiredCertificate(name: String) async throws {
        let chain = try await fastChain(name, authority: 0xF2, issuer: "issuer-1152", card: "card-1024")
        #expect(chain.blocks.allSatisfy { $0.hasSuffix(" hash BC") })
        #expect(chain.blocks[1].hasPrefix(try hex("6A 04 4761739001010010FFFF 1220 000002")))
    }

    /// A key written out signs as the same key by its name, and an authority of the file's as one of the library's.
    @Test func keysOfTheFile() throws {
        func written(_ key: RSAKey) -> String {
            "{\nexponent \(key.exponent.hex)\nmodulus {\n\(key.modulus.hex)\n}\n"
                + "private-exponent {\n\(key.privateExponent.hex)\n}\n}"
        }
        let text = try #require(VirtualCards.all.first { $0.name == "visa-offline" }).text
        let authority = try #require(TestKeys.builtIn.authority(rid: [UInt8](hex: "A000000003"), index: 0xF2))
        let own = try CardSession(
            file: text.replacing("authority $authority", with: "authority F2 " + written(authority))
                .replacing("key     $issuer-key", with: "key " + written(Self.key("issuer-1152")))
                .replacing("key     $card-key", with: "key " + written(Self.key("card-1024"))))
        let named = try CardSession("visa-offline")
        for command in [
            CardEMVTests.selectVisa, Self.offlineGPO, "00 B2 01 14 00", "00 B2 02 14 00", "00 B2 01 1C 00",
            "00 B2 02 1C 00",
        ] {
            try expectEqual(own(command), named(command))
        }
        // Halves that do not belong together are no key.
        let key = try Self.key("issuer-1152")
        let halves = RSAKey(modulus: key.modulus, exponent: [1, 0, 1], privateExponent: key.privateExponent)
        expectEqual(halves, nil)
        expectEqual(RSAKey(modulus: key.modulus, exponent: [2], privateExponent: key.privateExponent), nil)
        expectEqual(RSAKey(modulus: key.modulus, exponent: [3], privateExponent: key.privateExponent), key)
    }

    /// The signature of a long key goes into the last record: the answer would not hold it.
    @Test func signatureInARecord() throws {
        let signature = "9F4B signed-dynamic-data\n"
        let text = try #require(VirtualCards.all.first { $0.name == "visa-offline" }).text
            .replacing(signature, with: "").replacing("9F69 01", with: signature + "9F69 01")
        let send = try CardSession(file: text)
        let usual = try CardSession("visa-offline")
        for session in [send, usual] { _ = try session(CardEMVTests.selectVisa) }
        let answer = try usual(Self.offlineGPO)
        let object = try #require(answer.range(of: "9F4B8180")).lowerBound
        #expect(!(try send(Self.offlineGPO).contains("9F4B")))
        #expect(try send("00 B2 02 1C 00").hasPrefix("70818E" + answer[object...].dropLast(4) + "9F6907"))
    }

    // MARK: SDA

    /// EMV Book 2, tables 6 and 7: a certificate with room for the whole key, so no remainder; an identifier of an odd
    /// number of digits; the AIP behind the record, by the tag list.
    @Test func staticData() async throws {
        let send = try CardSession("emv-sda")
        _ = try send(CardEMVTests.selectVisa)
        var card = Objects()
        for command in ["80 A8 00 00 02 83 00 00", "00 B2 01 0C 00", "00 B2 02 0C 00", "00 B2 01 14 00"] {
            card.answers.append(try send(command))
        }
        expectEqual(card.answers[0], try hex("80 0A 5800 08010200 10010201", "9000"))
        #expect(card.answers[1].hasPrefix("7081FB9081F8"))
        #expect(card.answers[2].hasPrefix(try hex("70 81 9A 8F 01 F4 9F32 01 03 93 81 90")))
        let issuer = try Self.key("issuer-1152")
        let authority = try Self.authority("A000000003", 0xF4)
        let blocks = try await Recovery.blocks([
            .init(modulus: authority.modulus, exponent: [1, 0, 1], bytes: card[0x90], rest: [3]),
            .init(
                modulus: issuer.modulus, exponent: [3], bytes: card[0x93],
                rest: [UInt8](
                    hex: """
                        57 11 4761739001010010D31122011143804489 5A 08 4761739001010010 5F20 0C 5441505045522F5445535341
                        5F24 03 311231 5F25 03 240101 5F28 02 0840 5F34 01 01 9F07 02 FFC0 9F08 02 0096 9F4A 01 82 5800
                        """)),
        ])
        #expect(
            blocks == [
                try hex("6A 02 47617FFF 1249 000004 01 01 90 01") + issuer.modulus.hex + Self.filling(248 - 36 - 144)
                    + " hash BC",
                // Format, SHA-1, Data Authentication Code; filling.
                try hex("6A 03 01 DAC1") + Self.filling(144 - 26) + " hash BC",
            ])
    }

    /// EMV Contactless Book C-3: format 93 is for online authorizations only; no tag list, so no AIP is hashed.
    @Test func staticDataForOnlineAuthorizations() async throws {
        let send = try CardSession("visa-sda-online")
        _ = try send(CardEMVTests.selectVisa)
        var card = Objects()
        for command in [
            "80 A8 00 00 12 83 10 27804000 000000001234 11223344 0978 00", "00 B2 01 0C 00", "00 B2 02 0C 00",
            "00 B2 01 14 00",
        ] {
            card.answers.append(try send(command))
        }
        expectEqual(card[0x82].hex, "4000")
        expectEqual(card[0x94].hex, "0801020010010101")
        expectEqual(card[0x9F26].hex, "CD4944BE1AC851B4")
        let issuer = try Self.key("issuer-1152")
        let blocks = try await Recovery.blocks([
            .init(
                modulus: try Self.authority("A000000003", 0xF2).modulus, exponent: [3], bytes: card[0x90],
                rest: card[0x92] + [3]),
            .init(
                modulus: issuer.modulus, exponent: [3], bytes: card[0x93],
                rest: [UInt8](hex: "5A 08 4761739001010010 5F24 03 311231 5F28 02 0840")),
        ])
        expectEqual(
            blocks,
            [
                try hex("6A 02 476173FF 1249 000003 01 01 90 01") + issuer.modulus.prefix(140).hex + " hash BC",
                try hex("6A 93 01 DAC0") + Self.filling(144 - 26) + " hash BC",
            ])
    }

    // MARK: DDA and CDA

    /// The record of `emv-cda` that its signatures cover, without template.
    private static let chipRecord = """
        57 12 5413330089010434D311220101234567890F 5A 08 5413330089010434 5F20 0C 5441505045522F5445535341
        5F24 03 311231 5F25 03 240101 5F28 02 0056 5F34 01 01
        8C 27 9F0206 9F0306 9F1A02 9505 5F2A02 9A03 9C01 9F3704 9F3501 9F4502 9F4C08 9F3403 9F2103 9F7C14
        8E 0E 0000000000000000 4203 1E03 1F03 9F07 02 FFC0 9F08 02 0002 9F0D 05 B450848000 9F0E 05 0000000000
        9F0F 05 B470848000 9F42 02 0978 9F4A 01 82
        """

    /// The commands up to the last record.
    private func readChip(_ name: String) throws -> (CardSession, Objects) {
        let send = try CardSession(name)
        _ = try send(CardEMVTests.selectMastercard)
        var card = Objects()
        for command in ["80 A8 00 00 02 83 00 00", "00 B2 01 14 00", "00 B2 01 24 00", "00 B2 02 24 00"] {
            card.answers.append(try send(command))
        }
        return (send, card)
    }

    /// EMV Book 2, tables 6, 14 and 17: what INTERNAL AUTHENTICATE brings is hashed behind a number of the card's.
    @Test func dynamicData() async throws {
        let (send, read) = try readChip("emv-dda")
        var card = read
        expectEqual(card.answers[0], try hex("77 0E 82 02 3880 94 08 10010101 20010200", "9000"))
        try expectEqual(send("00 88 00 00 08 1122334455667788 00"), "6700")
        try expectEqual(send("00 88 01 00 04 11223344 00"), "6A86")
        try expectEqual(send("80 88 00 00 04 11223344 00"), "6E00")
        card.answers.append(try send("00 88 00 00 04 11223344 00"))
        #expect(card.answers[4].hasPrefix("7781949F4B8190"))
        let (issuer, icc) = (try Self.key("issuer-1408"), try Self.key("card-1152"))
        let blocks = try await Recovery.blocks([
            .init(
                modulus: try Self.authority("A000000004", 0xF2).modulus, exponent: [3], bytes: card[0x90],
                rest: card[0x92] + [1, 0, 1]),
            .init(
                modulus: issuer.modulus, exponent: [1, 0, 1], bytes: card[0x9F46],
                rest: card[0x9F48] + [1, 0, 1] + [UInt8](hex: Self.chipRecord + " 3880")),
            .init(modulus: icc.modulus, exponent: [1, 0, 1], bytes: card[0x9F4B], rest: [0x11, 0x22, 0x33, 0x44]),
        ])
        expectEqual(
            blocks.prefix(2),
            [
                try hex("6A 02 541333FF 1249 000005 01 01 B0 03") + issuer.modulus.prefix(140).hex + " hash BC",
                try hex("6A 04 5413330089010434FFFF 1249 000006 01 01 90 03") + icc.modulus.prefix(134).hex
                    + " hash BC",
            ])
        // Format, SHA-1, 9 bytes of ICC Dynamic Data: 8 of number.
        #expect(blocks[2].hasPrefix("6A" + "05" + "01" + "09" + "08"))
        #expect(blocks[2].hasSuffix(Self.filling(144 - 25 - 9) + " hash BC"))
        // The number goes with the command: another, another; the same, the same.
        let other = Objects(answers: [try send("00 88 00 00 04 11223345 00")])
        let block = try await Recovery.blocks([
            .init(modulus: icc.modulus, exponent: [1, 0, 1], bytes: other[0x9F4B], rest: [0x11, 0x22, 0x33, 0x45])
        ])
        #expect(block[0].hasSuffix(" hash BC"))
        #expect(block[0].prefix(26) != blocks[2].prefix(26))
        try expectEqual(send("00 88 00 00 04 11223344 00"), card.answers[4])
    }

    /// EMV Book 2, tables 19 and 22: the cryptogram comes in the signature, with the hash over both commands' data and the
    /// response.  The cryptograms were computed with PyEMV 1.5.0, `cvn.MasterCardCVN16(…).generate_ac`.
    @Test(arguments: [
        ("50", "000000001234", "90", "40", "58E111818FDDAC46"), ("90", "000000001234", "A0", "80", "638974D2258A0F40"),
    ])
    func combinedDynamicData(
        p1: String, amount: String, cvr: String, cid: String, cryptogram: String
    ) async throws {
        let (send, read) = try readChip("emv-cda")
        var card = read
        expectEqual(card.answers[0], try hex("77 0E 82 02 1980 94 08 10010101 20010200", "9000"))
        let command = CardEMVTests.generateAC(p1, amount: amount)
        card.answers.append(try send(command))
        let before = try hex("9F27 01 \(cid) 9F36 02 0011")
        let after = try hex("9F10 12 0110 \(cvr)4003220000 0000 00000000000000FF")
        #expect(card.answers[4].hasPrefix("7781B2" + before + "9F4B8190"))
        #expect(card.answers[4].hasSuffix(after + "9000"))
        let data = try [UInt8](hex: command).dropFirst(5).dropLast()
        let hash = try await Program.run([
            "python3", "-c",
            "import hashlib; print(hashlib.sha1(bytes.fromhex('\(data.hex + before + after)')).hexdigest().upper())",
        ])
        let icc = try Self.key("card-1152")
        let block = try await Recovery.blocks([
            .init(modulus: icc.modulus, exponent: [1, 0, 1], bytes: card[0x9F4B], rest: [0x11, 0x22, 0x33, 0x44])
        ])
        #expect(block[0].hasPrefix("6A" + "05" + "01" + "26" + "08"))
        expectEqual(
            block[0].dropFirst(10 + 16),
            cid + cryptogram + hash.output.prefix(40) + Self.filling(144 - 25 - 38) + " hash BC")
    }

    /// An AAC is never signed, and without the request there is no signature.
    @Test(arguments: [
        ("10", "80", "00", "C92FC069D2CAAC00"), ("40", "90", "40", "58E111818FDDAC46"),
    ])
    func notCombined(p1: String, cvr: String, cid: String, cryptogram: String) throws {
        let (send, _) = try readChip("emv-cda")
        try expectEqual(send(CardEMVTests.generateAC("48", amount: "000000001234")), "6A86")
        try expectEqual(
            send(CardEMVTests.generateAC(p1, amount: "000000001234")),
            hex(
                "77 29 9F27 01 \(cid) 9F36 02 0011 9F26 08 \(cryptogram)",
                "9F10 12 0110 \(cvr)4003220000 0000 00000000000000FF", "90 00"))
    }
}
