public import FoundationEssentials
public import KioskKit

/// The session of a checkout, as the payment service configured it: what is to be paid, and by which methods.
public struct CheckoutConfiguration: Hashable, Codable, Sendable {
    /// The session's identifier at the payment service.
    public var session: String
    /// The amount in the currency's major unit, without surcharges.
    public var amount: Decimal
    /// The ISO 4217 code of the currency.
    public var currency: String
    /// The ISO 3166-1 alpha-2 code of the customer's country, where it is known.
    public var country: String?
    /// The methods, in the order in which customers see them.
    public var methods: [PaymentMethod]
    /// The rules for cards entered by hand; nil: there are none.
    public var card: CardConfiguration?

    public init(
        session: String, amount: Decimal, currency: String, country: String? = nil, methods: [PaymentMethod],
        card: CardConfiguration? = nil
    ) {
        (self.session, self.amount, self.currency, self.country) = (session, amount, currency, country)
        (self.methods, self.card) = (methods, card)
    }
}

/// A way to pay.
public struct PaymentMethod: Hashable, Codable, Sendable, Identifiable {
    /// The kind of a method, which determines the scope that serves it.  Applications may add kinds.
    public struct Kind: RawRepresentable, Hashable, Codable, Sendable {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A card whose data the customer enters by hand.
        public static let card = Kind(rawValue: "card")
        /// A card or phone held to the reader.
        public static let tap = Kind(rawValue: "tap")
        /// A voucher with a code, typed or scanned.
        public static let voucher = Kind(rawValue: "voucher")
    }

    public var id: String
    public var kind: Kind
    /// The key of its name in ``InputLocalizable``.
    public var nameKey: String
    /// The networks of its cards; empty: all.
    public var networks: [CardNetwork]
    /// The amount added for this method, in the currency's major unit; nil: none.
    public var surcharge: Decimal?
    /// The amounts added for cards of a network, in place of ``surcharge``.
    public var networkSurcharges: [CardNetwork: Decimal]

    public init(
        id: String, kind: Kind, nameKey: String? = nil, networks: [CardNetwork] = [], surcharge: Decimal? = nil,
        networkSurcharges: [CardNetwork: Decimal] = [:]
    ) {
        (self.id, self.kind, self.nameKey) = (id, kind, nameKey ?? "method." + kind.rawValue)
        (self.networks, self.surcharge, self.networkSurcharges) = (networks, surcharge, networkSurcharges)
    }

    /// Returns the amount added for a card of `network`; zero if there is none.
    ///
    /// - Parameter network: nil while it is not known.
    public func surcharge(for network: CardNetwork?) -> Decimal {
        network.flatMap { networkSurcharges[$0] } ?? surcharge ?? 0
    }
}

extension PaymentMethod.Kind: CustomStringConvertible {
    public var description: String { rawValue }
}

/// The rules for cards entered by hand.
public struct CardConfiguration: Hashable, Codable, Sendable {
    /// The networks that are accepted; empty: all.
    public var networks: [CardNetwork]
    /// The fields of the card, in the order in which customers see them.
    public var fields: [ComposableInputElementType]
    /// The fields of the billing address, in the order in which customers see them.
    public var billingFields: [ComposableInputElementType]
    /// The payment service's public key, for which card data is sealed: a JWK (RFC 7517) as text.
    public var recipient: String

    public init(
        networks: [CardNetwork] = [],
        fields: [ComposableInputElementType] = [.cardNumber, .expiryDate, .cvv],
        billingFields: [ComposableInputElementType] = [], recipient: String
    ) {
        (self.networks, self.fields, self.billingFields) = (networks, fields, billingFields)
        self.recipient = recipient
    }
}

/// The payment service's token for a card.
public struct PaymentToken: Hashable, Codable, Sendable, Identifiable {
    public let id: String
    public let network: CardNetwork?
    /// The card's number with `*` for the hidden digits.
    public let masked: String

    public init(id: String, network: CardNetwork?, masked: String) {
        (self.id, self.network, self.masked) = (id, network, masked)
    }
}

/// The request for a payment.
public struct PaymentRequest: Hashable, Codable, Sendable {
    /// The session's identifier, ``CheckoutConfiguration/session``.
    public var session: String
    /// The method's identifier, ``PaymentMethod/id``.
    public var method: String
    /// The token of the card; nil for other methods.
    public var token: String?
    /// The code of the voucher; nil for other methods.
    public var voucher: String?
    /// The network of the card that the customer pays through; nil if there is none.
    public var network: CardNetwork?
    /// The amount in the currency's major unit, with the surcharge.
    public var amount: Decimal
    /// The ISO 4217 code of the currency.
    public var currency: String
    /// The billing address: the fields that were shown and filled in.
    public var billing: [ComposableInputElementType: String]

    public init(
        session: String, method: String, token: String? = nil, voucher: String? = nil, network: CardNetwork? = nil,
        amount: Decimal, currency: String, billing: [ComposableInputElementType: String] = [:]
    ) {
        (self.session, self.method, self.token, self.voucher) = (session, method, token, voucher)
        (self.network, self.amount, self.currency, self.billing) = (network, amount, currency, billing)
    }
}

/// The result of a payment by any method.
public struct PaymentResult: Hashable, Codable, Sendable {
    public enum Status: String, Hashable, Codable, Sendable {
        /// The payment service has not decided, or waits for a challenge.
        case pending
        case success
        case failed
        /// The payment service was asked and did not answer: the customer may have paid.
        case unknown
    }

    /// The payment's identifier at the payment service; empty if it gave none.
    public var paymentID: String
    public var status: Status
    public var token: PaymentToken?
    /// The page on which the customer confirms the payment, as for 3-D Secure; nil: none.
    public var challenge: URL?
    /// The reason for a failure, for a person; nil if there is none.
    public var errorMessage: String?
    /// The amount in the currency's major unit, with the surcharge.
    public var amount: Decimal
    /// The ISO 4217 code of the currency.
    public var currency: String
    public var method: PaymentMethod.Kind
    /// The result of a tap, which has what a receipt must say; nil for other methods.
    public var tap: KioskKit.PaymentResult?

    public init(
        paymentID: String, status: Status, token: PaymentToken? = nil, challenge: URL? = nil,
        errorMessage: String? = nil, amount: Decimal, currency: String, method: PaymentMethod.Kind,
        tap: KioskKit.PaymentResult? = nil
    ) {
        (self.paymentID, self.status, self.token, self.challenge) = (paymentID, status, token, challenge)
        (self.errorMessage, self.amount, self.currency, self.method) = (errorMessage, amount, currency, method)
        self.tap = tap
    }
}
