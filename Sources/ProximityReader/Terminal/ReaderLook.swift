import Dispatch
import Synchronization

/// A look for a reader, by a caller that cannot wait as tasks do.
enum ReaderLook {
    /// Whether there is a reader; false if that is not known within two seconds.
    ///
    /// Blocks its thread for so long at most.  The look itself has threads of its own, so that it comes to its end where all
    /// others are blocked.
    static func findsReader(_ choice: ProximityReaderSystem.ReaderChoice) -> Bool {
        let (found, end) = (Found(), DispatchSemaphore(value: 0))
        let look = Task(executorPreference: OwnThreads()) {
            if (try? await choice.find()) != nil { found.note() }
            end.signal()
        }
        defer { look.cancel() }
        return end.wait(timeout: .now() + 2) == .success && found.isThere
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
