public import CardReceipts
import Crypto
public import EMVContactless
public import Foundation

/// A payment service: it signs tokens for the reader, opens card data, and moves money.
///
/// Each call that moves money has an idempotency key.  The service must answer a key that it knows as it did the first
/// time, without acting again.  A call whose answer was lost is then repeated with its key, and nobody pays twice.
///
/// Only ``PaymentServiceError/refused(code:message:)`` and ``PaymentServiceError/notAuthorized(_:)`` mean that a call
/// had no effect.  After any other error, of whatever type, the call may have been carried out.
public protocol PaymentServiceProvider: Sendable {
    /// Returns a token for the reader: a JSON Web Token.
    func fetchReaderToken() async throws -> String

    /// Charges a card.
    ///
    /// - Parameters:
    ///   - cardData: sealed for the payment service: a compact JWE.
    ///   - amount: in the currency's major unit: 12.34.
    ///   - currency: the ISO 4217 code: `EUR`.
    ///   - idempotencyKey: the same for each repetition of the call, and for no other call.
    /// - Returns: the decision, whether approved or declined.
    /// - Throws: ``PaymentServiceError``.
    func processPayment(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> PaymentResult

    /// Refunds to a card that was read for the purpose.
    ///
    /// - Returns: the decision, whether approved or declined.
    /// - Throws: ``PaymentServiceError``.
    func processRefund(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> RefundResult

    /// Returns the decision under a key, including those for payments of a batch; nil if the service has decided
    /// nothing under it.
    ///
    /// - Throws: ``PaymentServiceError``.
    func result(for idempotencyKey: String) async throws -> PaymentResult?

    /// Reverses the payment that was approved under a key.  If there is none, there will be none: a call with this key
    /// that is still on its way is declined when it arrives.
    ///
    /// - Parameters:
    ///   - idempotencyKey: the key of the payment.
    ///   - amount: in the currency's major unit, for a service that does not know the key: it then reports this amount
    ///     as declined.  Nil if only the key is known.
    ///   - currency: the ISO 4217 code; likewise.
    /// - Throws: ``PaymentServiceError``.
    func reverse(idempotencyKey: String, amount: Decimal?, currency: String?) async throws

    /// Submits stored payments: a `StoreAndForwardBatch` as JSON.
    ///
    /// Within a batch each payment's `id` is its key: a payment that arrives in two batches is charged once.
    ///
    /// - Parameters:
    ///   - batch: the encoded batch.
    ///   - reader: the reader for which the deletion token is issued.
    ///   - idempotencyKey: the same for each repetition of the call, and for no other batch.
    /// - Throws: ``PaymentServiceError``; `refused` for a batch of which nothing was taken, because of its contents.
    func submitBatch(_ batch: Data, from reader: String, idempotencyKey: String) async throws -> BatchResult
}

extension PaymentServiceProvider {
    /// Charges a card.  The key is the read's `id` if the card data contains it, as this package's does; otherwise a
    /// hash of the card data, which is sealed anew for each read.  One read is thus one payment.
    public func processPayment(cardData: String, amount: Decimal, currency: String) async throws -> PaymentResult {
        try await processPayment(
            cardData: cardData, amount: amount, currency: currency, idempotencyKey: Self.key(cardData))
    }

    /// Refunds to a card, with the key of ``processPayment(cardData:amount:currency:)``.
    public func processRefund(cardData: String, amount: Decimal, currency: String) async throws -> RefundResult {
        try await processRefund(
            cardData: cardData, amount: amount, currency: currency, idempotencyKey: Self.key(cardData))
    }

    private static func key(_ cardData: String) -> String {
        // RFC 7516, 3.1: a compact JWE begins with its protected header.
        let header = cardData.prefix { $0 != "." }.replacing("-", with: "+").replacing("_", with: "/")
        let padding = String(repeating: "=", count: (4 - header.count % 4) % 4)
        if let json = Data(base64Encoded: header + padding),
            let read = try? JSONDecoder().decode(CardDataHeader.self, from: json).rid, !read.isEmpty
        {
            return read
        }
        return SHA256.hash(data: Data(cardData.utf8)).map { String(format: "%02x", $0) }.joined()
    }
}

private struct CardDataHeader: Decodable { let rid: String? }

/// A payment service's result for a payment.
public struct PaymentResult: Sendable, Hashable, Codable, Identifiable {
    /// The status of a payment.  Only ``approved`` and ``declined`` are final: after any other, known here or not, the
    /// payment may still become either.
    public struct Status: RawRepresentable, Sendable, Hashable, Codable, CustomStringConvertible {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }

        public static let approved = Status(rawValue: "approved")
        public static let declined = Status(rawValue: "declined")
        public static let processing = Status(rawValue: "processing")
        public static let requiresPaymentMethod = Status(rawValue: "requires_payment_method")

        public var isFinal: Bool { self == .approved || self == .declined }
        public var description: String { rawValue }
    }

    /// The payment service's identifier of the payment.
    public let id: String
    public let status: Status
    /// The idempotency key of the payment; nil if the service does not report it.
    public let idempotencyKey: String?
    /// The amount in the currency's major unit: 12.34; nil if the service does not report it.
    public let amount: Decimal?
    /// The ISO 4217 code of the currency: `EUR`; nil if the service does not report it.
    public let currency: String?
    /// Field 39 of ISO 8583, the response code: `00`, `05`, `51`; nil if the service does not report it.
    public let responseCode: String?
    /// A message for a person; nil if there is none.
    public let message: String?
    /// The last four digits of the account number, for a receipt; nil if the service does not report them.
    public let lastFour: String?
    /// The kernel's facts about the read, for a receipt, which ``TapToPayService`` adds to the service's answer; nil
    /// without a read in this run of the program.
    public internal(set) var receiptFacts: ReceiptFacts?
    /// The brand of a card whose number the customer entered by hand, for a receipt; nil for a card that was read.
    public let keyedBrand: CardBrand?
    /// The part of the amount that the customer pays for the way to pay, in the currency's major unit; nil for none.
    public var surcharge: Decimal?

    /// Creates a result.  Of `lastFour`, anything but four digits is dropped.
    public init(
        id: String, status: Status, idempotencyKey: String? = nil, amount: Decimal? = nil, currency: String? = nil,
        responseCode: String? = nil, message: String? = nil, lastFour: String? = nil, keyedBrand: CardBrand? = nil,
        surcharge: Decimal? = nil
    ) {
        let isFour = lastFour?.utf8.count == 4 && lastFour?.utf8.allSatisfy { (0x30...0x39).contains($0) } == true
        self.lastFour = isFour ? lastFour : nil
        self.id = id
        self.status = status
        self.idempotencyKey = idempotencyKey
        self.amount = amount
        self.currency = currency
        self.responseCode = responseCode
        self.message = message
        self.keyedBrand = keyedBrand
        self.surcharge = surcharge
    }

    /// Returns the reason for which the result does not settle a payment; nil if it does: it names the payment, its
    /// amount and its currency, and is final.
    ///
    /// - Parameters:
    ///   - key: the idempotency key of the payment.
    ///   - amount: in the currency's major unit.
    ///   - currency: the ISO 4217 code in either case.
    public func objection(of key: String, _ amount: Decimal, _ currency: String) -> String? {
        if idempotencyKey != key { return "the answer is about another payment" }
        if self.amount != amount { return "the answer is about another amount" }
        if self.currency?.uppercased() != currency.uppercased() { return "the answer is about another currency" }
        return status.isFinal ? nil : "it is not final: \(status)"
    }
}

/// The result of a refund, which has the same properties.
public typealias RefundResult = PaymentResult

/// A payment service's result for a batch.
public struct BatchResult: Sendable, Hashable {
    /// The results by the payment's `id`.  A missing payment is undecided, as is one whose result does not name the
    /// payment, its amount and its currency (``PaymentResult/objection(of:_:_:)``).
    public let payments: [String: PaymentResult]
    /// The permission to delete the decided payments; nil if there is none yet.
    public let deletionToken: String?

    public init(payments: [String: PaymentResult], deletionToken: String?) {
        self.payments = payments
        self.deletionToken = deletionToken
    }
}

/// The reason for which a payment service has not decided, or its decision is unknown.
///
/// ``refused(code:message:)`` concerns the request.  ``notAuthorized(_:)`` and ``unavailable(_:)`` concern its sender,
/// and say nothing about a payment.
public enum PaymentServiceError: Error, Hashable, Sendable {
    /// The call may have been carried out.  Repeat it with its key.
    case noAnswer(String)
    /// The call had no effect, and will have none if it is repeated.
    case refused(code: String, message: String)
    /// The service did not look at the call: it does not know the sender, or no longer.
    case notAuthorized(String)
    /// The service accepts nothing from this merchant for now.
    case unavailable(String)
    /// The request is larger than the service accepts.
    case tooLarge(String)

    /// Creates the error for an HTTP answer (RFC 9110) that is not the expected result.
    ///
    /// A status below 400 means that the body was not understood.
    ///
    /// - Parameters:
    ///   - httpStatus: the status code.
    ///   - code: the service's code from the body; nil if the body is not the service's, such as a proxy's page.
    ///   - message: likewise; for a person, without card data.
    public init(httpStatus: Int, code: String? = nil, message: String? = nil) {
        let reason = "status \(httpStatus)\(message.map { ", \($0)" } ?? "")"
        self =
            switch httpStatus {
            case 401, 403, 407: .notAuthorized(reason)
            case 404, 429: .unavailable(reason)
            case 413: .tooLarge(reason)
            // Timeout, conflict, too early: these say nothing about the calls before this one.
            case 408, 409, 425: .noAnswer(reason)
            case 400..<500: code.map { .refused(code: $0, message: message ?? "") } ?? .noAnswer(reason)
            default: .noAnswer(reason)
            }
    }
}

extension PaymentServiceError: LocalizedError, CustomStringConvertible {
    public var description: String {
        switch self {
        case .noAnswer(let reason): "The payment service did not answer: \(reason). Ask again, with the same key."
        case .refused(let code, let message):
            "The payment service refused the call (\(code)): \(message) It did nothing: correct what it says, and try again."
        case .notAuthorized(let reason):
            "The payment service does not know this terminal, or no longer: \(reason). Renew its credentials."
        case .unavailable(let reason):
            "The payment service takes nothing from this merchant for now: \(reason). Ask it why, and try again later."
        case .tooLarge(let reason):
            "More was sent at once than the payment service takes: \(reason). Send less at once."
        }
    }
    public var errorDescription: String? { description }
}
