/// One result for one task that waits for it.
///
/// A result, a cancellation and a time limit meet here: the first resumes the task, and the others do nothing.
///
///     let delivery = Delivery<[UInt8]>()
///     return try await delivery.receive(within: .seconds(5), or: CardError(.readerTimeout)) {
///         device.read { bytes in delivery.deliver(.success(bytes)) }
///     }
package final class Delivery<Value: Sendable>: Sendable {
    @usableFromInline package enum Phase {
        case new
        case awaited(CheckedContinuation<Value, any Error>)
        /// Nobody waited for it yet.
        case delivered(Result<Value, any Error>)
        case over
    }

    @usableFromInline let phase = Lock(Phase.new)

    @inlinable package init() {}

    /// Calls `start` and waits for the result.  Called once.
    ///
    /// - Parameters:
    ///   - limit: how long to wait; nil: as long as it takes.
    ///   - late: the error when that time has passed.
    ///   - start: begins the work; not called if there is a result already, or the task is canceled.
    ///   - onCancel: called when the task is canceled, after it has been resumed.
    /// - Throws: the error that was delivered; `late`; `CancellationError`, at once, when the task is canceled.
    @inlinable nonisolated(nonsending) package func receive(
        within limit: Duration? = nil, or late: @autoclosure () -> any Error = TimeLimitPassed(),
        _ start: () -> Void = {}, onCancel: @Sendable () -> Void = {}
    ) async throws -> Value {
        guard let limit else { return try await receive(start, onCancel) }
        let error = late()
        let deadline = Deadlines.ofThisProcess.set(limit) { self.deliver(.failure(error)) }
        defer { Deadlines.ofThisProcess.lift(deadline) }
        return try await receive(start, onCancel)
    }

    @inlinable nonisolated(nonsending) func receive(
        _ start: () -> Void, _ onCancel: @Sendable () -> Void
    ) async throws -> Value {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result: Result<Value, any Error>? = phase.withLock { phase in
                    if case .delivered(let result) = phase {
                        phase = .over
                        return result
                    }
                    phase = .awaited(continuation)
                    return nil
                }
                if let result { continuation.resume(with: result) } else { start() }
            }
        } onCancel: {
            deliver(.failure(CancellationError()))
            onCancel()
        }
    }

    /// True while a task waits.
    @inlinable package var isAwaited: Bool {
        phase.withLock { if case .awaited = $0 { true } else { false } }
    }

    /// Hands the result over, now or when somebody asks for it.
    ///
    /// - Returns: false if another result came before.
    @inlinable @discardableResult package func deliver(_ result: Result<Value, any Error>) -> Bool {
        let (isFirst, continuation): (Bool, CheckedContinuation<Value, any Error>?) = phase.withLock { phase in
            switch phase {
            case .new:
                phase = .delivered(result)
                return (true, nil)
            case .awaited(let continuation):
                phase = .over
                return (true, continuation)
            case .delivered, .over: return (false, nil)
            }
        }
        continuation?.resume(with: result)
        return isFirst
    }

    /// Delivers what `body` returns or throws.
    package func deliver(_ body: () async throws -> Value) async {
        do { deliver(.success(try await body())) } catch { deliver(.failure(error)) }
    }
}

/// Runs `body` to its end and waits for it, although the task may be canceled: for what must be put back before anything else
/// happens.
///
/// - Throws: the error of `body`.
package func toTheEnd<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value {
    try await Task { try await body() }.value
}

/// Runs `body` to its end; a task that is canceled waits for it no longer.
///
/// - Throws: the error of `body`; `CancellationError`, at once, when the task is canceled.
package func runningOn<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value {
    let delivery = Delivery<Value>()
    return try await delivery.receive { Task { await delivery.deliver(body) } }
}
