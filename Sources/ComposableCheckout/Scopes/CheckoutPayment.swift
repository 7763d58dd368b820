public import FoundationEssentials

/// A payment that a method's scope asks the checkout to make.
public struct CheckoutPayment: Sendable {
    public let method: PaymentMethod
    /// The network that the customer pays through; nil: none, or not known before the payment.
    public let network: CardNetwork?
    /// True if the checkout shows that the payment is being processed; false for a method that shows it itself.
    public let showsProcessing: Bool
    /// Makes the payment.  It is called once.
    let perform: @Sendable (Terms) async throws(CheckoutError) -> PaymentResult
    /// Finds out what became of a payment whose result is not known.
    let resolve: @Sendable (Terms) async throws(CheckoutError) -> PaymentResult
    /// Waits until the customer has met a challenge.
    let challenge: @Sendable (PaymentResult) async throws(CheckoutError) -> PaymentResult

    /// The terms of a payment.
    public struct Terms: Hashable, Sendable {
        /// The session's identifier.
        public let session: String
        /// The amount in the currency's major unit, with the surcharge.
        public let amount: Decimal
        /// The ISO 4217 code of the currency.
        public let currency: String
        /// The idempotency key, the same for each repetition.
        public let key: String
    }

    /// - Parameters:
    ///   - method: the method that is paid with, for its surcharge.
    ///   - network: the card's network, for its surcharge; nil: none.
    ///   - showsProcessing: false if the method's own states show how the payment goes on.
    ///   - perform: makes the payment; called once.
    ///   - resolve: finds out what became of it if the result was ``PaymentResult/Status/unknown``.
    ///   - challenge: waits until the customer has met the challenge of a pending payment.
    public init(
        method: PaymentMethod, network: CardNetwork? = nil, showsProcessing: Bool = true,
        perform: @escaping @Sendable (Terms) async throws(CheckoutError) -> PaymentResult,
        resolve: @escaping @Sendable (Terms) async throws(CheckoutError) -> PaymentResult,
        challenge: @escaping @Sendable (PaymentResult) async throws(CheckoutError) -> PaymentResult = { $0 }
    ) {
        (self.method, self.network, self.showsProcessing) = (method, network, showsProcessing)
        (self.perform, self.resolve, self.challenge) = (perform, resolve, challenge)
    }
}

/// A payment that is about to be made, for the application's gate.
public struct BeforePayment: Hashable, Sendable {
    public let method: PaymentMethod
    public let network: CardNetwork?
    /// The amount in the currency's major unit, with the surcharge.
    public let amount: Decimal
    /// The ISO 4217 code of the currency.
    public let currency: String
}

/// The application's answer to ``BeforePayment``.
public enum BeforePaymentDecision: Hashable, Sendable {
    case proceed
    /// Nothing is paid, and nothing else is shown.
    case abort
}
