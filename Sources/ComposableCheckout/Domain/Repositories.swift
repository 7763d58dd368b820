public import CardEncryption

/// The source of a session's configuration.
public protocol ConfigurationRepository: Sendable {
    /// Returns the session's present configuration.
    func configuration() async throws(CheckoutError) -> CheckoutConfiguration
}

/// The source of the methods by which a session can be paid.
public protocol PaymentMethodRepository: Sendable {
    /// Returns the session's methods, in the order in which customers see them.
    func paymentMethods() async throws(CheckoutError) -> [PaymentMethod]
}

/// The exchange of sealed card data for a token.
public protocol TokenizationRepository: Sendable {
    /// Returns the token for a card.  However often it is called with one key, there is one token.
    ///
    /// - Parameters:
    ///   - card: a JWE for the session's recipient (``CardConfiguration/recipient``).
    ///   - idempotencyKey: the request's name, the same for each repetition.
    func tokenize(_ card: SealedCardData, idempotencyKey: String) async throws(CheckoutError) -> PaymentToken
}

/// Payments at the payment service.
public protocol PaymentRepository: Sendable {
    /// Requests a payment.  However often it is called with one key, there is one payment.
    ///
    /// - Parameters:
    ///   - request: the payment, the same whenever it is requested with this key.
    ///   - idempotencyKey: the payment's name, the same for each repetition.
    /// - Returns: the result; with ``PaymentResult/challenge`` if the customer has to confirm the payment first.
    func pay(_ request: PaymentRequest, idempotencyKey: String) async throws(CheckoutError) -> PaymentResult

    /// Returns the result of the payment with this key; nil if the payment service knows of none.
    func result(for idempotencyKey: String) async throws(CheckoutError) -> PaymentResult?

    /// Waits until the customer has met a payment's challenge, or the payment service has decided without it.
    ///
    /// - Parameter paymentID: ``PaymentResult/paymentID``.
    /// - Returns: the result; pending if the task was canceled or the repository's time is over.
    func completeChallenge(of paymentID: String) async throws(CheckoutError) -> PaymentResult
}
