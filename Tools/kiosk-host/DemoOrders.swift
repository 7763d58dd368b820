import Foundation
import KioskBridge
import KioskKit

/// The orders of a demonstration: tickets, one order for each customer.
actor DemoOrders: KioskOrders {
    private var number = 1000
    private var order: KioskOrder?
    /// The last orders that were paid, for their receipts.
    private var paid: [KioskReceipts.Sale] = []
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
        case .approved(let amount, let payment):
            order?.status = .paid
            order?.total = amount
            paid = paid.suffix(19) + [order].compactMap { $0 }.map { .init(order: $0, payment: payment, time: .now) }
        case .unknown: order?.status = .unknown
        case .declined, .cancelled: break
        }
    }

    /// Begins with the next customer, unless the present one's payment has an unknown outcome.
    func takeNextCustomer() { if order?.status == .paid { order = nil } }

    /// Returns the sale of an order; nil if it is not paid, or was paid too long ago.
    func sale(of id: String) -> KioskReceipts.Sale? { paid.last { $0.order.id == id } }
}
