import Synchronization

/// Hands each event to every stream.
final class EventHub: Sendable {
    private let state = Mutex<(next: Int, streams: [Int: AsyncStream<PaymentCardReader.Event>.Continuation])>((0, [:]))

    /// The events from now on, all of them.
    func stream() -> AsyncStream<PaymentCardReader.Event> {
        let (stream, continuation) = AsyncStream.makeStream(of: PaymentCardReader.Event.self)
        let key = state.withLock { state in
            state.next += 1
            state.streams[state.next] = continuation
            return state.next
        }
        continuation.onTermination = { [weak self] _ in
            // Released outside the lock: its end may end others.
            _ = self?.state.withLock { $0.streams.removeValue(forKey: key) }
        }
        return stream
    }

    /// In one order for all, that of the calls.
    func send(_ event: PaymentCardReader.Event) {
        state.withLock { state in state.streams.values.forEach { $0.yield(event) } }
    }

    deinit { state.withLock { state in state.streams.values.forEach { $0.finish() } } }
}
