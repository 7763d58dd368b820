public import Foundation

/// A payment for an order, from its creation to its completion.
public struct PaymentIntent: Identifiable, Sendable, Hashable, Codable {
    public let id: String
    public let status: PaymentIntentStatus
    public let created: Date
    /// The amount in the currency's minor unit.
    public let amount: UInt
    /// The ISO 4217 code of the currency, in lower case.
    public let currency: String
    public let metadata: [String: String]?
    public let charges: [Charge]
    /// Details of a payment that was taken while the payment service was unreachable; nil for all other payments.
    public let offlineDetails: OfflineDetails?

    public init(
        id: String, status: PaymentIntentStatus, created: Date, amount: UInt, currency: String,
        metadata: [String: String]? = nil, charges: [Charge] = [], offlineDetails: OfflineDetails? = nil
    ) {
        (self.id, self.status, self.created, self.amount) = (id, status, created, amount)
        (self.currency, self.metadata, self.charges) = (currency, metadata, charges)
        self.offlineDetails = offlineDetails
    }

    package func with(_ status: PaymentIntentStatus) -> Self {
        PaymentIntent(
            id: id, status: status, created: created, amount: amount, currency: currency, metadata: metadata,
            charges: charges, offlineDetails: offlineDetails)
    }

    /// Returns the payment method of the first charge.
    public func paymentMethod() -> PaymentMethod? { charges.first?.paymentMethod }

    /// The keys of ``metadata`` that the contract defines.
    public enum MetadataKeys {
        public static let store = "paymentintent.storename"
        public static let customerName = "customer_name"
        public static let customerEmail = "customer_email"
        public static let siteURL = "site_url"
        public static let orderID = "order_id"
        public static let orderKey = "order_key"
        public static let paymentType = "payment_type"
    }
}

/// Details of a payment that the payment service does not know yet.
public struct OfflineDetails: Hashable, Codable, Sendable {
    /// The time at which the card was read and the payment was stored; nil before.
    public let storedAt: Date?
    /// True until the payment service has received the payment.  Until then there is nothing to capture.
    public let requiresUpload: Bool

    public init(storedAt: Date?, requiresUpload: Bool) {
        (self.storedAt, self.requiresUpload) = (storedAt, requiresUpload)
    }
}

public enum PaymentIntentStatus: String, CaseIterable, Hashable, Codable, Sendable {
    case requiresPaymentMethod = "requires_payment_method"
    case requiresConfirmation = "requires_confirmation"
    case requiresCapture = "requires_capture"
    case processing
    case canceled
    case succeeded
    /// The customer has to do something that no reader can ask for.
    case requiresAction = "requires_action"
    /// A status of the payment service that is none of the above.
    case unknown
}

public struct Charge: Identifiable, Sendable, Hashable, Codable {
    public let id: String
    /// The amount in the currency's minor unit.
    public let amount: UInt
    public let currency: String
    public let status: ChargeStatus
    /// The time of the payment service's answer; nil if the service does not report it.
    public let created: Date?
    public let description: String?
    public let metadata: [String: String]?
    public let paymentMethod: PaymentMethod?

    public init(
        id: String, amount: UInt, currency: String, status: ChargeStatus, created: Date? = nil,
        description: String? = nil, metadata: [String: String]? = nil, paymentMethod: PaymentMethod? = nil
    ) {
        self.created = created
        (self.id, self.amount, self.currency, self.status) = (id, amount, currency, status)
        (self.description, self.metadata, self.paymentMethod) = (description, metadata, paymentMethod)
    }
}

public enum ChargeStatus: String, CaseIterable, Hashable, Codable, Sendable {
    case succeeded, pending, failed
}

public enum PaymentMethod: Hashable, Codable, Sendable {
    case card
    case cardPresent(details: CardPresentTransactionDetails)
    case interacPresent(details: CardPresentTransactionDetails)
    case unknown
}
