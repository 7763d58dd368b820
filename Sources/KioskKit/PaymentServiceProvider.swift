import Crypto
public import Foundation

/// A payment service: what signs tokens for the reader, opens card data and moves money.
///
/// Each call that moves money has an idempotency key.  The service answers a key that it knows as it did the first time, and
/// does nothing: so a call whose answer was lost is made again, with its key, and nobody pays twice.
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

    /// - Returns: also for a refund that was declined.
    /// - Throws: ``PaymentServiceError``.
    func processRefund(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> RefundResult

    /// Hands over payments that were stored, as JSON.
    ///
    /// - Returns: the token that allows to delete them here.
    /// - Throws: ``PaymentServiceError``.
    func submitBatch(_ batch: Data, idempotencyKey: String) async throws -> String
}

extension PaymentServiceProvider {
    /// With a key of the card data: they are sealed anew for each read, so that one read is one payment.
    public func processPayment(cardData: String, amount: Decimal, currency: String) async throws -> PaymentResult {
        try await processPayment(
            cardData: cardData, amount: amount, currency: currency, idempotencyKey: Self.key(Data(cardData.utf8)))
    }

    /// With a key of the card data: they are sealed anew for each read, so that one read is one refund.
    public func processRefund(cardData: String, amount: Decimal, currency: String) async throws -> RefundResult {
        try await processRefund(
            cardData: cardData, amount: amount, currency: currency, idempotencyKey: Self.key(Data(cardData.utf8)))
    }

    /// With a key of the batch's bytes.
    public func submitBatch(_ batch: Data) async throws -> String {
        try await submitBatch(batch, idempotencyKey: Self.key(batch))
    }

    private static func key(_ data: Data) -> String {
        SHA256.hash(data: data).map { String(format: "%02x", $0) }.joined()
    }
}

/// What a payment service has decided.
public struct PaymentResult: Sendable, Hashable, Codable, Identifiable {
    public enum Status: String, Sendable, Hashable, Codable {
        case approved
        case declined
    }

    /// The payment service's name for it.
    public let id: String
    public let status: Status
    /// Field 39 of ISO 8583: `00`, `05`, `51`; nil if the service does not tell.
    public let responseCode: String?
    /// For a person; nil if the service does not tell.
    public let message: String?

    public init(id: String, status: Status, responseCode: String? = nil, message: String? = nil) {
        self.id = id
        self.status = status
        self.responseCode = responseCode
        self.message = message
    }
}

/// Of a refund the same is to be said as of a payment.
public typealias RefundResult = PaymentResult

/// Why a payment service has decided nothing, or its decision is not known.
public enum PaymentServiceError: Error, Hashable, Sendable {
    /// The call may have been carried out.  To be made again, with its key.
    case noAnswer(String)
    /// Nothing was done, and the same call will fail again.
    case refused(code: String, message: String)
}

extension PaymentServiceError: LocalizedError, CustomStringConvertible {
    public var description: String {
        switch self {
        case .noAnswer(let reason): "The payment service did not answer: \(reason). Ask again, with the same key."
        case .refused(let code, let message): "The payment service refused the call (\(code)): \(message)"
        }
    }
    public var errorDescription: String? { description }
}
