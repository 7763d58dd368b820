import Synchronization

/// A call's result and whether its caller took it.
///
/// A caller whose subscribers may be gone when the answer comes sets ``current`` around the call.  The result of the
/// payment or refund is then kept until ``take()``: `retryActivePaymentIntent` returns a payment once more, and a
/// refund is queried under its own key.
package final class ResultClaim: Sendable {
    /// The claim of the current call.
    @TaskLocal package static var current: ResultClaim?

    private struct State {
        var isTaken = false
        var waiter: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    package init() {}

    package var isTaken: Bool { state.withLock { $0.isTaken } }

    package func take() {
        let waiter = state.withLock { state in
            state.isTaken = true
            return state.waiter
        }
        waiter?()
    }

    /// - Parameter waiter: called by ``take()``, or at once if ``take()`` came first.
    package func whenTaken(_ waiter: @escaping @Sendable () -> Void) {
        let isTaken = state.withLock { state in
            state.waiter = waiter
            return state.isTaken
        }
        if isTaken { waiter() }
    }
}
