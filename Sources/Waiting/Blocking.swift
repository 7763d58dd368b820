package import Dispatch
import Synchronization

extension DispatchQueue {
    /// Runs a blocking call on a thread of this queue, outside the shared pool, and waits for its end.  The call is
    /// enqueued before anything else runs: calls of one actor keep their order.  It is in the task's ``Time``.
    ///
    /// The queue has released `body`, with all that it holds, when this returns.
    nonisolated(nonsending) package func blocking<Value: Sendable, Failure: Error>(
        _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let (work, time) = (Work(body), Time.current)
        let result = await withCheckedContinuation { continuation in
            async { time.run { continuation.resume(returning: work.run()) } }
        }
        return try result.get()
    }
}

/// A body that runs once, and is released before its result is returned.
private final class Work<Value: Sendable, Failure: Error>: Sendable {
    private struct Body {
        let run: @Sendable () throws(Failure) -> Value
    }

    private let body: Mutex<Body?>

    init(_ body: @escaping @Sendable () throws(Failure) -> Value) { self.body = Mutex(Body(run: body)) }

    func run() -> Result<Value, Failure> {
        guard let body = body.withLock({ $0.take() }) else { preconditionFailure("it ran before") }
        do throws(Failure) { return .success(try body.run()) } catch { return .failure(error) }
    }
}
