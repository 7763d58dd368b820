import CardReceipts
import Foundation

extension JSONEncoder {
    /// The encoder of transaction files and kept receipts.
    static var ofReceipts: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .iso8601
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return encoder
    }

    func text(of value: some Encodable) throws -> String { String(decoding: try encode(value), as: UTF8.self) }
}

/// The facts of a payment that its shop and its payment service know: the content of a receipt.
struct TransactionFile: Codable {
    struct Refund: Codable {
        /// In the currency's minor unit.
        let amount: UInt
        let date: Date
    }

    let merchant: ReceiptMerchant
    let order: ReceiptOrder
    let intent: PaymentIntent
    /// The refund; nil for the payment itself.
    let refund: Refund?
    /// The time zone of the place of sale, as the time zone database names it; nil for this machine's.
    let timeZone: String?

    enum CodingKeys: String, CodingKey {
        case merchant, order, refund
        case intent = "payment_intent"
        case timeZone = "time_zone"
    }

    func content() throws -> ReceiptContent {
        let zone = timeZone.map { TimeZone(identifier: $0) } ?? .current
        guard let zone else {
            throw DecodingError.dataCorrupted(.init(codingPath: [CodingKeys.timeZone], debugDescription: ""))
        }
        guard let refund else {
            return try ReceiptContent(merchant: merchant, order: order, intent: intent, timeZone: zone)
        }
        guard let charge = intent.charges.first(where: { $0.status == .succeeded }) else { throw ReceiptError.notPaid }
        return try ReceiptContent(
            merchant: merchant, order: order, refundOf: charge, amount: refund.amount, date: refund.date,
            timeZone: zone)
    }

    /// Returns the content of a receipt: from a transaction, or from an existing receipt.
    ///
    /// - Throws: `DecodingError`, `ReceiptError`.
    static func content(of data: Data) throws -> ReceiptContent {
        struct Kind: Decodable {
            let isTransaction: Bool

            init(from decoder: any Decoder) throws {
                let keys = try decoder.container(keyedBy: CodingKeys.self)
                isTransaction = keys.contains(.intent) || keys.contains(.order)
            }
        }
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        guard try decoder.decode(Kind.self, from: data).isTransaction else {
            return try decoder.decode(ReceiptContent.self, from: data)
        }
        return try decoder.decode(TransactionFile.self, from: data).content()
    }
}
