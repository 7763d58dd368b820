public import Foundation

/// A request to read a card for a payment or a refund.
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

    /// The meaning of the amount, for display.  The card does not receive it.
    public enum TransactionAmountDescription: Sendable {
        case surchargePercent(Double)
        case surchargeAmount(Decimal)
        case installment(PaymentCycle, amount: Decimal, payments: Int)
        case membership(PaymentCycle)
        case preauthorizationAmount(Decimal)
        case preauthorization
        case preauthorizationRelease
    }

    /// The amount in the currency's major unit: 12.34.
    public let amount: Decimal
    /// The ISO 4217 code of the currency: `EUR`.
    public let currencyCode: String
    public let type: TransactionType
    /// The preferred applications if the card has several, in descending order: up to 4 AIDs of 5 to 16 bytes.
    public var preferredAIDList: [Data] = []
    /// The language of messages; nil for the machine's language.
    public var userInterfaceLanguage: Locale.Language?
    /// True to show amounts with the currency's code instead of its symbol.
    public var useISOCurrencySymbol: Bool = false
    public var transactionDescription: TransactionAmountDescription?

    public init(amount: Decimal, currencyCode: String, for type: TransactionType = .purchase) {
        self.amount = amount
        self.currencyCode = currencyCode
        self.type = type
    }
}

/// A request to read a card without a payment: the amount is zero.
public struct PaymentCardVerificationRequest: Sendable {
    public enum Reason: Sendable, Hashable {
        case lookUp
        case saveCard
        case openTab
        case other
    }

    /// The ISO 4217 code of the currency: `EUR`.
    public let currencyCode: String
    public let verificationReason: Reason
    /// The language of messages; nil for the machine's language.
    public var userInterfaceLanguage: Locale.Language?

    public init(currencyCode: String, for reason: Reason = .other) {
        self.currencyCode = currencyCode
        verificationReason = reason
    }
}
