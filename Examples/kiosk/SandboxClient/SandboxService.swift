package import Foundation
import FoundationNetworking
package import KioskKit

/// A payment service with the protocol of psp-sandbox: see `psp-sandbox --help`.
package struct SandboxService: PaymentServiceProvider {
    package let address: URL
    /// The longest wait for an answer.
    private let patience: TimeInterval

    package init(address: URL, patience: TimeInterval = 30) { (self.address, self.patience) = (address, patience) }

    package func fetchReaderToken() async throws -> String {
        struct Answer: Decodable { let token: String }
        return try await ask("POST", "reader-tokens", Data("{}".utf8), as: Answer.self).token
    }

    package func processPayment(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> PaymentResult {
        try await charge("payments", cardData, amount, currency, idempotencyKey)
    }

    package func processRefund(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> RefundResult {
        try await charge("refunds", cardData, amount, currency, idempotencyKey)
    }

    package func result(for idempotencyKey: String) async throws -> PaymentResult? {
        try await ask("GET", "decision", key: idempotencyKey, as: Decision.self).payment?.result
    }

    package func reverse(idempotencyKey: String, amount: Decimal?, currency: String?) async throws {
        struct Reversal: Encodable { let amount: String?, currency: String? }
        let body = try JSONEncoder().encode(Reversal(amount: amount?.description, currency: currency))
        _ = try await ask("POST", "reversals", body, key: idempotencyKey, as: Decision.self)
    }

    package func submitBatch(_ batch: Data, from reader: String, idempotencyKey: String) async throws -> BatchResult {
        struct Answer: Decodable {
            let deletionToken: String
            let payments: [Payment]
        }
        let answer = try await ask("POST", "batches", batch, key: idempotencyKey, reader: reader, as: Answer.self)
        return BatchResult(
            payments: Dictionary(answer.payments.map { ($0.idempotencyKey, $0.result) }) { first, _ in first },
            deletionToken: answer.deletionToken)
    }

    private struct Decision: Decodable { let payment: Payment? }

    private struct Payment: Decodable {
        let id: String, status: PaymentResult.Status, idempotencyKey: String
        let amount: String?, currency: String?, responseCode: String?, message: String?
        /// The account number, masked.
        let card: String?

        var result: PaymentResult {
            PaymentResult(
                id: id, status: status, idempotencyKey: idempotencyKey,
                amount: amount.flatMap { Decimal(string: $0, locale: Locale(identifier: "en_US_POSIX")) },
                currency: currency, responseCode: responseCode, message: message,
                lastFour: card.map { String($0.suffix(4)) })
        }
    }

    private func charge(
        _ resource: String, _ cardData: String, _ amount: Decimal, _ currency: String, _ key: String
    ) async throws -> PaymentResult {
        struct Charge: Encodable { let cardData: String, amount: String, currency: String }
        let body = try JSONEncoder().encode(
            Charge(cardData: cardData, amount: amount.description, currency: currency))
        return try await ask("POST", resource, body, key: key, as: Payment.self).result
    }

    /// - Throws: `PaymentServiceError`.
    private func ask<Answer: Decodable>(
        _ method: String, _ resource: String, _ body: Data? = nil, key: String? = nil, reader: String? = nil,
        as type: Answer.Type
    ) async throws -> Answer {
        var request = URLRequest(url: address.appending(path: resource))
        request.httpMethod = method
        request.httpBody = body
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        if let key { request.setValue(key, forHTTPHeaderField: "Idempotency-Key") }
        if let reader { request.setValue(reader, forHTTPHeaderField: "Reader-Identifier") }
        // Each request uses its own session and connection.  A reused connection may break before the answer; libcurl
        // then sends the request again by itself, and Foundation can no longer provide its body.
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = patience
        let session = URLSession(configuration: configuration)
        defer { session.finishTasksAndInvalidate() }
        let (data, response): (Data, URLResponse)
        do {
            (data, response) = try await session.data(for: request)
        } catch {
            throw PaymentServiceError.noAnswer("\(Swift.type(of: error))")
        }
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        // A longer answer does not come from this service.
        let body = data.count <= Self.maximumLength ? data : Data()
        // The request was executed, whatever the answer means.
        if status == 200, let answer = try? JSONDecoder().decode(type, from: body) { return answer }
        let reason = try? JSONDecoder().decode(Failure.self, from: body).error
        throw PaymentServiceError(httpStatus: status, code: reason?.code, message: reason?.message)
    }

    /// The greatest length of an answer, in bytes.
    private static let maximumLength = 8 << 20

    private struct Failure: Decodable {
        struct Reason: Decodable { let code: String, message: String }
        let error: Reason
    }
}
