public import CardReceipts
import EMVContactless
public import Foundation
import SmartCard

extension ReceiptContent {
    /// Creates the receipt of an approved payment.
    ///
    /// - Parameters:
    ///   - merchant: the merchant's name and address.
    ///   - order: the items and totals of the sale.
    ///   - payment: an approved payment, with the amount, the currency and the last four digits that the payment service
    ///     reports; its card was read in this run of the program, or keyed.
    ///   - date: the time of the payment service's answer.
    ///   - accountType: the type of the account; `Default` if none was selected.
    ///   - timeZone: the time zone of the place of sale.
    /// - Throws: `ReceiptError`; `ReceiptError.notPaid` for a payment that is not approved.
    public init(
        merchant: ReceiptMerchant, order: ReceiptOrder, payment: PaymentResult, date: Date,
        accountType: String = "Default", timeZone: TimeZone = .current
    ) throws(ReceiptError) {
        guard payment.status == .approved else { throw .notPaid }
        guard let currency = payment.currency else { throw .missingRequiredField(.currency) }
        guard let amount = payment.amount else { throw .missingRequiredField(.amount) }
        guard let units = MinorUnits.units(amount, of: currency) else { throw .malformedField(.amount) }
        let facts = payment.receiptFacts
        let card = CardPresentTransactionDetails(
            // No receipt shows the expiry date.
            last4: payment.lastFour ?? "", expMonth: 0, expYear: 0,
            brand: payment.brand,
            receipt: facts.map {
                ReceiptDetails($0, authorizationResponseCode: payment.responseCode ?? "", accountType: accountType)
            },
            readMethod: payment.readMethod)
        try self.init(
            merchant: merchant, order: order,
            charge: Charge(
                id: payment.id, amount: units, currency: currency, status: .succeeded, created: date,
                paymentMethod: card.brand == .interac ? .interacPresent(details: card) : .cardPresent(details: card)),
            date: date, timeZone: timeZone)
    }
}

extension PaymentResult {
    /// True if `ReceiptContent.init(merchant:order:payment:date:accountType:timeZone:)` makes a receipt of it: the payment
    /// is approved, its result is complete, and its card was read in this run of the program, or keyed.
    public var hasReceipt: Bool {
        status == .approved && amount != nil && currency != nil && lastFour != nil && readMethod != nil
            && brand != .unknown
    }

    /// The card's brand: the kernel's word counts before anybody else's.
    fileprivate var brand: CardBrand {
        receiptFacts.map { CardBrand(applicationIdentifier: $0.applicationIdentifier.hex) } ?? keyedBrand ?? .unknown
    }

    fileprivate var readMethod: CardReadMethod? {
        receiptFacts.map(CardReadMethod.init) ?? keyedBrand.map { _ in .keyed }
    }
}
