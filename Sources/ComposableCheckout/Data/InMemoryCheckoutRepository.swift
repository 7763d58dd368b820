public import CardEncryption
public import Foundation
import SmartCard

/// A payment service in this process, for tests and demonstrations.  No money moves.
///
///     let checkout = try InMemoryCheckoutRepository(session: "s", amount: 12.34, currency: "EUR")
///     await checkout.setDecisions { $0.amount > 100 ? .decline("Too much") : .approve }
///     await checkout.failNext(.pay, afterEffect: true)    // the next answer is lost
///
/// Cards are sealed for a key of its own, which it has in memory: do not enter real ones.
public actor InMemoryCheckoutRepository {
    /// The decision about a payment.
    public enum Decision: Hashable, Sendable {
        case approve
        /// - Parameter message: for a person.
        case decline(_ message: String)
        /// Pending until ``InMemoryCheckoutRepository/answerChallenge(of:passed:)``.
        case challenge
    }

    /// A request that can be made to fail.
    public enum Step: Hashable, Sendable, CaseIterable {
        case configuration
        case tokenize
        case pay
        case result
        case completeChallenge
    }

    private let session: CheckoutConfiguration
    private let key: JWEPrivateKey
    private var decide: @Sendable (PaymentRequest) -> Decision = { _ in .approve }
    private var failures: [Step: [Bool]] = [:]
    private var tokens: [String: PaymentToken] = [:]
    private var entries: [String: Booking] = [:]
    /// The keys of the payments, the first first.
    private var order: [String] = []

    private struct Booking {
        let request: PaymentRequest
        var result: PaymentResult
    }

    /// Creates a service with one session.
    ///
    /// - Parameters:
    ///   - session: the session's identifier.
    ///   - amount: in the currency's major unit.
    ///   - currency: an ISO 4217 code.
    ///   - country: the ISO 3166-1 alpha-2 code of the customer's country; nil: unknown.
    ///   - methods: nil: tap, card and voucher.
    ///   - card: the rules for cards entered by hand, whose ``CardConfiguration/recipient`` is replaced with its own key;
    ///     nil: the usual fields.
    /// - Throws: `JWEError`.
    public init(
        session: String, amount: Decimal, currency: String, country: String? = nil, methods: [PaymentMethod]? = nil,
        card: CardConfiguration? = nil
    ) throws(JWEError) {
        key = try JWEPrivateKey(generating: .ecdhES, keyID: "in-memory")
        var card = card ?? CardConfiguration(recipient: "")
        card.recipient = key.publicJWK
        let standard = [PaymentMethod.Kind.tap, .card, .voucher].map { PaymentMethod(id: $0.rawValue, kind: $0) }
        self.session = CheckoutConfiguration(
            session: session, amount: amount, currency: currency, country: country, methods: methods ?? standard,
            card: card)
    }

    /// The results so far, the first first.
    public var payments: [PaymentResult] { order.compactMap { entries[$0]?.result } }

    /// Replaces the rule by which payments are decided.
    public func setDecisions(_ decide: @escaping @Sendable (PaymentRequest) -> Decision) { self.decide = decide }

    /// Makes the next request of a kind fail; several failures follow one another.
    ///
    /// - Parameters:
    ///   - step: the kind.
    ///   - afterEffect: true: it is carried out, and its answer is lost.
    public func failNext(_ step: Step, afterEffect: Bool) { failures[step, default: []].append(afterEffect) }

    /// Meets the challenge of a payment, as the customer would at their bank.
    ///
    /// - Parameters:
    ///   - paymentID: ``PaymentResult/paymentID``.
    ///   - passed: true if they confirm the payment.
    public func answerChallenge(of paymentID: String, passed: Bool) {
        guard let key = order.first(where: { entries[$0]?.result.paymentID == paymentID }),
            entries[key]?.result.status == .pending
        else { return }
        entries[key]?.result.status = passed ? .success : .failed
        entries[key]?.result.challenge = nil
        entries[key]?.result.errorMessage = passed ? nil : "Authentication failed"
    }

    private func perform<Value>(
        _ step: Step, _ body: () throws(CheckoutError) -> Value
    ) throws(CheckoutError) -> Value {
        guard let isAfterEffect = failures[step]?.first else { return try body() }
        failures[step]?.removeFirst()
        guard isAfterEffect else { throw .transport(reason: "a test's failure", mayHaveHappened: false) }
        _ = try body()
        throw .transport(reason: "a test's lost answer", mayHaveHappened: true)
    }
}

extension InMemoryCheckoutRepository: ConfigurationRepository, PaymentMethodRepository {
    public func configuration() async throws(CheckoutError) -> CheckoutConfiguration {
        try perform(.configuration) { () throws(CheckoutError) in session }
    }

    public func paymentMethods() async throws(CheckoutError) -> [PaymentMethod] { try await configuration().methods }
}

extension InMemoryCheckoutRepository: TokenizationRepository {
    public func tokenize(
        _ card: SealedCardData, idempotencyKey: String
    ) async throws(CheckoutError) -> PaymentToken {
        try perform(.tokenize) { () throws(CheckoutError) in
            if let known = tokens[idempotencyKey] { return known }
            guard case .jwe(let jwe) = card, let facts = try? key.open(jwe, Self.facts) else {
                throw .refused(code: "card_data", message: "The card data cannot be opened.")
            }
            let token = PaymentToken(id: "token-\(tokens.count + 1)", network: facts.network, masked: facts.masked)
            tokens[idempotencyKey] = token
            return token
        }
    }

    private static func facts(_ bytes: UnsafeRawBufferPointer) -> (network: CardNetwork?, masked: String)? {
        guard let number = try? JSON.object(bytes)["number"]?.text?.string.utf8,
            number.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        let digits = number.map { $0 - 0x30 }
        let issuer = IssuerNetwork.all.max { ($0.specificity(digits) ?? 0) < ($1.specificity(digits) ?? 0) }
        let network = issuer.flatMap { $0.issues(digits) ? CardNetwork(rawValue: $0.id) : nil }
        return (network, SensitiveData.truncated(number))
    }
}

extension InMemoryCheckoutRepository: PaymentRepository {
    public func pay(
        _ request: PaymentRequest, idempotencyKey: String
    ) async throws(CheckoutError) -> PaymentResult {
        try perform(.pay) { () throws(CheckoutError) in
            if let known = entries[idempotencyKey] {
                guard known.request == request else {
                    throw .refused(code: "idempotency_key_reused", message: "The key came with another request.")
                }
                return known.result
            }
            return try book(request, idempotencyKey)
        }
    }

    private func book(_ request: PaymentRequest, _ key: String) throws(CheckoutError) -> PaymentResult {
        if let reason = refusal(of: request) { throw .refused(code: reason.code, message: reason.message) }
        let kind = session.methods.first { $0.id == request.method }?.kind
        let token = tokens.values.first { $0.id == request.token }
        let number = order.count + 1
        var result = PaymentResult(
            paymentID: "payment-\(number)", status: .success, token: token, amount: request.amount,
            currency: request.currency, method: kind ?? .card)
        switch decide(request) {
        case .approve: break
        case .decline(let message): (result.status, result.errorMessage) = (.failed, message)
        case .challenge:
            (result.status, result.challenge) = (.pending, URL(string: "https://bank.example/challenges/\(number)"))
        }
        entries[key] = Booking(request: request, result: result)
        order.append(key)
        return result
    }

    private func refusal(of request: PaymentRequest) -> (code: String, message: String)? {
        guard request.session == session.session else { return ("unknown_session", "There is no such session.") }
        guard let method = session.methods.first(where: { $0.id == request.method }) else {
            return ("unknown_method", "The session has no such method.")
        }
        let token = tokens.values.first { $0.id == request.token }
        guard method.kind != .card || token != nil else { return ("unknown_token", "There is no such token.") }
        guard payments.allSatisfy({ $0.status == .failed }) else { return ("already_paid", "The session is paid.") }
        let surcharge = method.surcharge(for: request.network ?? token?.network)
        guard request.amount == session.amount + surcharge, request.currency == session.currency else {
            return ("wrong_amount", "The amount is not the session's with its surcharge.")
        }
        return nil
    }

    public func result(for idempotencyKey: String) async throws(CheckoutError) -> PaymentResult? {
        try perform(.result) { () throws(CheckoutError) in entries[idempotencyKey]?.result }
    }

    /// Returns the result, pending or not; it does not wait.
    public func completeChallenge(of paymentID: String) async throws(CheckoutError) -> PaymentResult {
        try perform(.completeChallenge) { () throws(CheckoutError) in
            guard let result = payments.first(where: { $0.paymentID == paymentID }) else {
                throw .refused(code: "unknown_payment", message: "There is no such payment.")
            }
            return result
        }
    }
}
