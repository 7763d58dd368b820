import Synchronization

/// Hands each element to any number of streams, in one order for all.
///
///     let states = Multicast<PrinterState>(.ready, keeping: .newest(16))
///     for await state in states.stream() { show(state) }    // .ready, then what is sent
///     states.send(.outOfPaper)
///
/// Every stream keeps what its consumer has not taken yet, up to a bound that is chosen where the multicast is made.  Sending
/// never waits.  Nothing is resumed or released while a lock is held, so that whoever is woken, cancelled or let go of may
/// use the multicast at once.
public final class Multicast<Element: Sendable>: Sendable {
    /// How much waits for a consumer that is slow, and what becomes of the rest.
    public enum Buffering: Sendable {
        /// The last so many.  Older ones are dropped, and the consumer is not told: for states, of which each takes the place
        /// of the one before, and for what a screen shows.
        case newest(Int)
        /// All, up to so many.  A stream that has fallen behind by more ends after those that it keeps, with
        /// ``StreamOverrun`` if it throws: for what happens once and must not be missed without anybody knowing.
        case all(upTo: Int)
    }

    private enum Signal {
        case element(Element)
        case end((any Error)?)
    }

    private struct State {
        var replay: @Sendable () -> Element? = { nil }
        /// Each returns what wakes its consumer, to be called when the lock is open.
        var sinks: [Int: @Sendable (Signal) -> Wake?] = [:]
        var count = 0
        var end: Signal?
    }

    private let buffering: Buffering
    private let hold: @Sendable (Element) -> @Sendable () -> Element?
    private let state = Mutex(State())

    /// A multicast whose streams begin with what `hold` made of the last element, if that is still something.
    ///
    /// - Parameter hold: called for each element with a lock held, as is what it returns, and so must not use the multicast.
    public init(
        keeping buffering: Buffering, replaying hold: @escaping @Sendable (Element) -> @Sendable () -> Element?
    ) {
        (self.buffering, self.hold) = (buffering, hold)
    }

    /// A multicast for what happens once: a stream begins with the next element.
    public convenience init(keeping buffering: Buffering) { self.init(keeping: buffering) { _ in { nil } } }

    /// A multicast for what is true until the next element comes: a stream begins with the last one.
    public convenience init(_ first: Element, keeping buffering: Buffering) {
        self.init(keeping: buffering) { element in { element } }
        send(first)
    }

    /// The element that a stream would begin with now; nil if there is none.
    public var latest: Element? { state.withLock { $0.replay() } }

    /// Hands `element` to every stream.  Does nothing after ``finish(throwing:)``.
    public func send(_ element: Element) { update { _ in element } }

    /// Hands what `change` makes of ``latest`` to every stream, before anybody else's element comes between; nothing if that
    /// is nil.  Does nothing after ``finish(throwing:)``.
    ///
    /// - Parameter change: called once at most, with a lock held, and so must not use the multicast.
    public func update(_ change: (Element?) -> Element?) {
        // Returned, so that they are released here: what was replayed, whose end may use this object.
        let (wakes, _, _) = state.withLock { state -> ([Wake], Element?, @Sendable () -> Element?) in
            let (latest, before) = (state.replay(), state.replay)
            guard state.end == nil, let element = change(latest) else { return ([], latest, before) }
            state.replay = hold(element)
            return (state.sinks.values.compactMap { $0(.element(element)) }, latest, before)
        }
        for wake in wakes { wake() }
    }

    /// Lets new streams begin with the next element, whatever there was.
    public func forget() {
        _ = state.withLock { state in
            defer { state.replay = { nil } }
            return state.replay
        }
    }

    /// Ends all streams after what they keep, those to come too; those that throw with `error`.
    public func finish(throwing error: (any Error)? = nil) {
        let (wakes, _) = state.withLock { state in
            guard state.end == nil else { return ([Wake](), state.sinks) }
            state.end = .end(error)
            defer { state.sinks = [:] }
            return (state.sinks.values.compactMap { $0(.end(error)) }, state.sinks)
        }
        for wake in wakes { wake() }
    }

    deinit { finish() }

    // MARK: Streams

    /// The elements from now on, after the one that is replayed.
    public func stream() -> AsyncStream<Element> { stream { $0 } }

    /// As ``stream()``, of what `transform` makes of the elements, without those of which it makes nil.
    ///
    /// - Parameter transform: called with a lock held, and so must not use the multicast.
    public func stream<Output: Sendable>(
        _ transform: @escaping @Sendable (Element) -> Output?
    ) -> AsyncStream<Output> {
        let subscription = subscribe(transform)
        return AsyncStream { (try? await subscription.next()) ?? nil }
    }

    /// As ``stream()``, for those who want to know why it ends.
    public func throwingStream() -> AsyncThrowingStream<Element, any Error> {
        let subscription = subscribe { $0 }
        return AsyncThrowingStream { try await subscription.next() }
    }

    private func subscribe<Output: Sendable>(
        _ transform: @escaping @Sendable (Element) -> Output?
    ) -> Subscription<Output> {
        let queue =
            switch buffering {
            case .newest(let count): ElementQueue<Output>(bound: count, endsWhenFull: false)
            case .all(let count): ElementQueue<Output>(bound: count, endsWhenFull: true)
            }
        let sink = { @Sendable (signal: Signal) -> Wake? in
            switch signal {
            case .element(let element): transform(element).flatMap(queue.append)
            case .end(let error): queue.end(error)
            }
        }
        // Nobody waits yet, and so nobody is to be woken; an element that `transform` does not want is released outside the lock.
        let (key, _) = state.withLock { state in
            state.count += 1
            let element = state.replay()
            if let element { _ = sink(.element(element)) }
            if let end = state.end { _ = sink(end) } else { state.sinks[state.count] = sink }
            return (state.count, element)
        }
        return Subscription(queue) { [weak self] in
            // Released outside the lock: its end may end others.
            _ = self?.state.withLock { $0.sinks.removeValue(forKey: key) }
        }
    }
}

/// A stream's end that its consumer brought about: more elements waited for it than are kept.
public struct StreamOverrun: Error, Hashable, CustomStringConvertible {
    /// How many are kept.
    public let bound: Int

    public var description: String {
        "A stream ended, as its consumer fell behind by more than \(bound) elements."
            + " Begin a new one, and ask the source for what was missed."
    }
}

/// Resumes a task.  Never called with a lock held: it takes locks of the task's own, and so does a task that is cancelled
/// meanwhile and wants ours.
private typealias Wake = @Sendable () -> Void

/// What one stream has not taken yet, and the tasks that wait for more.
private final class ElementQueue<Element: Sendable>: Sendable {
    private typealias Waiting = CheckedContinuation<Element?, any Error>

    private struct State {
        var kept: [Element] = []
        var waiting: [Waiting] = []
        /// What comes after those that are kept: once the error, then nil for ever.
        var end: Result<Element?, any Error>?
    }

    private let bound: Int
    private let endsWhenFull: Bool
    private let state = Mutex(State())

    init(bound: Int, endsWhenFull: Bool) { (self.bound, self.endsWhenFull) = (max(bound, 1), endsWhenFull) }

    func append(_ element: Element) -> Wake? {
        // The one that is dropped is released when the lock of this queue is open; the multicast's is not, and so in the wake.
        state.withLock { state -> Wake? in
            guard state.end == nil else { return nil }
            guard state.waiting.isEmpty else {
                let first = state.waiting.removeFirst()
                return { first.resume(returning: element) }
            }
            guard state.kept.count == bound else {
                state.kept.append(element)
                return nil
            }
            guard !endsWhenFull else {
                state.end = .failure(StreamOverrun(bound: bound))
                return nil
            }
            let dropped = state.kept.removeFirst()
            state.kept.append(element)
            return { withExtendedLifetime(dropped) {} }
        }
    }

    func end(_ error: (any Error)?) -> Wake? {
        let waiting = state.withLock { state -> [Waiting] in
            guard state.end == nil else { return [] }
            state.end = error.map { .failure($0) } ?? .success(nil)
            guard !state.waiting.isEmpty else { return [] }
            defer { (state.waiting, state.end) = ([], .success(nil)) }
            return state.waiting
        }
        guard let first = waiting.first else { return nil }
        return {
            first.resume(with: error.map { .failure($0) } ?? .success(nil))
            for other in waiting.dropFirst() { other.resume(returning: nil) }
        }
    }

    /// Ends it without what it keeps.
    func cancel() {
        let (waiting, _) = state.withLock { state in
            defer { state = State(end: .success(nil)) }
            return (state.waiting, state.kept)
        }
        for one in waiting { one.resume(returning: nil) }
    }

    func next() async throws -> Element? {
        try await withCheckedThrowingContinuation { continuation in
            let ready = state.withLock { state -> Result<Element?, any Error>? in
                if !state.kept.isEmpty { return .success(state.kept.removeFirst()) }
                if let end = state.end {
                    state.end = .success(nil)
                    return end
                }
                state.waiting.append(continuation)
                return nil
            }
            if let ready { continuation.resume(with: ready) }
        }
    }
}

/// What a stream holds: it leaves the multicast when the stream is cancelled or let go of.
private final class Subscription<Element: Sendable>: Sendable {
    private let queue: ElementQueue<Element>
    private let leave: @Sendable () -> Void

    init(_ queue: ElementQueue<Element>, leave: @escaping @Sendable () -> Void) {
        (self.queue, self.leave) = (queue, leave)
    }

    func next() async throws -> Element? {
        try await withTaskCancellationHandler {
            try await queue.next()
        } onCancel: {
            queue.cancel()
            leave()
        }
    }

    deinit { leave() }
}
