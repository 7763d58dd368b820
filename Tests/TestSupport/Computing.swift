import Foundation
public import Testing

/// A test that computes for seconds does so on threads that leave the cores to others.
///
/// Swift's own threads are as many as the machine has cores.  Whoever computes without a pause on each of them keeps every test
/// waiting that talks to a program or plays a device, however long its limits are.
public struct Computing: TestTrait, SuiteTrait, TestScoping {
    public let isRecursive = true

    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        // A suite has no body of its own.
        guard testCase != nil else { return try await function() }
        try await withTaskExecutorPreference(Threads.shared) { try await function() }
    }

    /// Two of low priority, and the jobs that wait for them.
    private final class Threads: TaskExecutor, @unchecked Sendable {
        static let shared = Threads()
        private let condition = NSCondition()
        private var jobs: [UnownedJob] = []

        private init() {
            for _ in 0..<2 { Thread.detachNewThread { self.run() } }
        }

        func enqueue(_ job: consuming ExecutorJob) {
            condition.lock()
            jobs.append(UnownedJob(job))
            condition.signal()
            condition.unlock()
        }

        private func run() -> Never {
            // Linux has a priority for each thread.
            setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 10)
            while true {
                condition.lock()
                while jobs.isEmpty { condition.wait() }
                let job = jobs.removeFirst()
                condition.unlock()
                job.runSynchronously(on: asUnownedTaskExecutor())
            }
        }
    }
}

extension Trait where Self == Computing {
    /// The test computes for seconds without a pause.
    public static var computing: Computing { Computing() }
}
