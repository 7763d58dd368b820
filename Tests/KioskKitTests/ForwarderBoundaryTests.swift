import Foundation
import KioskTestSupport
import ProximityReader
import Synchronization
import TestSupport
import Testing

@testable import KioskKit

/// A forwarder's counters and limits: failures in a row and failures that are not, and what one answer leaves to the next.
@Suite(.simulatedTime, .timeLimit(.minutes(2))) struct ForwarderBoundaryTests {
    private typealias Bench = ForwarderBench

    private static func sizes(_ service: BatchService) -> [Int] { service.calls.map(\.payments.count) }

    // MARK: Charged once

    @Test(
        "a batch that is not answered, then disowned, then taken is charged once, within one call",
        arguments: [.unanswered, .partly(1), .lost, .garbled] as [BatchService.Fate])
    func disownedAfterSilence(_ first: BatchService.Fate) async throws {
        let service = BatchService([first, .disowned, .taken])
        let bench = try await Bench(service, payments: 2)
        let terminal = bench.terminal()
        #expect(try await bench.forwarder(terminal).forward().approved == 2)
        #expect(bench.charges == Bench.once(0..<2))
        #expect(service.state.withLock { $0.lookups } == 2, "each payment is asked about before any is sent anew")
        #expect(try await bench.ledger(terminal).payments().isEmpty)
    }

    @Test("where the service does not tell of single payments either, the disowned batch is sent again under its key")
    func disownedWithoutLookups() async throws {
        let service = BatchService([.unanswered, .disowned, .disowned, .taken])
        service.state.withLock { $0.answersLookups = false }
        let bench = try await Bench(service, payments: 2)
        #expect(try await bench.forwarder(bench.terminal()).forward().approved == 2)
        #expect(bench.charges == Bench.once(0..<2))
        #expect(service.calls.count == 4 && Set(service.calls.map(\.key)).count == 1)
    }

    // MARK: In a row

    @Test("two payments that are refused alone, before each that is taken, do not end forwarding; three in a row do")
    func failedInRow() async throws {
        let refused = ["sealed-0", "sealed-1", "sealed-3", "sealed-4"]
        let bench = try await Bench(BatchService(refuses: { refused.contains($0) }), payments: 6)
        let report = try await bench.forwarder(bench.terminal(), batchSize: 1).forward()
        #expect(report.approved == 2 && report.undecided.count == 4)

        let other = try await Bench(BatchService(refuses: { $0 != "sealed-3" }), payments: 4)
        await #expect(throws: PaymentServiceError.self) {
            try await other.forwarder(other.terminal(), batchSize: 1).forward()
        }
        #expect(other.service.calls.map(\.payments) == [0, 1, 2].map { [Bench.name($0)] })
    }

    @Test("one failure counts once, however many payments are decided after it")
    func failureCountsOnce() async throws {
        let bench = try await Bench(BatchService(refuses: { $0 == "sealed-0" }), payments: 6)
        let report = try await bench.forwarder(bench.terminal(), batchSize: 1).forward()
        #expect(report.approved == 5 && report.setAside.isEmpty && Array(report.undecided.keys) == ["payment-0"])
    }

    @Test("a payment that was set aside and put back goes with the others")
    func putBack() async throws {
        let bench = try await Bench(BatchService(), payments: 1)
        bench.service.state.withLock { $0.says = ["payment-0": .init(id: "p", status: .processing)] }
        let terminal = bench.terminal()
        let forwarder = bench.forwarder(terminal)
        for number in 1..<5 {
            try await Bench.store(number, in: terminal)
            _ = try await forwarder.forward()
        }
        #expect(try await bench.ledger(terminal).payments().map(\.state) == [.setAside])
        bench.service.state.withLock { $0.says = [:] }
        try await bench.ledger(terminal).putBack(payment: "payment-0")
        try await Bench.store(5, in: terminal)
        #expect(try await forwarder.forward().approved == 2)
        #expect(bench.service.calls.last?.payments == ["payment-0", "payment-5"])
    }

    @Test("deletion tokens of no use count in a row: one that is good begins the count anew")
    func uselessTokens() async throws {
        let fates: [BatchService.Fate] = [.expiredToken, .expiredToken, .taken]
        let bench = try await Bench(BatchService(fates + fates), payments: 2)
        let forwarder = bench.forwarder(bench.terminal(), batchSize: 1, change: { $0.attempts = 3 })
        #expect(try await forwarder.forward().approved == 2)
        #expect(bench.service.state.withLock { $0.lookups } == 0 && bench.service.calls.count == 6)
    }

    @Test("after as many useless tokens as attempts each payment is asked about; the next batch counts anew")
    func uselessTokensEnd() async throws {
        let fates: [BatchService.Fate] = [.expiredToken, .expiredToken, .expiredToken, .expiredToken, .taken]
        let bench = try await Bench(BatchService(fates), payments: 2)
        let forwarder = bench.forwarder(bench.terminal(), batchSize: 1, change: { $0.attempts = 3 })
        #expect(try await forwarder.forward().approved == 2)
        #expect(bench.service.state.withLock { $0.lookups } == 1)
        #expect(bench.service.calls.map(\.payments) == [0, 0, 0, 1, 1].map { [Bench.name($0)] })
        #expect(bench.charges == Bench.once(0..<2))
    }

    @Test("pauses after a success begin with the shortest again")
    func pausesBeginAnew() async throws {
        let bench = try await Bench(BatchService(), payments: 1)
        let terminal = bench.terminal()
        let ledger = bench.ledger(terminal)
        let forwarder = bench.forwarder(
            terminal, change: { ($0.attempts, $0.pause, $0.longestPause) = (1, .seconds(1000), .seconds(100_000)) })
        func pause() async throws -> TimeInterval {
            bench.service.state.withLock { $0.refusal = .unavailable("later") }
            await #expect(throws: PaymentServiceError.self) { try await forwarder.forward() }
            bench.service.state.withLock { $0.refusal = nil }
            return try #require(try await ledger.summary().pause).until.timeIntervalSinceNow
        }
        #expect(900...1000 ~= (try await pause()))
        #expect(1900...2000 ~= (try await pause()))
        #expect(try await forwarder.forward().approved == 1)
        try await Bench.store(1, in: terminal)
        #expect(900...1000 ~= (try await pause()))
    }

    @Test("a pause is never shorter than the one before, however many there were")
    func longPauses() {
        var pace = PaymentForwarder.Pace()
        (pace.pause, pace.longestPause) = (.seconds(1), .seconds(300))
        let pauses = (1...200).map { pace.pause(after: $0, chance: 0) }
        #expect(pauses == (1...200).map { .seconds($0 < 10 ? min(300, 1 << ($0 - 1)) : 300) })
        #expect(pace.pause(after: 3, chance: 1) == .seconds(2))
    }

    // MARK: Sizes

    @Test("after a refused batch half of it is next, and then twice as many, up to the pace's size")
    func sizes() async throws {
        let bench = try await Bench(BatchService([.refused, .refused]), payments: 8)
        #expect(try await bench.forwarder(bench.terminal(), batchSize: 4).forward().approved == 8)
        #expect(Self.sizes(bench.service) == [4, 2, 1, 2, 4, 1])
    }

    @Test("a batch that is too large is not followed by another of its size")
    func tooLarge() async throws {
        let bench = try await Bench(BatchService([.answers(.tooLarge("too large"))]), payments: 8)
        #expect(try await bench.forwarder(bench.terminal(), batchSize: 4).forward().approved == 8)
        #expect(Self.sizes(bench.service) == [4, 2, 2, 2, 2])
    }

    @Test("of a batch that was taken in part, what is left goes in batches of half its size")
    func takenInPart() async throws {
        let bench = try await Bench(BatchService([.partly(1), .disowned]), payments: 4)
        #expect(try await bench.forwarder(bench.terminal(), batchSize: 4).forward().approved == 4)
        #expect(Self.sizes(bench.service) == [4, 4, 2, 1] && bench.charges == Bench.once(0..<4))
    }

    @Test("while a payment is isolated that makes the service fail, each smaller batch has one attempt")
    func isolating() async throws {
        let bench = try await Bench(BatchService(), payments: 4)
        bench.service.state.withLock { $0.breaks = "sealed-0" }
        let forwarder = bench.forwarder(bench.terminal(), batchSize: 4, change: { $0.attempts = 3 })
        #expect(try await forwarder.forward().approved == 3)
        #expect(Self.sizes(bench.service) == [4, 4, 4, 2, 1, 3])
    }
}
