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
        #expect(outcome.status == 0, "\(outcome)")
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
        #expect(minted.status == 0, "\(minted.error)")
        #expect(minted.output == String(decoding: PackageResources.test_keys, as: UTF8.self))
        #expect(try TestKeys(parsing: Array(minted.output.utf8)).keys.count == 7)
        for key in VirtualCards.certificationAuthorityKeys {
            let parts = key.rid + [key.index] + key.modulus + key.exponent
            let sum = try await Program.run([
                "python3", "-c", "import hashlib; print(hashlib.sha1(bytes.fromhex('\(parts.hex)')).hexdigest())",
            ])
            #expect(sum.output.prefix(40).uppercased() == key.checksum.hex, "\(sum)")
            #expect(key.expires.hex == "491231")
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
        #expect(card.answers[4] == "700A" + "9F6907" + related.hex + "9000")
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
        #expect(card[0x92] == Array(issuer.modulus.suffix(4)))
        #expect(card[0x9F48] == Array(icc.modulus.suffix(26)))
        #expect(card[0x9F32] == [3] && card[0x9F47] == [3] && card[0x8F] == [0xF2])
    }
}
