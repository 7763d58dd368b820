import Crypto
import Foundation
import TestSupport
import Testing

@testable import CardEncryption

struct JWETests {
    // MARK: Published examples

    /// RFC 7518, appendix C.  # TEST
    static let alice = """
        {"kty":"EC","crv":"P-256","x":"gI0GAILBdu7T53akrFmMyGcsF3n5dO7MmwNBHKW5SV0",\
        "y":"SLW_xSffzlPWrHEVI30DHM_4egVwt3NQqeUD7nMFpps","d":"0_NxaRPUMQoAJt50Gz8YiTr8gRTwyEaCumd-MToTmIo"}
        """
    static let bob = """
        {"kty":"EC","crv":"P-256","x":"weNJy2HscCSM6AEDTDg04biOvhFhyyWvOHQfeF_PxMQ",\
        "y":"e8lnCO-AlStT-NJVX-crhB7QRYhiix03illJOVAOyck","d":"VEmDZpDXXK8p8N0Cndsxs924q6nS1RXFASRl6BfUqdw"}
        """
    /// RFC 7520, section 5.5.  # TEST
    static let meriadoc = """
        {"kty":"EC","kid":"meriadoc.brandybuck@buckland.example","use":"enc","crv":"P-256",\
        "x":"Ze2loSV3wrroKUN_4zhwGhCqo3Xhu1td4QjeQ5wIVR0","y":"HlLtdXARY_f55A3fnzQbPcm6hgr34Mp8p-nuzQCE0Zw",\
        "d":"r_kHyZ-a06rmxM3yESK84r1otSg-aQcVStkRhA-iCM8"}
        """
    static let meriadocEphemeral = """
        {"kty":"EC","crv":"P-256","x":"mPUKT_bAWGHIhg0TpjjqVsP1rXWQu_vwVOHHtNkdYoA",\
        "y":"8BQAsImGeAS46fyWw5MhYfGTT0IjBpFw2SS34Dv4Irs","d":"AtH35vJsQ9SGjYfOsjUxYXQKrPH3FjZHmEtSKoSN8cM"}
        """

    /// The keys agreed upon in RFC 7518, appendix C, and RFC 7520, section 5.5, from either side.
    @Test(arguments: [
        (Self.alice, Self.bob, "A128GCM", "Alice", "Bob", 128, "VqqN6vgjbSBcIijNcacQGg"),
        (
            Self.meriadocEphemeral, Self.meriadoc, "A128CBC-HS256", "", "", 256,
            "hzHdlfQIAEehb8Hrd_mFRhKsKLEzPfshfXs9l6areCc"
        ),
    ])
    func keysAreAgreedUponAsPublished(
        one: String, other: String, algorithm: String, partyU: String, partyV: String, bitCount: Int, expected: String
    ) throws {
        let (one, other) = (try JSON.object(one.utf8), try JSON.object(other.utf8))
        for (mine, theirs) in [(one, other), (other, one)] {
            let key = try P256.KeyAgreement.PrivateKey(rawRepresentation: JWK.bytes("d", of: mine))
            #expect(P256Point(key.publicKey) == (try P256Point(jwk: mine)))
            let agreed = ConcatKDF.key(
                try key.sharedSecretFromKeyAgreement(with: P256Point(jwk: theirs).key), algorithm: algorithm,
                partyU: Array(partyU.utf8), partyV: Array(partyV.utf8), bitCount: bitCount)
            #expect(agreed.withUnsafeBytes { Base64.url.encode(Array($0)) } == expected)
        }
    }

    /// `Vectors/jwe.json`: made once by jwcrypto.
    struct Published: Decodable {
        struct Vector: Decodable {
            let jwk: [String: String]
            let jwe: String
            let text: String
        }

        let vectors: [Vector]
    }

    @Test func textsOfAnotherLibraryAreOpened() throws {
        let data = try Data(contentsOf: testFolder.appending(path: "Vectors/jwe.json"))
        let vectors = try JSONDecoder().decode(Published.self, from: data).vectors
        #expect(vectors.map(\.jwk["alg"]) == ["RSA-OAEP-256", "ECDH-ES+A256KW"])
        for vector in vectors {
            let key = try JWEPrivateKey(jwk: String(decoding: JSONEncoder().encode(vector.jwk), as: UTF8.self))
            let jwe = try CompactJWE(parsing: vector.jwe)
            #expect(try key.open(jwe) { String(decoding: $0, as: UTF8.self) } == vector.text)
        }
    }

    /// RFC 3394, section 4.6, on which ECDH-ES+A256KW stands.
    @Test func keysAreWrappedAsPublished() throws {
        let key = SymmetricKey(data: try hex("000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F"))
        let content = SymmetricKey(data: try hex("00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F"))
        let wrapped = try AES.KeyWrap.wrap(content, using: key)
        #expect(
            Array(wrapped).hex == "28C9F404C4B810F4CBCCB35CFB87F8263F5786E2D80ED326CBC7F0E71A99F43BFB988B9B7A02DD21")
        #expect(try AES.KeyWrap.unwrap(wrapped, using: key) == content)
    }

    // MARK: Sealing and opening

    static let keys: [JWEAlgorithm: JWEPrivateKey] = {
        var keys: [JWEAlgorithm: JWEPrivateKey] = [:]
        for algorithm in JWEAlgorithm.allCases {
            keys[algorithm] = try? JWEPrivateKey(generating: algorithm, keyID: "k")
        }
        return keys
    }()

    private func sealed(_ algorithm: JWEAlgorithm, _ header: JWEHeader = JWEHeader()) throws -> (
        JWEPrivateKey, CompactJWE
    ) {
        let key = try #require(Self.keys[algorithm])
        let data = try JWERecipient(jwk: key.publicJWK).seal(ClearCardData(testRecord), header: header)
        guard case .jwe(let jwe) = try SealedCardData(parsing: data.description) else { throw JWEError(.refused) }
        #expect(data == .jwe(jwe))
        return (key, jwe)
    }

    @Test(arguments: JWEAlgorithm.allCases)
    func keyOpensWhatIsSealedToIt(algorithm: JWEAlgorithm) throws {
        let (key, jwe) = try sealed(algorithm, JWEHeader(type: "t", contentType: "c", fields: ["sid": "1"]))
        #expect(try key.open(jwe) { Array($0) } == testRecord)
        #expect(jwe.header == JWEHeader(keyID: "k", type: "t", contentType: "c", fields: ["sid": "1"]))
        // A new content key and a new vector each time.
        let (_, again) = try sealed(algorithm)
        #expect(again.ciphertext != jwe.ciphertext && again.initializationVector != jwe.initializationVector)
    }

    /// Header, key, vector, content and tag: nothing can be changed, and every failure of a key looks like the others.
    @Test(arguments: JWEAlgorithm.allCases)
    func changedTextIsRefused(algorithm: JWEAlgorithm) throws {
        let (key, jwe) = try sealed(algorithm)
        let parts = jwe.text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        for (i, part) in parts.enumerated() where i > 0 && !part.isEmpty {
            for offset in [0, part.count / 2] {
                var bytes = try Base64.url.decode(part.utf8)
                bytes[offset * 3 / 4] ^= 0x10
                var changed = parts
                changed[i] = Base64.url.encode(bytes)
                let other = try CompactJWE(parsing: changed.joined(separator: "."))
                #expect(throws: JWEError(.notAuthentic)) { try key.open(other) { _ in } }
            }
        }
        // The same header, written otherwise.
        let header = String(decoding: try Base64.url.decode(parts[0].utf8), as: UTF8.self)
        let spaced = Base64.url.encode(Array((header + " ").utf8))
        let other = try CompactJWE(parsing: ([spaced] + parts.dropFirst()).joined(separator: "."))
        #expect(other.header == jwe.header)
        #expect(throws: JWEError(.notAuthentic)) { try key.open(other) { _ in } }
    }

    /// RFC 7516, section 11.5: an encrypted key of no length that OAEP knows, or of another key, fails where the content
    /// does.
    @Test func unreadableContentKeyFailsAsTheContentDoes() throws {
        let (key, jwe) = try sealed(.rsaOAEP256)
        var parts = jwe.text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        for encryptedKey in [[], [1], [UInt8](repeating: 0xFF, count: 384), [UInt8](repeating: 0, count: 384)] {
            parts[1] = Base64.url.encode(encryptedKey)
            let other = try CompactJWE(parsing: parts.joined(separator: "."))
            #expect(throws: JWEError(.notAuthentic)) { try key.open(other) { _ in } }
        }
    }

    @Test func keyOpensOnlyWhatIsSealedToIt() throws {
        let (_, jwe) = try sealed(.ecdhES)
        let stranger = try JWEPrivateKey(generating: .ecdhES)
        #expect(throws: JWEError(.notAuthentic)) { try stranger.open(jwe) { _ in } }
        let named = try JWEPrivateKey(generating: .ecdhES, keyID: "other")
        #expect(throws: JWEError(.otherKey("k"), in: .header)) { try named.open(jwe) { _ in } }
        let (other, _) = try sealed(.ecdhESA256KW)
        #expect(throws: JWEError(.otherAlgorithm(.ecdhES), in: .header)) { try other.open(jwe) { _ in } }
    }

    @Test(arguments: ["alg", "enc", "crit", "zip", "epk", "kid", "p2c"])
    func furtherMembersHaveNamesOfTheirOwn(name: String) throws {
        #expect(throws: JWEError(.registeredName(name), in: .header)) {
            try sealed(.ecdhES, JWEHeader(fields: [name: "x"]))
        }
    }

    // MARK: The parser

    static let epk =
        #""epk":{"kty":"EC","crv":"P-256","x":"gI0GAILBdu7T53akrFmMyGcsF3n5dO7MmwNBHKW5SV0","y":"SLW_xSffzlPWrHEVI30DHM_4egVwt3NQqeUD7nMFpps"}"#
    static let iv = Base64.url.encode([UInt8](repeating: 0, count: 12))
    static let tag = Base64.url.encode([UInt8](repeating: 0, count: 16))

    private static func text(_ header: String, key: String = "") -> String {
        Base64.url.encode(Array(header.utf8)) + ".\(key).\(iv).AA.\(tag)"
    }

    static let good = text(#"{"alg":"ECDH-ES","enc":"A256GCM",\#(epk)}"#)

    static let refused: [(String, JWEError)] = [
        ("", JWEError(.parts(1))),
        ("a.b.c.d", JWEError(.parts(4))),
        (good + ".", JWEError(.parts(6))),
        (good + "\n", JWEError(.base64, in: .tag, at: 22)),
        (good + "=", JWEError(.base64, in: .tag, at: 22)),
        (" " + good, JWEError(.base64, in: .header, at: 0)),
        ("e+Jh." + good.drop { $0 != "." }.dropFirst(), JWEError(.base64, in: .header, at: 1)),
        // One character too many is no byte; bits that are left over are not zero.
        (good + "A", JWEError(.length(17, due: 16), in: .tag)),
        (good + "AAA", JWEError(.base64, in: .tag, at: 25)),
        (String(good.dropLast()) + "B", JWEError(.base64, in: .tag, at: 21)),
        (text("{}", key: "A"), JWEError(.base64, in: .encryptedKey, at: 1)),
        (text("{}"), JWEError(.member("alg"), in: .header)),
        (text(#"["alg"]"#), JWEError(.json("an object"), in: .header, at: 0)),
        (text(#"{"alg":"ECDH-ES""#), JWEError(.json("}"), in: .header, at: 16)),
        (text(#"{"alg":"ECDH-ES"}x"#), JWEError(.json("the end"), in: .header, at: 17)),
        (text(#"{"alg":"A","alg":"B"}"#), JWEError(.json("a name that was not there before"), in: .header, at: 11)),
        (text(#"{"alg":1}"#), JWEError(.member("alg"), in: .header)),
        (text(#"{"alg":"dir","enc":"A256GCM"}"#), JWEError(.algorithm("dir"), in: .header)),
        (text(#"{"alg":"RSA1_5","enc":"A256GCM"}"#), JWEError(.algorithm("RSA1_5"), in: .header)),
        (
            text(#"{"alg":"ECDH-ES+A256\#u{212A}W","enc":"A256GCM",\#(epk)}"#),
            JWEError(.algorithm("ECDH-ES+A256KW"), in: .header)
        ),
        (
            text(#"{"alg":"ECDH-ES","enc":"A256GCM",\#(epk.dropLast()),"d":"AA"}}"#),
            JWEError(.ephemeralKey, in: .header)
        ),
        (
            text("{\"alg\":\"ECDH-ES\",\"enc\":\"A256GCM\",\(epk),\"\u{E9}\":\"a\",\"e\u{301}\":\"b\"}"),
            JWEError(.member("\u{E9}"), in: .header)
        ),
        (text(#"{"alg":"none"}"#), JWEError(.algorithm("none"), in: .header)),
        (text(#"{"alg":"ECDH-ES"}"#), JWEError(.member("enc"), in: .header)),
        (text(#"{"alg":"ECDH-ES","enc":"A128GCM"}"#), JWEError(.contentEncryption("A128GCM"), in: .header)),
        (text(#"{"alg":"ECDH-ES","enc":"A256GCM","zip":"DEF",\#(epk)}"#), JWEError(.compressed, in: .header)),
        (text(#"{"alg":"ECDH-ES","enc":"A256GCM","crit":["x"],"x":1,\#(epk)}"#), JWEError(.critical, in: .header)),
        (text(#"{"alg":"ECDH-ES","enc":"A256GCM"}"#), JWEError(.member("epk"), in: .header)),
        (
            text(#"{"alg":"ECDH-ES","enc":"A256GCM",\#(epk.replacing("SLW", with: "SLX"))}"#),
            JWEError(.ephemeralKey, in: .header)
        ),
        (
            text(#"{"alg":"ECDH-ES","enc":"A256GCM",\#(epk.replacing("P-256", with: "P-384"))}"#),
            JWEError(.ephemeralKey, in: .header)
        ),
        (text(#"{"alg":"ECDH-ES","enc":"A256GCM","kid":7,\#(epk)}"#), JWEError(.member("kid"), in: .header)),
        (text(#"{"alg":"ECDH-ES","enc":"A256GCM","apu":"A=",\#(epk)}"#), JWEError(.member("apu"), in: .header)),
        (
            text(#"{"alg":"ECDH-ES","enc":"A256GCM",\#(epk)}"#, key: "AAAA"),
            JWEError(.length(3, due: 0), in: .encryptedKey)
        ),
        (
            text(#"{"alg":"ECDH-ES+A256KW","enc":"A256GCM",\#(epk)}"#),
            JWEError(.length(0, due: 40), in: .encryptedKey)
        ),
        (good.replacing(".\(iv).", with: ".AAAA."), JWEError(.length(3, due: 12), in: .initializationVector)),
        (String(repeating: "A", count: 1 << 18 + 1), JWEError(.tooLong(1 << 18 + 1))),
    ]

    /// What a stranger wrote goes into logs, and does nothing to terminals.
    @Test func errorsHaveNoControlCharacters() throws {
        let name = "\n\u{1B}[2J\u{9B}1m\u{7F}" + String(repeating: "x", count: 1_000)
        let text = Self.text(#"{"alg":\#(JSON.quoted(name))}"#)
        let error = #expect(throws: JWEError(.algorithm(name), in: .header)) { try CompactJWE(parsing: text) }
        let described = try #require(error).description
        #expect(described.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control })
        #expect(described.contains(#""\u000a\u001b[2J\u009b1m\u007fxxx"#) && described.utf8.count < 200)
    }

    @Test func parserTakesTheCompactForm() throws {
        let jwe = try CompactJWE(parsing: Self.good)
        #expect(jwe.algorithm == .ecdhES && jwe.description == Self.good)
    }

    @Test(arguments: Self.refused.indices)
    func parserTellsWhatAndWhere(index: Int) {
        let (text, error) = Self.refused[index]
        #expect(throws: error) { try CompactJWE(parsing: text) }
    }

    /// Mutations of a text: refused with a typed error, or opened to what was sealed.
    @Test(arguments: JWEAlgorithm.allCases)
    func mutationsNeverTrap(algorithm: JWEAlgorithm) throws {
        let (key, jwe) = try sealed(algorithm)
        var random = SplitMix(state: 7)
        let original = Array(jwe.text.utf8)
        let alphabet = Array("AZaz09-_.={}\"\n\\é".utf8)
        let rounds = algorithm == .rsaOAEP256 ? 500 : 2_000
        for _ in 0..<Tier.rounds(rounds / 10, thorough: rounds) {
            // Half of them in the JSON of the header, which would otherwise hardly ever be reached.
            let inHeader = Bool.random(using: &random)
            var bytes = inHeader ? try Base64.url.decode(original.prefix { $0 != UInt8(ascii: ".") }) : original
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let at = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<5, using: &random) {
                case 0: bytes[at] = alphabet.randomElement(using: &random) ?? 0
                case 1: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                case 2: bytes.remove(at: at)
                case 3: bytes.insert(alphabet.randomElement(using: &random) ?? 0, at: at)
                default:
                    bytes.removeSubrange(at..<min(bytes.count, at + Int.random(in: 0..<bytes.count, using: &random)))
                }
                if bytes.isEmpty { bytes = [0] }
            }
            if inHeader { bytes = Array(Base64.url.encode(bytes).utf8) + original.drop { $0 != UInt8(ascii: ".") } }
            let text = String(decoding: bytes, as: UTF8.self)
            do {
                let opened = try key.open(CompactJWE(parsing: text)) { Array($0) }
                #expect(opened == testRecord && bytes == original)
            } catch {
                #expect(error is JWEError)
            }
        }
    }
}
