import Synchronization

/// The error of a wait whose time limit has passed.
public struct TimeLimitPassed: Error { public init() {} }

/// Runs `body`, cancels it after `limit`, and waits for its end: for commands to a device that takes one at a time.
///
/// - Throws: `late` if the limit passed first; else the error of `body`.
package func withTimeLimit<Value: Sendable>(
    _ limit: Duration, or late: @autoclosure () -> any Error,
    _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    let isLate = Atomic(false)
    let work = Task { try await body() }
    let deadline = Time.deadline(after: limit) {
        isLate.store(true, ordering: .releasing)
        work.cancel()
    }
    defer { deadline.lift() }
    let result = await withTaskCancellationHandler {
        await work.result
    } onCancel: {
        work.cancel()
    }
    guard !isLate.load(ordering: .acquiring) else { throw late() }
    return try result.get()
}

/// Waits for `body` until `limit` has passed or the task is canceled.  `body` is then canceled, but the wait ends even
/// if it continues.
///
/// - Throws: `late`; `CancellationError`; the error of `body`.
package func waiting<Value: Sendable>(
    atMost limit: Duration, or late: @autoclosure () -> any Error = TimeLimitPassed(),
    _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    let delivery = Delivery<Value>()
    let work = Task { await delivery.deliver(body) }
    defer { work.cancel() }
    return try await delivery.receive(within: limit, or: late())
}
