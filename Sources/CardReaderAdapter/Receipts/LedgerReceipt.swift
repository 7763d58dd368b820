public import CardReceipts
import EMVContactless
public import Foundation
public import ProximityReader
import SmartCard

extension ReceiptContent {
    /// Creates the receipt of a stored sale from the ledger's data.
    ///
    /// - Parameters:
    ///   - merchant: the merchant's name and address.
    ///   - order: the items and totals of the sale.
    ///   - stored: the ledger's record of the sale.
    ///   - timeZone: the time zone of the place of sale.
    /// - Throws: `ReceiptError`.
    public init(
        merchant: ReceiptMerchant, order: ReceiptOrder, stored: ProximityReaderSystem.Ledger.Receipt,
        timeZone: TimeZone = .current
    ) throws(ReceiptError) {
        let (payment, facts) = (stored.payment, stored.facts)
        guard let amount = MinorUnits.units(payment.amount, of: payment.currency) else {
            throw .malformedField(.amount)
        }
        try self.init(
            merchant: merchant, order: order, storing: amount, currency: payment.currency,
            card: CardPresentTransactionDetails(
                // No receipt shows the expiry date, and the ledger does not contain it.
                last4: stored.lastFour ?? "", expMonth: 0, expYear: 0,
                brand: CardBrand(applicationIdentifier: facts?.applicationIdentifier.hex ?? ""),
                receipt: facts.map { ReceiptDetails($0) },
                readMethod: facts.map(CardReadMethod.init) ?? .contactlessEMV),
            accepted: payment.time, timeZone: timeZone)
    }
}
