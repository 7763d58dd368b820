/// Nothing has come in time.
package struct TimeLimitPassed: Error { package init() {} }

/// Waits for `body`, and when `limit` is over or the task is cancelled no longer: also one that does not hear that it is
/// cancelled keeps nobody.  SmartCard's `withTimeLimit` is for commands to a reader, of which the next must not begin before
/// the last has ended.
///
/// - Throws: `late`, `CancellationError`, or what `body` throws.
package func waiting<Result: Sendable>(
    atMost limit: Duration, or late: any Error = TimeLimitPassed(),
    _ body: @escaping @Sendable () async throws -> Result
) async throws -> Result {
    let (stream, continuation) = AsyncThrowingStream.makeStream(of: Result.self, throwing: (any Error).self)
    let work = Task {
        do {
            continuation.yield(try await body())
            continuation.finish()
        } catch {
            continuation.finish(throwing: error)
        }
    }
    let timer = Task {
        try await Task.sleep(for: limit)
        continuation.finish(throwing: late)
    }
    defer {
        work.cancel()
        timer.cancel()
    }
    for try await result in stream { return result }
    throw CancellationError()
}

/// Waits for the first call of the closure that `body` is handed.  Later calls change nothing; if none comes, see `limit`.
package func answer<Result: Sendable>(
    within limit: Duration, to body: (@escaping @Sendable (Swift.Result<Result, any Error>) -> Void) -> Void
) async throws -> Result {
    let (stream, continuation) = AsyncThrowingStream.makeStream(of: Result.self, throwing: (any Error).self)
    body { answer in
        switch answer {
        case .success(let value):
            continuation.yield(value)
            continuation.finish()
        case .failure(let error): continuation.finish(throwing: error)
        }
    }
    return try await waiting(atMost: limit) {
        for try await value in stream { return value }
        throw CancellationError()
    }
}
