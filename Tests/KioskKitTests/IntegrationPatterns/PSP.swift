// What the block on store and forward uses, and the guide declares nowhere.
import Foundation
import KioskKit

nonisolated(unsafe) var psp: any KioskKit.PaymentServiceProvider = Nobody()

private struct Nobody: KioskKit.PaymentServiceProvider {
    func fetchReaderToken() async throws -> String { throw error }
    func processPayment(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> PaymentResult { throw error }
    func processRefund(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> RefundResult { throw error }
    func result(for idempotencyKey: String) async throws -> PaymentResult? { throw error }
    func reverse(idempotencyKey: String, amount: Decimal?, currency: String?) async throws { throw error }
    func submitBatch(_ batch: Data, from reader: String, idempotencyKey: String) async throws -> BatchResult {
        throw error
    }
    private var error: PaymentServiceError { .noAnswer("there is none") }
}
