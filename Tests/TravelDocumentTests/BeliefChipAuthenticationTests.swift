import Foundation
import SmartCard
import TestSupport
import Testing

@testable import TravelDocument

/// Chip authentication with OpenSSL as the chip: it derives the secret, and hashes it to the session's keys.
@Suite struct BeliefChipAuthenticationTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let key: BeliefPKI.Key
        let cipher: SessionCipher
        var isElliptic = true

        var testDescription: String { "\(key.testDescription), \(cipher)" }
    }

    static let dh = BeliefPKI.Key(
        testDescription: "DH 2048/256", generation: ["-algorithm", "DHX", "-pkeyopt", "dh_rfc5114:3"])
    static let cases: [Case] = [
        Case(key: .ec("P-256"), cipher: .tripleDES), Case(key: .ec("P-256", explicit: true), cipher: .aes128),
        Case(key: .ec("brainpoolP320r1", explicit: true), cipher: .aes192),
        Case(key: .ec("P-521", explicit: true), cipher: .aes256), Case(key: .ec("brainpoolP224r1"), cipher: .aes128),
        Case(key: dh, cipher: .tripleDES, isElliptic: false), Case(key: dh, cipher: .aes256, isElliptic: false),
    ]

    /// DG14 with a key of number 5, and the protocol for it.
    static func securityInfos(
        _ publicKey: [UInt8], _ cipher: SessionCipher?, isElliptic: Bool, number: UInt8 = 5
    ) throws -> [UInt8] {
        let kind: UInt8 = isElliptic ? 2 : 1
        let prefix = try hex("04007F00070202")
        let sequence = TLVTag(0x30)
        let key = sequence.encode(
            objects: TLVTag(0x06).encode(prefix + [0x01, kind]), publicKey, [0x02, 0x01, 0x05])
        let info = cipher.map { cipher in
            sequence.encode(
                objects: TLVTag(0x06).encode(prefix + [0x03, kind, cipher.rawValue]), [0x02, 0x01, 0x01],
                [0x02, 0x01, number])
        }
        return TLVTag(0x6E).encode(TLVTag(0x31).encode((info ?? []) + key))
    }

    /// The public key of a chip in OpenSSL.
    static func publicKey(_ pki: BeliefPKI, _ key: BeliefPKI.Key) async throws -> [UInt8] {
        try await pki.makeKey("chip", key)
        try await pki.openssl(["pkey", "-in", "chip.key", "-pubout", "-outform", "DER", "-out", "chip.pub"])
        return try pki.read("chip.pub")
    }

    /// The session keys that OpenSSL derives with the reader's public key.
    private static func keys(_ pki: BeliefPKI, _ value: [UInt8], _ test: Case) async throws -> [[UInt8]] {
        // The same parameters with the reader's key.
        let info = try #require(try TLVList(pki.read("chip.pub"), padding: []).first)
        let parameters = Array(try #require(info.children.first).encoded)
        let number = TLVTag(0x02).encode(value[0] < 0x80 ? value : [0x00] + value)
        let peer = TLVTag(0x30).encode(
            objects: parameters, TLVTag(0x03).encode([0x00] + (test.isElliptic ? value : number)))
        try pki.write(peer, to: "peer.pub")
        try await pki.openssl(
            ["pkeyutl", "-derive", "-inkey", "chip.key", "-peerkey", "peer.pub", "-peerform", "DER", "-out", "secret"])
        let derived = try pki.read("secret")
        // OpenSSL leaves out leading zeros of a number, which belong to the secret.
        let length = test.isElliptic ? derived.count : 256
        let secret = [UInt8](repeating: 0, count: length - derived.count) + derived
        let digest = test.cipher == .aes192 || test.cipher == .aes256 ? "sha256" : "sha1"
        var keys: [[UInt8]] = []
        for counter: UInt8 in 1...2 {
            try pki.write(secret + [0, 0, 0, counter], to: "seed")
            try await pki.openssl(["dgst", "-\(digest)", "-binary", "-out", "key", "seed"])
            keys.append(Array(try pki.read("key").prefix(test.cipher.keyLength)))
        }
        return keys
    }

    @Test("Reader and chip come to the same keys, by one command for triple DES and two for AES", arguments: cases)
    func agree(_ test: Case) async throws { try await agree(test) { _ in SeededRandomSource() } }

    @Test(
        "A secret that begins with a zero makes the same keys",
        arguments: Tier.few([cases[0], cases[1], cases[5], cases[6]], 2))
    func leadingZero(_ test: Case) async throws {
        try await agree(test) { publicKey in
            let key = try #require(try AgreementKey(ASN1(publicKey, ASN1.Tag.sequence, "key")))
            var random = LeadingZeroTests.FixedRandomSource()
            let pair = try LeadingZeroTests.pair(key.group, key.value, &random).pair
            return GivenRandomSource([try #require(pair.privateKey.bytes(32)).hex])
        }
    }

    private func agree(_ test: Case, random: (_ publicKey: [UInt8]) throws -> any RandomSource) async throws {
        let pki = try BeliefPKI()
        let publicKey = try await Self.publicKey(pki, test.key)
        let file = try Self.securityInfos(publicKey, test.cipher, isElliptic: test.isElliptic)
        var authentication = try #require(
            ChipAuthentication(try SecurityInfos(dataGroup14: file), random: random(publicKey)))
        guard case .send(let first) = authentication.next(nil) else {
            Issue.record("no command")
            return
        }
        let objects = try TLVList(first.data, padding: [])
        expectEqual(objects[0x84].map { Array($0.value) }, [0x05])
        var value = objects[0x91].map { Array($0.value) }
        var step = authentication.next(ResponseAPDU(status: .success))
        if test.cipher == .tripleDES {
            expectEqual(first.bytes.prefix(4), [0x00, 0x22, 0x41, 0xA6])
        } else {
            #expect(first.bytes.prefix(4) == [0x00, 0x22, 0x41, 0xA4] && value == nil)
            let kind: UInt8 = test.isElliptic ? 2 : 1
            let oid = try hex("04007F0007020203") + [kind, test.cipher.rawValue]
            expectEqual(objects[0x80].map { Array($0.value) }, oid)
            guard case .send(let second) = step else {
                Issue.record("no second command")
                return
            }
            expectEqual(second.bytes.prefix(4), [0x00, 0x86, 0x00, 0x00])
            value = try TLVList(second.data, padding: []).first?.children[0x80].map { Array($0.value) }
            step = authentication.next(ResponseAPDU(data: [0x7C, 0x00], status: .success))
        }
        guard case .established(let messaging) = step else {
            Issue.record("not established")
            return
        }
        let expected = try await Self.keys(pki, try #require(value), test)
        expectEqual([messaging.keys.encryption, messaging.keys.authentication], expected)
    }

    @Test("A key without a protocol is for triple DES, and one of another number is for nothing")
    func offers() async throws {
        let pki = try BeliefPKI()
        let publicKey = try await Self.publicKey(pki, .ec("P-256", explicit: true))
        func offer(_ cipher: SessionCipher?, number: UInt8 = 5, _ key: [UInt8]) throws -> ChipAuthenticationOffer? {
            let file = try Self.securityInfos(key, cipher, isElliptic: true, number: number)
            return ChipAuthenticationOffer.best(of: try SecurityInfos(dataGroup14: file))
        }
        try expectEqual(offer(nil, publicKey)?.cipher, .tripleDES)
        try expectEqual(offer(.aes256, publicKey)?.cipher, .aes256)
        #expect(try offer(.aes256, number: 6, publicKey) == nil)
        // standardizedDomainParameters, number 12.
        let point = publicKey.suffix(65)
        let numbered = try TLVTag(0x30).encode(
            objects: hex("300C 060704007F00070102 02010C"), TLVTag(0x03).encode([0x00] + point))
        try expectEqual(offer(.aes128, numbered)?.publicKey, Array(point))
        // Another generator.
        var other = publicKey
        let generator = try #require(other.firstRange(of: hex("6B17D1F2E12C4247F8BCE6E563A440F2")))
        other[generator.lowerBound] ^= 1
        #expect(try offer(.aes128, other) == nil)
        // A point beside the curve gives nothing away.
        var beside = publicKey
        beside[beside.count - 1] ^= 1
        let file = try Self.securityInfos(beside, .tripleDES, isElliptic: true)
        var authentication = try #require(
            ChipAuthentication(try SecurityInfos(dataGroup14: file), random: SeededRandomSource()))
        _ = authentication.next(nil)
        guard case .refused(.unsupported) = authentication.next(ResponseAPDU(status: .success)) else {
            Issue.record("a point beside the curve was used")
            return
        }
    }

    @Test("A chip without such keys refuses both proofs, and its session goes on")
    func chip() async throws {
        let pki = try BeliefPKI()
        let publicKey = try await Self.publicKey(pki, .ec("P-256"))
        let (chip, _) = try await ChipTests.chip(ChipTests.configuration())
        await #expect(throws: ChipError.notOpen) { try await chip.authenticateActively(publicKey: []) }
        try await chip.open(with: BasicAccessControlTests.key.get())
        let active = try await chip.authenticateActively(publicKey: TLVTag(0x6F).encode(publicKey))
        expectEqual(active, .refused(0x6D00))
        let infos = try Self.securityInfos(publicKey, .aes128, isElliptic: true)
        try await expectEqual(chip.authenticateChip(securityInfos: infos), .refused(.status(0x6D00)))
        try await expectEqual(chip.authenticateChip(securityInfos: [0x6E, 0x02, 0x31, 0x00]), .notOffered)
        try await expectEqual(chip.read(.dataGroup(1)), ChipTests.group(1, 93))
    }
}
