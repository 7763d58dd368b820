import Foundation
import FoundationNetworking
import KioskKit

/// A payment service that speaks as psp-sandbox does: see `psp-sandbox --help`.
struct SandboxService: PaymentServiceProvider {
    let address: URL
    /// How long to wait for an answer.
    var patience: TimeInterval = 30

    func fetchReaderToken() async throws -> String {
        struct Answer: Decodable { let token: String }
        return try await ask("POST", "reader-tokens", Data("{}".utf8), as: Answer.self).token
    }

    func processPayment(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> PaymentResult {
        try await charge("payments", cardData, amount, currency, idempotencyKey)
    }

    func processRefund(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> RefundResult {
        try await charge("refunds", cardData, amount, currency, idempotencyKey)
    }

    func result(for idempotencyKey: String) async throws -> PaymentResult? {
        try await ask("GET", "decision", key: idempotencyKey, as: Decision.self).payment
    }

    func reverse(idempotencyKey: String) async throws {
        _ = try await ask("POST", "reversals", key: idempotencyKey, as: Decision.self)
    }

    func submitBatch(_ batch: Data, from reader: String, idempotencyKey: String) async throws -> BatchResult {
        struct Answer: Decodable {
            struct Payment: Decodable { let idempotencyKey: String }
            let deletionToken: String
            let keys: [Payment]
            let results: [PaymentResult]
            enum CodingKeys: CodingKey { case deletionToken, payments }
            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: CodingKeys.self)
                deletionToken = try container.decode(String.self, forKey: .deletionToken)
                keys = try container.decode([Payment].self, forKey: .payments)
                results = try container.decode([PaymentResult].self, forKey: .payments)
            }
        }
        let answer = try await ask("POST", "batches", batch, key: idempotencyKey, reader: reader, as: Answer.self)
        return BatchResult(
            payments: Dictionary(zip(answer.keys.map(\.idempotencyKey), answer.results)) { first, _ in first },
            deletionToken: answer.deletionToken)
    }

    private struct Decision: Decodable { let payment: PaymentResult? }

    private func charge(
        _ resource: String, _ cardData: String, _ amount: Decimal, _ currency: String, _ key: String
    ) async throws -> PaymentResult {
        struct Charge: Encodable { let cardData: String, amount: String, currency: String }
        let body = try JSONEncoder().encode(
            Charge(cardData: cardData, amount: amount.description, currency: currency))
        return try await ask("POST", resource, body, key: key, as: PaymentResult.self)
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
        // A session, and so a connection, for each request.  One that was used before may break before it answers; then
        // libcurl sends the request again by itself, and Foundation has no body left to give it.
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = patience
        let session = URLSession(configuration: configuration)
        defer { session.finishTasksAndInvalidate() }
        let (data, response): (Data, URLResponse)
        do {
            (data, response) = try await session.data(for: request)
        } catch {
            throw PaymentServiceError.noAnswer(error.localizedDescription)
        }
        switch (response as? HTTPURLResponse)?.statusCode ?? 0 {
        case 200:
            do {
                return try JSONDecoder().decode(type, from: data)
            } catch {
                // It was done, whatever the answer means.
                throw PaymentServiceError.noAnswer("it said something else than it must")
            }
        case 401, 403: throw PaymentServiceError.notAuthorised(Self.reason(data)?.message ?? "it does not say why")
        // Timeout, conflict, too early, too many requests: nothing is known of the calls before this one.
        case let status where (400..<500).contains(status) && ![408, 409, 425, 429].contains(status):
            guard let reason = Self.reason(data) else { throw PaymentServiceError.noAnswer("status \(status)") }
            throw PaymentServiceError.refused(code: reason.code, message: reason.message)
        case let status:
            throw PaymentServiceError.noAnswer("status \(status) \(Self.reason(data)?.message ?? "")")
        }
    }

    private struct Failure: Decodable {
        struct Reason: Decodable { let code: String, message: String }
        let error: Reason
    }

    private static func reason(_ data: Data) -> Failure.Reason? {
        try? JSONDecoder().decode(Failure.self, from: data).error
    }
}
