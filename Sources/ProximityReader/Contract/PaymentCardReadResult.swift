package import EMVContactless

/// The result of a read.
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

    /// A UUID that identifies this read.
    public let id: String
    /// The card data, sealed for the payment service as the module CardEncryption describes; nil if there is none.
    public let paymentCardData: String?
    /// The card data that is not secret: BER-TLV in Base64; nil if there is none.
    public let generalCardData: String?
    /// The AID of the application in hexadecimal digits; nil if none was selected.
    public let applicationTypeIdentifier: String?
    public let outcome: ReadOutcome
    /// Always false: there is no PIN pad.
    public let pinBypassed: Bool
    /// Always false: there is no PIN pad.
    public let isPINFallback: Bool
    /// The state of the card's effective date; nil if the card has none.
    public let cardEffectiveState: CardEffectiveState?
    /// The state of the card's expiration date; nil if the card was not read.
    public let cardExpirationState: CardExpirationState?

    /// The data for a receipt; nil unless the card has agreed or declined.  ``generalCardData`` contains it, too.
    package let facts: ReceiptFacts?
    /// True if the card declined nothing and has to be inserted or swiped instead.
    package let needsAnotherInterface: Bool
    /// The passes that were read in the same tap, for applications that look for them here.
    package var passes: VASReadResult?

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
