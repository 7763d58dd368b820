public import CardEncryption

/// A checkout while there is no network: the reader is the only method, as KioskKit stores its payments.
public struct OfflineCheckoutRepository: Sendable {
    private let known: CheckoutConfiguration

    /// Creates a repository.
    ///
    /// - Parameter configuration: the session, made on this machine, or as the payment service last described it.
    public init(configuration: CheckoutConfiguration) { known = configuration }

    private static let unreachable = CheckoutError.transport(reason: "there is no network", mayHaveHappened: false)
}

extension OfflineCheckoutRepository: ConfigurationRepository, PaymentMethodRepository {
    /// Returns the session without methods that need the payment service.
    public func configuration() async throws(CheckoutError) -> CheckoutConfiguration {
        var configuration = known
        configuration.methods.removeAll { $0.kind != .tap }
        configuration.card = nil
        return configuration
    }

    public func paymentMethods() async throws(CheckoutError) -> [PaymentMethod] { try await configuration().methods }
}

extension OfflineCheckoutRepository: TokenizationRepository, PaymentRepository {
    public func tokenize(
        _ card: SealedCardData, idempotencyKey: String
    ) async throws(CheckoutError) -> PaymentToken { throw Self.unreachable }

    public func pay(
        _ request: PaymentRequest, idempotencyKey: String
    ) async throws(CheckoutError) -> PaymentResult { throw Self.unreachable }

    /// Always fails: a payment that was asked for earlier may have happened.
    public func result(for idempotencyKey: String) async throws(CheckoutError) -> PaymentResult? {
        throw .transport(reason: "there is no network", mayHaveHappened: true)
    }

    /// Always fails: the customer may meet the challenge meanwhile.
    public func completeChallenge(of paymentID: String) async throws(CheckoutError) -> PaymentResult {
        throw .transport(reason: "there is no network", mayHaveHappened: true)
    }
}
