/// Wakes the tasks that wait for a change of a state that somebody else keeps.
///
///     while !state.withLock({ $0.isOver }) {
///         await changed.wait { state.withLock { $0.isOver } }
///         try Task.checkCancellation()
///     }
package final class Signal: Sendable {
    private let waiting = Lock<[Delivery<Void>]>([])

    package init() {}

    /// Waits for ``send()``.  Returns also when the time limit has passed, and at once when the task is canceled: the
    /// caller looks at its state again.
    ///
    /// - Parameters:
    ///   - limit: the longest wait; nil: no limit.
    ///   - isDue: called once; if it returns true, nothing is waited for.  A change that comes after the call is not
    ///     missed.
    nonisolated(nonsending) package func wait(within limit: Duration? = nil, unless isDue: () -> Bool) async {
        let delivery = Delivery<Void>()
        waiting.withLock { $0.append(delivery) }
        defer { waiting.withLock { $0.removeAll { $0 === delivery } } }
        guard !isDue() else { return }
        try? await delivery.receive(within: limit)
    }

    /// Wakes all tasks that wait.  Do not call it with the state's lock held.
    package func send() {
        let tasks = waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
        for task in tasks { task.deliver(.success(())) }
    }
}
