import Synchronization

/// Whether somebody has taken what a call returned.
///
/// Who calls for subscribers that may be gone when the answer comes sets ``current`` around the call.  What became of the
/// money is then kept until ``take()``: a payment is returned once more by `retryActivePaymentIntent`, a refund is asked about
/// under its own key.
package final class ResultClaim: Sendable {
    /// That of the call which runs.
    @TaskLocal package static var current: ResultClaim?

    private let taken = Mutex(false)

    package init() {}

    package var isTaken: Bool { taken.withLock { $0 } }
    package func take() { taken.withLock { $0 = true } }
}
