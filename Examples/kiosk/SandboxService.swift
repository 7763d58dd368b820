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
        return try JSONDecoder().decode(Answer.self, from: await post("reader-tokens", Data("{}".utf8), key: nil)).token
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

    func submitBatch(_ batch: Data, idempotencyKey: String) async throws -> String {
        struct Answer: Decodable { let deletionToken: String }
        let answer = try await post("batches", batch, key: idempotencyKey)
        return try JSONDecoder().decode(Answer.self, from: answer).deletionToken
    }

    private func charge(
        _ resource: String, _ cardData: String, _ amount: Decimal, _ currency: String, _ key: String
    ) async throws -> PaymentResult {
        struct Charge: Encodable { let cardData: String, amount: String, currency: String }
        let body = try JSONEncoder().encode(
            Charge(cardData: cardData, amount: amount.description, currency: currency))
        return try JSONDecoder().decode(PaymentResult.self, from: await post(resource, body, key: key))
    }

    /// - Throws: `PaymentServiceError`.
    private func post(_ resource: String, _ body: Data, key: String?) async throws -> Data {
        struct Failure: Decodable {
            struct Reason: Decodable { let code: String, message: String }
            let error: Reason
        }
        var request = URLRequest(url: address.appending(path: resource))
        request.httpMethod = "POST"
        request.httpBody = body
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        if let key { request.setValue(key, forHTTPHeaderField: "Idempotency-Key") }
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
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        guard status != 200 else { return data }
        guard (400..<500).contains(status), let failure = try? JSONDecoder().decode(Failure.self, from: data) else {
            throw PaymentServiceError.noAnswer("status \(status)")
        }
        throw PaymentServiceError.refused(code: failure.error.code, message: failure.error.message)
    }
}
