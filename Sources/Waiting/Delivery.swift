/// One result for one waiting task.
///
/// A result, a cancellation and a time limit compete: the first resumes the task, and the others do nothing.
///
///     let delivery = Delivery<[UInt8]>()
///     let bytes = try await delivery.receive(within: .seconds(5), or: CardError(.readerTimeout)) {
///         device.read { bytes in delivery.deliver(.success(bytes)) }
///     }
///
/// It and ``Lock`` are public, so that the modules that exchange thousands of APDUs a second get code for their own types.
public final class Delivery<Value: Sendable>: Sendable {
    @usableFromInline enum Phase {
        case new
        case awaited(CheckedContinuation<Value, any Error>)
        /// No task has waited for the result yet.
        case delivered(Result<Value, any Error>)
        case over
    }

    @usableFromInline let phase = Lock(Phase.new)

    @inlinable public init() {}

    /// Calls `start` and waits for the result.  Call it once.
    ///
    /// - Parameters:
    ///   - start: begins the work; not called if the result is there already or the task is canceled.
    ///   - onCancel: called after a canceled task has been resumed.
    /// - Throws: the error that was delivered; `CancellationError`, at once, when the task is canceled.
    @inlinable nonisolated(nonsending) public func receive(
        _ start: () -> Void = {}, onCancel: @Sendable () -> Void = {}
    ) async throws -> Value {
        // The thread sanitizer does not see how a continuation that is resumed before its task waits hands over its value.
        // It sees a lock.
        defer { phase.withLock { _ in } }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                if let result = take(continuation) { continuation.resume(with: result) } else { start() }
            }
        } onCancel: {
            deliver(.failure(CancellationError()))
            onCancel()
        }
    }

    /// Calls `start` and waits for the result, as ``receive(_:onCancel:)`` does, and no longer than `limit`.
    ///
    /// - Parameters:
    ///   - limit: the longest wait; nil: no limit.
    ///   - late: the error after that time.
    ///   - start: begins the work; not called if the result is there already or the task is canceled.
    ///   - onCancel: called after a canceled task has been resumed.
    /// - Throws: the error that was delivered; `late`; `CancellationError`, at once, when the task is canceled.
    nonisolated(nonsending) public func receive(
        within limit: Duration?, or late: @autoclosure () -> any Error = TimeLimitPassed(),
        _ start: () -> Void = {}, onCancel: @Sendable () -> Void = {}
    ) async throws -> Value {
        guard let limit else { return try await receive(start, onCancel: onCancel) }
        let error = late()
        let deadline = Time.deadline(after: limit) { self.deliver(.failure(error)) }
        defer { deadline.lift() }
        return try await receive(start, onCancel: onCancel)
    }

    /// Waits for the result of work that has begun, even if the task is canceled.  Call it once.
    ///
    /// An actor that calls it may be left before the wait begins.  A result that comes meanwhile is kept.
    ///
    /// - Parameter onCancel: called when the task is canceled; may deliver a result, or ask whoever does to hurry.
    /// - Throws: the error that was delivered.
    nonisolated(nonsending) package func receiveToTheEnd(onCancel: @Sendable () -> Void = {}) async throws -> Value {
        // As above.
        defer { phase.withLock { _ in } }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                if let result = take(continuation) { continuation.resume(with: result) }
            }
        } onCancel: {
            onCancel()
        }
    }

    /// Returns the result if it is there, else keeps `continuation` for it.
    @usableFromInline func take(_ continuation: CheckedContinuation<Value, any Error>) -> Result<Value, any Error>? {
        phase.withLock { phase in
            if case .delivered(let result) = phase {
                phase = .over
                return result
            }
            phase = .awaited(continuation)
            return nil
        }
    }

    /// True while a task waits.
    @inlinable public var isAwaited: Bool {
        phase.withLock { if case .awaited = $0 { true } else { false } }
    }

    /// Delivers the result, now or when a task asks for it.
    ///
    /// - Returns: false if another result came first.
    @inlinable @discardableResult public func deliver(_ result: Result<Value, any Error>) -> Bool {
        var (isFirst, waiting) = (true, CheckedContinuation<Value, any Error>?.none)
        phase.withLock { phase in
            switch phase {
            case .new: phase = .delivered(result)
            case .awaited(let continuation): (phase, waiting) = (.over, continuation)
            case .delivered, .over: isFirst = false
            }
        }
        waiting?.resume(with: result)
        return isFirst
    }

    /// Delivers the result or error of `body`.
    public func deliver(_ body: () async throws -> Value) async {
        do { deliver(.success(try await body())) } catch { deliver(.failure(error)) }
    }
}

/// Runs `body` to its end and waits for it, even if the task is canceled: for work that must finish before anything
/// else happens, such as restoring a setting.
///
/// - Throws: the error of `body`.
package func toTheEnd<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value {
    try await Task { try await body() }.value
}

/// Runs `body` to its end; a canceled task stops waiting for it.
///
/// - Throws: the error of `body`; `CancellationError`, at once, when the task is canceled.
package func runningOn<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value {
    let delivery = Delivery<Value>()
    return try await delivery.receive { Task { await delivery.deliver(body) } }
}
