import Foundation
import KioskKit
import KioskTestSupport
import ProximityReader
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing

@Suite(.simulatedTime, .timeLimit(.minutes(5))) @MainActor struct OfflinePaymentManagerTests {
    private func bench() async throws -> KioskBench {
        try await KioskBench(isPrepared: false) {
            $0.storeAndForward = .init(limits: ["EUR": .init(perPayment: 100, total: 1000)])
        }
    }

    private func token(_ bench: KioskBench) async throws -> PaymentCardReader.Token {
        PaymentCardReader.Token(rawValue: try await bench.psp.fetchReaderToken())
    }

    private func manager(_ bench: KioskBench) throws -> OfflinePaymentManager {
        var pace = PaymentForwarder.Pace()
        (pace.attempts, pace.interval) = (1, .zero)
        return try OfflinePaymentManager(psp: bench.psp, reader: bench.reader, pace: pace)
    }

    @Test("payments are stored, counted and forwarded, and what fails is said")
    func course() async throws {
        let bench = try await bench()
        let manager = try manager(bench)
        await #expect(throws: TapToPayError.notInitialized) {
            try await manager.acceptPayment(amount: 1, currency: "EUR")
        }
        #expect(manager.errorMessage?.contains("not ready") == true)
        try await manager.initialize(token: token(bench))
        #expect(manager.errorMessage == nil && manager.pendingTransactionCount == 0)
        try bench.insert()
        let id = try await manager.acceptPayment(amount: 12.34, currency: "eur").id
        #expect(manager.pendingTransactionCount == 1 && manager.pendingBatchCount == 0)
        #expect(await thrown { try await manager.acceptPayment(amount: 101, currency: "EUR") } == "readNotAllowed")
        #expect(manager.pendingTransactionCount == 1)

        // It charges, and does not answer; nor what it is asked of the payment.
        bench.psp.batches.state.withLock { ($0.script, $0.amount) = ([.unanswered], 12.34) }
        await bench.psp.setLookups(false)
        await #expect(throws: PaymentServiceError.noAnswer("not asked")) {
            try await manager.syncPendingTransactions()
        }
        #expect(manager.errorMessage?.contains("did not answer") == true && manager.lastReport == .init())
        #expect(manager.pendingTransactionCount == 1 && manager.pendingBatchCount == 1 && !manager.isForwarding)
        try await manager.syncPendingTransactions()
        #expect(manager.lastReport?.approved == 1 && manager.errorMessage == nil)
        #expect(manager.pendingTransactionCount == 0 && manager.pendingBatchCount == 0)
        #expect(bench.psp.batches.charges.mapValues(\.count) == [id: 1])
    }

    @Test("a card that declines is not taken for a payment, though it comes as a result")
    func declined() async throws {
        var options = PaymentCardReader.Options()
        options.includeErrorInReadResult = true
        let bench = try await KioskBench(options: options, isPrepared: false) {
            $0.storeAndForward = .init(limits: ["EUR": .init(perPayment: 100, total: 1000)])
        }
        let manager = try manager(bench)
        try await manager.initialize(token: token(bench))
        try bench.insert("visa-decline")
        #expect(await thrown { try await manager.acceptPayment(amount: 1, currency: "EUR") } == "paymentCardDeclined")
        #expect(manager.pendingTransactionCount == 0)
    }

    @Test("a session of the guide's spelling stores, also with a token that has expired since; a bad token is told")
    func sessions() async throws {
        let bench = try await bench()
        try bench.insert()
        let token = try await token(bench)
        try await bench.reader.linkAccount(using: token)
        await bench.psp.setTokenLifetime(60)
        let short = PaymentCardReader.Token(rawValue: try await bench.psp.fetchReaderToken())
        // Before any preparation there is nothing that payments could be stored after.
        bench.passTime(61)
        #expect(
            await thrown { _ = try await StoreAndForwardPaymentCardReaderSession(reader: bench.reader, token: short) }
                == "storeAndForwardNotAllowed")
        let store = try bench.reader.fetchPaymentCardReaderStore()
        for (number, token) in [token, short].enumerated() {
            let session = try await StoreAndForwardPaymentCardReaderSession(reader: bench.reader, token: token)
            try await session.prepare()
            _ = try await session.readPaymentCard(PaymentCardTransactionRequest(amount: 1, currencyCode: "EUR"))
            #expect(try await store.fetchStoredPaymentCardReadResultCount() == number + 1)
            #expect(try await store.status.totalTransactionCount == number + 1)
            bench.device.remove()
            try bench.insert()
        }
        // One that does not store is as it was.
        let online = try await PaymentCardReaderSession(reader: bench.reader, token: token)
        _ = try await online.readPaymentCard(PaymentCardTransactionRequest(amount: 1, currencyCode: "EUR"))
        #expect(try await store.fetchStoredPaymentCardReadResultCount() == 2)
        let forged = PaymentCardReader.Token(rawValue: token.rawValue + "x")
        #expect(
            await thrown { _ = try await StoreAndForwardPaymentCardReaderSession(reader: bench.reader, token: forged) }
                == "invalidReaderToken")
    }

    @Test("what the application attaches to a payment goes to the payment service with it")
    func attachment() async throws {
        let bench = try await bench()
        let manager = try manager(bench)
        try await manager.initialize(token: token(bench))
        let order = Data("order 7".utf8)
        try bench.insert()
        try await manager.acceptPayment(amount: 1, currency: "EUR", attachment: order)
        let batch = try #require(try await bench.reader.fetchPaymentCardReaderStore().allBatches().first)
        let json = try JSONSerialization.jsonObject(with: batch.data) as? [String: Any]
        let payments = try #require(json?["payments"] as? [[String: Any]])
        #expect(payments.map { $0["attachment"] as? String } == [order.base64EncodedString()])
    }

    @Test("the guide's names of the store: one batch that stays, its data, and no token but the payment service's")
    func store() async throws {
        let bench = try await bench()
        let manager = try manager(bench)
        try await manager.initialize(token: token(bench))
        let store = try bench.reader.fetchPaymentCardReaderStore()
        #expect(try await store.allBatches().isEmpty)
        try bench.insert()
        try await manager.acceptPayment(amount: 1, currency: "EUR")
        let batch = try #require(try await store.allBatches().first)
        #expect(try await store.allBatches().map(\.id) == [batch.id])
        let status = try await store.status
        #expect(status.batchCount == 1 && status.totalTransactionCount == 1)
        #expect(await thrown { _ = try batch.deletionToken } == "storeAndForwardDeletionTokenInvalid")
        // Whoever has it may have sent it.
        #expect(await thrown { try await store.resetBatchState() } == "notAllowed")
        let json = try JSONSerialization.jsonObject(with: batch.data) as? [String: Any]
        #expect(json?["id"] as? String == batch.id && json?["count"] as? Int == 1)
        let result = try await bench.psp.submitBatch(
            batch.data, from: bench.reader.readerIdentifier, idempotencyKey: "k")
        let token = StoreAndForwardBatchDeletionToken(rawValue: try #require(result.deletionToken))
        #expect(try await store.delete(using: token) == 0)
    }
}
