/// Lets one task through at a time, or several, in the order in which they came.
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

    /// - Parameter places: how many tasks have the turn at once.
    package init(places: Int = 1) { state = Lock(State(free: places)) }

    /// The number of tasks in the line.
    package var waitingCount: Int { state.withLock { $0.waiting.count { $0.isAwaited } } }

    /// Waits for the turn and takes it; ``pass()`` must follow.
    ///
    /// - Throws: `CancellationError`, at once, when the task is canceled; the turn is not taken then.
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

    /// Takes the turn, as ``take()``, until the returned value is released.
    nonisolated(nonsending) package func hold() async throws -> Hold {
        try await take()
        return Hold(turn: self)
    }

    /// A turn that is passed when nobody refers to this any more.
    package final class Hold: Sendable {
        private let turn: Turn

        fileprivate init(turn: Turn) { self.turn = turn }

        deinit { turn.pass() }
    }

    /// Gives the turn to the next task.
    package func pass() {
        let next: Delivery<Void>? = state.withLock { state in
            if !state.waiting.isEmpty { return state.waiting.removeFirst() }
            state.free += 1
            return nil
        }
        if let next { hand(to: next) }
    }

    /// A task that was canceled while it waited has no use for the turn.
    private func hand(to delivery: Delivery<Void>) {
        if !delivery.deliver(.success(())) { pass() }
    }
}
