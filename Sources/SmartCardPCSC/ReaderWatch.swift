public import SmartCard

/// What happens to readers and their cards.
public enum PCSCEvent: Hashable, Sendable {
    /// The service does not answer.  Only for who waits for it; its readers have been reported removed.
    case serviceUnavailable(PCSCServiceFailure)
    /// A reader is there.
    case readerAttached(PCSCReader)
    /// A reader is gone; that its card went along has been told before.
    case readerRemoved(PCSCReader)
    /// A card is there and has answered its reset.
    case cardInserted(PCSCReader, ATR)
    /// A card is there and does not answer.
    case cardMute(PCSCReader)
    /// The card, mute or not, is gone.
    case cardRemoved(PCSCReader)
    /// Others, this process included, have begun or ceased to use the card.  pcsc-lite wakes nobody when a use begins;
    /// that is told with the next event.
    case usageChanged(PCSCReader, PCSCUsage)
}

/// Who uses a card.
public enum PCSCUsage: String, Hashable, Sendable {
    case unused, shared, exclusive
}

/// Why the service does not answer, comparable so that an event can be.
public struct PCSCServiceFailure: Hashable, Sendable, CustomStringConvertible {
    public let error: CardError

    public init(_ error: CardError) { self.error = error }

    public static func == (a: Self, b: Self) -> Bool { a.error.kind == b.error.kind }
    public func hash(into hasher: inout Hasher) { hasher.combine(error.kind) }
    public var description: String { error.description }
}

extension ReaderSnapshot {
    var usage: PCSCUsage { isExclusive ? .exclusive : isInUse ? .shared : .unused }

    var slotState: SlotState {
        switch self {
        case _ where isUnavailable: .unknown
        case _ where !hasCard: .empty
        case _ where isMute: .muteCard
        // Not powered yet.
        case _ where atr.isEmpty: .unknown
        default: .card(ATR(atr), exclusivelyHeld: isExclusive)
        }
    }

    var eventsOfRemoval: [PCSCEvent] {
        let reader = PCSCReader(name: name)
        return (slotState.presence.isCard ? [.cardRemoved(reader)] : []) + [.readerRemoved(reader)]
    }

    /// The states of the slot from `previous` to this one, the first left out.
    ///
    /// Where the count tells that a card has gone and one has come, the slot was empty in between.
    func slotStates(since previous: ReaderSnapshot) -> [SlotState] {
        let (before, now) = (previous.slotState, slotState)
        guard previous.eventCount != eventCount, previous.hasCard, hasCard else { return before == now ? [] : [now] }
        return [.empty, now]
    }

    /// What happened from `previous` to this one; nil for a reader that was not there.
    func events(since previous: ReaderSnapshot?) -> [PCSCEvent] {
        let reader = PCSCReader(name: name)
        var events: [PCSCEvent] = previous == nil ? [.readerAttached(reader)] : []
        var before = (previous ?? ReaderSnapshot(name: name)).slotState.presence
        let states = previous.map { slotStates(since: $0) } ?? [slotState]
        for now in states.map(\.presence) where now != before {
            if before.isCard { events.append(.cardRemoved(reader)) }
            switch now {
            case .card(let atr): events.append(.cardInserted(reader, atr))
            case .mute: events.append(.cardMute(reader))
            case .none: break
            }
            before = now
        }
        if usage != previous?.usage ?? .unused { events.append(.usageChanged(reader, usage)) }
        return events
    }
}

/// A slot's state as far as events tell it.
private enum Presence: Hashable {
    case none, mute
    case card(ATR)

    var isCard: Bool { self != .none }
}

extension SlotState {
    fileprivate var presence: Presence {
        switch self {
        case .empty, .unknown: .none
        case .muteCard: .mute
        case .card(let atr, _): .card(atr)
        }
    }
}

/// Watches all readers, for everybody in the process.
///
/// One thread waits in SCardGetStatusChange, in a context of its own, while anybody subscribes; a second one ends that
/// wait, and makes sure that nothing happened between looking and waiting.  Both end with the last subscriber.
///
/// One watch for all, because libpcsclite before 2 keeps the states of the readers in one place for all contexts,
/// unprotected: several waits at once disturb each other.
///
/// Only the waiting thread fills the streams, never with the lock held: to resume a task takes that task's own lock,
/// and a task that is cancelled calls back here holding it.
final class ReaderWatch: Sendable {
    static let shared = ReaderWatch()

    private struct State: Sendable {
        var subscribers: [UInt64: Subscriber] = [:]
        /// Of subscribers, runs and waits.
        var nextID: UInt64 = 0
        /// The pair of threads at work; nil for none.
        var run: UInt64?
        /// The wait under way.
        var wait: Wait?
        /// Somebody has subscribed since the watch last looked.
        var hasNewcomers = false

        mutating func makeID() -> UInt64 {
            nextID += 1
            return nextID
        }
    }

    private struct Wait: Sendable {
        let id: UInt64
        let canceller: SCardCanceller
        let known: [ReaderSnapshot]
        var needsCheck = true
        var isUnwanted = false
    }

    private let state = WaitableLock(State())

    // MARK: Subscribing

    func events(waitingForService: Bool) -> AsyncThrowingStream<PCSCEvent, any Error> {
        subscribe { .events($0, waitsForService: waitingForService) }
    }

    func slotStates(of reader: String) -> AsyncThrowingStream<SlotState, any Error> {
        subscribe { .slot($0, reader: reader) }
    }

    private func subscribe<Element: Sendable>(
        _ sink: (AsyncThrowingStream<Element, any Error>.Continuation) -> Subscriber.Sink
    ) -> AsyncThrowingStream<Element, any Error> {
        let (stream, continuation) = AsyncThrowingStream<Element, any Error>.makeStream(
            bufferingPolicy: .bufferingNewest(4096))
        let id = state.withLock { $0.makeID() }
        continuation.onTermination = { [self] _ in unsubscribe(id) }
        let mustStart = state.withLock { state in
            state.subscribers[id] = Subscriber(sink: sink(continuation))
            // Whoever comes is told what is, not what was: so the watch looks again.
            state.hasNewcomers = true
            state.wait?.isUnwanted = true
            guard state.run == nil else { return false }
            state.run = id
            return true
        }
        if mustStart { start(run: id) }
        return stream
    }

    private func unsubscribe(_ id: UInt64) {
        state.withLock { state in
            state.subscribers[id] = nil
            if state.subscribers.isEmpty { state.wait?.isUnwanted = true }
        }
    }

    /// Looks whether the watch knows what pcscd knows; to be called after the library has asked pcscd for the readers
    /// elsewhere, for that may have made a wait miss a change.
    func verify() { state.withLock { $0.wait?.needsCheck = true } }

    // MARK: Waiting

    private func start(run: UInt64) {
        if startThread({ [self] in assist(run) }), startThread({ [self] in watch(run) }) { return }
        let error = CardError(.other, "the system starts no more threads")
        state.withLock { $0.run = nil }
        tell { $0.fail(error, .ofMeans) }
    }

    /// The body of the waiting thread.
    private func watch(_ run: UInt64) {
        var pause = Duration.milliseconds(50)
        while goOn(run) {
            var loss = Loss.ofService
            do throws(CardError) {
                let context = try SCardContext.forOperation()
                pause = .milliseconds(50)
                loss = .ofConnection
                try watch(run, in: context)
            } catch {
                tell { $0.fail(error, loss) }
                // pcscd tells nobody that it has started.  Asking for its socket costs a stat and a connect, and wakes
                // it where systemd holds the socket.
                _ = state.wait(atMost: pause) { $0.hasNewcomers || $0.subscribers.isEmpty ? true : nil }
                pause = min(pause * 2, .seconds(1))
            }
        }
    }

    /// Whether the run goes on; it ends with the last subscriber.  From here on, nobody is a newcomer.
    private func goOn(_ run: UInt64) -> Bool {
        state.withLock { state in
            // It may have ended before, and another one have begun.
            guard state.run == run else { return false }
            state.hasNewcomers = false
            for id in state.subscribers.keys { state.subscribers[id]?.isNewcomer = false }
            guard state.subscribers.isEmpty else { return true }
            state.run = nil
            return false
        }
    }

    private func watch(_ run: UInt64, in context: borrowing SCardContext) throws(CardError) {
        var plugAndPlay: UInt16 = 0
        while goOn(run) {
            do throws(PCSCStatus) {
                let readers = try context.snapshot(of: context.readers())
                tell { $0.receive(readers) }
                guard begin(context.canceller, readers) else { continue }
                defer { state.withLock { $0.wait = nil } }
                try context.waitForChange(from: readers, plugAndPlay: &plugAndPlay)
            } catch .cancelled {
                continue
            } catch .timeout {
                continue
            } catch .unknownReader {
                // It left between listing and looking.
                continue
            } catch {
                throw CardError(error, during: .wait)
            }
        }
    }

    /// False if it has to look again, or there is nobody to wait for any more.
    private func begin(_ canceller: SCardCanceller, _ known: [ReaderSnapshot]) -> Bool {
        state.withLock { state in
            guard !state.subscribers.isEmpty, !state.hasNewcomers else { return false }
            state.wait = Wait(id: state.makeID(), canceller: canceller, known: known)
            return true
        }
    }

    /// The body of the second thread.
    private func assist(_ run: UInt64) {
        enum Task {
            case check(Wait), end(Wait)
            case stop
        }
        while true {
            let task: Task = state.wait { state in
                guard state.run == run else { return .stop }
                guard let wait = state.wait else { return nil }
                return wait.isUnwanted ? .end(wait) : wait.needsCheck ? .check(wait) : nil
            }
            switch task {
            case .stop:
                return
            case .check(let wait):
                // The wait may not have begun.  Give it time to look for itself before looking again.
                if whileWaiting(wait, atMost: .milliseconds(20)) { check(wait) }
            case .end(let wait):
                // A request that comes before the library waits is lost; so ask until it is heard.
                wait.canceller.cancel()
                _ = whileWaiting(wait, atMost: .milliseconds(2))
            }
        }
    }

    /// Sleeps; false, earlier, if the wait is over or has to end.
    private func whileWaiting(_ wait: Wait, atMost time: Duration) -> Bool {
        state.wait(atMost: time) { state in
            state.wait?.id != wait.id || (state.wait?.isUnwanted == true && !wait.isUnwanted) ? false : nil
        } ?? true
    }

    private func check(_ wait: Wait) {
        state.withLock { if $0.wait?.id == wait.id { $0.wait?.needsCheck = false } }
        guard let context = try? SCardContext(), let names = try? context.readers(),
            let readers = try? context.snapshot(of: names), readers != wait.known
        else { return }
        state.withLock { if $0.wait?.id == wait.id { $0.wait?.isUnwanted = true } }
    }

    // MARK: Telling

    /// What a failure is about, and so whom it concerns.
    enum Loss: Sendable {
        /// A service that answered no longer does; who has come since may find another one.
        case ofConnection
        /// No service answers.
        case ofService
        /// No thread to wait on.
        case ofMeans
    }

    /// Lets each subscriber, the oldest first, take note of something, and then fills and ends their streams.
    private func tell(_ note: (inout Subscriber) -> Subscriber.News) {
        let news = state.withLock { state in
            state.subscribers.sorted { $0.key < $1.key }.map { id, subscriber in
                var subscriber = subscriber
                let news = note(&subscriber)
                state.subscribers[id] = news.isLast ? nil : subscriber
                return news
            }
        }
        for news in news { news.deliver() }
    }
}

/// One stream, and what it has been told.
private struct Subscriber: Sendable {
    enum Sink: Sendable {
        case events(AsyncThrowingStream<PCSCEvent, any Error>.Continuation, waitsForService: Bool)
        case slot(AsyncThrowingStream<SlotState, any Error>.Continuation, reader: String)
    }

    /// What is to go into the stream.
    struct News: Sendable {
        /// Whether the stream ends with it.
        var isLast = false
        /// Not to be called with a lock held.
        var deliver: @Sendable () -> Void = {}
    }

    let sink: Sink
    /// Came after the watch began what it is doing; if that fails, it may succeed the next time.
    var isNewcomer = true
    private var known: [ReaderSnapshot] = []
    private var knowsOfFailure = false
    private var hasBeenTold = false

    init(sink: Sink) { self.sink = sink }

    mutating func receive(_ readers: [ReaderSnapshot]) -> News {
        defer {
            known = readers
            knowsOfFailure = false
            hasBeenTold = true
        }
        switch sink {
        case .events(let continuation, _):
            let events = events(to: readers)
            return News { for event in events { continuation.yield(event) } }
        case .slot(let continuation, let name):
            let previous = known.first { $0.name == name }
            guard let reader = readers.first(where: { $0.name == name }) else {
                let error = previous == nil ? CardError(.readerGone, name) : nil
                return News(isLast: true) { continuation.finish(throwing: error) }
            }
            let states = previous.map { reader.slotStates(since: $0) } ?? [reader.slotState]
            return News { for state in states { continuation.yield(state) } }
        }
    }

    mutating func fail(_ error: CardError, _ loss: ReaderWatch.Loss) -> News {
        if loss != .ofMeans, isNewcomer || (loss == .ofConnection && !hasBeenTold) { return News() }
        switch sink {
        case .events(let continuation, waitsForService: true) where loss != .ofMeans:
            guard !knowsOfFailure else { return News() }
            let events = events(to: []) + [.serviceUnavailable(PCSCServiceFailure(error))]
            known = []
            knowsOfFailure = true
            return News { for event in events { continuation.yield(event) } }
        case .events(let continuation, _):
            return News(isLast: true) { continuation.finish(throwing: error) }
        case .slot(let continuation, _):
            return News(isLast: true) { continuation.finish(throwing: error) }
        }
    }

    /// What happened from the readers known to `readers`.
    private func events(to readers: [ReaderSnapshot]) -> [PCSCEvent] {
        let gone = known.filter { old in !readers.contains { $0.name == old.name } }
        return gone.flatMap { $0.eventsOfRemoval }
            + readers.flatMap { reader in reader.events(since: known.first { $0.name == reader.name }) }
    }
}
