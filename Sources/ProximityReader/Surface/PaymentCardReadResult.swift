package import EMVContactless

/// What came of a read.
public struct PaymentCardReadResult: Identifiable, Sendable {
    public enum ReadOutcome: Sendable, Hashable {
        case success
        case cardDeclined
        case failure
    }

    public enum CardEffectiveState: Sendable, Hashable {
        case active
        case inactive
        case invalid
        case unknown
    }

    public enum CardExpirationState: Sendable, Hashable {
        case notExpired
        case expired
        case invalid
        case unknown
    }

    /// Of this read alone: a UUID.
    public let id: String
    /// The card's data, sealed for the payment service, as the module CardEncryption has it; nil if there are none.
    public let paymentCardData: String?
    /// What is no secret of it: BER-TLV in Base64; nil if there is nothing.
    public let generalCardData: String?
    /// The application's AID in hexadecimal digits; nil if none was selected.
    public let applicationTypeIdentifier: String?
    public let outcome: ReadOutcome
    /// Always false: there is no PIN pad.
    public let pinBypassed: Bool
    /// Always false: there is no PIN pad.
    public let isPINFallback: Bool
    /// Nil if the card has no effective date.
    public let cardEffectiveState: CardEffectiveState?
    /// Nil if the card was not read.
    public let cardExpirationState: CardExpirationState?

    /// What a receipt has to state; nil unless the card has agreed or declined.  ``generalCardData`` has it, too.
    package let facts: ReceiptFacts?
    /// Whether the card has declined nothing, and wants to be inserted or swiped.
    package let needsAnotherInterface: Bool

    package init(
        id: String, paymentCardData: String?, generalCardData: String?, applicationTypeIdentifier: String?,
        outcome: ReadOutcome, cardEffectiveState: CardEffectiveState?, cardExpirationState: CardExpirationState?,
        facts: ReceiptFacts? = nil, needsAnotherInterface: Bool = false
    ) {
        self.id = id
        self.paymentCardData = paymentCardData
        self.generalCardData = generalCardData
        self.applicationTypeIdentifier = applicationTypeIdentifier
        self.outcome = outcome
        self.facts = facts
        self.needsAnotherInterface = needsAnotherInterface
        pinBypassed = false
        isPINFallback = false
        self.cardEffectiveState = cardEffectiveState
        self.cardExpirationState = cardExpirationState
    }
}
