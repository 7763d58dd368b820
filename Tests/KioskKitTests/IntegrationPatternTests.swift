import Crypto
import Foundation
import KioskTestSupport
import ProximityReader
import SmartCardSimulator
import Synchronization
import TestSupport
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
        configuration.passes = try KioskBench.passes()
        configuration.storeAndForward = .init(limits: ["USD": .init(perPayment: 100, total: 1000)])
        ProximityReaderSystem.bootstrap(try configuration.validated())
        IntegrationPatterns.psp = psp
        return psp
    }

    /// The guide's own protocol, which knows no idempotency keys.
    private struct Provider: IntegrationPatterns.PaymentServiceProvider, ChargingService {
        let psp: ScriptedService
        func fetchReaderToken() async throws -> String { try await psp.fetchReaderToken() }
        func processPayment(cardData: String, amount: Decimal, currency: String) async throws -> PaymentResult {
            try await psp.processPayment(cardData: cardData, amount: amount, currency: currency)
        }
        func processRefund(cardData: String, amount: Decimal, currency: String) async throws -> PaymentResult {
            try await psp.processRefund(cardData: cardData, amount: amount, currency: currency)
        }
    }

    private func insert(_ card: (any VirtualCard)? = VirtualCards.named("visa")) throws {
        let card = try #require(card)
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

    private actor Visits: VisitRecorder {
        private(set) var identifiers: [String] = []
        func recordVisit(identifier: String) { identifiers.append(identifier) }
    }

    @Test("the payment with loyalty reads pass and card in one tap, and is ready for the next one")
    func loyalty() async throws {
        let psp = try Self.psp.get()
        let visits = Visits()
        let reader = PaymentCardReader()
        let token = PaymentCardReader.Token(rawValue: try await psp.fetchReaderToken())
        if try await !reader.isAccountLinked(using: token) { try await reader.linkAccount(using: token) }
        let session = try await PaymentCardReaderSession(reader: reader, token: token)
        let service = LoyaltyService(
            session: session, psp: Provider(psp: psp), loyaltyService: visits)
        let before = await psp.calls.count
        for card in [try KioskBench.phone(), try #require(VirtualCards.named("visa"))] {
            try insert(card)
            let (result, passes) = try await service.chargeWithLoyalty(
                amount: 12.34, currency: "USD", loyaltyPassIdentifier: KioskBench.passType)
            #expect(result.outcome == .success && (passes != nil) == (result.vasReadResult != nil))
        }
        #expect(await psp.calls.count == before + 2)
        #expect(await visits.identifiers == [KioskBench.passType])
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

    /// SHA-256 of the guide's blocks, as they were taken from it, line for line: what is not ASCII, and spaces around a line, are
    /// left out, and so are lines without anything else.  Of block 1 the deinit is missing, of block 9 the view, of block 7
    /// one line; 2 is of SwiftUI, 3 is of another vendor's library.
    @Test(
        "the code is the guide's, line for line",
        arguments: [
            (
                "PaymentViewModel", 1, 118,
                "bbec18325ce650fdcd5ef5f7f12565762cce2145b53dcd6b723e025e398eebc1"
            ),
            (
                "TokenProviders", 4, 7,
                "6330f9fbcca437c431e5ca160192d6ba78e2026f80e7ba40ba10052727423969"
            ),
            (
                "TokenProviders", 5, 4,
                "8b31739eeb83243651b73f45de5647aae82d2cf2da3522a42d401527c46a2194"
            ),
            (
                "TapToPayService", 6, 42,
                "8bb2541667b3cb452d12c58b882ada61ceaf7dfc2de22dc84b1540cdcd85cfd7"
            ),
            (
                "LoyaltyService", 7, 30,
                "be792e7892ee3897ed97e500422561ac2710e23a9a5c5186f7bea73c5b123830"
            ),
            (
                "LoyaltyService", 7, 2,
                "c93119666bdd93836f590bf548160ea220b46a0c48370e9e7079f293ad4907fe"
            ),
            (
                "OfflinePaymentManager", 8, 51,
                "8e82a6374fbb0cf685469dad237ae856d376deea7d0340947557eb7eed97a1a6"
            ),
            (
                "ReaderSessionManager", 9, 26,
                "0b03fd0cd5bc75e35df523c924530eaa8bbd17ca688aa522407b0e7f864eb8f7"
            ),
        ] as [(String, Int, Int, String)])
    func blocks(_ file: String, _ block: Int, _ count: Int, _ hash: String) throws {
        let url = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "IntegrationPatterns/\(file).swift")
        let lines = try String(contentsOf: url, encoding: .utf8).split(separator: "\n").map { line in
            String(line.unicodeScalars.filter(\.isASCII).map(Character.init)).trimmingCharacters(in: .whitespaces)
        }.filter { !$0.isEmpty }
        let hashes = (0...max(0, lines.count - count)).map { first in
            let text = lines[first...].prefix(count).map { $0 + "\n" }.joined()
            return SHA256.hash(data: Data(text.utf8)).map { String(format: "%02x", $0) }.joined()
        }
        #expect(hashes.contains(hash), "block \(block) is not in \(file).swift as the guide has it")
    }
}
