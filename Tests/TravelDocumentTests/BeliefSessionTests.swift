import Foundation
import SmartCard
import TestSupport
import Testing

@testable import TravelDocument

/// The chip's proofs, through a session with a chip that has keys.
@Suite struct BeliefSessionTests {
    /// A chip behind Basic Access Control, with a key for chip authentication, and one in OpenSSL for active
    /// authentication.
    final class Chip: CardChannel, @unchecked Sendable {
        // Unchecked: one command is under way at a time.
        private struct Session {
            let cipher: SessionCipher
            let keys: (encryption: [UInt8], authentication: [UInt8])
            var counter: [UInt8]

            init(_ cipher: SessionCipher, _ secret: [UInt8], counter: [UInt8]? = nil) {
                self.cipher = cipher
                keys = (
                    cipher.deriveKey(secret, for: .encryption), cipher.deriveKey(secret, for: .authentication)
                )
                self.counter = counter ?? [UInt8](repeating: 0, count: cipher.blockLength)
            }

            mutating func crypt(_ blocks: [UInt8], encrypting: Bool) -> [UInt8] {
                let iv = cipher == .tripleDES ? nil : cipher.encrypt(block: counter, key: keys.encryption)
                return cipher.cbc(blocks, key: keys.encryption, iv: iv, encrypting: encrypting) ?? []
            }

            mutating func count() {
                counter[counter.count - 1] &+= 1
                if counter[counter.count - 1] == 0 { counter[counter.count - 2] &+= 1 }
            }

            func mac(_ message: [UInt8]) -> [UInt8] { cipher.mac(counter + message, key: keys.authentication) ?? [] }
        }

        private let pki: BeliefPKI
        private let group: EllipticCurve
        private let pair: KeyPair
        private let cipher: SessionCipher
        /// False for a copy: it has the files, and another private key.
        private let isGenuine: Bool
        private let challenge = [UInt8](repeating: 0x5C, count: 8)
        private var session: Session?
        private var next: Session?

        init(_ cipher: SessionCipher, isGenuine: Bool) async throws {
            pki = try BeliefPKI()
            try await pki.makeKey("chip", .ec("P-256"))
            try await pki.openssl(["pkey", "-in", "chip.key", "-pubout", "-outform", "DER", "-out", "chip.pub"])
            group = try #require(EllipticCurve.named(12))
            var random = SeededRandomSource()
            pair = try #require(group.makeKeyPair(&random))
            (self.cipher, self.isGenuine) = (cipher, isGenuine)
        }

        /// DG15.
        var publicKey: [UInt8] { get throws { TLVTag(0x6F).encode(try pki.read("chip.pub")) } }

        /// DG14, with the key by the number of its parameters.
        var securityInfos: [UInt8] {
            get throws {
                let sequence = TLVTag(0x30)
                let info = try sequence.encode(
                    objects: hex("300C 060704007F00070102 02010C"), TLVTag(0x03).encode([0x00] + pair.publicKey))
                return try TLVTag(0x6E).encode(
                    TLVTag(0x31).encode(
                        objects: sequence.encode(objects: hex("0609 04007F000702020102"), info),
                        sequence.encode(
                            objects: TLVTag(0x06).encode(hex("04007F0007020203 02") + [cipher.rawValue]),
                            [0x02, 0x01, 0x01])))
            }
        }

        func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
            guard command.cla & 0x0C == 0x0C else { return try plain(command) }
            guard var current = session else { return ResponseAPDU(status: 0x6987) }
            current.count()
            let list = try TLVList(command.data, padding: [])
            let mac = try #require(list[0x8E])
            let header = current.cipher.padded([command.cla, command.ins, command.p1, command.p2])
            let objects = Array(command.data[..<mac.offset])
            guard current.mac(header + (objects.isEmpty ? [] : current.cipher.padded(objects))) == Array(mac.value)
            else {
                session = nil
                return ResponseAPDU(status: 0x6988)
            }
            let clear = list[0x87].map { current.crypt(Array($0.value.dropFirst()), encrypting: false) }
            let answer = try await respond(command.ins, clear.flatMap(current.cipher.unpadded) ?? [])
            current.count()
            var out: [UInt8] = []
            if !answer.data.isEmpty {
                out = TLVTag(0x87).encode(
                    [0x01] + current.crypt(current.cipher.padded(answer.data), encrypting: true))
            }
            out += TLVTag(0x99).encode([answer.status.sw1, answer.status.sw2])
            out += TLVTag(0x8E).encode(current.mac(current.cipher.padded(out)))
            session = next ?? current
            next = nil
            return ResponseAPDU(data: out, status: answer.status)
        }

        /// Basic Access Control (ICAO 9303-11, 4.3).
        private func plain(_ command: CommandAPDU) throws -> ResponseAPDU {
            switch command.ins {
            case 0xA4: return ResponseAPDU(status: .success)
            case 0x84: return ResponseAPDU(data: challenge, status: .success)
            case 0x82:
                let seed = Array(try BasicAccessControlTests.key.get().secret.prefix(16))
                let access = Session(.tripleDES, seed)
                let clear = try #require(
                    SessionCipher.tripleDES.cbc(
                        Array(command.data.prefix(32)), key: access.keys.encryption, encrypting: false))
                let half = [UInt8](repeating: 0x77, count: 16)
                let cryptogram = try #require(
                    SessionCipher.tripleDES.cbc(
                        challenge + clear[0..<8] + half, key: access.keys.encryption, encrypting: true))
                let mac = SessionCipher.tripleDES.mac(
                    SessionCipher.tripleDES.padded(cryptogram), key: access.keys.authentication)
                session = Session(
                    .tripleDES, zip(half, clear[16...]).map { $0 ^ $1 },
                    counter: Array(challenge.suffix(4) + clear[4..<8]))
                return ResponseAPDU(data: cryptogram + (mac ?? []), status: .success)
            default: return ResponseAPDU(status: 0x6D00)
            }
        }

        private func respond(_ ins: UInt8, _ data: [UInt8]) async throws -> ResponseAPDU {
            switch ins {
            case 0x88:
                try pki.write(isGenuine ? data : data + [0], to: "challenge")
                try await pki.openssl(["dgst", "-sha256", "-sign", "chip.key", "-out", "signature", "challenge"])
                return ResponseAPDU(data: try pki.read("signature"), status: .success)
            case 0x22:
                if let key = try TLVList(data, padding: [])[0x91] { try agree(Array(key.value)) }
                return ResponseAPDU(status: .success)
            case 0x86:
                let template = try #require(try TLVList(data, padding: []).first)
                try agree(Array(try #require(template.children[0x80]).value))
                return ResponseAPDU(data: [0x7C, 0x00], status: .success)
            default: return ResponseAPDU(status: 0x6A82)
            }
        }

        private func agree(_ key: [UInt8]) throws {
            let privateKey = isGenuine ? pair.privateKey : BigNumber([0x05])
            let element = try #require(group.agree(privateKey, key))
            next = Session(cipher, group.secret(of: element))
        }
    }

    @Test("A genuine chip proves it by both protocols, and goes on with new keys", arguments: SessionCipher.allCases)
    func genuine(_ cipher: SessionCipher) async throws {
        let card = try await Chip(cipher, isGenuine: true)
        let chip = TravelDocumentChip(over: card)
        try await chip.open(with: BasicAccessControlTests.key.get())
        try await expectEqual(chip.authenticateActively(publicKey: card.publicKey), .genuine)
        try await expectEqual(chip.authenticateChip(securityInfos: card.securityInfos), .genuine)
        // The session is another, and holds.
        try await expectEqual(chip.authenticateActively(publicKey: card.publicKey), .genuine)
        await #expect(throws: FileError.absent) { try await chip.read(.dataGroup(1)) }
    }

    @Test("A copy is found out by either", arguments: [SessionCipher.tripleDES, .aes128])
    func copy(_ cipher: SessionCipher) async throws {
        let card = try await Chip(cipher, isGenuine: false)
        let chip = TravelDocumentChip(over: card)
        try await chip.open(with: BasicAccessControlTests.key.get())
        try await expectEqual(chip.authenticateActively(publicKey: card.publicKey), .wrongSignature)
        try await expectEqual(chip.authenticateChip(securityInfos: card.securityInfos), .notGenuine)
        await #expect(throws: SecureMessagingError.self) { try await chip.read(.dataGroup(1)) }
    }
}
