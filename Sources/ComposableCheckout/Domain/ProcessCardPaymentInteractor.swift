import CardEncryption
import FoundationEssentials
import Logging
import Waiting

private let logger = Logger(label: "ComposableCheckout")

/// Fetches the methods by which a session can be paid.
public struct GetPaymentMethodsInteractor: Sendable {
    private let methods: any PaymentMethodRepository

    public init(_ methods: any PaymentMethodRepository) { self.methods = methods }

    /// Returns the methods, each once.
    public func callAsFunction() async throws(CheckoutError) -> [PaymentMethod] {
        var seen: Set<String> = []
        return try await methods.paymentMethods().filter { seen.insert($0.id).inserted }
    }
}

/// Requests a payment until it is known what became of it.
///
/// The idempotency key is the same for each repetition.  After a lost answer the payment service is asked for the payment
/// by its key, and only if it knows of none the request is repeated.
public struct PaymentSettlement: Sendable {
    private let payments: any PaymentRepository
    private let pauses: [Duration]

    /// - Parameters:
    ///   - payments: the payment service.
    ///   - pauses: the pauses before further attempts.
    public init(
        _ payments: any PaymentRepository,
        pauses: [Duration] = [.milliseconds(500), .seconds(2), .seconds(5)]
    ) {
        (self.payments, self.pauses) = (payments, pauses)
    }

    /// Requests a payment.
    ///
    /// - Parameters:
    ///   - request: the request, the same whenever it is made with `key`.
    ///   - method: the kind that a result which is not known has.
    ///   - key: the idempotency key.
    ///   - wasRequested: true if the payment was requested before and its result is not known: it is asked for first.
    /// - Returns: the result; ``PaymentResult/Status/unknown`` if the request may have had its effect and no attempt found
    ///   out.
    /// - Throws: ``CheckoutError`` if nothing happened.
    public func settle(
        _ request: PaymentRequest, method: PaymentMethod.Kind, key: String, wasRequested: Bool = false
    ) async throws(CheckoutError) -> PaymentResult {
        var mayHaveHappened = wasRequested
        var reason = CheckoutError.transport(reason: "the task was canceled", mayHaveHappened: false)
        for attempt in 0...pauses.count {
            if attempt > 0 {
                do { try await Time.sleep(for: pauses[attempt - 1]) } catch { break }
            }
            do throws(CheckoutError) {
                if mayHaveHappened, let known = try await payments.result(for: key) {
                    if let result = about(request, known), result.status != .unknown { return result }
                    continue
                }
                guard !Task.isCancelled || mayHaveHappened else { break }
                let result = try await payments.pay(request, idempotencyKey: key)
                if let result = about(request, result), result.status != .unknown { return result }
                mayHaveHappened = true
            } catch {
                logger.warning("a payment was not settled at once: \(error)")
                guard case .transport(_, let may) = error else {
                    // A repetition may be refused because of the request whose answer was lost.
                    guard mayHaveHappened else { throw error }
                    do throws(CheckoutError) {
                        guard let known = try await payments.result(for: key) else { throw error }
                        if let result = about(request, known), result.status != .unknown { return result }
                    } catch {
                        guard case .transport = error else { throw error }
                    }
                    continue
                }
                (reason, mayHaveHappened) = (error, mayHaveHappened || may)
            }
        }
        guard mayHaveHappened else { throw reason }
        return PaymentResult(
            paymentID: "", status: .unknown, amount: request.amount, currency: request.currency, method: method)
    }

    /// Waits for the decision on a payment without a challenge that was pending.
    ///
    /// - Returns: the result, still pending if the time is over.
    public func decision(
        on pending: PaymentResult, _ request: PaymentRequest, key: String
    ) async -> PaymentResult {
        var result = pending
        for pause in pauses where result.status == .pending && result.challenge == nil {
            do { try await Time.sleep(for: pause) } catch { break }
            if let known = try? await payments.result(for: key), let next = about(request, known) { result = next }
        }
        return result
    }

    /// Waits until the customer has met a challenge.
    public func challenge(_ paymentID: String) async throws(CheckoutError) -> PaymentResult {
        try await payments.completeChallenge(of: paymentID)
    }

    /// Returns a result that is about the request: of its amount and currency.
    private func about(_ request: PaymentRequest, _ result: PaymentResult) -> PaymentResult? {
        let isAbout = result.amount == request.amount && result.currency == request.currency
        if !isAbout { logger.error("a result is not about the payment: \(result.amount) \(result.currency)") }
        return isAbout ? result : nil
    }
}

/// Pays with a card that the customer entered.
public struct ProcessCardPaymentInteractor: Sendable {
    private let tokens: any TokenizationRepository
    private let pauses: [Duration]

    /// - Parameters:
    ///   - tokens: exchanges cards for tokens.
    ///   - pauses: the pauses before further attempts to get a token.
    public init(
        _ tokens: any TokenizationRepository, pauses: [Duration] = [.milliseconds(500), .seconds(2), .seconds(5)]
    ) {
        (self.tokens, self.pauses) = (tokens, pauses)
    }

    /// Seals a card and exchanges it for a token.
    ///
    /// - Parameters:
    ///   - card: the card as the customer entered it.
    ///   - recipient: the payment service's public key, a JWK as text.
    ///   - key: the idempotency key, not that of the payment.
    /// - Throws: ``CheckoutError/configuration(_:)`` if the key is no recipient; errors of the repository.
    public func token(
        for card: CardPaymentData, recipient: String, key: String
    ) async throws(CheckoutError) -> PaymentToken {
        let sealed: SealedCardData
        do {
            sealed = try card.sealed(for: JWERecipient(jwk: recipient))
        } catch {
            throw .configuration("the session's recipient: \(error)")
        }
        for pause in pauses {
            do throws(CheckoutError) {
                return try await tokens.tokenize(sealed, idempotencyKey: key)
            } catch {
                guard case .transport = error, !Task.isCancelled else { throw error }
            }
            try? await Time.sleep(for: pause)
        }
        return try await tokens.tokenize(sealed, idempotencyKey: key)
    }
}
