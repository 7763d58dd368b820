package import CardEncryption
import EMVContactless
package import Foundation
import JWTKit
package import KioskKit
package import ProximityReader
import SmartCard
package import SmartCardSimulator
import Testing
package import Waiting
package import WalletPasses

/// A terminal with a virtual reader, and a payment service that does as it is told.
package struct KioskBench {
    package let device = SoftwareACR122U()
    package let reader: PaymentCardReader
    package let psp: ScriptedService
    package let service: TapToPayService
    private let clock: Clock
    private let folder: Folder

    /// Removed with the bench.
    private final class Folder: Sendable {
        let url: URL
        init(_ url: URL) { self.url = url }
        deinit { try? FileManager.default.removeItem(at: url) }
    }

    package init(
        options: PaymentCardReader.Options = .init(), script: [ScriptedService.Answer] = [], isPrepared: Bool = true,
        disk: PaymentJournal.Disk = .init(),
        configure: @Sendable (inout ProximityReaderSystem.Configuration) -> Void = { _ in }
    ) async throws {
        let clock = Clock()
        self.clock = clock
        psp = try ScriptedService(script, now: { clock.now })
        var configuration = try Self.configuration(device, psp)
        configuration.now = { clock.now }
        configure(&configuration)
        folder = Folder(configuration.folder)
        reader = PaymentCardReader(options: options, terminal: PaymentTerminal(try configuration.validated()))
        service = Self.service(psp, reader, disk: disk)
        if isPrepared { try await service.initialize() }
    }

    private static func service(
        _ psp: ScriptedService, _ reader: PaymentCardReader, settlingTime: Duration = .seconds(60),
        disk: PaymentJournal.Disk = .init(), decided: (@Sendable (UnsettledPayment, PaymentResult) async -> Void)? = nil
    ) -> TapToPayService {
        TapToPayService(
            psp: psp, reader: reader, pauses: [.milliseconds(1), .milliseconds(1)], reversalPause: .milliseconds(5),
            settlingTime: settlingTime, disk: disk, decided: decided)
    }

    /// What a next run of the program has, started.
    package func nextRun(
        settlingTime: Duration = .seconds(60),
        decided: (@Sendable (UnsettledPayment, PaymentResult) async -> Void)? = nil
    ) async throws -> TapToPayService {
        let service = Self.service(psp, reader, settlingTime: settlingTime, decided: decided)
        try await service.initialize()
        return service
    }

    package func readCard() async throws -> PaymentCardReadResult {
        try insert()
        return try await service.read(PaymentCardTransactionRequest(amount: 12.34, currencyCode: "EUR"))
    }

    package var journal: URL { reader.terminal.folder.appending(path: "payments") }
    package var entries: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: journal.path)) ?? []).sorted()
    }

    package static func configuration(
        _ device: SoftwareACR122U, _ psp: ScriptedService
    ) throws -> ProximityReaderSystem.Configuration {
        var configuration = ProximityReaderSystem.Configuration()
        configuration.reader = .reader(VirtualReader(device))
        configuration.answerTime = .seconds(120)
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
    package func insert(_ name: String = "visa") throws { insert(try #require(VirtualCards.named(name))) }

    package func insert(_ card: any VirtualCard) {
        device.insert(card)
        Task { [device, events = reader.events] in
            for await event in events {
                guard case .removeCard = event else { continue }
                return device.remove(card)
            }
        }
    }

    package struct Missing: Error {
        package init() {}
    }

    // MARK: Passes

    package static let passType = "pass.com.passkit.pksamples.nfcdemo"

    /// The merchant of the virtual phone's pass.
    package static func passes() throws -> PassConfiguration {
        // TEST: the published key that the pass of `phone-apple` is encrypted to (proxmark3).
        let digits = Array("3d1547f23cd78ad052a58860f1219e8fb791ec4dfe33769f5b9bfa627a656ca1")
        let number = stride(from: 0, to: digits.count, by: 2).compactMap {
            UInt8(String(digits[$0...($0 + 1)]), radix: 16)
        }
        let key = try #require(MerchantKey(number))
        return try PassConfiguration(merchants: [
            PassMerchant(id: passType, apple: .init(passTypeIdentifier: passType, keys: [key]))
        ])
    }

    /// A phone with a pass and a card, which answers nothing before it has heard what the terminal is for.
    package static func phone(_ settings: String = "screen closed") throws -> any VirtualCard {
        try CardFile(parsing: "variant phone-apple {\n\(settings)\n}").makeCard()
    }

    package func passTime(_ seconds: TimeInterval) { clock.advance(seconds) }

    /// Stands still unless it is moved, however busy the machine is.
    package final class Clock: @unchecked Sendable {
        private let lock = NSLock()
        private let start = Date()
        private var offset: TimeInterval = 0
        package var now: Date { lock.withLock { start.addingTimeInterval(offset) } }
        package func advance(_ seconds: TimeInterval) { lock.withLock { offset += seconds } }
    }
}

/// A payment service in this process.
package actor ScriptedService: PaymentServiceProvider {
    /// To one call that moves money.
    package enum Answer {
        case approved
        case declined
        /// It was done, and the answer is lost.
        case lost
        case refused
        /// It was done, and the answer is something else.
        case garbled
        /// Not before `release()`.
        case held
        /// It was done, and the answer does not say so.
        case flawed(Flaw)
    }

    /// Why an answer does not count.
    package enum Flaw: CaseIterable {
        case processing, requiresPaymentMethod, unknownStatus, anotherPayment, noPayment, anotherAmount, noAmount
        case anotherCurrency, noCurrency

        /// The answer to `call`, of the one that would count.
        package func result(_ call: Call) -> PaymentResult {
            let status: PaymentResult.Status =
                switch self {
                case .processing: .processing
                case .requiresPaymentMethod: .requiresPaymentMethod
                case .unknownStatus: .init(rawValue: "approved_later")
                default: .approved
                }
            return PaymentResult(
                id: "flawed", status: status,
                idempotencyKey: self == .noPayment ? nil : self == .anotherPayment ? "another" : call.key,
                amount: self == .noAmount ? nil : self == .anotherAmount ? call.amount + 1 : call.amount,
                currency: self == .noCurrency ? nil : self == .anotherCurrency ? "USD" : call.currency)
        }
    }

    package struct Call: Hashable {
        package let kind: String, amount: Decimal, currency: String, key: String
    }

    package nonisolated let cardDataKey: JWEPrivateKey
    package nonisolated var keySet: String { batches.keySet }
    private nonisolated let now: @Sendable () -> Date
    private var script: [Answer]
    package private(set) var calls: [Call] = []
    /// When a token was fetched, each time.
    package private(set) var fetches: [Time.Instant] = []
    package var tokens: Int { fetches.count }
    package private(set) var reversals: [String] = []
    private var tokenLifetime: TimeInterval = 3600
    private var results: [String: PaymentResult] = [:]
    private var failures = 0
    private var holdsReversals = false
    private var isReleased = false
    private var answersLookups = true
    private var holdsTokens = false
    private var waiters: [CheckedContinuation<Void, Never>] = []
    /// What takes batches, and signs reader tokens as well.
    package nonisolated let batches: BatchService

    /// - Parameter script: the answers in their order; after the last all is approved.
    package init(_ script: [Answer], now: @escaping @Sendable () -> Date = { Date() }) throws {
        self.script = script
        self.now = now
        batches = BatchService()
        cardDataKey = try JWEPrivateKey(generating: .ecdhES, keyID: "cards-1")
    }

    package func setTokenLifetime(_ seconds: TimeInterval) { tokenLifetime = seconds }

    /// From now on tokens are given after `release()`.
    package func holdTokens() { holdsTokens = true }

    package func fetchReaderToken() async throws -> String {
        fetches.append(Time.now)
        if holdsTokens, !isReleased { await withCheckedContinuation { waiters.append($0) } }
        let claims = Claims(
            iss: BatchService.issuer, aud: "terminals", iat: now().timeIntervalSince1970,
            exp: now().timeIntervalSince1970 + tokenLifetime, mid: "merchant-1",
            card_data_key: try JSONDecoder().decode([String: String].self, from: Data(cardDataKey.publicJWK.utf8)))
        let keys = await JWTKeyCollection().add(ecdsa: batches.signer, kid: "service-1")
        return try await keys.sign(claims, kid: "service-1", header: ["typ": "reader-token+jwt"])
    }

    package func processPayment(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> PaymentResult {
        try await answer(Call(kind: "payment", amount: amount, currency: currency, key: idempotencyKey))
    }

    package func processRefund(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> RefundResult {
        try await answer(Call(kind: "refund", amount: amount, currency: currency, key: idempotencyKey))
    }

    package func submitBatch(_ batch: Data, from reader: String, idempotencyKey: String) async throws -> BatchResult {
        try await batches.submitBatch(batch, from: reader, idempotencyKey: idempotencyKey)
    }

    package func result(for idempotencyKey: String) async throws -> PaymentResult? {
        guard answersLookups else { throw PaymentServiceError.noAnswer("not asked") }
        return results[idempotencyKey]
    }

    package func setLookups(_ areAnswered: Bool) { answersLookups = areAnswered }

    /// The next so many reversals are not answered.
    package func failReversals(_ count: Int) { failures = count }

    /// From now on reversals are answered after `release()`.
    package func holdReversals() { holdsReversals = true }

    package func reverse(idempotencyKey: String, amount: Decimal?, currency: String?) async throws {
        if holdsReversals, !isReleased { await withCheckedContinuation { waiters.append($0) } }
        guard failures == 0 else {
            failures -= 1
            throw PaymentServiceError.noAnswer("the line is dead")
        }
        reversals.append(idempotencyKey)
    }

    package func setScript(_ script: [Answer]) { self.script = script }

    /// What was decided about the payment that came last under a key; nil: nothing.
    package func setResult(_ status: PaymentResult.Status?, for key: String) {
        results[key] = calls.last { $0.key == key }.flatMap { call in status.map { Self.result($0, call) } }
    }

    package func setResult(_ flaw: Flaw, for key: String) {
        results[key] = calls.last { $0.key == key }.map(flaw.result)
    }

    private static func result(
        _ status: PaymentResult.Status, _ call: Call, number: Int = 1, message: String? = nil
    ) -> PaymentResult {
        PaymentResult(
            id: "payment-\(number)", status: status, idempotencyKey: call.key, amount: call.amount,
            currency: call.currency, responseCode: status == .approved ? "00" : "51", message: message, lastFour: "0010"
        )
    }

    package func release() {
        isReleased = true
        for waiter in waiters { waiter.resume() }
        waiters = []
    }

    private func answer(_ call: Call) async throws -> PaymentResult {
        calls.append(call)
        switch script.isEmpty ? .approved : script.removeFirst() {
        case .approved: return Self.result(.approved, call, number: calls.count)
        case .declined:
            return Self.result(.declined, call, number: calls.count, message: "Insufficient funds")
        case .lost: throw PaymentServiceError.noAnswer("the line is dead")
        case .refused: throw PaymentServiceError.refused(code: "merchant", message: "No such merchant.")
        case .garbled:
            return try JSONDecoder().decode(PaymentResult.self, from: Data("<html>".utf8))
        case .held:
            if !isReleased { await withCheckedContinuation { waiters.append($0) } }
            return results[call.key] ?? Self.result(.approved, call, number: calls.count)
        case .flawed(let flaw): return flaw.result(call)
        }
    }

    // swift-format-ignore: AlwaysUseLowerCamelCase
    private struct Claims: JWTPayload {
        let iss: String
        let aud: String
        let iat: Double
        let exp: Double
        let mid: String
        let card_data_key: [String: String]
        func verify(using algorithm: some JWTAlgorithm) throws {}
    }
}

/// What was thrown, by the name of its case; nil if nothing was.
package func thrown(isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Void) async -> String? {
    do {
        try await body()
        return nil
    } catch {
        return String("\(error)".prefix { $0 != "(" && $0 != "." })
    }
}
