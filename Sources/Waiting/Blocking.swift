package import Dispatch

extension DispatchQueue {
    /// Runs a call that blocks on a thread of this queue, not on one that tasks share, and waits for its end.  It is queued
    /// before anything else runs: calls of one actor keep their order.
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
