import SmartCard
import SmartCardSimulator
import SmartCardTrace
import Synchronization
import TestSupport
import Testing

/// A replay keeps a reader's promises: each requirement is recorded while it is tested on the reader in this
/// process, and then tested on the replay.
@Suite struct ReplayConformanceTests {
    /// How often polling asks differs from run to run, and so do its commands.
    static let repeatable = Requirement.all.filter { !$0.testDescription.contains("polling") }

    @Test(arguments: repeatable) func replayed(_ requirement: Requirement) async throws {
        let bench = try RecordedBench()
        try await requirement.check(bench)
        let replay = try ReplayedBench(bench.trace())
        try await requirement.check(replay)
    }
}

/// The reader in this process, recorded.
private final class RecordedBench: Bench {
    private let bench = InProcessBench()
    private let lines = Lines()
    let reader: any CardReader

    private final class Lines: Sendable {
        let bytes = Mutex<[UInt8]>([])
    }

    init() throws {
        let lines = lines
        let recorder = TraceRecorder(try TraceWriter { line in lines.bytes.withLock { $0 += line } })
        reader = recorder.recording(bench.reader)
    }

    func trace() throws -> Trace { try Trace(text: String(decoding: lines.bytes.withLock { $0 }, as: UTF8.self)) }

    func insert(_ card: String) throws { try bench.insert(card) }
    func add(_ card: String) throws { try bench.add(card) }
    func remove() { bench.remove() }
    func unplug() { bench.unplug() }
}

/// A replay, whose cards come and go as in the trace.
private struct ReplayedBench: Bench {
    let reader: any CardReader

    init(_ trace: Trace) throws { reader = ReplayReader(trace) }

    func insert(_ card: String) {}
    func add(_ card: String) {}
    func remove() {}
    func unplug() {}
}
