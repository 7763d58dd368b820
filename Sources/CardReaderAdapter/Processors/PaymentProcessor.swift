public import EMVContactless

/// A payment service, as far as a reader needs it: the app's own server, mostly.
///
/// A call with an idempotency key that the service knows is answered as it was the first time, and does nothing.
public protocol PaymentProcessor: Sendable {
    /// Makes an intent of this amount.
    ///
    /// - Parameter amount: in the currency's minor unit.
    /// - Returns: one of `requiresPaymentMethod`, of this amount and currency.
    /// - Throws: ``PaymentProcessorError``.
    func createIntent(
        _ parameters: PaymentIntentParameters, amount: UInt, idempotencyKey: String
    ) async throws -> PaymentIntent

    /// Has the card charged, or authorised.
    ///
    /// - Returns: the same intent, of `requiresCapture` or `succeeded`.
    /// - Throws: ``PaymentProcessorError``.  Anything else counts as no answer.
    func process(_ intent: PaymentIntent, card: CollectedCard, idempotencyKey: String) async throws -> PaymentIntent

    /// The intent as it is now, also where a call about it was not answered.
    ///
    /// - Throws: ``PaymentProcessorError``; of `unknownIntent` only where there is none, so that nobody is charged for it.
    func retrieve(_ intent: PaymentIntent) async throws -> PaymentIntent

    /// Takes an intent back that was not captured.  When this returns no card is charged for it any more, also by a call of
    /// ``process(_:card:idempotencyKey:)`` that is still under way.
    ///
    /// - Throws: ``PaymentProcessorError``; with the intent, where that has been paid meanwhile.
    func cancel(_ intent: PaymentIntent) async throws

    /// Whether the customer has to present the card for this refund.
    ///
    /// - Throws: ``PaymentProcessorError``.
    func needsCard(for refund: RefundParameters) async throws -> Bool

    /// Gives money back.
    ///
    /// - Parameters:
    ///   - amount: in the currency's minor unit.
    ///   - card: nil unless ``needsCard(for:)`` said so.
    /// - Throws: ``PaymentProcessorError``.
    func refund(
        _ parameters: RefundParameters, amount: UInt, card: CollectedCard?, idempotencyKey: String
    ) async throws -> RefundOutcome
}

/// A card that was read: sealed for the payment service.
public struct CollectedCard: Sendable, Hashable, Codable {
    /// Of this read alone.  It is the idempotency key under which the card is charged.
    public let id: String
    /// The card's data, as the module CardEncryption seals them.
    public let sealedData: String
    /// What is no secret of it: BER-TLV in Base64.
    public let generalData: String?
    /// The application's AID, in hexadecimal digits.
    public let applicationIdentifier: String?

    /// Facts of the read for a receipt (``ReceiptDetails``); nil if the kernel has told nothing.
    public let facts: ReceiptFacts?

    public init(
        id: String, sealedData: String, generalData: String? = nil, applicationIdentifier: String? = nil,
        facts: ReceiptFacts? = nil
    ) {
        (self.id, self.sealedData, self.facts) = (id, sealedData, facts)
        (self.generalData, self.applicationIdentifier) = (generalData, applicationIdentifier)
    }
}

/// What has become of a refund.
public enum RefundOutcome: Hashable, Sendable {
    case succeeded, pending
    /// - Parameter reason: nil where the payment service does not tell; it is not tried again then.
    case failed(DeclineReason?)
    case unknown
}

/// Why a payment service did not do what it was asked.
public struct PaymentProcessorError: Error, Hashable, Sendable {
    public enum Reason: Hashable, Sendable {
        /// By the issuer, or by the payment service itself.
        case declined(DeclineReason)
        /// The call may have been carried out.  The same is asked again under the same key.
        case noAnswer
        /// The call was not sent.
        case notConnected
        /// There is no such intent, or not in this state.
        case unknownIntent
        /// The token that the reader was connected with is no longer good.
        case sessionExpired
        case invalidAmount
        case invalidCurrency
        /// It speaks to newer versions of this program only.
        case tooOld
        /// Anything else, in its own words.
        case refused(String)
    }

    public let reason: Reason
    /// The intent as it is now, if the payment service has told.
    public let intent: PaymentIntent?

    public init(_ reason: Reason, intent: PaymentIntent? = nil) { (self.reason, self.intent) = (reason, intent) }
}
