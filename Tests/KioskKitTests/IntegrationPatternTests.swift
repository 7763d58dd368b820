import Foundation
import ProximityReader
import SmartCardSimulator
import Synchronization
import Testing

import struct KioskKit.PaymentResult

@testable import IntegrationPatterns

/// The code blocks of an integration guide for Apple's module, as they stand there, on a virtual reader.
///
/// They use the reader of the process, and so one configuration: the suite's tests run one after the other.
@Suite(.serialized, .timeLimit(.minutes(5))) struct IntegrationPatternTests {
    private static let device = SoftwareACR122U()
    private static let psp = Result { () throws -> ScriptedService in
        let psp = try ScriptedService([])
        var configuration = try KioskBench.configuration(device, psp)
        configuration.storeAndForward = .init(limits: ["USD": .init(perPayment: 100, total: 1000)])
        try ProximityReaderSystem.bootstrap(configuration)
        IntegrationPatterns.psp = psp
        return psp
    }

    /// The guide's own protocol, which knows no idempotency keys.
    private struct Provider: IntegrationPatterns.PaymentServiceProvider {
        let psp: ScriptedService
        func fetchReaderToken() async throws -> String { try await psp.fetchReaderToken() }
        func processPayment(cardData: String, amount: Decimal, currency: String) async throws -> PaymentResult {
            try await psp.processPayment(cardData: cardData, amount: amount, currency: currency)
        }
        func processRefund(cardData: String, amount: Decimal, currency: String) async throws -> PaymentResult {
            try await psp.processRefund(cardData: cardData, amount: amount, currency: currency)
        }
    }

    private func insert() throws {
        let card = try #require(VirtualCards.named("visa"))
        Self.device.remove()
        Self.device.insert(card)
        Task { [events = PaymentCardReader().events] in
            for await event in events {
                guard case .removeCard = event else { continue }
                return Self.device.remove(card)
            }
        }
    }

    @Test("the service for any payment service charges a card, and the next one")
    func genericService() async throws {
        let psp = try Self.psp.get()
        let service = TapToPayService(psp: Provider(psp: psp))
        #expect(
            await thrown { _ = try await service.charge(amount: 12.34, currency: "USD") }?.contains("not ready") == true
        )
        try await service.initialize()
        let before = await psp.calls.count
        for _ in 0..<2 {
            try insert()
            #expect(try await service.charge(amount: 12.34, currency: "USD").status == .approved)
        }
        let calls = await psp.calls.dropFirst(before)
        #expect(calls.count == 2 && Set(calls.map(\.key)).count == 2)
        #expect(calls.allSatisfy { $0.currency == "USD" && $0.amount == 12.34 })
    }

    @Test("the view model reads a payment, and is ready for the next one")
    @MainActor func viewModel() async throws {
        let psp = try Self.psp.get()
        let model = PaymentViewModel()
        await model.setup(pspToken: try await psp.fetchReaderToken())
        #expect(model.isReady && model.errorMessage == nil)
        model.amount = 12.34
        try insert()
        await model.readPayment()
        #expect(model.transactionComplete && model.errorMessage == nil && !model.isProcessing)
        try await wait(for: "progress") { model.readProgress == 100 }
        // Its switch over errors knows the case by the guide's name.
        model.amount = 12.345
        await model.readPayment()
        #expect(model.errorMessage == "Invalid payment amount.")
        await model.setup(pspToken: "")
        #expect(model.errorMessage?.hasPrefix("Setup failed: The reader token is empty.") == true)
    }

    @Test(
        "the view model shows no error where the customer cancelled: the guide's case .cancelled is Apple's readCancelled"
    )
    @MainActor func viewModelCancelled() async throws {
        let psp = try Self.psp.get()
        let model = PaymentViewModel()
        await model.setup(pspToken: try await psp.fetchReaderToken())
        Self.device.remove()
        model.amount = 1
        let ready = Task { [events = PaymentCardReader().events] in
            for await event in events { if case .readyForTap = event { return } }
        }
        let read = Task { await model.readPayment() }
        await ready.value
        read.cancel()
        await read.value
        #expect(model.errorMessage == nil && !model.transactionComplete && !model.isProcessing)
    }

    @Test("a token is a token, whichever payment service it comes from")
    func tokens() async throws {
        let psp = try Self.psp.get()
        let reader = PaymentCardReader()
        let providers = TokenProviders(
            reader: reader, fetchStripeReaderToken: { try await psp.fetchReaderToken() },
            fetchAdyenReaderToken: { try await psp.fetchReaderToken() })
        let token = try await providers.tokenOfAdyen()
        if try await !reader.isAccountLinked(using: token) { try await reader.linkAccount(using: token) }
        let session = try await providers.sessionWithStripe()
        try insert()
        let result = try await session.readPaymentCard(
            PaymentCardTransactionRequest(amount: 1, currencyCode: "USD", for: .purchase))
        #expect(result.paymentCardData != nil)
    }

    @Test("the offline manager stores payments and forwards them; where an answer is lost, the next sync has it")
    @MainActor func offlineManager() async throws {
        let psp = try Self.psp.get()
        let manager = OfflinePaymentManager()
        let token = PaymentCardReader.Token(rawValue: try await psp.fetchReaderToken())
        let reader = PaymentCardReader()
        if try await !reader.isAccountLinked(using: token) { try await reader.linkAccount(using: token) }
        #expect(
            await thrown { try await manager.acceptPayment(amount: 1, currency: "USD") }?.contains("not ready") == true)
        try await manager.initialize(token: token)
        #expect(manager.pendingTransactionCount == 0 && manager.pendingBatchCount == 0)
        for _ in 0..<2 {
            try insert()
            try await manager.acceptPayment(amount: 12.34, currency: "USD")
        }
        #expect(manager.pendingTransactionCount == 2 && manager.pendingBatchCount == 0)
        let ids = try await ProximityReaderSystem.Ledger(of: PaymentCardReaderStore()).payments().map(\.id)
        psp.batches.state.withLock { $0.script = [.unanswered, .taken] }
        // The guide's block goes on where it fails.
        try await manager.syncPendingTransactions()
        #expect(manager.pendingTransactionCount == 2 && manager.pendingBatchCount == 1)
        try await manager.syncPendingTransactions()
        #expect(manager.pendingTransactionCount == 0 && manager.pendingBatchCount == 0)
        let calls = psp.batches.calls
        #expect(calls.map(\.payments) == [ids, ids] && Set(calls.map(\.key)).count == 1)
        #expect(psp.batches.charges.mapValues(\.count) == Dictionary(uniqueKeysWithValues: ids.map { ($0, 1) }))
    }

    @Test("the session manager, which holds no session, bears every phase")
    @MainActor func sessionManager() {
        let manager = ReaderSessionManager()
        for phase in [ScenePhase.background, .inactive, .active] { manager.handleScenePhase(phase) }
    }
}
