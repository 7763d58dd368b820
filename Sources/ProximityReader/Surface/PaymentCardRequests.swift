public import Foundation

/// A payment or a refund that a card is to be read for.
public struct PaymentCardTransactionRequest: Sendable {
    public enum TransactionType: Sendable, Hashable {
        case purchase
        case refund
    }

    public enum PaymentCycle: Sendable, Hashable {
        case weekly
        case monthly
        case yearly
    }

    /// What the amount is, for whoever shows it.  The card does not hear of it.
    public enum TransactionAmountDescription: Sendable {
        case surchargePercent(Double)
        case surchargeAmount(Decimal)
        case installment(PaymentCycle, amount: Decimal, payments: Int)
        case membership(PaymentCycle)
        case preauthorizationAmount(Decimal)
        case preauthorization
        case preauthorizationRelease
    }

    /// In the currency's major unit: 12.34.
    public let amount: Decimal
    /// Of ISO 4217: `EUR`.
    public let currencyCode: String
    public let type: TransactionType
    /// The applications to be preferred if the card has several, the most wanted first: up to 4, of 5 to 16 bytes each.
    public var preferredAIDList: [Data] = []
    /// For whoever shows messages; nil: the machine's.
    public var userInterfaceLanguage: Locale.Language?
    /// Whether amounts are shown with the currency's code instead of its symbol.
    public var useISOCurrencySymbol: Bool = false
    public var transactionDescription: TransactionAmountDescription?

    public init(amount: Decimal, currencyCode: String, for type: TransactionType = .purchase) {
        self.amount = amount
        self.currencyCode = currencyCode
        self.type = type
    }
}

/// A card that is to be read without a payment: an amount of zero.
public struct PaymentCardVerificationRequest: Sendable {
    public enum Reason: Sendable, Hashable {
        case lookUp
        case saveCard
        case openTab
        case other
    }

    /// Of ISO 4217: `EUR`.
    public let currencyCode: String
    public let verificationReason: Reason
    /// For whoever shows messages; nil: the machine's.
    public var userInterfaceLanguage: Locale.Language?

    public init(currencyCode: String, for reason: Reason = .other) {
        self.currencyCode = currencyCode
        verificationReason = reason
    }
}
