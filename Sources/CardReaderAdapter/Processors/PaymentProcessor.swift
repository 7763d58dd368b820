public import CardReceipts
public import EMVContactless

/// A payment service, in most cases the app's own server.
///
/// The service must answer a repeated idempotency key as it did the first time, and carry out nothing again.
public protocol PaymentProcessor: Sendable {
    /// Creates an intent for the amount.
    ///
    /// - Parameters:
    ///   - parameters: currency, description, and what the customer is to receive.
    ///   - amount: in the currency's minor unit.
    ///   - idempotencyKey: the same for each repetition of the call, and for no other intent.
    /// - Returns: an intent with the status `requiresPaymentMethod`, and with this amount and currency.
    /// - Throws: ``PaymentProcessorError``.
    func createIntent(
        _ parameters: PaymentIntentParameters, amount: UInt, idempotencyKey: String
    ) async throws -> PaymentIntent

    /// Charges the card, or authorizes the charge.
    ///
    /// - Returns: the same intent, with the status `requiresCapture` or `succeeded`.
    /// - Throws: ``PaymentProcessorError``.  Any other error counts as no answer.
    func process(_ intent: PaymentIntent, card: CollectedCard, idempotencyKey: String) async throws -> PaymentIntent

    /// Returns the current state of the intent, even if an earlier call about it was not answered.
    ///
    /// - Throws: ``PaymentProcessorError``; `unknownIntent` only if there is no such intent, so that nobody is charged
    ///   for it.
    func retrieve(_ intent: PaymentIntent) async throws -> PaymentIntent

    /// Cancels an intent that was not captured.  After this returns no card is charged for it, not even by a call of
    /// ``process(_:card:idempotencyKey:)`` that is still under way.
    ///
    /// - Throws: ``PaymentProcessorError``; with the intent if it was paid in the meantime.
    func cancel(_ intent: PaymentIntent) async throws

    /// Returns true if the customer has to present the card for this refund.
    ///
    /// - Throws: ``PaymentProcessorError``.
    func needsCard(for refund: RefundParameters) async throws -> Bool

    /// Refunds a charge.
    ///
    /// - Parameters:
    ///   - parameters: the charge and the currency.
    ///   - amount: in the currency's minor unit.
    ///   - card: nil unless ``needsCard(for:)`` returned true.
    ///   - idempotencyKey: the same for each repetition of the call, and for no other refund.
    /// - Throws: ``PaymentProcessorError``.
    func refund(
        _ parameters: RefundParameters, amount: UInt, card: CollectedCard?, idempotencyKey: String
    ) async throws -> RefundOutcome
}

/// A card that was read, with its data sealed for the payment service.
public struct CollectedCard: Sendable, Hashable, Codable {
    /// An identifier of this read alone.  It is the idempotency key of the charge.
    public let id: String
    /// The card's data, sealed as the module CardEncryption describes.
    public let sealedData: String
    /// The card data that is not secret: BER-TLV in Base64.
    public let generalData: String?
    /// The AID of the application, in hexadecimal digits.
    public let applicationIdentifier: String?

    /// The facts of the read for a receipt (`ReceiptDetails`); nil if the kernel reported none.
    public let facts: ReceiptFacts?

    public init(
        id: String, sealedData: String, generalData: String? = nil, applicationIdentifier: String? = nil,
        facts: ReceiptFacts? = nil
    ) {
        (self.id, self.sealedData, self.facts) = (id, sealedData, facts)
        (self.generalData, self.applicationIdentifier) = (generalData, applicationIdentifier)
    }
}

/// The outcome of a refund.
public enum RefundOutcome: Hashable, Sendable {
    case succeeded, pending
    /// The refund failed.
    ///
    /// - Parameter reason: nil if the payment service gives none; the refund is not retried then.
    case failed(DeclineReason?)
    case unknown
}

/// The reason for which a payment service did not carry out a call.
public struct PaymentProcessorError: Error, Hashable, Sendable {
    public enum Reason: Hashable, Sendable {
        /// The issuer or the payment service declined.
        case declined(DeclineReason)
        /// No answer: the call may have been carried out.  It is repeated under the same key.
        case noAnswer
        /// The call was not sent.
        case notConnected
        /// There is no such intent, or it is not in the required state.
        case unknownIntent
        /// The token with which the reader was connected is no longer valid.
        case sessionExpired
        case invalidAmount
        case invalidCurrency
        /// The service accepts only newer versions of this program.
        case tooOld
        /// Any other refusal, in the service's words.
        case refused(String)
    }

    public let reason: Reason
    /// The current state of the intent, if the payment service reported it.
    public let intent: PaymentIntent?

    public init(_ reason: Reason, intent: PaymentIntent? = nil) { (self.reason, self.intent) = (reason, intent) }
}
