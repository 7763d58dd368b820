import Synchronization

/// Lets tasks through one after the other, in the order in which they came.
package final class ExchangeTurn: Sendable {
    private struct State {
        var isTaken = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    package init() {}

    /// - Throws: `CancellationError`, when the turn comes to a cancelled task.
    package func take() async throws {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                if state.isTaken { state.waiting.append(continuation) }
                defer { state.isTaken = true }
                return !state.isTaken
            }
            if isFree { continuation.resume() }
        }
        if Task.isCancelled {
            pass()
            throw CancellationError()
        }
    }

    package func pass() {
        let next = state.withLock { state in
            state.isTaken = !state.waiting.isEmpty
            return state.isTaken ? state.waiting.removeFirst() : nil
        }
        next?.resume()
    }
}
