import Crypto
public import Foundation

/// A payment service: what signs tokens for the reader, opens card data and moves money.
///
/// Each call that moves money has an idempotency key.  The service answers a key that it knows as it did the first time, and
/// does nothing: so a call whose answer was lost is made again, with its key, and nobody pays twice.
///
/// Of what these calls throw, ``PaymentServiceError/refused(code:message:)`` and ``PaymentServiceError/notAuthorised(_:)`` alone
/// say that the call has done nothing.  After any other error, of whatever type, it may have been carried out.
public protocol PaymentServiceProvider: Sendable {
    /// A token for the reader: a JSON web token.
    func fetchReaderToken() async throws -> String

    /// - Parameter amount: in the currency's major unit: 12.34.
    /// - Parameter currency: of ISO 4217: `EUR`.
    /// - Returns: also for a payment that was declined.
    /// - Throws: ``PaymentServiceError``.
    func processPayment(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> PaymentResult

    /// Gives money to a card that was read for a refund.
    ///
    /// - Returns: also for a refund that was declined.
    /// - Throws: ``PaymentServiceError``.
    func processRefund(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> RefundResult

    /// What was decided under a key, also for a payment of a batch; nil if the service has decided nothing under it.
    ///
    /// - Throws: ``PaymentServiceError``.
    func result(for idempotencyKey: String) async throws -> PaymentResult?

    /// Takes back what was approved under a key.  Where nothing was, nothing will be: a call with this key that is still on its
    /// way is declined when it comes.
    ///
    /// - Parameters:
    ///   - amount: in the currency's major unit, for a service that has not heard of the key: it says of this amount that it is
    ///     declined when it is asked.  Nil where the key alone is known.
    ///   - currency: of ISO 4217; likewise.
    /// - Throws: ``PaymentServiceError``.
    func reverse(idempotencyKey: String, amount: Decimal?, currency: String?) async throws

    /// Hands over payments that were stored: a `StoreAndForwardBatch` as JSON.
    ///
    /// In a batch each payment's `id` is its own key: one that comes in two batches is made once.
    ///
    /// - Parameter reader: the reader that the deletion token is for.
    /// - Throws: ``PaymentServiceError``; `refused` for a batch of which nothing was taken, because of what is in it.
    func submitBatch(_ batch: Data, from reader: String, idempotencyKey: String) async throws -> BatchResult
}

extension PaymentServiceProvider {
    /// With the read's `id` as the key, where the card data name it, as those of this package do; else with a hash of them:
    /// they are sealed anew for each read, so that one read is one payment.
    public func processPayment(cardData: String, amount: Decimal, currency: String) async throws -> PaymentResult {
        try await processPayment(
            cardData: cardData, amount: amount, currency: currency, idempotencyKey: Self.key(cardData))
    }

    /// With the key that ``processPayment(cardData:amount:currency:)`` has.
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

/// What a payment service says of a payment.
public struct PaymentResult: Sendable, Hashable, Codable, Identifiable {
    /// How a payment stands.  Only ``approved`` and ``declined`` are final: after any other, known here or not, it may still
    /// become either.
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

    /// The payment service's name for it.
    public let id: String
    public let status: Status
    /// The key of the payment that this is about; nil if the service does not tell.
    public let idempotencyKey: String?
    /// In the currency's major unit: 12.34; nil if the service does not tell.
    public let amount: Decimal?
    /// Of ISO 4217: `EUR`; nil if the service does not tell.
    public let currency: String?
    /// Field 39 of ISO 8583: `00`, `05`, `51`; nil if the service does not tell.
    public let responseCode: String?
    /// For a person; nil if the service does not tell.
    public let message: String?

    public init(
        id: String, status: Status, idempotencyKey: String? = nil, amount: Decimal? = nil, currency: String? = nil,
        responseCode: String? = nil, message: String? = nil
    ) {
        self.id = id
        self.status = status
        self.idempotencyKey = idempotencyKey
        self.amount = amount
        self.currency = currency
        self.responseCode = responseCode
        self.message = message
    }

    /// Why this does not settle a payment; nil if it does: it names the payment, its amount and its currency, and is final.
    ///
    /// - Parameters:
    ///   - amount: in the currency's major unit.
    ///   - currency: of ISO 4217, in upper or lower case.
    public func objection(of key: String, _ amount: Decimal, _ currency: String) -> String? {
        if idempotencyKey != key { return "the answer is about another payment" }
        if self.amount != amount { return "the answer is about another amount" }
        if self.currency?.uppercased() != currency.uppercased() { return "the answer is about another currency" }
        return status.isFinal ? nil : "it is not final: \(status)"
    }
}

/// Of a refund the same is to be said as of a payment.
public typealias RefundResult = PaymentResult

/// What a payment service has made of a batch.
public struct BatchResult: Sendable, Hashable {
    /// By the payment's `id`.  One that is missing here is not decided, nor is one whose result does not name the payment, its
    /// amount and its currency (``PaymentResult/objection(of:_:_:)``).
    public let payments: [String: PaymentResult]
    /// The right to delete here what is decided; nil while there is none.
    public let deletionToken: String?

    public init(payments: [String: PaymentResult], deletionToken: String?) {
        self.payments = payments
        self.deletionToken = deletionToken
    }
}

/// Why a payment service has decided nothing, or its decision is not known.
///
/// ``refused(code:message:)`` is about what was sent.  ``notAuthorised(_:)`` and ``unavailable(_:)`` are about who has sent it,
/// and tell nothing of any payment.
public enum PaymentServiceError: Error, Hashable, Sendable {
    /// The call may have been carried out.  To be made again, with its key.
    case noAnswer(String)
    /// This call has done nothing, and will do nothing when it is made again.
    case refused(code: String, message: String)
    /// The service did not look at the call: it does not know who asks, or no longer.
    case notAuthorised(String)
    /// The service takes nothing from this merchant for now.
    case unavailable(String)
    /// More was sent at once than the service takes.
    case tooLarge(String)

    /// What an answer over HTTP (RFC 9110) means that is not the result asked for.
    ///
    /// A status below 400 is for a body that was not understood.
    ///
    /// - Parameters:
    ///   - code: the service's own, from the answer's body; nil for a body that is not the service's: a proxy's page.
    ///   - message: likewise; for a person, without card data.
    public init(httpStatus: Int, code: String? = nil, message: String? = nil) {
        let reason = "status \(httpStatus)\(message.map { ", \($0)" } ?? "")"
        self =
            switch httpStatus {
            case 401, 403, 407: .notAuthorised(reason)
            case 404, 429: .unavailable(reason)
            case 413: .tooLarge(reason)
            // Timeout, conflict, too early: nothing is known of the calls before this one.
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
        case .notAuthorised(let reason):
            "The payment service does not know this terminal, or no longer: \(reason). Renew its credentials."
        case .unavailable(let reason):
            "The payment service takes nothing from this merchant for now: \(reason). Ask it why, and try again later."
        case .tooLarge(let reason):
            "More was sent at once than the payment service takes: \(reason). Send less at once."
        }
    }
    public var errorDescription: String? { description }
}
