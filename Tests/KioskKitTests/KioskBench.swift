import CardEncryption
import EMVContactless
import Foundation
import JWTKit
import KioskKit
import ProximityReader
import SmartCard
import SmartCardSimulator
import Testing

/// A terminal with a virtual reader, and a payment service that does as it is told.
struct KioskBench {
    let device = SoftwareACR122U()
    let reader: PaymentCardReader
    let psp: ScriptedService
    let service: TapToPayService
    private let clock: Clock

    init(
        options: PaymentCardReader.Options = .init(), script: [ScriptedService.Answer] = [], isPrepared: Bool = true,
        configure: (inout ProximityReaderSystem.Configuration) -> Void = { _ in }
    ) async throws {
        let clock = Clock()
        self.clock = clock
        psp = try ScriptedService(script, now: { clock.now })
        var configuration = try Self.configuration(device, psp)
        configuration.now = { clock.now }
        configure(&configuration)
        reader = PaymentCardReader(options: options, terminal: PaymentTerminal(configuration))
        service = TapToPayService(psp: psp, reader: reader, pauses: [.milliseconds(1), .milliseconds(1)])
        if isPrepared { try await service.initialize() }
    }

    static func configuration(
        _ device: SoftwareACR122U, _ psp: ScriptedService
    ) throws -> ProximityReaderSystem.Configuration {
        var configuration = ProximityReaderSystem.Configuration()
        configuration.reader = .reader(VirtualReader(device))
        configuration.folder = FileManager.default.temporaryDirectory.appending(path: "kiosk-\(UUID().uuidString)")
        configuration.tokenKeys = psp.keySet
        for key in VirtualCards.certificationAuthorityKeys {
            configuration.certificationAuthorityKeys.insert(
                try CAPublicKey(
                    environment: .test, rid: key.rid, index: key.index, modulus: key.modulus, exponent: key.exponent,
                    checksum: key.checksum, expiration: CalendarDate(packed: key.expires)))
        }
        return configuration
    }

    /// Puts a card on the reader; it is taken away when the reader says so.
    func insert(_ name: String = "visa") throws {
        let card = try #require(VirtualCards.named(name))
        device.insert(card)
        Task { [device, events = reader.events] in
            for await event in events {
                guard case .removeCard = event else { continue }
                return device.remove(card)
            }
        }
    }

    func passTime(_ seconds: TimeInterval) { clock.advance(seconds) }

    /// Stands still unless it is moved, however busy the machine is.
    final class Clock: @unchecked Sendable {
        private let lock = NSLock()
        private let start = Date()
        private var offset: TimeInterval = 0
        var now: Date { lock.withLock { start.addingTimeInterval(offset) } }
        func advance(_ seconds: TimeInterval) { lock.withLock { offset += seconds } }
    }
}

/// A payment service in this process.
actor ScriptedService: PaymentServiceProvider {
    /// To one call that moves money.
    enum Answer {
        case approved
        case declined
        /// It was done, and the answer is lost.
        case lost
        case refused
        /// Not before somebody says so.
        case held
    }

    struct Call: Hashable {
        let kind: String, amount: Decimal, currency: String, key: String
    }

    nonisolated let keySet: String
    nonisolated let cardDataKey: JWEPrivateKey
    private nonisolated let signer: ES256PrivateKey
    private nonisolated let now: @Sendable () -> Date
    private var script: [Answer]
    private(set) var calls: [Call] = []
    private(set) var tokens = 0
    private var tokenLifetime: TimeInterval = 3600

    /// - Parameter script: the answers in their order; after the last all is approved.
    init(_ script: [Answer], now: @escaping @Sendable () -> Date = { Date() }) throws {
        self.script = script
        self.now = now
        let signer = ES256PrivateKey()
        self.signer = signer
        cardDataKey = try JWEPrivateKey(generating: .ecdhES, keyID: "cards-1")
        func url(_ text: String?) -> String {
            (text ?? "").replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        }
        let (x, y) = (url(signer.parameters?.x), url(signer.parameters?.y))
        keySet = #"{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","kid":"service-1","x":"\#(x)","y":"\#(y)"}]}"#
    }

    func setTokenLifetime(_ seconds: TimeInterval) { tokenLifetime = seconds }

    func fetchReaderToken() async throws -> String {
        tokens += 1
        let claims = Claims(
            iss: "https://payments.example", exp: now().timeIntervalSince1970 + tokenLifetime, mid: "merchant-1",
            card_data_key: try JSONDecoder().decode([String: String].self, from: Data(cardDataKey.publicJWK.utf8)))
        let keys = await JWTKeyCollection().add(ecdsa: signer, kid: "service-1")
        return try await keys.sign(claims, kid: "service-1")
    }

    func processPayment(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> PaymentResult {
        try await answer(Call(kind: "payment", amount: amount, currency: currency, key: idempotencyKey))
    }

    func processRefund(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> RefundResult {
        try await answer(Call(kind: "refund", amount: amount, currency: currency, key: idempotencyKey))
    }

    func submitBatch(_ batch: Data, idempotencyKey: String) async throws -> String {
        calls.append(Call(kind: "batch", amount: 0, currency: "", key: idempotencyKey))
        return "deletion-token"
    }

    private func answer(_ call: Call) async throws -> PaymentResult {
        calls.append(call)
        switch script.isEmpty ? .approved : script.removeFirst() {
        case .approved: return PaymentResult(id: "payment-\(calls.count)", status: .approved, responseCode: "00")
        case .declined:
            return PaymentResult(
                id: "payment-\(calls.count)", status: .declined, responseCode: "51", message: "Insufficient funds")
        case .lost: throw PaymentServiceError.noAnswer("the line is dead")
        case .refused: throw PaymentServiceError.refused(code: "merchant", message: "No such merchant.")
        case .held:
            try await Task.sleep(for: .seconds(3600))
            throw PaymentServiceError.noAnswer("held")
        }
    }

    // swift-format-ignore: AlwaysUseLowerCamelCase
    private struct Claims: JWTPayload {
        let iss: String
        let exp: Double
        let mid: String
        let card_data_key: [String: String]
        func verify(using algorithm: some JWTAlgorithm) throws {}
    }
}

/// What was thrown, by the name of its case; nil if nothing was.
func thrown(isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Void) async -> String? {
    do {
        try await body()
        return nil
    } catch {
        return String("\(error)".prefix { $0 != "(" && $0 != "." })
    }
}

/// Asks until `isTrue`, for ten seconds at most.
func wait(
    for what: String, isolation: isolated (any Actor)? = #isolation, until isTrue: () async -> Bool
) async throws {
    for _ in 0..<2_000 {
        if await isTrue() { return }
        try await Task.sleep(for: .milliseconds(5))
    }
    Issue.record("no \(what)")
}
