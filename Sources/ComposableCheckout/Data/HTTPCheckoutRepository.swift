public import CardEncryption
public import Foundation
import Waiting

/// A session at a payment service with the protocol of psp-sandbox, over HTTP.
///
///     let checkout = try await HTTPCheckoutRepository.openSession(
///         at: URL(string: "http://127.0.0.1:8790")!, amount: 12.34, currency: "EUR")
///     let configuration = try await checkout.configuration()
///
/// Nothing in an answer is believed that contradicts the request: an answer about another session, amount or currency is
/// an error of the transport, after which the payment may have happened.
public struct HTTPCheckoutRepository: Sendable {
    /// The session's identifier.
    public let session: String
    private let connection: ServiceConnection
    private let pollInterval: Duration
    private let challengePatience: Duration

    /// Creates a client of a session that is open.
    ///
    /// - Parameters:
    ///   - address: the payment service: HTTPS, or HTTP on this machine.
    ///   - session: the session's identifier.
    ///   - patience: the longest wait for an answer.
    ///   - pollInterval: the time between two questions for the outcome of a challenge.
    ///   - challengePatience: the longest wait for the outcome of a challenge.
    /// - Throws: ``CheckoutError/configuration(_:)``.
    public init(
        address: URL, session: String, patience: Duration = .seconds(30), pollInterval: Duration = .seconds(1),
        challengePatience: Duration = .seconds(600)
    ) throws(CheckoutError) {
        guard Answer.isName(session) else { throw .configuration("the session's identifier is none") }
        connection = try ServiceConnection(address: address, patience: patience)
        self.session = session
        (self.pollInterval, self.challengePatience) = (pollInterval, challengePatience)
    }

    /// Opens a session.  If its answer is lost, open another: a session alone has no effect.
    ///
    /// - Parameters:
    ///   - address: the payment service: HTTPS, or HTTP on this machine.
    ///   - amount: in the currency's major unit.
    ///   - currency: an ISO 4217 code.
    ///   - country: the ISO 3166-1 alpha-2 code of the customer's country; nil: unknown.
    ///   - reference: the merchant's own name for the session; nil: none.
    ///   - patience: the longest wait for an answer.
    /// - Returns: the client of the session.
    public static func openSession(
        at address: URL, amount: Decimal, currency: String, country: String? = nil, reference: String? = nil,
        patience: Duration = .seconds(30)
    ) async throws(CheckoutError) -> HTTPCheckoutRepository {
        let connection = try ServiceConnection(address: address, patience: patience)
        let body = Self.body([
            ("amount", amount.description), ("currency", currency), ("country", country), ("reference", reference),
        ])
        let answer = try await connection.ask(
            .init(method: "POST", path: ["checkout-sessions"], body: body, isAboutPayment: false))
        let configuration = try Self.read(isAboutPayment: false) { try CheckoutConfiguration(answer) }
        guard configuration.amount == amount, configuration.currency == currency else {
            throw .transport(reason: "a session for another sum", mayHaveHappened: false)
        }
        return try HTTPCheckoutRepository(address: address, session: configuration.session, patience: patience)
    }

    /// Returns a JSON object of texts, with the billing address as an object of its own.
    private static func body(
        _ members: [(String, String?)], billing: [ComposableInputElementType: String] = [:]
    ) -> String {
        var object: [JSON.Text: JSON] = [:]
        for (name, value) in members { object[JSON.Text(name)] = value.map { .string(JSON.Text($0)) } }
        if !billing.isEmpty {
            let texts = billing.map { (JSON.Text($0.key.rawValue), JSON.string(JSON.Text($0.value))) }
            object["billing"] = .object(Dictionary(texts) { first, _ in first })
        }
        return JSON.object(object).written
    }

    /// Reads an answer.
    ///
    /// - Throws: ``CheckoutError/transport(reason:mayHaveHappened:)`` if it is malformed; errors of `body`.
    private static func read<Value>(isAboutPayment: Bool, _ body: () throws -> Value) throws(CheckoutError) -> Value {
        do {
            return try body()
        } catch let error as CheckoutError {
            throw error
        } catch {
            throw .transport(reason: "a malformed answer: \(error)", mayHaveHappened: isAboutPayment)
        }
    }

    /// - Throws: ``CheckoutError/configuration(_:)`` for a text that cannot be a header.
    private static func checkKey(_ key: String) throws(CheckoutError) {
        guard (1...255).contains(key.utf8.count), key.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw .configuration("an idempotency key has 1 to 255 printable ASCII characters")
        }
    }
}

extension HTTPCheckoutRepository: ConfigurationRepository, PaymentMethodRepository {
    public func configuration() async throws(CheckoutError) -> CheckoutConfiguration {
        let answer = try await connection.ask(
            .init(method: "GET", path: ["checkout-sessions", session], isAboutPayment: false))
        let configuration = try Self.read(isAboutPayment: false) { try CheckoutConfiguration(answer) }
        guard configuration.session == session else {
            throw .transport(reason: "an answer about another session", mayHaveHappened: false)
        }
        return configuration
    }

    public func paymentMethods() async throws(CheckoutError) -> [PaymentMethod] { try await configuration().methods }
}

extension HTTPCheckoutRepository: TokenizationRepository {
    public func tokenize(
        _ card: SealedCardData, idempotencyKey: String
    ) async throws(CheckoutError) -> PaymentToken {
        try Self.checkKey(idempotencyKey)
        guard case .jwe(let jwe) = card else { throw .configuration("the payment service takes cards as JWE only") }
        let body = Self.body([("session", session), ("cardData", jwe.text)])
        let answer = try await connection.ask(
            .init(method: "POST", path: ["checkout-tokens"], key: idempotencyKey, body: body, isAboutPayment: true))
        return try Self.read(isAboutPayment: true) {
            guard try answer.name("session") == session else {
                throw Answer.Malformed(description: "a token of another session")
            }
            return PaymentToken(
                id: try answer.name("token"),
                network: answer.has("network") ? CardNetwork(rawValue: try answer.name("network")) : nil,
                masked: try answer.masked("masked"))
        }
    }
}

extension HTTPCheckoutRepository: PaymentRepository {
    public func pay(
        _ request: PaymentRequest, idempotencyKey: String
    ) async throws(CheckoutError) -> PaymentResult {
        try Self.checkKey(idempotencyKey)
        guard request.session == session else { throw .configuration("the payment is for another session") }
        let body = Self.body(
            [
                ("session", session), ("method", request.method), ("token", request.token),
                ("voucher", request.voucher), ("network", request.network?.rawValue),
                ("amount", request.amount.description), ("currency", request.currency),
            ], billing: request.billing)
        let answer = try await connection.ask(
            .init(method: "POST", path: ["checkout-payments"], key: idempotencyKey, body: body, isAboutPayment: true))
        return try Self.read(isAboutPayment: true) {
            let payment = try PaymentAnswer(answer)
            try check(payment, key: idempotencyKey)
            let result = payment.result
            guard payment.method == request.method, result.amount == request.amount,
                result.currency == request.currency, result.token?.id == request.token
            else { throw Answer.Malformed(description: "a payment of another method, card, amount or currency") }
            return result
        }
    }

    /// - Parameter key: nil: any.
    private func check(_ payment: PaymentAnswer, key: String? = nil) throws(Answer.Malformed) {
        guard payment.session ?? session == session else {
            throw Answer.Malformed(description: "a payment of another session")
        }
        guard key ?? payment.idempotencyKey == payment.idempotencyKey else {
            throw Answer.Malformed(description: "a payment with another key")
        }
    }

    public func result(for idempotencyKey: String) async throws(CheckoutError) -> PaymentResult? {
        try Self.checkKey(idempotencyKey)
        let answer = try await connection.ask(
            .init(method: "GET", path: ["checkout-payments"], key: idempotencyKey, isAboutPayment: true))
        return try Self.read(isAboutPayment: true) {
            if answer.isNull("payment") { return nil }
            let payment = try PaymentAnswer(answer.object("payment"))
            try check(payment, key: idempotencyKey)
            return payment.result
        }
    }

    public func completeChallenge(of paymentID: String) async throws(CheckoutError) -> PaymentResult {
        guard Answer.isName(paymentID) else { throw .configuration("the payment's identifier is none") }
        let end = Time.now + challengePatience
        var pending: PaymentResult?
        while true {
            let answer = await poll(paymentID)
            switch answer {
            case .success(let result) where result.status != .pending: return result
            case .success(let result): pending = result
            // A network that fails for a moment does not end the customer's challenge.
            case .failure(.transport): break
            case .failure(let error): throw error
            }
            let isLast = Time.now >= end
            let isCanceled = (try? await Time.sleep(for: isLast ? .zero : pollInterval)) == nil
            guard isLast || isCanceled else { continue }
            if let pending { return pending }
            return try answer.get()
        }
    }

    private func poll(_ paymentID: String) async -> Result<PaymentResult, CheckoutError> {
        do throws(CheckoutError) {
            let answer = try await connection.ask(
                .init(method: "GET", path: ["checkout-payments", paymentID], isAboutPayment: true))
            return .success(
                try Self.read(isAboutPayment: true) {
                    let payment = try PaymentAnswer(answer)
                    try check(payment)
                    guard payment.result.paymentID == paymentID else {
                        throw Answer.Malformed(description: "another payment")
                    }
                    return payment.result
                })
        } catch {
            return .failure(error)
        }
    }
}
