import Synchronization

/// Whether somebody has taken what a call returned.
///
/// Who calls for subscribers that may be gone when the answer comes sets ``current`` around the call.  What became of the
/// money is then kept until ``take()``: a payment is returned once more by `retryActivePaymentIntent`, a refund is asked about
/// under its own key.
package final class ResultClaim: Sendable {
    /// That of the call which runs.
    @TaskLocal package static var current: ResultClaim?

    private let state = Mutex((isTaken: false, waiter: (@Sendable () -> Void)?.none))

    package init() {}

    package var isTaken: Bool { state.withLock { $0.isTaken } }

    package func take() {
        let waiter = state.withLock { state in
            state.isTaken = true
            return state.waiter
        }
        waiter?()
    }

    /// - Parameter waiter: called by ``take()``, also if that was before.
    package func whenTaken(_ waiter: @escaping @Sendable () -> Void) {
        let isTaken = state.withLock { state in
            state.waiter = waiter
            return state.isTaken
        }
        if isTaken { waiter() }
    }
}
