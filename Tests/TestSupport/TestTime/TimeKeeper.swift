import Dispatch
import Foundation
import Glibc
import Waiting

/// The thread of the tests in simulated time: it runs their tasks, and when there is nothing left to run it lets their times
/// go on.
///
/// Their tasks run here one at a time, in the order in which they become ready.  Those of the main actor run on the main
/// queue, in the same order: nothing else runs here meanwhile.  Under the thread sanitizer they stay in the pool.
final class TimeKeeper: TaskExecutor {
    static let shared = TimeKeeper()

    private struct Job {
        let job: UnownedJob
        let time: Time
    }

    private struct State {
        var times: [TestTime] = []
        /// The jobs that are ready, oldest first, and the first that has not begun.
        var (jobs, first): ([Job], Int) = ([], 0)
        /// How many the main actor has.
        var mainJobs = 0
        /// Whether the thread waits for the bell.
        var isResting = false

        var isBusy: Bool { first < jobs.count || mainJobs > 0 }
        /// Whether there is a job that may run.
        var isReady: Bool { first < jobs.count && mainJobs == 0 }

        mutating func next() -> Job? {
            guard isReady else { return nil }
            defer {
                first += 1
                if first == jobs.count { (jobs, first) = ([], 0) }
            }
            return jobs[first]
        }
    }

    private let state = Lock(State())
    private let bell = DispatchSemaphore(value: 0)

    private init() {
        Hooks.set()
        Thread.detachNewThread { [self] in keep() }
    }

    func begin(_ time: TestTime) { change { $0.times.append(time) } }

    func end(_ time: TestTime) {
        state.withLock { $0.times.removeAll { $0 === time } }
        time.letGo()
    }

    /// Changes what there is to do, and wakes the thread.
    private func change(_ body: (inout State) -> Void) {
        let isResting = state.withLock { state in
            body(&state)
            defer { state.isResting = false }
            return state.isResting
        }
        if isResting { bell.signal() }
    }

    // MARK: Jobs

    func enqueue(_ job: consuming ExecutorJob) { enqueue(UnownedJob(job), in: Time.current) }

    fileprivate func enqueue(_ job: UnownedJob, in time: Time) { change { $0.jobs.append(Job(job: job, time: time)) } }

    fileprivate func enqueueOnMain(_ job: UnownedJob, in time: Time) {
        state.withLock { $0.mainJobs += 1 }
        DispatchQueue.main.async { [self] in
            time.run { job.runSynchronously(on: MainActor.sharedUnownedExecutor) }
            change { $0.mainJobs -= 1 }
        }
    }

    // MARK: The thread

    private func keep() {
        // Else the kernel may add 50 µs to each wait.
        try? "1".write(toFile: "/proc/thread-self/timerslack_ns", atomically: false, encoding: .utf8)
        let threads = ThreadWatch()
        var pause = Self.shortest
        while true {
            if let next = state.withLock({ $0.next() }) {
                next.time.run { next.job.runSynchronously(on: asUnownedTaskExecutor()) }
                pause = Self.shortest
            } else if goOn(threads, after: pause) {
                pause = Self.shortest
            } else {
                // Somebody else is busy, or nothing is left.
                pause = rest(for: pause) ? Self.shortest : min(pause * 2, Self.longest)
            }
        }
    }

    /// Waits for something to do: with a test for so many microseconds at most, without one for ever.
    ///
    /// - Returns: whether there is something.
    private func rest(for pause: Int) -> Bool {
        let limit: DispatchTime? = state.withLock { state in
            guard !state.isReady else { return nil }
            state.isResting = true
            return state.times.isEmpty ? .distantFuture : .now() + .microseconds(pause)
        }
        guard let limit, bell.wait(timeout: limit) != .success else { return true }
        state.withLock { $0.isResting = false }
        return false
    }

    /// - Parameter pause: the microseconds since this was called before.
    /// - Returns: whether there was something to do.
    private func goOn(_ threads: ThreadWatch, after pause: Int) -> Bool {
        // A thread that sleeps has enqueued its jobs before.
        guard state.withLock({ !$0.times.isEmpty }), threads.allSleep() else { return false }
        let times = state.withLock { $0.isBusy ? [] : $0.times }
        return times.reduce(false) { $1.goOn(after: .microseconds(pause)) || $0 }
    }

    /// In microseconds.  What takes long is looked at less often.
    private static let (shortest, longest) = (10, 1000)
}

/// Where the runtime, which has hooks for tests, asks where to put a job that no executor of its own has asked for.
///
/// A job belongs to the time of whoever makes it ready; of the thread, where that is no task: an actor that a task leaves
/// may have other jobs.
private enum Hooks {
    typealias Original = @convention(thin) (UnownedJob) -> Void
    typealias Hook = @convention(thin) (UnownedJob, Original) -> Void

    static func set() {
        guard Sanitizer.current != .thread else { return }
        set("swift_task_enqueueGlobal_hook") { job, original in
            let time = Time.current
            if time.simulation == nil { original(job) } else { TimeKeeper.shared.enqueue(job, in: time) }
        }
        set("swift_task_enqueueMainExecutor_hook") { job, original in
            let time = Time.current
            if time.simulation == nil { original(job) } else { TimeKeeper.shared.enqueueOnMain(job, in: time) }
        }
    }

    private static func set(_ name: String, _ hook: @escaping Hook) {
        guard let place = dlsym(dlopen(nil, RTLD_NOW), name) else { fatalError("this runtime has no \(name)") }
        place.assumingMemoryBound(to: Hook?.self).pointee = hook
    }
}
