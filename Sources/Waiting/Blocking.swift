package import Dispatch

extension DispatchQueue {
    /// Runs a blocking call on a thread of this queue, outside the shared pool, and waits for its end.  The call is
    /// enqueued before anything else runs: calls of one actor keep their order.
    nonisolated(nonsending) package func blocking<Value: Sendable, Failure: Error>(
        _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result: Result<Value, Failure> = await withCheckedContinuation { continuation in
            async {
                do throws(Failure) {
                    continuation.resume(returning: .success(try body()))
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
        }
        return try result.get()
    }
}
