import Foundation
import Synchronization

/// Hands each event to every stream.
final class EventHub: Sendable {
    private typealias Continuation = AsyncStream<PaymentCardReader.Event>.Continuation

    private struct State {
        var next = 0
        var streams: [Int: (read: UUID?, continuation: Continuation)] = [:]
        /// Each with those who were there when it happened.
        var queue: [(event: PaymentCardReader.Event, streams: [Continuation])] = []
        var isSending = false
    }

    private let state = Mutex(State())

    /// The events from now on, all of them.
    ///
    /// - Parameter read: nil; else only those of this read.
    func stream(of read: UUID? = nil) -> AsyncStream<PaymentCardReader.Event> {
        let (stream, continuation) = AsyncStream.makeStream(of: PaymentCardReader.Event.self)
        let key = state.withLock { state in
            state.next += 1
            state.streams[state.next] = (read, continuation)
            return state.next
        }
        continuation.onTermination = { [weak self] _ in
            // Released outside the lock: its end may end others.
            _ = self?.state.withLock { $0.streams.removeValue(forKey: key) }
        }
        return stream
    }

    /// In one order for all, that of the calls.
    ///
    /// A stream is told with no lock held: it wakes a task, and a task that is cancelled meanwhile ends its stream, which takes
    /// the lock.
    ///
    /// - Parameter read: that it is of.
    func send(_ event: PaymentCardReader.Event, of read: UUID? = nil) {
        let isFirst = state.withLock { state in
            let streams = state.streams.values.filter { $0.read == nil || $0.read == read }
            state.queue.append((event, streams.map(\.continuation)))
            defer { state.isSending = true }
            return !state.isSending
        }
        guard isFirst else { return }
        while let (event, streams) = next() { streams.forEach { $0.yield(event) } }
    }

    private func next() -> (event: PaymentCardReader.Event, streams: [Continuation])? {
        state.withLock { state in
            state.isSending = !state.queue.isEmpty
            return state.queue.isEmpty ? nil : state.queue.removeFirst()
        }
    }

    deinit { state.withLock { $0.streams.values.map(\.continuation) }.forEach { $0.finish() } }
}
