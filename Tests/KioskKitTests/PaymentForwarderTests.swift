import Foundation
import KioskKit
import KioskTestSupport
import ProximityReader
import Synchronization
import TestSupport
import Testing
import Waiting

/// A store in a folder of its own, and who forwards it.
final class ForwarderBench: Sendable {
    let folder = FileManager.default.temporaryDirectory.appending(path: "forwarder-\(UUID().uuidString)")
    let service: BatchService
    private let configuration: ProximityReaderSystem.ValidatedConfiguration
    private let decisions = Mutex<[String]>([])

    /// The payments that were told of as decided, in their order.
    var decided: [String] { decisions.withLock { $0 } }

    init(_ service: BatchService, payments: Int) async throws {
        self.service = service
        var configuration = ProximityReaderSystem.Configuration()
        configuration.folder = folder
        configuration.tokenKeys = service.keySet
        self.configuration = try configuration.validated()
        let terminal = terminal()
        try await terminal.store.add(
            Preparation(
                issuer: BatchService.issuer, merchant: "merchant-1", terminalProfile: nil, cardDataKey: nil,
                tokenExpiration: .distantFuture, time: Date(), uptime: 1, boot: "boot-1", reader: "reader-1"))
        for number in 0..<payments { try await Self.store(number, in: terminal) }
        await terminal.store.close()
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// TEST data: nothing in it is sealed.
    static func store(_ number: Int, in terminal: PaymentTerminal) async throws {
        try await terminal.store.add(
            RecordStore.Payment(
                id: name(number), paymentCardData: "sealed-\(number)", generalCardData: "", amount: 10, currency: "EUR",
                issuer: BatchService.issuer, merchant: "merchant-1"))
    }

    static func name(_ number: Int) -> String { "payment-\(number)" }

    /// As a program has it that is started.
    func terminal() -> PaymentTerminal { PaymentTerminal(configuration) }

    func forwarder(
        _ terminal: PaymentTerminal, batchSize: Int = 50, renewCredentials: (@Sendable () async throws -> Void)? = nil,
        chance: Double = 0, change: (inout PaymentForwarder.Pace) -> Void = { _ in },
        decided: @escaping @Sendable () async -> Void = {}
    ) -> PaymentForwarder {
        var pace = PaymentForwarder.Pace()
        pace.batchSize = batchSize
        change(&pace)
        return PaymentForwarder(
            PaymentCardReaderStore(terminal: terminal), to: service, pace: pace, chance: { chance },
            renewCredentials: renewCredentials,
            decided: { [weak self] payment, _ in
                self?.decisions.withLock { $0.append(payment.id) }
                await decided()
            })
    }

    func ledger(_ terminal: PaymentTerminal) -> ProximityReaderSystem.Ledger {
        ProximityReaderSystem.Ledger(of: PaymentCardReaderStore(terminal: terminal))
    }

    /// How often each payment was charged, over all batches.
    var charges: [String: Int] { service.charges.mapValues(\.count) }

    static func once(_ numbers: some Sequence<Int>) -> [String: Int] {
        Dictionary(uniqueKeysWithValues: numbers.map { (name($0), 1) })
    }
}

@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct PaymentForwarderTests {
    private typealias Bench = ForwarderBench

    @Test("what is stored goes in batches, the oldest first, each under its own key, and is deleted")
    func forwards() async throws {
        let bench = try await Bench(
            BatchService(decide: { $0 == "sealed-3" ? .declined : .approved }), payments: 7)
        let terminal = bench.terminal()
        var expected = PaymentForwarder.Report()
        (expected.approved, expected.declined) = (6, 1)
        #expect(try await bench.forwarder(terminal, batchSize: 3).forward() == expected)
        #expect(try await bench.ledger(terminal).payments().isEmpty)
        #expect(bench.charges == Bench.once(0..<7))
        let calls = bench.service.calls
        #expect(calls.flatMap(\.payments) == (0..<7).map(Bench.name) && calls.map(\.payments.count) == [3, 3, 1])
        #expect(Set(calls.map(\.key)).count == 3 && calls.allSatisfy { $0.reader == "reader-1" })
        #expect(bench.decided == (0..<7).map(Bench.name))
        #expect(try await bench.forwarder(terminal).forward() == PaymentForwarder.Report(), "nothing is left")
        #expect(bench.service.calls.count == 3)
    }

    @Test(
        "where an answer is lost the same batch is sent again under the same key, and every payment is charged once",
        arguments: [.lost, .unanswered, .partly(2), .garbled, .noToken, .expiredToken] as [BatchService.Fate])
    func lost(_ fate: BatchService.Fate) async throws {
        let bench = try await Bench(BatchService([fate, fate, .taken]), payments: 4)
        let terminal = bench.terminal()
        #expect(try await bench.forwarder(terminal).forward().approved == 4)
        #expect(bench.charges == Bench.once(0..<4))
        let calls = bench.service.calls
        #expect(calls.count == 3 && Set(calls.map(\.key)).count == 1 && Set(calls.map(\.payments)).count == 1)
        #expect(try await bench.ledger(terminal).payments().isEmpty)
    }

    @Test("pauses double up to the longest, less up to a half by chance; after so many attempts it is given up")
    func pauses() async throws {
        for (chance, share) in [(0.0, 1.0), (1.0, 0.5)] {
            let bench = try await Bench(BatchService(Array(repeating: .unanswered, count: 5)), payments: 1)
            let terminal = bench.terminal()
            bench.service.state.withLock { $0.answersLookups = false }
            let forwarder = bench.forwarder(
                terminal, chance: chance,
                change: { ($0.attempts, $0.interval, $0.longestPause) = (5, .zero, .seconds(5)) })
            await #expect(throws: PaymentServiceError.noAnswer("not asked")) { try await forwarder.forward() }
            let times = bench.service.calls.map(\.time)
            #expect(zip(times, times.dropFirst()).map { $1 - $0 } == [1, 2, 4, 5].map { .seconds($0 * share) })
            #expect(try await bench.ledger(terminal).payments().map(\.state) == [.unknown])
            // The next call asks again, with the same key.
            #expect(try await forwarder.forward().approved == 1)
            #expect(Set(bench.service.calls.map(\.key)).count == 1 && bench.charges == Bench.once(0..<1))
        }
    }

    @Test("from one call of the service to the next there is an interval, also where nothing fails")
    func interval() async throws {
        let start = Time.now
        let bench = try await Bench(BatchService(), payments: 3)
        let forwarder = bench.forwarder(bench.terminal(), batchSize: 1, change: { $0.interval = .seconds(7) })
        try await forwarder.forward()
        #expect(bench.service.calls.map { $0.time - start } == [.zero, .seconds(7), .seconds(14)])
    }

    @Test("a service that does not know the terminal ends it at once; new credentials are fetched once")
    func credentials() async throws {
        let bench = try await Bench(
            BatchService([.notAuthorized, .notAuthorized, .taken, .notAuthorized]), payments: 2)
        let terminal = bench.terminal()
        let renewals = Mutex(0)
        let start = Time.now
        await #expect(throws: PaymentServiceError.notAuthorized("who are you?")) {
            try await bench.forwarder(terminal).forward()
        }
        #expect(bench.service.calls.count == 1 && Time.now == start)
        let renewing = bench.forwarder(terminal, batchSize: 1, renewCredentials: { renewals.withLock { $0 += 1 } })
        #expect(try await renewing.forward().approved == 2)
        #expect(renewals.withLock { $0 } == 1 && bench.charges == Bench.once(0..<2))
        #expect(Set(bench.service.calls.map(\.key)).count == 1)

        try await Bench.store(2, in: terminal)
        bench.service.state.withLock { $0.script = [.notAuthorized, .notAuthorized] }
        await #expect(throws: PaymentServiceError.notAuthorized("who are you?")) { try await renewing.forward() }
        #expect(renewals.withLock { $0 } == 2, "not again and again")
    }

    @Test("a payment that is refused while others are decided is set aside after three times; they go on around it")
    func refusedPayment() async throws {
        let bench = try await Bench(BatchService(refuses: { $0 == "sealed-5" }), payments: 12)
        let terminal = bench.terminal()
        let forwarder = bench.forwarder(terminal)
        let report = try await forwarder.forward()
        #expect(report.approved == 11 && report.setAside.isEmpty)
        #expect(report.undecided["payment-5"]?.contains("Not with this one.") == true)
        #expect(Set(bench.decided) == Set((0..<12).filter { $0 != 5 }.map(Bench.name)))
        // Alone it tells nothing: it may be the payment service that is wrong.
        for _ in 0..<5 {
            await #expect(throws: PaymentServiceError.self) { try await forwarder.forward() }
            #expect(try await bench.ledger(terminal).payments().map(\.state) == [.stored])
        }
        for number in 12..<14 {
            try await Bench.store(number, in: terminal)
            _ = try await forwarder.forward()
        }
        #expect(await forwarder.lastReport.setAside == ["payment-5"])
        let left = try await bench.ledger(terminal).payments()
        #expect(left.map(\.id) == ["payment-5"] && left.map(\.state) == [.setAside])
        #expect(left.first?.reason?.contains("Not with this one.") == true)
        #expect(bench.charges == Bench.once((0..<14).filter { $0 != 5 }))
    }

    @Test("a payment that is not decided is told, and set aside after three times; what is decided goes without it")
    func undecidedPayment() async throws {
        let bench = try await Bench(BatchService(decide: { $0 == "sealed-0" ? nil : .approved }), payments: 5)
        let terminal = bench.terminal()
        let forwarder = bench.forwarder(terminal, batchSize: 3)
        let report = try await forwarder.forward()
        #expect(report.approved == 4 && Array(report.undecided.keys) == ["payment-0"])
        for number in 5..<8 {
            try await Bench.store(number, in: terminal)
            _ = try await forwarder.forward()
        }
        #expect(await forwarder.lastReport.setAside == ["payment-0"])
        #expect(try await bench.ledger(terminal).payments().map(\.state) == [.setAside])
        #expect(bench.charges == Bench.once(1..<8))
    }

    @Test(
        "where the merchant is refused, in whatever way, all stays stored; forwarding pauses, says why, and goes on by itself",
        arguments: Tier.few(
            [
                .init(httpStatus: 401), .init(httpStatus: 403), .init(httpStatus: 404), .init(httpStatus: 409),
                .init(httpStatus: 413), .init(httpStatus: 429), .init(httpStatus: 500), .init(httpStatus: 502),
                .init(httpStatus: 503, code: "down", message: "Later."), .init(httpStatus: 200),
                .init(httpStatus: 422), .init(httpStatus: 422, code: "merchant", message: "Suspended."),
                .noAnswer("NSURLError"),
            ] as [PaymentServiceError], 3))
    func refusesMerchant(_ refusal: PaymentServiceError) async throws {
        let bench = try await Bench(BatchService(), payments: 200)
        let terminal = bench.terminal()
        let ledger = bench.ledger(terminal)
        bench.service.state.withLock { $0.refusal = refusal }
        let forwarder = bench.forwarder(terminal)
        var pauses: [TimeInterval] = []
        for _ in 0..<3 {
            await #expect(throws: PaymentServiceError.self) { try await forwarder.forward() }
            let summary = try await ledger.summary()
            #expect(summary.count == 200 && summary.totals.allSatisfy { $0.state != .setAside })
            let pause = try #require(summary.pause)
            #expect(!pause.reason.isEmpty)
            pauses.append(pause.until.timeIntervalSinceNow)
            #expect(await forwarder.lastReport.setAside.isEmpty)
        }
        #expect(pauses[0] < pauses[1] && pauses[1] < pauses[2])
        bench.service.state.withLock { $0.refusal = nil }
        let run = Task { try await forwarder.run() }
        try await wait(for: "all") { bench.charges.count == 200 }
        run.cancel()
        _ = await run.result
        #expect(bench.charges == Bench.once(0..<200))
        _ = try await forwarder.forward()
        #expect(try await ledger.payments().isEmpty)
        #expect(try await ledger.summary().pause == nil)
    }

    @Test(
        "an answer about another payment, amount or currency, or one that is not final, leaves it stored, and is told")
    func foreignAnswers() async throws {
        func said(
            _ key: String? = "payment-0", _ amount: Decimal? = 10, _ currency: String? = "EUR",
            _ status: PaymentResult.Status = .approved
        ) -> PaymentResult {
            PaymentResult(id: "p", status: status, idempotencyKey: key, amount: amount, currency: currency)
        }
        let foreign = [
            said("payment-1"), said(nil), said("payment-0", 100), said("payment-0", nil),
            said("payment-0", 10, "USD"), said("payment-0", 10, nil), said("payment-0", 10, "EUR", .processing),
            said("payment-0", 10, "EUR", .requiresPaymentMethod),
            said("payment-0", 10, "EUR", .init(rawValue: "approved?")),
        ]
        for answer in foreign {
            let service = BatchService()
            let bench = try await Bench(service, payments: 2)
            service.state.withLock { $0.says = ["payment-0": answer] }
            let terminal = bench.terminal()
            let forwarder = bench.forwarder(terminal, change: { $0.attempts = 2 })
            _ = try? await forwarder.forward()
            let left = try await bench.ledger(terminal).payments()
            #expect(left.map(\.id) == ["payment-0"], "\(answer)")
            #expect(left.allSatisfy { $0.answer != .approved && $0.answer != .declined }, "\(answer)")
            #expect(await forwarder.lastReport.undecided["payment-0"] != nil, "\(answer)")
            #expect(try await bench.ledger(terminal).openOutcomes().isEmpty)
            // Once it says what it has decided, that counts.
            service.state.withLock { $0.says = [:] }
            _ = try await forwarder.forward()
            #expect(try await bench.ledger(terminal).payments().isEmpty)
        }
    }

    @Test("one payment that is always answered with a failure of the service is told, and the others go on around it")
    func poison() async throws {
        let bench = try await Bench(BatchService(), payments: 20)
        bench.service.state.withLock { $0.breaks = "sealed-7" }
        let terminal = bench.terminal()
        let report = try await bench.forwarder(terminal, change: { $0.attempts = 3 }).forward()
        #expect(report.approved == 19 && Array(report.undecided.keys) == ["payment-7"])
        #expect(try await bench.ledger(terminal).payments().map(\.id) == ["payment-7"])
        #expect(bench.charges == Bench.once((0..<20).filter { $0 != 7 }))
    }

    @Test("a payment that nobody was sent is cancelled here; of one that may have been sent the service is asked first")
    func cancelled() async throws {
        let service = BatchService([.lost])
        let bench = try await Bench(service, payments: 3)
        let terminal = bench.terminal()
        let ledger = bench.ledger(terminal)
        let forwarder = bench.forwarder(terminal, batchSize: 2, change: { $0.attempts = 1 })
        #expect(try await forwarder.cancel("payment-2") == .cancelled)
        #expect(try await ledger.payments().count == 2 && service.state.withLock { $0.lookups } == 0)
        await #expect(throws: PaymentCardReaderStore.StoreError.self) { try await forwarder.cancel("payment-2") }
        service.state.withLock { $0.answersLookups = false }
        await #expect(throws: PaymentServiceError.self) { try await forwarder.forward() }
        guard case .unknown = try await forwarder.cancel("payment-0") else {
            Issue.record("it is not known what becomes of it")
            return
        }
        #expect(try await ledger.payments().count == 2)
        service.state.withLock { $0.answersLookups = true }
        #expect(try await forwarder.cancel("payment-0") == .cancelled)
        #expect(service.state.withLock { $0.reversals } == ["payment-0"])
        // Asked once more it is known, too: the service has heard of no more than the reversal.
        #expect(try await forwarder.cancel("payment-0") == .declined)
        // It is forwarded, and declined.
        let report = try await forwarder.forward()
        #expect(report.approved == 1 && report.declined == 1)
        #expect(try await forwarder.cancel("payment-1") == .approved)
        #expect(bench.charges == Bench.once(1..<2))
    }

    @Test("an outcome is told at every start until it is acknowledged, with what was stored with the payment")
    func outcomes() async throws {
        let bench = try await Bench(BatchService(), payments: 1)
        var terminal = bench.terminal()
        try await terminal.store.add(
            RecordStore.Payment(
                id: "with", paymentCardData: "sealed-with", generalCardData: "", amount: 10, currency: "EUR",
                issuer: BatchService.issuer, merchant: "merchant-1", attachment: Data("order 7".utf8)))
        let live = bench.ledger(terminal).outcomes()
        let forwarder = PaymentForwarder(
            PaymentCardReaderStore(terminal: terminal), to: bench.service)
        #expect(try await forwarder.forward().approved == 2)
        var seen: [String] = []
        for try await outcome in live {
            seen.append(outcome.id)
            #expect(outcome.payment.answer == .approved && outcome.reference?.id == "p")
            if seen.count == 2 { break }
        }
        #expect(seen == ["payment-0", "with"])
        for left in [["payment-0", "with"], ["with"], []] {
            await terminal.store.close()
            terminal = bench.terminal()
            let ledger = bench.ledger(terminal)
            #expect(try await ledger.openOutcomes().map(\.id) == left)
            #expect(try await ledger.summary().unacknowledged == left.count)
            if let last = try await ledger.openOutcomes().last, last.id == "with" {
                #expect(last.attachment == Data("order 7".utf8))
            }
            if let first = left.first { try await ledger.acknowledge(first) }
        }
    }

    @Test("a refusal after an answer that was lost is not believed, where the service knows one of the payments")
    func refusedLate() async throws {
        // The service has forgotten the batch's key, and still has what it charged.
        let service = BatchService([.partly(1), .notAuthorized])
        let bench = try await Bench(service, payments: 3)
        let terminal = bench.terminal()
        await #expect(throws: PaymentServiceError.notAuthorized("who are you?")) {
            try await bench.forwarder(terminal).forward()
        }
        service.state.withLock { state in
            state.script = [.refused, .taken]
            state.charges["payment-0"] = ["before"]
        }
        // As a program that knows nothing of what was before.
        await terminal.store.close()
        let again = bench.terminal()
        #expect(try await bench.forwarder(again).forward().approved == 3)
        let calls = service.calls.filter { $0.payments.contains("payment-0") }
        #expect(Set(calls.map(\.key)).count == 1, "in no other batch")
        #expect(service.state.withLock { $0.lookups } == 3)
        // One that it knows nothing of was not taken: other batches are made of it.
        for number in 3..<5 { try await Bench.store(number, in: again) }
        service.state.withLock { $0.script = [.lost, .refused, .taken, .taken] }
        #expect(try await bench.forwarder(again).forward().approved == 2)
        #expect(service.calls.suffix(4).map(\.payments.count) == [2, 2, 1, 1])
        #expect(Set(service.calls.suffix(3).map(\.key)).count == 3)
    }

    @Test("where deleting fails, only that is tried again: the batch is not sent a second time")
    func deleteFails() async throws {
        let other = Mutex<RecordStore?>(nil)
        let bench = try await Bench(BatchService(), payments: 2)
        let terminal = bench.terminal()
        let folder = bench.folder
        // Another program has the store when it is to be deleted.
        let forwarder = bench.forwarder(
            terminal,
            decided: {
                guard other.withLock({ $0 == nil }) else { return }
                await terminal.store.close()
                let taker = RecordStore(folder: folder) { Date() }
                _ = try? await taker.count()
                other.withLock { $0 = taker }
                // Until the first pause.
                _ = Time.deadline(after: .milliseconds(1)) { other.withLock { $0 = nil } }
            })
        let start = Time.now
        #expect(try await forwarder.forward().approved == 2)
        #expect(bench.service.calls.count == 1 && Time.now - start > .milliseconds(1))
    }

    @Test("a program that ends before it has deleted: the next one deletes with the same token, and asks for no other")
    func tokenKept() async throws {
        let bench = try await Bench(BatchService(decide: { $0 == "sealed-1" ? .declined : .approved }), payments: 3)
        let terminal = bench.terminal()
        let other = Mutex<RecordStore?>(nil)
        let folder = bench.folder
        let forwarder = bench.forwarder(
            terminal, change: { $0.attempts = 1 },
            decided: {
                guard other.withLock({ $0 == nil }) else { return }
                await terminal.store.close()
                let taker = RecordStore(folder: folder) { Date() }
                _ = try? await taker.count()
                other.withLock { $0 = taker }
            })
        await #expect(throws: PaymentCardReaderStore.StoreError.self) { try await forwarder.forward() }
        other.withLock { $0 = nil }
        // A service that gives a token once.
        bench.service.state.withLock { $0.script = Array(repeating: .disowned, count: 20) }
        let report = try await bench.forwarder(bench.terminal()).forward()
        #expect(report.approved == 2 && report.declined == 1)
        #expect(bench.service.calls.count == 1)
        // The first one was told before the store was gone, which could not be noted.
        #expect(bench.decided == [0, 0, 1, 2].map(Bench.name))
    }

    @Test(
        "a batch that the service has decided, and then contradicts, waits for a person; what is behind it goes on then"
    )
    func heldUp() async throws {
        let service = BatchService([.noToken, .noToken] + Array(repeating: .contradicted, count: 40))
        let bench = try await Bench(service, payments: 5)
        let terminal = bench.terminal()
        let ledger = bench.ledger(terminal)
        let forwarder = bench.forwarder(terminal, batchSize: 2, change: { $0.attempts = 3 })
        for _ in 0..<2 {
            let error = await #expect(throws: PaymentForwarder.HeldUp.self) { try await forwarder.forward() }
            let batch = try #require(try await ledger.batch())
            #expect(error?.batch == batch.id && error?.localizedDescription.contains("release") == true)
            #expect(batch.payments.map(\.id) == [0, 1].map(Bench.name))
        }
        #expect(try await ledger.payments().map(\.state) == [.approved, .approved, .stored, .stored, .stored])
        let batch = try #require(try await ledger.batch())
        try await ledger.release(
            batch: batch.id, ["payment-0": .approved, "payment-1": .declined], by: "M. Teller",
            reason: "its portal has the first alone")
        service.state.withLock { $0.script = [] }
        #expect(try await forwarder.forward().approved == 3)
        #expect(bench.charges == Bench.once(0..<5))
        #expect(try await ledger.payments().isEmpty)
        #expect(try await ledger.releases().map(\.person) == ["M. Teller"])
    }

    @Test("a batch that nobody answers for is released as not taken, and goes again, with what it had for keys")
    func releasedUntaken() async throws {
        let bench = try await Bench(BatchService(Array(repeating: .lost, count: 3)), payments: 3)
        let terminal = bench.terminal()
        let ledger = bench.ledger(terminal)
        let forwarder = bench.forwarder(terminal, batchSize: 2, change: { $0.attempts = 3 })
        bench.service.state.withLock { $0.answersLookups = false }
        await #expect(throws: PaymentServiceError.noAnswer("not asked")) { try await forwarder.forward() }
        let batch = try #require(try await ledger.batch())
        try await ledger.release(
            batch: batch.id, ["payment-0": .notTaken, "payment-1": .notTaken], by: "M. Teller", reason: "not there")
        #expect(try await ledger.payments().map(\.state) == [.stored, .stored, .stored])
        #expect(try await forwarder.forward().approved == 3)
        #expect(bench.charges == Bench.once(0..<3))
    }

    @Test("a batch that the service has decided, and then refuses, is deleted by what it says of each payment")
    func disowned() async throws {
        let bench = try await Bench(
            BatchService([.noToken, .noToken] + Array(repeating: .disowned, count: 4)), payments: 2)
        let terminal = bench.terminal()
        #expect(try await bench.forwarder(terminal).forward().approved == 2)
        #expect(try await bench.ledger(terminal).payments().isEmpty)
        #expect(bench.charges == Bench.once(0..<2) && bench.service.state.withLock { $0.lookups } == 2)
    }

    @Test("who cancels one call of several ends that one alone; the last one ends forwarding")
    func cancelledCaller() async throws {
        let bench = try await Bench(BatchService(), payments: 4)
        let terminal = bench.terminal()
        let calls = Mutex<[Task<PaymentForwarder.Report, any Error>]>([])
        let forwarder = bench.forwarder(
            terminal, batchSize: 1,
            decided: {
                // In the middle of it; the other one waits on.
                _ = calls.withLock { $0.first?.cancel() }
            })
        let (first, second) = (Task { try await forwarder.forward() }, Task { try await forwarder.forward() })
        calls.withLock { $0 = [first] }
        #expect(try await second.value.approved == 4)
        _ = await first.result
        #expect(bench.charges == Bench.once(0..<4))
    }

    @Test("a call while it is under way waits for it; a cancelled one ends, and another goes on where it was")
    func cancelledAndAgain() async throws {
        let bench = try await Bench(BatchService(), payments: 4)
        let terminal = bench.terminal()
        let first = Mutex<Task<PaymentForwarder.Report, any Error>?>(nil)
        let forwarder = bench.forwarder(terminal, batchSize: 1, decided: { first.withLock { $0?.cancel() } })
        let task = Task { try await forwarder.forward() }
        first.withLock { $0 = task }
        await #expect(throws: CancellationError.self) { try await task.value }
        async let one = forwarder.forward()
        async let other = forwarder.forward()
        _ = try await (one, other)
        #expect(bench.charges == Bench.once(0..<4))
        #expect(bench.service.calls.count == Set(bench.service.calls).count)
        #expect(try await bench.ledger(terminal).payments().isEmpty)
    }

    @Test("who is cancelled while waiting for the end of a cancelled one is let go at once; others go on after that")
    func cancelledWhileWaiting() async throws {
        let bench = try await Bench(BatchService(), payments: 2)
        let terminal = bench.terminal()
        let isCancelled = Mutex(false)
        let isLetGo = Mutex(false)
        let held = Mutex<CheckedContinuation<Void, Never>?>(nil)
        let forwarder = bench.forwarder(
            terminal, batchSize: 1,
            decided: {
                guard !isCancelled.withLock({ $0 }) else { return }
                await withTaskCancellationHandler {
                    await withCheckedContinuation { continuation in held.withLock { $0 = continuation } }
                } onCancel: {
                    isCancelled.withLock { $0 = true }
                }
            })
        let first = Task { try await forwarder.forward() }
        try await wait(for: "decision") { held.withLock { $0 != nil } }
        first.cancel()
        try await wait(for: "cancellation") { isCancelled.withLock { $0 } }
        let hasBegun = Mutex(false)
        let second = Task {
            hasBegun.withLock { $0 = true }
            return try await forwarder.forward()
        }
        let third = Task { try await forwarder.forward() }
        try await wait(for: "second call") { hasBegun.withLock { $0 } }
        // It comes to the forwarder before these have all been there.
        for _ in 0..<1000 { _ = await forwarder.lastReport }
        Task {
            _ = await second.result
            isLetGo.withLock { $0 = true }
        }
        second.cancel()
        try await wait(for: "release") { isLetGo.withLock { $0 } }
        await #expect(throws: CancellationError.self) { try await second.value }
        held.withLock { $0.take() }?.resume()
        await #expect(throws: CancellationError.self) { try await first.value }
        #expect(try await third.value.approved == 1)
        #expect(bench.charges == Bench.once(0..<2))
    }

    @Test(
        "however it fails and wherever it is ended, no payment is lost and none is charged twice", .computing,
        arguments: Tier.few(0..<40 as Range<UInt64>, 6))
    func whatever(_ seed: UInt64) async throws {
        var random = SplitMix(state: seed)
        let fates: [BatchService.Fate] = [
            .taken, .lost, .unanswered, .partly(1), .partly(2), .garbled, .refused, .notAuthorized, .expiredToken,
            .noToken, .endless, .endlessly,
        ]
        let script = (0..<30).map { _ in fates.randomElement(using: &random) ?? .taken }
        let poison = "sealed-\(Int.random(in: 0..<8, using: &random))"
        let bench = try await Bench(
            BatchService(script, refuses: { $0 == poison }, decide: { $0 == "sealed-9" ? nil : .approved }),
            payments: 12)
        var next = 12
        var runs: [Task<Void, Never>] = []
        // Each time a program of its own, which is ended when it says nothing any more, or gives up.
        for _ in 0..<60 {
            let terminal = bench.terminal()
            if next < 20, Bool.random(using: &random) {
                try await Bench.store(next, in: terminal)
                next += 1
            }
            let size = Int.random(in: 1...5, using: &random)
            let forwarder = bench.forwarder(terminal, batchSize: size, change: { $0.attempts = 3 })
            let done = Mutex<Bool?>(nil)
            let run = Task {
                do {
                    _ = try await forwarder.forward()
                    done.withLock { $0 = true }
                } catch {
                    done.withLock { $0 = false }
                }
            }
            // What is endless has been called, and nothing else will come.
            try await wait(for: "end") {
                done.withLock { $0 } != nil || bench.service.hangs
            }
            run.cancel()
            runs.append(run)
            bench.service.state.withLock { $0.hanging = false }
            let left = try await bench.ledger(terminal).payments().count
            await terminal.store.close()
            if left == 2, next == 20 { break }
        }
        let terminal = bench.terminal()
        let left = try await bench.ledger(terminal).payments()
        let aside = Set(left.map(\.id))
        #expect(left.allSatisfy { $0.answer != .approved && $0.answer != .declined } && aside.count == 2, "\(left)")
        #expect(bench.charges == Bench.once((0..<next).filter { !aside.contains(Bench.name($0)) }))
        // The calls that hung hold what they were to send.
        bench.service.letGo()
        for run in runs { await run.value }
    }
}
