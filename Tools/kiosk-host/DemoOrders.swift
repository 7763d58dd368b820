import Foundation
import KioskBridge

/// The orders of a demonstration: tickets, one order for each customer.
actor DemoOrders: KioskOrders {
    private var number = 1000
    private var order: KioskOrder?
    /// The last orders that were paid, for their receipts.
    private var paid: [KioskOrder] = []
    private let currency: String
    private let amount: Decimal

    init(amount: Decimal, currency: String) { (self.amount, self.currency) = (amount, currency) }

    func currentOrder() -> KioskOrder? {
        let present = order ?? nextOrder()
        order = present
        return present
    }

    private func nextOrder() -> KioskOrder {
        number += 1
        return KioskOrder(
            id: "\(number)", lines: [.init(title: "Day ticket", total: amount)], total: amount, currencyCode: currency)
    }

    func settle(_ id: String, _ outcome: KioskPaymentOutcome) {
        guard order?.id == id else { return }
        switch outcome {
        case .approved(let amount):
            order?.status = .paid
            order?.total = amount
            paid = paid.suffix(19) + [order].compactMap { $0 }
        case .unknown: order?.status = .unknown
        case .declined, .cancelled: break
        }
    }

    /// Begins with the next customer, unless the present one's payment has an unknown outcome.
    func takeNextCustomer() { if order?.status == .paid { order = nil } }

    /// Returns a paid order; nil if it is not, or was too long ago.
    func paidOrder(_ id: String) -> KioskOrder? { paid.last { $0.id == id } }
}
