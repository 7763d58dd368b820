import Synchronization

/// Sends each element to any number of streams, in the same order to all.
///
///     let states = Multicast<PrinterState>(.ready, keeping: .newest(16))
///     for await state in states.stream() { show(state) }    // .ready, then what is sent
///     states.send(.outOfPaper)
/// Each stream buffers the elements that its consumer has not taken yet, up to the multicast's bound.  Sending never
/// waits.  The multicast resumes and releases nothing while it holds a lock, so a consumer that wakes, is canceled or
/// is released may use it at once.
public final class Multicast<Element: Sendable>: Sendable {
    /// The number of elements that wait for a slow consumer, and the treatment of the rest.
    public enum Buffering: Sendable {
        /// The newest elements, at most this many.  Older ones are dropped silently: for states, each of which replaces
        /// the one before, and for displays.
        case newest(Int)
        /// All elements, at most this many.  A stream that falls further behind ends after the buffered elements, with
        /// ``StreamOverrun`` if it throws: for events that must not be missed silently.
        case all(upTo: Int)
    }

    private enum Signal {
        case element(Element)
        case end((any Error)?)
    }

    private struct State {
        var replay: @Sendable () -> Element? = { nil }
        /// Each returns the closure that wakes its consumer, to be called after the lock is open.
        var sinks: [Int: @Sendable (Signal) -> Wake?] = [:]
        var count = 0
        var end: Signal?
    }

    private let buffering: Buffering
    private let hold: @Sendable (Element) -> @Sendable () -> Element?
    private let state = Mutex(State())

    /// A multicast whose streams begin with the value that `hold` derives from the last element, unless that is nil.
    ///
    /// - Parameters:
    ///   - buffering: how much a slow stream keeps.
    ///   - hold: called for each element with a lock held, as is the closure it returns; must not use the multicast.
    public init(
        keeping buffering: Buffering, replaying hold: @escaping @Sendable (Element) -> @Sendable () -> Element?
    ) {
        (self.buffering, self.hold) = (buffering, hold)
    }

    /// A multicast for events: a stream begins with the next element.
    public convenience init(keeping buffering: Buffering) { self.init(keeping: buffering) { _ in { nil } } }

    /// A multicast for states: a stream begins with the last element.
    public convenience init(_ first: Element, keeping buffering: Buffering) {
        self.init(keeping: buffering) { element in { element } }
        send(first)
    }

    /// The element that a new stream would begin with; nil if there is none.
    public var latest: Element? { state.withLock { $0.replay() } }

    /// Sends `element` to every stream.  Does nothing after ``finish(throwing:)``.
    public func send(_ element: Element) { update { _ in element } }

    /// Sends the value that `change` derives from ``latest`` to every stream, atomically; nothing if it is nil.  Does
    /// nothing after ``finish(throwing:)``.
    ///
    /// - Parameter change: called at most once, with a lock held; must not use the multicast.
    public func update(_ change: (Element?) -> Element?) {
        // Returned so that replayed elements are released here: their deinitializers may use this object.
        let (wakes, _, _) = state.withLock { state -> ([Wake], Element?, @Sendable () -> Element?) in
            let (latest, before) = (state.replay(), state.replay)
            guard state.end == nil, let element = change(latest) else { return ([], latest, before) }
            state.replay = hold(element)
            return (state.sinks.values.compactMap { $0(.element(element)) }, latest, before)
        }
        for wake in wakes { wake() }
    }

    /// Makes new streams begin with the next element.
    public func forget() {
        _ = state.withLock { state in
            defer { state.replay = { nil } }
            return state.replay
        }
    }

    /// Ends all streams, present and future, after their buffered elements; throwing streams end with `error`.
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

    /// Returns the elements from now on, after the replayed one.
    public func stream() -> AsyncStream<Element> { stream { $0 } }

    /// Returns ``stream()`` transformed, without the elements for which `transform` returns nil.
    ///
    /// - Parameter transform: called with a lock held; must not use the multicast.
    public func stream<Output: Sendable>(
        _ transform: @escaping @Sendable (Element) -> Output?
    ) -> AsyncStream<Output> {
        let subscription = subscribe(transform)
        return AsyncStream { (try? await subscription.next()) ?? nil }
    }

    /// Returns ``stream()`` as a stream that throws the reason for its end.
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
        // No task waits yet, so none is woken.  An element that `transform` drops is released outside the lock.
        let (key, _) = state.withLock { state in
            state.count += 1
            let element = state.replay()
            if let element { _ = sink(.element(element)) }
            if let end = state.end { _ = sink(end) } else { state.sinks[state.count] = sink }
            return (state.count, element)
        }
        return Subscription(queue) { [weak self] in
            // Released outside the lock: its deinitializer may end others.
            _ = self?.state.withLock { $0.sinks.removeValue(forKey: key) }
        }
    }
}

/// The end of a stream whose consumer fell too far behind.
public struct StreamOverrun: Error, Hashable, CustomStringConvertible {
    /// The number of buffered elements.
    public let bound: Int

    public var description: String {
        "A stream ended, as its consumer fell behind by more than \(bound) elements."
            + " Begin a new one, and ask the source for what was missed."
    }
}

/// Resumes a task.  Never called with a lock held: it takes the task's locks, and a task that is canceled meanwhile
/// holds those and wants ours.
private typealias Wake = @Sendable () -> Void

/// The elements that one stream has not delivered yet, and the tasks that wait for more.
private final class ElementQueue<Element: Sendable>: Sendable {
    private typealias Waiting = CheckedContinuation<Element?, any Error>

    private struct State {
        var kept: [Element] = []
        var waiting: [Waiting] = []
        /// The end after the buffered elements: once the error, then nil for ever.
        var end: Result<Element?, any Error>?
    }

    private let bound: Int
    private let endsWhenFull: Bool
    private let state = Mutex(State())

    init(bound: Int, endsWhenFull: Bool) { (self.bound, self.endsWhenFull) = (max(bound, 1), endsWhenFull) }

    func append(_ element: Element) -> Wake? {
        // A dropped element is released after this queue's lock opens.  The multicast's lock is still held, hence in
        // the wake.
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

    /// Ends the stream without its buffered elements.
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

/// A stream's subscription, which ends when the stream is canceled or released.
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
