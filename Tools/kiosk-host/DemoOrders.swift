import Foundation
import KioskBridge

/// The orders of a demonstration: tickets, one order for each customer.
actor DemoOrders: KioskOrders {
    private var number = 1000
    private var order: KioskOrder?
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
        case .approved: order?.status = .paid
        case .unknown: order?.status = .unknown
        case .declined, .cancelled: break
        }
    }

    /// Begins with the next customer, unless the present one's payment has an unknown outcome.
    func takeNextCustomer() { if order?.status == .paid { order = nil } }

    /// The order of an id, if it is paid.
    func paidOrder(_ id: String) -> KioskOrder? { order?.id == id && order?.status == .paid ? order : nil }
}
