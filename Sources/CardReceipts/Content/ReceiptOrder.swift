public import Foundation

/// An order with the shop's data for a receipt, which the transaction does not contain.
public struct ReceiptOrder: Codable, Hashable, Sendable {
    /// The order's identifier; nil if the transaction has it: ``PaymentIntent/MetadataKeys/orderID``.
    public let id: String?
    public let lineItems: [ReceiptLineItem]
    public let totals: ReceiptTotals
    public let note: String?
    /// A link to the receipt for the customer.
    public let link: String?

    public init(
        id: String? = nil, lineItems: [ReceiptLineItem], totals: ReceiptTotals, note: String? = nil,
        link: String? = nil
    ) {
        (self.id, self.lineItems, self.totals) = (id, lineItems, totals)
        (self.note, self.link) = (note, link)
    }

    private enum CodingKeys: String, CodingKey {
        case id, totals, note, link
        case lineItems = "line_items"
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            id: try container.decodeIfPresent(String.self, forKey: .id),
            lineItems: try container.decodeIfPresent([ReceiptLineItem].self, forKey: .lineItems) ?? [],
            totals: try container.required(.totals, .subtotal),
            note: try container.decodeIfPresent(String.self, forKey: .note),
            link: try container.decodeIfPresent(String.self, forKey: .link))
    }
}

extension ReceiptContent {
    /// Creates the receipt of the charge of `intent`.  Its time is that of the payment service's answer,
    /// ``Charge/created``.
    ///
    /// - Parameters:
    ///   - merchant: the merchant's name and address.
    ///   - order: the items and totals of the sale.
    ///   - intent: the payment.
    ///   - timeZone: the time zone of the place of sale.
    /// - Throws: ``ReceiptError``; ``ReceiptError/missingRequiredField(_:)`` for a charge without a time;
    ///   ``ReceiptError/notPaid`` for an intent that has neither succeeded nor is to be captured.
    public init(
        merchant: ReceiptMerchant, order: ReceiptOrder, intent: PaymentIntent, timeZone: TimeZone = .current
    ) throws(ReceiptError) {
        guard [.requiresCapture, .succeeded].contains(intent.status),
            let charge = intent.charges.first(where: { $0.status == .succeeded })
        else { throw .notPaid }
        let named = Set([order.id, intent.metadata?[PaymentIntent.MetadataKeys.orderID]].compactMap(\.self))
        guard named.count <= 1 else { throw .malformedField(.order) }
        let order = ReceiptOrder(
            id: named.first, lineItems: order.lineItems, totals: order.totals, note: order.note, link: order.link)
        guard let date = charge.created else { throw .missingRequiredField(.dateAndTime) }
        try self.init(merchant: merchant, order: order, charge: charge, date: date, timeZone: timeZone)
    }

    /// Creates the receipt of a charge.
    ///
    /// - Parameters:
    ///   - merchant: the merchant's name and address.
    ///   - order: the items and totals of the sale.
    ///   - charge: the charge of the card.
    ///   - date: the time of the payment service's answer.
    ///   - timeZone: the time zone of the place of sale.
    /// - Throws: ``ReceiptError``; ``ReceiptError/notPaid`` for a charge that has not succeeded.
    public init(
        merchant: ReceiptMerchant, order: ReceiptOrder, charge: Charge, date: Date, timeZone: TimeZone = .current
    ) throws(ReceiptError) {
        try self.init(.sale, charge.amount, of: charge, merchant, order, date, timeZone)
    }

    /// Creates the receipt of a sale that was stored while the payment service was unreachable.
    ///
    /// The receipt says that nobody has authorized the sale yet.  The customer's next receipt is that of the charge:
    /// ``init(merchant:order:charge:date:timeZone:)``.
    ///
    /// - Parameters:
    ///   - merchant: the merchant's name and address.
    ///   - order: the items and totals of the sale.
    ///   - amount: in the currency's minor unit.
    ///   - currency: an ISO 4217 code in either case.
    ///   - card: the card data in the ledger;
    ///     ``ReceiptDetails/init(_:authorizationResponseCode:transactionStatusInformation:issuerApplicationData:accountType:authorizationCode:)``
    ///     converts the kernel's facts.
    ///   - accepted: the time at which the card was read and the sale was stored.
    ///   - timeZone: the time zone of the place of sale.
    /// - Throws: ``ReceiptError``.
    public init(
        merchant: ReceiptMerchant, order: ReceiptOrder, storing amount: UInt, currency: String,
        card: CardPresentTransactionDetails, accepted: Date, timeZone: TimeZone = .current
    ) throws(ReceiptError) {
        try self.init(
            merchant: merchant,
            parameters: CardPresentReceiptParameters(
                type: .storedSale, amount: amount, currency: currency, date: accepted, timeZone: timeZone,
                cardDetails: card, orderID: order.id),
            lineItems: order.lineItems, cartTotals: order.totals, orderNote: order.note, link: order.link)
    }

    /// Creates the receipt of a refund.
    ///
    /// - Parameters:
    ///   - merchant: the merchant's name and address.
    ///   - order: the items and totals of the sale.
    ///   - charge: the charge that is refunded.
    ///   - amount: in the currency's minor unit; at most the amount of the charge.
    ///   - date: the time of the refund.
    ///   - timeZone: the time zone of the place of sale.
    /// - Throws: ``ReceiptError``; ``ReceiptError/notPaid`` for a charge that has not succeeded.
    public init(
        merchant: ReceiptMerchant, order: ReceiptOrder, refundOf charge: Charge, amount: UInt, date: Date,
        timeZone: TimeZone = .current
    ) throws(ReceiptError) {
        guard amount <= charge.amount else { throw .malformedField(.amount) }
        try self.init(.refund, amount, of: charge, merchant, order, date, timeZone)
    }

    private init(
        _ type: CardPresentReceiptParameters.TransactionType, _ amount: UInt, of charge: Charge,
        _ merchant: ReceiptMerchant, _ order: ReceiptOrder, _ date: Date, _ timeZone: TimeZone
    ) throws(ReceiptError) {
        guard charge.status == .succeeded else { throw .notPaid }
        let details: CardPresentTransactionDetails
        switch charge.paymentMethod {
        case .cardPresent(let card)?, .interacPresent(let card)?: details = card
        case .card?, .unknown?, nil: throw .missingRequiredField(.cardDetails)
        }
        let named = Set([order.id, charge.metadata?[PaymentIntent.MetadataKeys.orderID]].compactMap(\.self))
        guard named.count <= 1 else { throw .malformedField(.order) }
        try self.init(
            merchant: merchant,
            parameters: CardPresentReceiptParameters(
                type: type, amount: amount, currency: charge.currency, date: date, timeZone: timeZone,
                cardDetails: details, orderID: named.first),
            lineItems: order.lineItems, cartTotals: order.totals, orderNote: order.note, link: order.link)
    }
}
