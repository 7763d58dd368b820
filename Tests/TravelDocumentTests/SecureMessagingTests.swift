import SmartCard
import TestSupport
import Testing

@testable import SmartCardSimulator
@testable import TravelDocument

/// Responses that have the right MAC, made by the simulator's ciphers, which are written apart from the reader's, and that
/// are wrong otherwise (ICAO 9303-11, 9.8.5).
@Suite struct SecureMessagingTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let error: SecureMessagingError
        /// The bytes of a response without its status word, 9000.
        let response: @Sendable (Chip) throws -> [UInt8]
    }

    /// The chip's side of a session after one command.
    struct Chip: Sendable {
        let session: PassportSession

        init(_ cipher: PassportCipher, _ secret: [UInt8]) throws {
            var session = try #require(PassportSession(cipher, secret: secret))
            for _ in 1...2 { session.count() }
            self.session = session
        }

        /// Blocks that are encrypted as they are.
        func encrypted(_ blocks: [UInt8]) throws -> [UInt8] {
            try #require(session.crypt(blocks, encrypting: true))
        }

        /// Object 87 with the padding indicator.
        func object87(_ data: [UInt8], indicator: [UInt8] = [0x01]) throws -> [UInt8] {
            TLVTag(0x87).encode(indicator + (try encrypted(session.cipher.padded(data))))
        }

        func object85(_ data: [UInt8]) throws -> [UInt8] {
            TLVTag(0x85).encode(try encrypted(session.cipher.padded(data)))
        }

        /// Object 8E over these.
        func mac(_ objects: [UInt8]) throws -> [UInt8] {
            TLVTag(0x8E).encode(try #require(session.mac(session.cipher.padded(objects))))
        }

        func authenticated(_ objects: [UInt8]) throws -> [UInt8] { objects + (try mac(objects)) }
    }

    private static let status: [UInt8] = [0x99, 0x02, 0x90, 0x00]
    private static let data: [UInt8] = [0x60, 0x14, 0x5F, 0x01]

    static let cases = [
        Case(testDescription: "another status outside", error: .otherStatus) { chip in
            try chip.authenticated(chip.object87(data) + [0x99, 0x02, 0x62, 0x82])
        },
        Case(testDescription: "another second byte of the status", error: .otherStatus) { chip in
            try chip.authenticated([0x99, 0x02, 0x90, 0x01])
        },
        Case(testDescription: "a status of one byte", error: .otherStatus) {
            try $0.authenticated([0x99, 0x01, 0x90])
        },
        // Only a chip that has ended the session leaves it out, and then the MAC, too.
        Case(testDescription: "no status", error: .otherStatus) { try $0.authenticated($0.object87(data)) },
        Case(testDescription: "no MAC", error: .notAuthenticated) { try $0.object87(data) + status },
        Case(testDescription: "an empty MAC", error: .notAuthenticated) { try $0.object87(data) + status + [0x8E, 0] },
        Case(testDescription: "half of a MAC", error: .notAuthenticated) { chip in
            let objects = try chip.object87(data) + status
            return objects + TLVTag(0x8E).encode(Array(try chip.mac(objects)[2..<6]))
        },
        Case(testDescription: "the MAC first", error: .notAuthenticated) { chip in
            let objects = try chip.object87(data) + status
            return try chip.mac(objects) + objects
        },
        Case(testDescription: "the status after the MAC of the rest", error: .notAuthenticated) { chip in
            try chip.authenticated(chip.object87(data)) + status
        },
        Case(testDescription: "no padding indicator", error: .malformed) { chip in
            try chip.authenticated(chip.object87(data, indicator: []) + status)
        },
        Case(testDescription: "another padding indicator", error: .malformed) { chip in
            try chip.authenticated(chip.object87(data, indicator: [0x02]) + status)
        },
        Case(testDescription: "a padding indicator alone", error: .malformed) { chip in
            try chip.authenticated([0x87, 0x01, 0x01] + status)
        },
        Case(testDescription: "an empty cryptogram", error: .malformed) {
            try $0.authenticated([0x87, 0x00] + status)
        },
        Case(testDescription: "part of a block", error: .malformed) { chip in
            try chip.authenticated([0x87, 0x05, 0x01, 1, 2, 3, 4] + status)
        },
        Case(testDescription: "both cryptograms", error: .malformed) { chip in
            try chip.authenticated(chip.object87(data) + chip.object85(data) + status)
        },
        Case(testDescription: "a cryptogram twice", error: .malformed) { chip in
            try chip.authenticated(chip.object87(data) + chip.object87(data) + status)
        },
        Case(testDescription: "a status twice", error: .malformed) { try $0.authenticated(status + status) },
        Case(testDescription: "a plain object", error: .malformed) { chip in
            try chip.authenticated([0x81, 0x02, 0x01, 0x02] + status)
        },
        Case(testDescription: "padding of zeros", error: .malformed) { chip in
            let blocks = [UInt8](repeating: 0, count: chip.session.cipher.blockLength)
            return try chip.authenticated(TLVTag(0x87).encode([0x01] + (try chip.encrypted(blocks))) + status)
        },
        Case(testDescription: "padding of another mark", error: .malformed) { chip in
            let blocks = [0x60] + [UInt8](repeating: 0x40, count: chip.session.cipher.blockLength - 1)
            return try chip.authenticated(TLVTag(0x87).encode([0x01] + (try chip.encrypted(blocks))) + status)
        },
        Case(testDescription: "padding of more than a block", error: .malformed) { chip in
            let blocks = [0x80] + [UInt8](repeating: 0, count: 2 * chip.session.cipher.blockLength - 1)
            return try chip.authenticated(TLVTag(0x87).encode([0x01] + (try chip.encrypted(blocks))) + status)
        },
    ]

    private static let ciphers: [(SessionCipher, PassportCipher)] = [
        (.tripleDES, .tripleDES), (.aes128, .aes128), (.aes192, .aes192), (.aes256, .aes256),
    ]
    private static let secret: [UInt8] = Array(1...16)

    @Test("An authentic response that breaks a rule ends the session for good", arguments: cases)
    func fatal(_ test: Case) throws {
        for (cipher, chipCipher) in Self.ciphers {
            var messaging = SecureMessaging(cipher, secret: Self.secret)
            let command = try CommandAPDU(cla: 0, ins: 0xB0, p1: 0x9E, p2: 0, ne: 0x10)
            _ = try messaging.protect(command)
            let bytes = try test.response(Chip(chipCipher, Self.secret))
            #expect(throws: test.error) { try messaging.unprotect(ResponseAPDU(data: bytes, status: .success)) }
            // Neither a command nor a right response is taken any more.
            #expect(throws: test.error) { try messaging.protect(command) }
            let right = try Chip(chipCipher, Self.secret)
            let objects = try right.object87(Self.data) + Self.status
            #expect(throws: test.error) {
                try messaging.unprotect(ResponseAPDU(data: try right.authenticated(objects), status: .success))
            }
        }
    }

    @Test("A response with data, in either object, and one without are taken")
    func right() throws {
        for (cipher, chipCipher) in Self.ciphers {
            let chip = try Chip(chipCipher, Self.secret)
            for (objects, data) in [
                (try chip.object87(Self.data), Self.data), (try chip.object85(Self.data), Self.data), ([], []),
            ] {
                var messaging = SecureMessaging(cipher, secret: Self.secret)
                _ = try messaging.protect(try CommandAPDU(cla: 0, ins: 0xB0, p1: 0x9E, p2: 0, ne: 0x10))
                let bytes = try chip.authenticated(objects + Self.status)
                let response = try messaging.unprotect(ResponseAPDU(data: bytes, status: .success))
                expectEqual(response, ResponseAPDU(data: data, status: .success))
            }
        }
    }
}
