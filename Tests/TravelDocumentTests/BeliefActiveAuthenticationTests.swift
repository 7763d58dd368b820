import Foundation
import SmartCard
import TestSupport
import Testing

@testable import TravelDocument

/// Active authentication against signatures of OpenSSL, and the block of ICAO 9303-11, appendix F.
@Suite struct BeliefActiveAuthenticationTests {
    /// RND.IFD and the block F of ICAO 9303-11, appendix F, which has no key.  // TEST
    static let challenge = "F173589974BF40C6"
    static let publishedBlock = """
        6A9D2784A67F8E7C659973EA1AEA25D95B6C8F91E5002F369F0FBDCE8A3CEC1991B543F1696546C5524CF23A5303CD6C98599F40B79F377B
        5F3A1406B3B4D8F96784D23AA88DB7E1032A405E69325FA91A6E86F5C71AEA978264C4A207446DAD4E7292E2DCDA3024B47DA8C063AA1E6D
        22FBD976AB0FE73D94D2D9C6D88127BC
        """

    /// A chip whose private key OpenSSL has.
    struct Chip {
        let pki: BeliefPKI
        let publicKey: [UInt8]

        /// - Parameter form: how the public key is written.
        init(_ key: BeliefPKI.Key) async throws {
            pki = try BeliefPKI()
            try await pki.makeKey("chip", key)
            try await pki.openssl(["pkey", "-in", "chip.key", "-pubout", "-outform", "DER", "-out", "chip.pub"])
            publicKey = TLVTag(0x6F).encode(try pki.read("chip.pub"))
        }

        /// Raises a block to the private exponent, as decryption without padding does.
        func raw(_ block: [UInt8]) async throws -> [UInt8] {
            try pki.write(block, to: "block")
            try await pki.openssl(
                ["pkeyutl", "-decrypt", "-inkey", "chip.key", "-pkeyopt", "rsa_padding_mode:none"]
                    + ["-in", "block", "-out", "signature"])
            return try pki.read("signature")
        }

        func ecdsa(_ digest: String) async throws -> [UInt8] {
            try pki.write(try hex(challenge), to: "challenge")
            try await pki.openssl(["dgst", "-\(digest)", "-sign", "chip.key", "-out", "signature", "challenge"])
            return try pki.read("signature")
        }
    }

    static func verdict(
        _ publicKey: [UInt8], _ response: [UInt8], securityInfos: [UInt8]? = nil, longestResponse: Int = 231
    ) throws -> ActiveAuthentication.Verdict? {
        var random = GivenRandomSource([challenge])
        var protocolValue = try ActiveAuthentication(
            publicKey: publicKey, securityInfos: securityInfos, longestResponse: longestResponse, random: &random)
        switch protocolValue.next(nil) {
        case .finished(let verdict): return verdict
        case .send(let command):
            expectEqual(command.bytes.hex, "0088000008" + challenge + "00")
            guard case .finished(let verdict) = protocolValue.next(ResponseAPDU(data: response, status: .success))
            else { return nil }
            return verdict
        }
    }

    /// A block of so many bytes.
    static func block(_ length: Int, _ digest: TravelDocument.Digest, trailer: [UInt8], header: UInt8 = 0x6A) throws
        -> [UInt8]
    {
        let known = (0..<length - 1 - trailer.count - digest.hash([]).count).map { UInt8(truncatingIfNeeded: $0 &* 73) }
        return try [header] + known + digest.hash(known + hex(challenge)) + trailer
    }

    @Test("The published block, signed by a key of 1,024 bits, is genuine; any other challenge or bit is not")
    func published() async throws {
        let chip = try await Chip(.rsa(1024))
        let signature = try await chip.raw(hex(Self.publishedBlock))
        try expectEqual(Self.verdict(chip.publicKey, signature), .genuine)
        for bit in [0, 7, 500, 1023] {
            var changed = signature
            changed[bit / 8] ^= 0x80 >> UInt8(bit % 8)
            try expectEqual(Self.verdict(chip.publicKey, changed), .wrongSignature)
        }
        try expectEqual(Self.verdict(chip.publicKey, Array(signature.dropFirst())), .wrongSignature)
        try expectEqual(Self.verdict(chip.publicKey, [0] + signature), .wrongSignature)
        try expectEqual(Self.verdict(chip.publicKey, []), .wrongSignature)
        try expectEqual(Self.verdict(chip.publicKey, [UInt8](repeating: 0xFF, count: 128)), .wrongSignature)
        let stale = try await chip.raw(Self.block(128, .sha1, trailer: [0xBC]).dropLast(2) + [0x00, 0xBC])
        try expectEqual(Self.verdict(chip.publicKey, stale), .wrongSignature)
    }

    @Test(
        "Each trailer names its hash function, and the other number of the two is as good",
        arguments: [(0x33, "sha1"), (0x34, "sha256"), (0x35, "sha512"), (0x36, "sha384"), (0x38, "sha224")])
    func trailers(_ identifier: UInt8, _ name: String) async throws {
        let chip = try await Chip(.rsa(1792))
        let digests: [String: TravelDocument.Digest] = [
            "sha1": .sha1, "sha224": .sha224, "sha256": .sha256, "sha384": .sha384, "sha512": .sha512,
        ]
        let digest = try #require(digests[name])
        let signature = try await chip.raw(Self.block(224, digest, trailer: [identifier, 0xCC]))
        try expectEqual(Self.verdict(chip.publicKey, signature), .genuine)
        // n - S.
        let spki = try SignatureKey(ASN1(Array(chip.publicKey.dropFirst(4)), 0x30, "key"))
        guard case .rsa(let modulus) = spki.kind else {
            Issue.record("not an RSA key")
            return
        }
        var (other, borrow) = (signature, 0)
        for index in modulus.indices.reversed() {
            let difference = Int(modulus[index]) - Int(signature[index]) - borrow
            (other[index], borrow) = (UInt8(truncatingIfNeeded: difference), difference < 0 ? 1 : 0)
        }
        #expect(other != signature)
        try expectEqual(Self.verdict(chip.publicKey, other), .genuine)
        // Another hash function, another header, and no trailer.
        let wrong = identifier == 0x34 ? UInt8(0x33) : 0x34
        for block in [
            try Self.block(224, digest, trailer: [wrong, 0xCC]), try Self.block(224, digest, trailer: [0x39, 0xCC]),
            try Self.block(224, digest, trailer: [identifier, 0xCC], header: 0x4A),
            try Self.block(224, digest, trailer: [identifier, 0xCD]),
        ] {
            try expectEqual(Self.verdict(chip.publicKey, try await chip.raw(block)), .wrongSignature)
        }
    }

    @Test("A signature that is too long for the reader is its limit, and the chip is not asked")
    func readerLimit() async throws {
        let chip = try await Chip(.rsa(2048))
        let verdict = try Self.verdict(chip.publicKey, [], longestResponse: 231)
        expectEqual(verdict, .readerLimit(needed: 256, available: 231))
        try expectEqual(Self.verdict(chip.publicKey, [], longestResponse: 256), .wrongSignature)
    }

    @Test(
        "ECDSA is plain or in a SEQUENCE, with the hash function of DG14 where it tells one",
        arguments: [
            BeliefPKI.Key.ec("P-256"), .ec("brainpoolP320r1", digest: "sha384"),
            .ec("P-521", explicit: true, digest: "sha512"), .ec("brainpoolP224r1", explicit: true, digest: "sha1"),
        ])
    func ecdsa(_ key: BeliefPKI.Key) async throws {
        let chip = try await Chip(key)
        let signature = try await chip.ecdsa(key.digest)
        try expectEqual(Self.verdict(chip.publicKey, signature), .genuine)
        let spki = try ASN1(chip.publicKey, 0x6F, "DG15").inner(0x30, "key")
        guard case .elliptic(let curve) = try SignatureKey(spki).kind else {
            Issue.record("not a key of a curve")
            return
        }
        let numbers = try #require(try TLVList(signature, padding: []).first).children.map { number in
            let bytes = Array(number.value.drop { $0 == 0 })
            return [UInt8](repeating: 0, count: curve.orderLength - bytes.count) + bytes
        }
        let plain = Array(numbers.joined())
        try expectEqual(Self.verdict(chip.publicKey, plain), .genuine)
        let last: UInt8 = ["sha1": 1, "sha224": 2, "sha256": 3, "sha384": 4, "sha512": 5][key.digest] ?? 0
        for component in UInt8(1)...5 {
            // ActiveAuthenticationInfo with ecdsa-plain.
            let info = try TLVTag(0x6E).encode(
                TLVTag(0x31).encode(
                    hex(
                        "3017 0606 678108010105 020101 060A 04007F00070101040100".dropLast(2)
                            + [
                                "0\(component)"
                            ].joined())))
            let verdict = try Self.verdict(chip.publicKey, plain, securityInfos: info)
            expectEqual(verdict, component == last ? .genuine : .wrongSignature)
        }
        var changed = plain
        changed[5] ^= 1
        try expectEqual(Self.verdict(chip.publicKey, changed), .wrongSignature)
        try expectEqual(Self.verdict(chip.publicKey, []), .wrongSignature)
    }

    @Test("A key on a curve without a name, one of another kind, and a refusal are told as such")
    func otherKeys() async throws {
        let chip = try await Chip(.ec("P-256", explicit: true))
        var curve = chip.publicKey
        // The generator's x-coordinate (SEC 2, 2.4.2).
        let generator = try #require(curve.firstRange(of: hex("6B17D1F2E12C4247F8BCE6E563A440F2")))
        curve[generator.lowerBound] ^= 1
        try expectEqual(Self.verdict(curve, []), .unusableKey(.unknownCurve))
        curve = chip.publicKey
        let cofactor = try #require(curve.ranges(of: [0x02, 0x01, 0x01]).last)
        curve[cofactor.upperBound - 1] = 0x02
        guard case .unusableKey(.malformedKey(let error)) = try Self.verdict(curve, []) else {
            Issue.record("another cofactor was accepted")
            return
        }
        expectEqual(error.due, "cofactor 1")
        let other = try hex("6F0F 300D 3005 06032B6570 0304 00010203")
        try expectEqual(Self.verdict(other, []), .unusableKey(.unsupportedAlgorithm(OID("1.3.101.112"))))
        #expect(throws: MalformedObject.self) { try Self.verdict(hex("6F00"), []) }

        var random = GivenRandomSource([Self.challenge])
        var active = try ActiveAuthentication(
            publicKey: chip.publicKey, securityInfos: nil, longestResponse: 231, random: &random)
        _ = active.next(nil)
        guard case .finished(.refused(0x6D00)) = active.next(ResponseAPDU(status: 0x6D00)) else {
            Issue.record("not refused")
            return
        }
    }
}
