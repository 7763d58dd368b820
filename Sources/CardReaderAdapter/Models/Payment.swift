// Intents and charges are part of the contract: importing this module is enough to use them.
import CardReceipts
public import Foundation

/// The parameters of a payment to be taken.
public struct PaymentIntentParameters: Sendable {
    /// The amount in the currency's major unit: 12.34.
    public let amount: Decimal
    /// The ISO 4217 code of the currency, in lower case; empty if the text given was no such code.
    @CurrencyCode public var currency: String
    /// The number of minor units in the major unit.  It may be omitted; a wrong value is refused.
    public let stripeSmallestCurrencyUnitMultiplier: Decimal
    /// The application fee in the currency's major unit.
    public let applicationFee: Decimal?
    public let receiptDescription: String?
    @StatementDescriptor public var statementDescription: String?
    @Email public var receiptEmail: String?
    public let metadata: [String: String]?
    public let paymentMethodTypes: [String]

    public init(
        amount: Decimal, currency: String, stripeSmallestCurrencyUnitMultiplier: Decimal? = nil,
        applicationFee: Decimal? = nil, receiptDescription: String? = nil, statementDescription: String? = nil,
        receiptEmail: String? = nil, paymentMethodTypes: [String] = ["card_present"],
        metadata: [String: String]? = nil
    ) {
        self.amount = amount
        _currency = CurrencyCode(wrappedValue: currency)
        self.stripeSmallestCurrencyUnitMultiplier =
            stripeSmallestCurrencyUnitMultiplier ?? MinorUnits.multiplier(of: currency) ?? 1
        self.applicationFee = applicationFee
        self.receiptDescription = receiptDescription
        _statementDescription = StatementDescriptor(wrappedValue: statementDescription)
        _receiptEmail = Email(wrappedValue: receiptEmail)
        self.paymentMethodTypes = paymentMethodTypes
        self.metadata = metadata
    }
}

/// The parameters of a refund of a charge.
public struct RefundParameters: Sendable {
    public let chargeId: String
    /// The amount in the currency's major unit.
    public let amount: Decimal
    /// The ISO 4217 code of the currency, in lower case; empty if the text given was no such code.
    @CurrencyCode public var currency: String

    public init(chargeId: String, amount: Decimal, currency: String) {
        self.chargeId = chargeId
        self.amount = amount
        _currency = CurrencyCode(wrappedValue: currency)
    }
}
