import ContactlessMetrics
import Foundation
import Waiting

/// A payment service whose calls are counted and timed.
struct MeasuredService: PaymentServiceProvider {
    let service: any PaymentServiceProvider

    func fetchReaderToken() async throws -> String {
        try await measure(.token) { try await service.fetchReaderToken() }
    }

    func processPayment(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> PaymentResult {
        try await measure(.payment) {
            try await service.processPayment(
                cardData: cardData, amount: amount, currency: currency, idempotencyKey: idempotencyKey)
        }
    }

    func processRefund(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> RefundResult {
        try await measure(.refund) {
            try await service.processRefund(
                cardData: cardData, amount: amount, currency: currency, idempotencyKey: idempotencyKey)
        }
    }

    func result(for idempotencyKey: String) async throws -> PaymentResult? {
        try await measure(.inquiry) { try await service.result(for: idempotencyKey) }
    }

    func reverse(idempotencyKey: String, amount: Decimal?, currency: String?) async throws {
        try await measure(.reversal) {
            try await service.reverse(idempotencyKey: idempotencyKey, amount: amount, currency: currency)
        }
    }

    func submitBatch(_ batch: Data, from reader: String, idempotencyKey: String) async throws -> BatchResult {
        try await measure(.batch) {
            try await service.submitBatch(batch, from: reader, idempotencyKey: idempotencyKey)
        }
    }

    private func measure<Value>(
        _ call: MetricTable.ServiceCall, _ body: () async throws -> Value
    ) async throws -> Value {
        let start = Time.now
        var answer = MetricTable.Answer.answered
        defer {
            metrics.serviceCalls.add(call, answer)
            metrics.serviceTime.add(call, since: start)
        }
        do {
            return try await body()
        } catch {
            answer = MetricTable.Answer(error)
            throw error
        }
    }
}

extension MetricTable.Answer {
    fileprivate init(_ error: any Error) {
        self =
            switch error as? PaymentServiceError {
            case .refused: .refused
            case .notAuthorized: .notAuthorized
            case .unavailable: .unavailable
            case .tooLarge: .tooLarge
            case .noAnswer, nil: .noAnswer
            }
    }
}
