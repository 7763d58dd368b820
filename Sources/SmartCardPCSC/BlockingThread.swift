import Glibc
import SmartCard
import Waiting

/// A dedicated thread for blocking calls, and the state that only this thread touches.
///
/// libpcsclite locks its whole library when two threads use one context, and Swift's cooperative pool must not block.
/// Each context is therefore the state of such a thread.  Jobs run one at a time, in order.  When its last reference
/// goes, the thread finishes its jobs and ends; its state ends with it, on the thread.
final class BlockingThread<State: ~Copyable>: Sendable {
    private let jobs = JobQueue<State>()

    /// - Parameter makeState: runs on the new thread.
    init(state makeState: @escaping @Sendable () -> State) {
        let jobs = jobs
        let started = startThread {
            var state = makeState()
            while let job = jobs.next() { job(&state) }
        }
        if !started { jobs.close() }
    }

    deinit { jobs.close() }

    /// Runs `job` on the thread and returns its result.
    ///
    /// A cancelled task gets `CancellationError` at once; after `timeout`, the call throws the error given for it.  A
    /// job that has begun cannot be stopped: it runs to its end, and its result goes to `abandoned`, on the thread.
    func run<T: Sendable>(
        timeout: (after: Duration, error: CardError)? = nil,
        _ job: @escaping @Sendable (inout State) throws -> T,
        abandoned: @escaping @Sendable (inout State, T) -> Void = { _, _ in }
    ) async throws -> T {
        let delivery = Delivery<T>()
        return try await delivery.receive(
            within: timeout?.after, or: timeout?.error ?? CardError(.readerTimeout)
        ) {
            let accepted = jobs.append { state in
                guard delivery.isAwaited else { return }
                let result = Result { try job(&state) }
                if !delivery.deliver(result), case .success(let value) = result { abandoned(&state, value) }
            }
            if !accepted { delivery.deliver(.failure(CardError(.other, "the system starts no more threads"))) }
        }
    }

    /// Runs `job` on the thread and returns when it is done, even if the task is cancelled.
    ///
    /// - Returns: nil if the system provided no thread.
    func runToEnd<T: Sendable>(_ job: @escaping @Sendable (inout State) -> T) async -> T? {
        await withCheckedContinuation { continuation in
            let accepted = jobs.append { state in continuation.resume(returning: job(&state)) }
            if !accepted { continuation.resume(returning: nil) }
        }
    }
}

/// Starts a detached thread that runs `body`; returns false if the system provides none.
func startThread(_ body: @escaping @Sendable () -> Void) -> Bool {
    let box = Unmanaged.passRetained(ThreadBody(run: body))
    var thread = pthread_t()
    let status = pthread_create(
        &thread, nil,
        { argument in
            if let argument { Unmanaged<ThreadBody>.fromOpaque(argument).takeRetainedValue().run() }
            return nil
        }, box.toOpaque())
    guard status == 0 else {
        box.release()
        return false
    }
    pthread_detach(thread)
    return true
}

private final class ThreadBody: Sendable {
    let run: @Sendable () -> Void

    init(run: @escaping @Sendable () -> Void) { self.run = run }
}

/// The jobs of a ``BlockingThread``.
private final class JobQueue<State: ~Copyable>: Sendable {
    typealias Job = @Sendable (inout State) -> Void

    private struct Content {
        var jobs: [Job] = []
        var isClosed = false
    }

    private let content = WaitableLock(Content())

    /// Appends a job; returns false if the queue is closed.
    func append(_ job: @escaping Job) -> Bool {
        content.withLock { content in
            if !content.isClosed { content.jobs.append(job) }
            return !content.isClosed
        }
    }

    func close() { content.withLock { $0.isClosed = true } }

    /// Waits for a job; returns nil when the queue is closed and empty.
    func next() -> Job? {
        content.wait { content in
            if !content.jobs.isEmpty { return .some(content.jobs.removeFirst()) }
            return content.isClosed ? .some(nil) : nil
        }
    }
}

/// A value behind a lock, with threads that wait for it to change.
final class WaitableLock<Value>: @unchecked Sendable {
    // Unchecked: `value` is accessed only with `mutex` held.
    private var value: Value
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    init(_ value: Value) {
        self.value = value
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(changed, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
    }

    /// Runs `body` on the value and wakes every waiting thread.
    func withLock<R>(_ body: (inout Value) throws -> R) rethrows -> R {
        pthread_mutex_lock(mutex)
        defer {
            pthread_cond_broadcast(changed)
            pthread_mutex_unlock(mutex)
        }
        return try body(&value)
    }

    /// Blocks the thread until `body` returns a value.  Calls it again after each change.
    func wait<R>(for body: (inout Value) -> R?) -> R {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            if let result = body(&value) { return result }
            pthread_cond_wait(changed, mutex)
        }
    }

    /// Blocks the thread until `body` returns a value or `timeout` has passed; then returns nil.
    func wait<R>(atMost timeout: Duration, for body: (inout Value) -> R?) -> R? {
        var deadline = timespec()
        clock_gettime(CLOCK_MONOTONIC, &deadline)
        let (seconds, attoseconds) = timeout.components
        let nanoseconds = Int(deadline.tv_nsec) + Int(attoseconds / 1_000_000_000)
        deadline.tv_sec += Int(seconds) + nanoseconds / 1_000_000_000
        deadline.tv_nsec = nanoseconds % 1_000_000_000
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            if let result = body(&value) { return result }
            if pthread_cond_timedwait(changed, mutex, &deadline) == ETIMEDOUT { return body(&value) }
        }
    }
}
