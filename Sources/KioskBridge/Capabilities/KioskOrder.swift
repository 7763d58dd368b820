import EMVContactless
public import Foundation
public import KioskKit

/// An order at the kiosk.  The page shows it, and cannot change what is to be paid.
public struct KioskOrder: Hashable, Sendable, Identifiable {
    /// A line of the order.
    public struct Line: Hashable, Sendable {
        public var title: String
        public var quantity: Int
        /// The price of all pieces, in the currency's major unit.
        public var total: Decimal

        public init(title: String, quantity: Int = 1, total: Decimal) {
            (self.title, self.quantity, self.total) = (title, quantity, total)
        }
    }

    /// The knowledge of the order's payment.
    public enum Status: String, Hashable, Sendable {
        case open
        case paid
        /// The payment service was asked and did not answer: the customer may have paid.
        case unknown
    }

    public var id: String
    public var lines: [Line]
    /// The amount to pay, in the currency's major unit: 12.34.
    public var total: Decimal
    /// The ISO 4217 code of the currency: `EUR`.
    public var currencyCode: String
    public var status: Status

    public init(id: String, lines: [Line], total: Decimal, currencyCode: String, status: Status = .open) {
        (self.id, self.lines, self.total) = (id, lines, total)
        (self.currencyCode, self.status) = (currencyCode, status)
    }

    func json(_ locale: Locale) -> JSONValue {
        [
            "id": .string(id), "total": .money(total, currencyCode, locale), "status": .string(status.rawValue),
            "lines": .array(
                lines.map {
                    [
                        "title": .string($0.title), "quantity": JSONValue(Int64($0.quantity)),
                        "total": .money($0.total, currencyCode, locale),
                    ]
                }),
        ]
    }
}

/// The orders of the application, which alone knows what is to be paid.
public protocol KioskOrders: Sendable {
    /// Returns the order at the kiosk; nil if there is none.
    func currentOrder() async -> KioskOrder?
    /// Takes the outcome of a payment, before the page is told.
    ///
    /// - Parameters:
    ///   - id: the order's.
    ///   - outcome: what is known.
    func settle(_ id: String, _ outcome: KioskPaymentOutcome) async
}

/// The outcome of a payment at the kiosk.
public enum KioskPaymentOutcome: Hashable, Sendable {
    /// The amount that was paid, in the currency's major unit, and the payment service's answer, which has what a
    /// receipt must say (`ReceiptContent`).
    case approved(Decimal, PaymentResult)
    /// A reason for the customer; nil if there is none.
    case declined(message: String?)
    /// Nobody has paid.
    case cancelled
    /// The payment service may have charged the card under this idempotency key.
    case unknown(key: String)
}

/// A price after a pass was read.
public struct KioskPrice: Hashable, Sendable {
    /// The amount to pay, in the currency's major unit.
    public var amount: Decimal
    /// The member's number as it may be shown: `••••1234`; nil if nobody was recognized.
    public var member: String?

    public init(_ amount: Decimal, member: String? = nil) { (self.amount, self.member) = (amount, member) }
}

extension Decimal {
    /// Returns the amount as people read it.
    func written(in currencyCode: String, _ locale: Locale) -> String {
        formatted(.currency(code: currencyCode).locale(locale))
    }
}

extension JSONValue {
    /// An amount: whole minor units, the currency with its exponent, and a text for people.
    static func money(_ amount: Decimal, _ currencyCode: String, _ locale: Locale) -> JSONValue {
        let exponent = Currency[currencyCode]?.exponent ?? 2
        var exact = amount
        var minor = Decimal()
        _ = NSDecimalMultiplyByPowerOf10(&minor, &exact, Int16(exponent), .plain)
        var rounded = Decimal()
        NSDecimalRound(&rounded, &minor, 0, .plain)
        return [
            "amount": JSONValue(Int64(truncating: rounded as NSDecimalNumber)), "currency": .string(currencyCode),
            "exponent": JSONValue(Int64(exponent)),
            "text": .string(amount.written(in: currencyCode, locale)),
        ]
    }
}
