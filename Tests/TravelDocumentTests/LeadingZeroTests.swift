import SmartCard
import Synchronization
import TestSupport
import Testing

@testable import TravelDocument

/// Secrets that begin with a zero, as one in 256 does: found from a fixed beginning, so that each run has the same.
@Suite struct LeadingZeroTests {
    /// Random numbers that are the same in each run.
    struct FixedRandomSource: RandomSource {
        private var count: UInt8 = 0
        private var block: [UInt8] = []

        mutating func bytes(_ count: Int) -> [UInt8] {
            var bytes: [UInt8] = []
            while bytes.count < count {
                self.count &+= 1
                block = TravelDocument.Digest.sha256.hash(block + [self.count])
                bytes += block
            }
            return Array(bytes.prefix(count))
        }
    }

    /// A key pair whose secret with this public key begins with a zero.
    static func pair(
        _ group: any KeyAgreement, _ publicKey: [UInt8], _ random: inout FixedRandomSource
    ) throws -> (pair: KeyPair, element: [UInt8]) {
        for _ in 0..<8000 {
            let pair = try #require(group.makeKeyPair(&random))
            let element = try #require(group.agree(pair.privateKey, publicKey))
            if group.secret(of: element).first == 0 { return (pair, element) }
        }
        throw AccessKeyError.digits
    }

    @Test("A secret has the length of the group's numbers, whatever it begins with", arguments: [(12, 32), (0, 128)])
    func lengths(_ number: Int, _ length: Int) throws {
        let group = try #require(StandardizedDomainParameters.group(number))
        var random = FixedRandomSource()
        let chip = try #require(group.makeKeyPair(&random))
        let (pair, element) = try Self.pair(group, chip.publicKey, &random)
        let secret = group.secret(of: element)
        #expect(secret.count == length && secret.first == 0)
        expectEqual(group.agree(chip.privateKey, pair.publicKey).map(group.secret), secret)
    }

    // MARK: PACE once more

    private static let example = PACETests.dhGeneric

    /// The private key of the reader whose secret with the example's chip begins with a zero.
    private static func shortKey() throws -> String {
        let group = try #require(StandardizedDomainParameters.group(0))
        let mappingKey = try hex(example.mappingKey ?? "")
        let shared = try #require(group.agree(BigNumber(try hex(example.random[0])), mappingKey))
        let nonce = try #require(
            SessionCipher.aes128.cbc(hex(example.nonce), key: hex(example.passwordKey), encrypting: false))
        let mapped = try #require(group.mapped(nonce, with: shared))
        var random = FixedRandomSource()
        let key = try pair(mapped, hex(example.agreementKey), &random).pair.privateKey
        return try #require(key.bytes(20)).hex
    }

    /// What the example's chip says, with this at the end.
    private static func responses(last: String) throws -> [String] {
        let template = { (tag: TLVTag, value: String) in TLVTag(0x7C).encode(tag.encode(try hex(value))).hex + "9000" }
        return [
            "9000", try template(0x80, example.nonce), try template(0x82, example.mappingKey ?? ""),
            try template(0x84, example.agreementKey), last,
        ]
    }

    @Test("A chip that refuses the token of such a secret is asked again, and no other is")
    func startAgain() throws {
        let keys = Self.example.random
        func run(_ random: [String]) throws -> PACE {
            var access = try #require(
                PACE(
                    Self.example.info, .machineReadableZone, passwordKey: hex(Self.example.passwordKey),
                    random: GivenRandomSource(random)))
            var step = access.next(nil)
            for response in try Self.responses(last: "6300") { step = access.next(try ResponseAPDU(hex(response))) }
            guard case .refused(.wrongKey(nil)) = step else { throw AccessKeyError.digits }
            return access
        }
        var other = try run(keys)
        if other.startAgain() != nil { Issue.record("asked again") }
        var access = try run([keys[0], try Self.shortKey()] + keys)
        guard var step = access.startAgain() else { throw AccessKeyError.digits }
        let last = TLVTag(0x7C).encode(try hex(Self.example.last)).hex + "9000"
        for response in try Self.responses(last: last) { step = access.next(try ResponseAPDU(hex(response))) }
        #expect(step.isEstablished)
    }

    /// Answers from a list, and counts resets.
    private final class Script: CardConnection {
        let atr = ATR([])
        let transmissionProtocol = TransmissionProtocol.t1
        private let state: Mutex<(responses: ArraySlice<String>, resets: [Int])>

        init(_ responses: [String]) { state = Mutex((responses[...], [])) }

        /// The responses that were left at each reset.
        var resets: [Int] { state.withLock { $0.resets } }
        var isDone: Bool { state.withLock { $0.responses.isEmpty } }

        func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
            try ResponseAPDU(hex(state.withLock { $0.responses.popFirst() } ?? "6F00"))
        }
        func reset() async throws { state.withLock { $0.resets.append($0.responses.count) } }
        func disconnect(_ disposition: CardDisposition) async {}
    }

    @Test("The chip is reset before it is asked again")
    func reset() async throws {
        let keys = Self.example.random
        // EF.CardAccess with DH-GM, AES-128 and number 0.
        let access = "31143012060A04007F00070202040102020102020100" + "9000"
        let last = TLVTag(0x7C).encode(try hex(Self.example.last)).hex + "9000"
        let script = Script(
            try [access] + Self.responses(last: "6300") + Self.responses(last: last) + ["6A82"])
        let chip = TravelDocumentChip(
            over: script, connection: script,
            random: GivenRandomSource([keys[0], try Self.shortKey()] + keys))
        // The example ends with the session.
        await #expect(throws: SecureMessagingError.ended(0x6A82)) { try await chip.open(with: PACETests.key.get()) }
        #expect(script.isDone && script.resets == [6])
    }
}
