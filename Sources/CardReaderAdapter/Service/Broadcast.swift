import Synchronization

/// Hands each element to every stream, in one order for all, and keeps what a stream has not taken yet.
final class Broadcast<Element: Sendable>: Sendable {
    private enum Signal {
        case element(Element)
        case end((any Error)?)
    }

    private struct State {
        var latest: Element?
        var isOver = false
        var sinks: [Int: @Sendable (Signal) -> Void] = [:]
        var count = 0
    }

    private let replays: Bool
    private let state: Mutex<State>

    /// For what is true until the next element comes: a new stream begins with the last one.
    init(_ first: Element) {
        replays = true
        state = Mutex(State(latest: first))
    }

    /// For what happens once: a new stream begins with the next one.
    init() {
        replays = false
        state = Mutex(State())
    }

    /// The last element; nil if there is none to begin with.
    var latest: Element? { state.withLock { $0.latest } }

    func send(_ element: Element) {
        state.withLock { state in
            guard !state.isOver else { return }
            if replays { state.latest = element }
            for sink in state.sinks.values { sink(.element(element)) }
        }
    }

    /// Ends all streams, those to come too.
    func finish(throwing error: (any Error)? = nil) {
        let sinks = state.withLock { state in
            defer { (state.isOver, state.sinks) = (true, [:]) }
            for sink in state.sinks.values { sink(.end(error)) }
            // Released outside the lock: what they hold may end streams.
            return state.sinks
        }
        _ = sinks
    }

    deinit { finish() }

    func stream() -> AsyncStream<Element> {
        let (stream, continuation) = AsyncStream.makeStream(of: Element.self)
        let key = add { signal in
            switch signal {
            case .element(let element): continuation.yield(element)
            case .end: continuation.finish()
            }
        }
        continuation.onTermination = { [weak self] _ in self?.remove(key) }
        return stream
    }

    func throwingStream() -> AsyncThrowingStream<Element, any Error> {
        let (stream, continuation) = AsyncThrowingStream.makeStream(of: Element.self, throwing: (any Error).self)
        let key = add { signal in
            switch signal {
            case .element(let element): continuation.yield(element)
            case .end(let error): continuation.finish(throwing: error)
            }
        }
        continuation.onTermination = { [weak self] _ in self?.remove(key) }
        return stream
    }

    private func add(_ sink: @escaping @Sendable (Signal) -> Void) -> Int {
        state.withLock { state in
            state.count += 1
            if let latest = state.latest { sink(.element(latest)) }
            if state.isOver { sink(.end(nil)) } else { state.sinks[state.count] = sink }
            return state.count
        }
    }

    /// Later, on a task of its own: a task that is cancelled calls from under its own lock, which an element that is sent
    /// at the same time wants to take under ours.
    private func remove(_ key: Int) {
        Task { [weak self] in
            _ = self?.state.withLock { $0.sinks.removeValue(forKey: key) }
        }
    }
}
