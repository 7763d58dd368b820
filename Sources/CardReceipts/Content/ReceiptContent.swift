import EMVContactless
public import Foundation

/// The content of a receipt: the items of the order, and the payment.
///
/// A receipt of this type may be handed out and stored.  It contains everything that the card networks require.  It
/// has no place for anything that they forbid: the full account number, the expiry date, tracks, the PIN, the
/// cardholder's name.  Account numbers in titles and notes are masked when the value is created, and control
/// characters are removed.
public struct ReceiptContent: Codable, Hashable, Sendable {
    public let merchant: ReceiptMerchant
    public let parameters: CardPresentReceiptParameters
    public let lineItems: [ReceiptLineItem]
    public let cartTotals: ReceiptTotals
    public let orderNote: String?
    /// A link to the receipt for the customer: printed as a QR code if the code fits the paper.
    public let link: String?

    /// Creates the content of a receipt.
    ///
    /// - Parameters:
    ///   - merchant: the merchant's name and address.
    ///   - parameters: the amount, the time and the card.
    ///   - lineItems: at least one for a sale; a refund may have an amount alone.
    ///   - cartTotals: the totals of the order.
    ///   - orderNote: a note under the totals; nil for none.
    ///   - link: a link for the customer, printed as a QR code if that fits; nil for none.
    /// - Throws: ``ReceiptError``.
    public init(
        merchant: ReceiptMerchant, parameters: CardPresentReceiptParameters, lineItems: [ReceiptLineItem] = [],
        cartTotals: ReceiptTotals, orderNote: String? = nil, link: String? = nil
    ) throws(ReceiptError) {
        let required: [(String, ReceiptField)] = [
            (merchant.name, .merchantName), (merchant.address.joined(), .location), (merchant.country, .country),
            (merchant.merchantID, .merchantID), (merchant.terminalID, .terminalID),
        ]
        if let (_, field) = required.first(where: { !$0.0.isFilled }) { throw .missingRequiredField(field) }
        guard Country[merchant.country]?.alpha2 == merchant.country else { throw .malformedField(.country) }
        // The payment service includes it in its answer.
        if let emv = parameters.card.emv, emv.accountType == nil, merchant.country != "US", parameters.type == .sale {
            throw .missingRequiredField(.accountType)
        }
        guard parameters.type == .refund || !lineItems.isEmpty else { throw .missingRequiredField(.lineItems) }
        guard lineItems.allSatisfy(\.quantity.isFinite) else { throw .malformedField(.quantity) }
        (self.merchant, self.parameters, self.lineItems) = (merchant, parameters, lineItems)
        (self.cartTotals, self.orderNote, self.link) = (cartTotals, orderNote?.receiptLines, link?.receiptText)
    }

    private enum CodingKeys: String, CodingKey {
        case merchant, parameters, link
        case lineItems = "line_items"
        case cartTotals = "cart_totals"
        case orderNote = "order_note"
    }

    /// Decodes the content of a receipt.
    ///
    /// - Throws: ``ReceiptError`` if a required field is absent or a field is malformed; `DecodingError` for any other
    ///   structure.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        try self.init(
            merchant: container.required(.merchant, .merchantName),
            parameters: container.decode(CardPresentReceiptParameters.self, forKey: .parameters),
            lineItems: container.decodeIfPresent([ReceiptLineItem].self, forKey: .lineItems) ?? [],
            cartTotals: container.required(.cartTotals, .subtotal),
            orderNote: container.decodeIfPresent(String.self, forKey: .orderNote),
            link: container.decodeIfPresent(String.self, forKey: .link))
    }
}

/// The merchant on a receipt.
public struct ReceiptMerchant: Codable, Hashable, Sendable {
    /// The name that customers know.
    public let name: String
    /// The address of the place of sale, in lines.
    public let address: [String]
    /// The country of the place of sale: two capital letters of ISO 3166-1.  It is not printed.
    public let country: String
    /// The number that the acquirer assigned to the merchant.
    public let merchantID: String
    /// The number that the acquirer assigned to the terminal.
    public let terminalID: String

    public init(name: String, address: [String], country: String, merchantID: String, terminalID: String) {
        (self.name, self.address) = (name.receiptText, address.map(\.receiptText))
        self.country = country.uppercased()
        (self.merchantID, self.terminalID) = (merchantID.receiptText, terminalID.receiptText)
    }

    private enum CodingKeys: String, CodingKey {
        case name, address, country
        case merchantID = "merchant_id"
        case terminalID = "terminal_id"
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            name: try container.required(.name, .merchantName),
            address: try container.required(.address, .location),
            country: try container.required(.country, .country),
            merchantID: try container.required(.merchantID, .merchantID),
            terminalID: try container.required(.terminalID, .terminalID))
    }
}

/// An item of the order.
public struct ReceiptLineItem: Codable, Hashable, Sendable {
    /// An attribute of an item, such as `Size: L`.
    public struct Attribute: Codable, Hashable, Sendable {
        public let name: String
        public let value: String

        public init(name: String, value: String) { (self.name, self.value) = (name.receiptText, value.receiptText) }

        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            self.init(
                name: try container.decode(String.self, forKey: .name),
                value: try container.decode(String.self, forKey: .value))
        }
    }

    public let title: String
    public let quantity: Decimal
    /// The amount for the whole quantity, in the currency's minor unit.
    public let amount: Int
    public let attributes: [Attribute]

    public init(title: String, quantity: Decimal = 1, amount: Int, attributes: [Attribute] = []) {
        (self.title, self.quantity) = (title.receiptText, quantity)
        (self.amount, self.attributes) = (amount, attributes)
    }

    private enum CodingKeys: String, CodingKey { case title, quantity, amount, attributes }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            title: try container.decode(String.self, forKey: .title),
            quantity: try container.decodeIfPresent(Decimal.self, forKey: .quantity) ?? 1,
            amount: try container.decode(Int.self, forKey: .amount),
            attributes: try container.decodeIfPresent([Attribute].self, forKey: .attributes) ?? [])
    }
}

/// The parts of the amount, in the currency's minor unit.  They are not added up: prices may include taxes or not.
public struct ReceiptTotals: Codable, Hashable, Sendable {
    public let subtotal: Int
    /// The discount, as a positive number.
    public let discount: Int
    /// The codes of the coupons that the discount is for.
    public let coupons: [String]
    public let fees: Int
    public let shipping: Int
    public let taxes: Int

    public init(
        subtotal: Int, discount: Int = 0, coupons: [String] = [], fees: Int = 0, shipping: Int = 0, taxes: Int = 0
    ) {
        (self.subtotal, self.discount, self.coupons) = (subtotal, discount, coupons.map(\.receiptText))
        (self.fees, self.shipping, self.taxes) = (fees, shipping, taxes)
    }

    private enum CodingKeys: String, CodingKey { case subtotal, discount, coupons, fees, shipping, taxes }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            subtotal: try container.required(.subtotal, .subtotal),
            discount: try container.decodeIfPresent(Int.self, forKey: .discount) ?? 0,
            coupons: try container.decodeIfPresent([String].self, forKey: .coupons) ?? [],
            fees: try container.decodeIfPresent(Int.self, forKey: .fees) ?? 0,
            shipping: try container.decodeIfPresent(Int.self, forKey: .shipping) ?? 0,
            taxes: try container.decodeIfPresent(Int.self, forKey: .taxes) ?? 0)
    }
}

extension String {
    /// True if the text contains something to print.
    var isFilled: Bool { unicodeScalars.contains { !$0.properties.isWhitespace && $0.isPrintable } }
}

extension KeyedDecodingContainer {
    /// Decodes a required field.
    ///
    /// - Throws: ``ReceiptError/missingRequiredField(_:)`` if `key` is absent or null.
    func required<Value: Decodable>(_ key: Key, _ field: ReceiptField) throws -> Value {
        guard let value = try decodeIfPresent(Value.self, forKey: key) else {
            throw ReceiptError.missingRequiredField(field)
        }
        return value
    }
}
