package import EMVContactless

/// Details that a payment service returns about a card whose holder was present.
public struct CardPresentTransactionDetails: Codable, Hashable, Sendable {
    /// The last four digits of the account number.
    public let last4: String
    public let expMonth: Int
    public let expYear: Int
    public let cardholderName: String?
    public let brand: CardBrand
    /// The payment service's identifier of a card that can be charged again.
    public let generatedCard: String?
    /// The receipt data; nil if the card was not read by EMV.
    public let receipt: ReceiptDetails?
    public let emvAuthData: String?
    public let wallet: Wallet?
    public let cardBrandAssociatedIdentifier: Double?
    /// The entry mode; nil if the payment service does not report it.
    public let readMethod: CardReadMethod?

    public init(
        last4: String, expMonth: Int, expYear: Int, cardholderName: String? = nil, brand: CardBrand,
        generatedCard: String? = nil, receipt: ReceiptDetails? = nil, emvAuthData: String? = nil,
        wallet: Wallet? = nil, cardBrandAssociatedIdentifier: Double? = nil, readMethod: CardReadMethod? = nil
    ) {
        (self.last4, self.expMonth, self.expYear) = (last4, expMonth, expYear)
        (self.cardholderName, self.brand, self.generatedCard) = (cardholderName, brand, generatedCard)
        (self.receipt, self.emvAuthData, self.wallet) = (receipt, emvAuthData, wallet)
        (self.cardBrandAssociatedIdentifier, self.readMethod) = (cardBrandAssociatedIdentifier, readMethod)
    }

    private enum CodingKeys: String, CodingKey {
        case last4, brand, receipt, wallet
        case expMonth = "exp_month"
        case expYear = "exp_year"
        case cardholderName = "cardholder_name"
        case generatedCard = "generated_card"
        case emvAuthData = "emv_auth_data"
        case cardBrandAssociatedIdentifier = "card_brand_associated_identifier"
        case readMethod = "read_method"
    }
}

/// The wallet from which a card was presented.
public struct Wallet: Codable, Hashable, Sendable {
    /// The payment service's name for the wallet: `apple_pay`.
    public let type: String?

    public init(type: String?) { self.type = type }
}

/// The way in which a card's data came in; receipts call it the entry mode.
public enum CardReadMethod: String, Codable, CaseIterable, Hashable, Sendable {
    case contactlessEMV = "contactless_emv"
    case contactlessMagneticStripe = "contactless_magstripe"
    case chip = "contact_emv"
    case magneticStripe = "magnetic_stripe"
    /// The customer entered the card's number by hand.
    case keyed
}

extension CardReadMethod {
    /// Derives the read method from a kernel's facts: a contactless read without a cryptogram was in mag-stripe mode.
    package init(_ facts: ReceiptFacts) {
        self = facts.applicationCryptogram == nil ? .contactlessMagneticStripe : .contactlessEMV
    }
}
