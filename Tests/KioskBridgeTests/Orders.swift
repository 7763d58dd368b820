import Foundation
import KioskKit

@testable import KioskBridge

/// One order, and what was said of its payments.
actor Orders: KioskOrders {
    var order: KioskOrder? = KioskOrder(
        id: "1001", lines: [.init(title: "Ticket", quantity: 2, total: 12.34)], total: 12.34, currencyCode: "EUR")
    private(set) var outcomes: [KioskPaymentOutcome] = []
    private(set) var payments: [PaymentResult] = []
    /// The outcomes in words.
    var told: [String] {
        outcomes.map {
            switch $0 {
            case .approved(let amount, _): "approved \(amount)"
            case .declined(let message): "declined: \(message ?? "")"
            case .cancelled: "cancelled"
            case .unknown: "unknown"
            }
        }
    }

    func currentOrder() -> KioskOrder? { order }

    func settle(_ id: String, _ outcome: KioskPaymentOutcome) {
        outcomes.append(outcome)
        switch outcome {
        case .approved(_, let payment):
            payments.append(payment)
            order?.status = .paid
        case .unknown: order?.status = .unknown
        case .declined, .cancelled: break
        }
    }

    func setOrder(_ order: KioskOrder?) { self.order = order }
}

/// Something else that takes payments at the same kiosk.
@MainActor final class Till: BridgeRequestHandler {
    let actions: [String] = []
    var isBusy = false
    func handle(_ request: BridgeMessage, _ responder: BridgeResponder) async {}
    func isTakingPayment() async -> Bool { isBusy }
}
