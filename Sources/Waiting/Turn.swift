/// Lets one task through at a time, or several, in order of arrival.
///
///     try await turn.take()
///     defer { turn.pass() }
package final class Turn: Sendable {
    private struct State {
        var free: Int
        var waiting: [Delivery<Void>] = []

        mutating func take() -> Bool {
            guard free > 0 else { return false }
            free -= 1
            return true
        }
    }

    private let state: Lock<State>

    /// - Parameter places: the number of tasks that may have the turn at once.
    package init(places: Int = 1) { state = Lock(State(free: places)) }

    /// The number of waiting tasks.
    package var waitingCount: Int { state.withLock { $0.waiting.count { $0.isAwaited } } }

    /// Waits for the turn and takes it; call ``pass()`` afterwards.
    ///
    /// - Throws: `CancellationError`, at once, when the task is canceled; the turn is then not taken.
    nonisolated(nonsending) package func take() async throws {
        try Task.checkCancellation()
        if state.withLock({ $0.take() }) { return }
        let delivery = Delivery<Void>()
        try await delivery.receive {
            let isFree = state.withLock { state in
                let isFree = state.take()
                if !isFree { state.waiting.append(delivery) }
                return isFree
            }
            if isFree { hand(to: delivery) }
        }
    }

    /// Takes the turn, as ``take()`` does, until the returned value is released.
    nonisolated(nonsending) package func hold() async throws -> Hold {
        try await take()
        return Hold(turn: self)
    }

    /// A turn that passes on when the last reference to it goes.
    package final class Hold: Sendable {
        private let turn: Turn

        fileprivate init(turn: Turn) { self.turn = turn }

        deinit { turn.pass() }
    }

    /// Passes the turn to the next task.
    package func pass() {
        let next: Delivery<Void>? = state.withLock { state in
            if !state.waiting.isEmpty { return state.waiting.removeFirst() }
            state.free += 1
            return nil
        }
        if let next { hand(to: next) }
    }

    /// Skips a task that was canceled while it waited.
    private func hand(to delivery: Delivery<Void>) {
        if !delivery.deliver(.success(())) { pass() }
    }
}
