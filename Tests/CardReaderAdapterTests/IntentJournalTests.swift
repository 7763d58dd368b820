import CardReaderAdapter
import CardReceipts
import Foundation
import KioskKit
import Synchronization
import TestSupport
import Testing

/// What a program that starts again knows of the payment and the refunds of the one before it.
@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct IntentJournalTests {
    private static let unknown = "intentCreation(underlyingError: paymentOutcomeUnknown)"
    private static let refund = RefundParameters(chargeId: "charge-1", amount: 5, currency: "eur")
    private let folder = Folder()

    /// Removed with the test.
    private final class Folder: Sendable {
        let url = FileManager.default.temporaryDirectory.appending(path: "intents-\(UUID().uuidString)")
        deinit { try? FileManager.default.removeItem(at: url) }
    }

    private var entries: [String] { (try? FileManager.default.contentsOfDirectory(atPath: folder.url.path)) ?? [] }

    /// One run of the program, from its start to its end.
    private func run(
        _ script: [ScriptedProcessor.Answer] = [], decided: (@Sendable (CardReaderDecision) async -> Void)? = nil,
        _ body: (AdapterBench) async throws -> Void
    ) async throws {
        weak var service: ContactlessReaderService?
        do {
            let bench = AdapterBench(script: script, journal: .folder(folder.url), decided: decided)
            service = bench.service as? ContactlessReaderService
            try await bench.connect()
            try await body(bench)
            try? await bench.service.disconnect()
        }
        try await wait(for: "end") { service == nil }
    }

    @Test(
        "a refund of which nobody knows is asked for under the same key by the next run, once",
        arguments: [false, true])
    func refund(_ needsCard: Bool) async throws {
        let keys = Mutex<[String]>([])
        func ask(_ answer: ScriptedProcessor.Answer) async throws {
            try await run([.approved, answer]) { bench in
                await bench.processor.setRefund(.succeeded, needsCard: needsCard)
                if needsCard { bench.readers.present(.approved(.interac)) }
                _ = await failure { _ = try await bench.service.refundPayment(parameters: Self.refund) }
                let calls = await bench.processor.calls(of: "refund").map(\.key)
                keys.withLock { $0 += calls }
            }
        }
        try await ask(.fails(.noAnswer))
        #expect(entries.count == 1)
        try await run { bench in
            #expect(
                await failure {
                    _ = try await bench.service.refundPayment(
                        parameters: RefundParameters(chargeId: "charge-1", amount: 6, currency: "eur"))
                } == "refundCreation(underlyingError: paymentOutcomeUnknown)")
        }
        try await ask(.fails(.noAnswer))
        try await ask(.approved)
        #expect(entries == [])
        let all = keys.withLock { $0 }
        #expect(all.count == 3 && Set(all).count == 1)
        try await ask(.approved)
        #expect(Set(keys.withLock { $0 }).count == 2, "the next one is another")
    }

    @Test("of several refunds of one charge that runs have left, each is asked for under its own key, the oldest first")
    func refunds() async throws {
        let keys = ["refund-2", "refund-1", "refund-3"]
        do {
            let journal = PaymentJournal(folder: folder.url)
            for (index, key) in keys.enumerated() {
                _ = try await journal.begin(
                    UnsettledPayment(
                        id: key, kind: .refund, amount: 5, currency: "EUR",
                        time: Date(timeIntervalSince1970: TimeInterval(1_700_000_000 + index))),
                    note: Data(#"{"refund":{"charge":"charge-1","amount":500}}"#.utf8))
            }
        }
        // Whether a card is needed is asked before each leftover.
        let script: [ScriptedProcessor.Answer] = [
            .approved, .approved, .approved, .fails(.noAnswer), .approved, .approved, .approved,
        ]
        try await run(script) { bench in
            await bench.processor.setRefund(.succeeded, needsCard: false)
            let service = try #require(bench.service as? ContactlessReaderService)
            #expect(await service.unsettledPayments.map(\.id) == keys)
            #expect(
                await failure {
                    _ = try await bench.service.refundPayment(
                        parameters: RefundParameters(chargeId: "charge-1", amount: 6, currency: "eur"))
                } == "refundCreation(underlyingError: paymentOutcomeUnknown)")
            _ = await failure { _ = try await bench.service.refundPayment(parameters: Self.refund) }
            #expect(entries.count == 2)
            _ = await failure { _ = try await bench.service.refundPayment(parameters: Self.refund) }
            #expect(entries.count == 2, "no answer")
            _ = try await bench.service.refundPayment(parameters: Self.refund)
            _ = try await bench.service.refundPayment(parameters: Self.refund)
            #expect(entries == [])
            let asked = await bench.processor.calls(of: "refund").map(\.key)
            #expect(asked == ["refund-2", "refund-1", "refund-1", "refund-3"])
        }
    }

    @Test("a payment of which nobody knows is the active one of the next run, and no other begins beside it")
    func payment() async throws {
        let keys = Mutex<[String]>([])
        try await run([.approved, .fails(.noAnswer)]) { bench in
            bench.readers.present(.approved(.visa))
            #expect(await failure { _ = try await bench.pay() } != nil)
            let calls = await bench.processor.calls(of: "process").map(\.key)
            keys.withLock { $0 = calls }
        }
        let entry = try String(
            contentsOf: folder.url.appending(path: try #require(entries.first)), encoding: .utf8)
        #expect(entry.contains(keys.withLock { $0[0] }) && entry.contains("12.34") && !entry.contains("order_id"))
        #expect(!entry.contains("approved"), "what the card is sealed in")
        try await run([.status(.requiresCapture)]) { bench in
            let intent = await bench.activePaymentIntent
            #expect(intent?.id == "intent-1" && intent?.amount == 1234)
            #expect(await failure { _ = try await bench.pay() } == Self.unknown)
            #expect(await bench.processor.calls == [])
            #expect(try await bench.service.retryActivePaymentIntent().status == .requiresCapture)
            #expect(await bench.processor.calls.map(\.kind) == ["retrieve"])
            try await bench.payOnceMore()
        }
        #expect(entries == [])
    }

    @Test(
        "where the payment service has not heard of it, its call may still come: it is cancelled, or paid, and not forgotten"
    )
    func stillOnItsWay() async throws {
        try await run([.approved, .fails(.noAnswer)]) { bench in
            bench.readers.present(.approved(.visa))
            #expect(await failure { _ = try await bench.pay() } != nil)
        }
        try await run([.status(.requiresPaymentMethod), .fails(.noAnswer)]) { bench in
            bench.readers.present(.cancelledAtReader)
            #expect(await failure { _ = try await bench.service.retryActivePaymentIntent() } != nil)
            #expect(await failure { _ = try await bench.pay() } == Self.unknown)
            #expect(await failure { try await bench.service.cancelPaymentIntent() } != nil)
            #expect(entries.count == 1)
        }
        try await run { bench in
            try await bench.service.cancelPaymentIntent()
            #expect(await bench.processor.calls.map(\.kind) == ["cancel"])
            #expect(await bench.activePaymentIntent == nil && entries == [])
            try await bench.payOnceMore()
        }
    }

    @Test(
        "what the payment service was asked to cancel, without an answer, may be canceled at any time: no card is charged for it, nor by the next run"
    )
    func cancelling() async throws {
        try await run([.approved, .fails(.noAnswer), .fails(.noAnswer), .fails(.notConnected)]) { bench in
            bench.readers.present(.approved(.visa))
            #expect(await failure { _ = try await bench.pay() } != nil)
            #expect(await failure { try await bench.service.cancelPaymentIntent() } != nil)
            #expect(await failure { _ = try await bench.service.retryActivePaymentIntent() } != nil)
            #expect(await failure { _ = try await bench.pay() } == Self.unknown)
            #expect(await bench.processor.calls.map(\.kind) == ["create", "process", "cancel", "cancel"])
        }
        try await run { bench in
            #expect(await failure { _ = try await bench.pay() } == Self.unknown)
            #expect(
                await failure { _ = try await bench.service.retryActivePaymentIntent() }
                    == "retryNotPossibleActivePaymentCancelled")
            #expect(await bench.processor.calls.map(\.kind) == ["cancel"])
            #expect(entries == [])
            try await bench.payOnceMore()
        }
    }

    @Test("the app's books are told before whoever has called, and the entry is there until they are")
    func books() async throws {
        let told = Mutex<[String]>([])
        let folder = folder
        try await run(decided: { decision in
            let count = (try? FileManager.default.contentsOfDirectory(atPath: folder.url.path))?.count ?? 0
            switch decision {
            case .payment(let intent): told.withLock { $0.append("\(intent.id) \(intent.status.rawValue) \(count)") }
            case .refund(let parameters, let outcome, _):
                told.withLock { $0.append("\(parameters.chargeId) \(outcome) \(count)") }
            }
        }) { bench in
            bench.readers.present(.approved(.visa))
            _ = try await bench.pay()
            #expect(told.withLock { $0 } == ["intent-1 requires_capture 1"])
            _ = try await bench.service.refundPayment(parameters: Self.refund)
            #expect(told.withLock { $0.last } == "charge-1 succeeded 1")
            #expect(entries == [])
        }
    }

    @Test(
        "where nothing can be written down the payment service is not asked; where it can again, the same card is charged"
    )
    func noDisk() async throws {
        try Data().write(to: folder.url)
        try await run { bench in
            bench.readers.present(.approved(.visa))
            #expect(await failure { _ = try await bench.pay() } == "paymentCapture(underlyingError: notRecorded)")
            #expect(
                await failure { _ = try await bench.service.refundPayment(parameters: Self.refund) }
                    == "refundCreation(underlyingError: notRecorded)")
            #expect(await bench.processor.calls.map(\.kind) == ["create"])
            try FileManager.default.removeItem(at: folder.url)
            #expect(try await bench.service.retryActivePaymentIntent().status == .requiresCapture)
            #expect(try await bench.service.refundPayment(parameters: Self.refund) == "success")
        }
    }
}
