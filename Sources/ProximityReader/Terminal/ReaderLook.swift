import Dispatch
import Synchronization
import Waiting

/// A search for a reader, for callers that cannot wait asynchronously.
final class ReaderLook: Sendable {
    private let last = Mutex<Finding?>(nil)

    private struct Finding {
        let isThere: Bool
        let time: Time.Instant
    }

    /// Returns true if there is a reader; false if that is not known within two seconds.
    ///
    /// Blocks its thread for at most that time; not at all within a second of the previous search.
    func findsReader(_ choice: ProximityReaderSystem.ReaderChoice) -> Bool {
        findsReader { (try? await choice.find()) != nil }
    }

    /// Returns the answer of `look`.
    ///
    /// - Parameter look: runs on its own threads, so that it ends even if all others are blocked.
    func findsReader(_ look: @escaping @Sendable () async -> Bool) -> Bool {
        if let last = last.withLock({ $0 }), Time.now - last.time < .seconds(1) { return last.isThere }
        let (found, end) = (Found(), DispatchSemaphore(value: 0))
        let task = Task(executorPreference: OwnThreads()) {
            if await look() { found.note() }
            end.signal()
        }
        defer { task.cancel() }
        let isThere = end.wait(timeout: .now() + 2) == .success && found.isThere
        let finding = Finding(isThere: isThere, time: Time.now)
        last.withLock { $0 = finding }
        return isThere
    }

    private final class Found: Sendable {
        private let value = Mutex(false)
        var isThere: Bool { value.withLock { $0 } }
        func note() { value.withLock { $0 = true } }
    }

    private final class OwnThreads: TaskExecutor {
        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            DispatchQueue.global().async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        }
    }
}
