public import SmartCard

/// An event of readers and their cards.
public enum PCSCEvent: Hashable, Sendable {
    /// The service does not answer.  Only streams that wait for it report this, after the removal of its readers.
    case serviceUnavailable(PCSCServiceFailure)
    /// A reader arrived.
    case readerAttached(PCSCReader)
    /// A reader left; the removal of its card was reported before.
    case readerRemoved(PCSCReader)
    /// A card arrived and answered its reset.
    case cardInserted(PCSCReader, ATR)
    /// A card arrived and does not answer.
    case cardMute(PCSCReader)
    /// The card, mute or not, left.
    case cardRemoved(PCSCReader)
    /// Programs, including this one, began or ceased to use the card.  pcsc-lite does not report the beginning of a
    /// use; it is reported with the next event.
    case usageChanged(PCSCReader, PCSCUsage)
}

/// The use of a card by programs.
public enum PCSCUsage: String, Hashable, Sendable {
    case unused, shared, exclusive
}

/// The reason why the service does not answer, comparable so that events are.
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

    /// Returns the states of the slot after `previous` up to this one.
    ///
    /// If the count reveals that one card left and another came, the slot was empty in between.
    func slotStates(since previous: ReaderSnapshot) -> [SlotState] {
        let (before, now) = (previous.slotState, slotState)
        guard previous.eventCount != eventCount, previous.hasCard, hasCard else { return before == now ? [] : [now] }
        return [.empty, now]
    }

    /// Returns the events from `previous` to this state; `previous` is nil for a new reader.
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

/// The state of a slot, as far as events describe it.
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

/// Watches all readers for the whole process.
///
/// While there are subscribers, one thread waits in SCardGetStatusChange, in its own context.  A second thread ends
/// that wait and makes sure that nothing happened between looking and waiting.  Both end with the last subscriber.
///
/// There is one watch for all subscribers because libpcsclite before version 2 keeps the readers' states in one
/// unprotected place for all contexts: several waits at once disturb each other.
///
/// Only the waiting thread fills the streams, and never with the lock held: resuming a task takes that task's lock, and
/// a canceled task calls back here while it holds it.
final class ReaderWatch: Sendable {
    static let shared = ReaderWatch()

    private struct State: Sendable {
        var subscribers: [UInt64: Subscriber] = [:]
        /// The identifier of the next subscriber, run or wait.
        var nextID: UInt64 = 0
        /// The running pair of threads; nil for none.
        var run: UInt64?
        /// The current wait.
        var wait: Wait?
        /// True if a subscriber came since the watch last looked.
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
            // A new subscriber gets the present state, so the watch looks again.
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

    /// Checks that the watch knows what pcscd knows.  Call it after the library has asked pcscd for the readers
    /// elsewhere: a wait may have missed a change because of that.
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
                // pcscd does not announce its start.  Asking for its socket costs a stat and a connect, and starts it
                // if systemd holds the socket.
                _ = state.wait(atMost: pause) { $0.hasNewcomers || $0.subscribers.isEmpty ? true : nil }
                pause = min(pause * 2, .seconds(1))
            }
        }
    }

    /// Returns true while the run continues; it ends with the last subscriber.  Existing subscribers are no longer
    /// newcomers.
    private func goOn(_ run: UInt64) -> Bool {
        state.withLock { state in
            // The run may have ended, and another one begun.
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
                // The reader left between listing and looking.
                continue
            } catch {
                throw CardError(error, during: .wait)
            }
        }
    }

    /// Returns false if the watch must look again, or no subscriber is left.
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
                // The wait may not have begun.  Let it look by itself before looking again.
                if whileWaiting(wait, atMost: .milliseconds(20)) { check(wait) }
            case .end(let wait):
                // A request before the library waits is lost, so repeat it until it takes effect.
                wait.canceller.cancel()
                _ = whileWaiting(wait, atMost: .milliseconds(2))
            }
        }
    }

    /// Sleeps; returns false early if the wait is over or must end.
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

    // MARK: Reporting

    /// The extent of a failure, which determines the affected subscribers.
    enum Loss: Sendable {
        /// A service that answered no longer does; newer subscribers may find another one.
        case ofConnection
        /// No service answers.
        case ofService
        /// The system provides no thread to wait on.
        case ofMeans
    }

    /// Applies `note` to each subscriber, oldest first, and then fills and ends their streams.
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

/// One stream, with the state last reported to it.
private struct Subscriber: Sendable {
    enum Sink: Sendable {
        case events(AsyncThrowingStream<PCSCEvent, any Error>.Continuation, waitsForService: Bool)
        case slot(AsyncThrowingStream<SlotState, any Error>.Continuation, reader: String)
    }

    /// The events to send into the stream.
    struct News: Sendable {
        /// True if the stream ends with them.
        var isLast = false
        /// Sends the events.  Do not call it with a lock held.
        var deliver: @Sendable () -> Void = {}
    }

    let sink: Sink
    /// True if the subscriber came after the current look began; if the look fails, the next one may succeed.
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

    /// Returns the events that lead to `readers`.
    private func events(to readers: [ReaderSnapshot]) -> [PCSCEvent] {
        let gone = known.filter { old in !readers.contains { $0.name == old.name } }
        return gone.flatMap { $0.eventsOfRemoval }
            + readers.flatMap { reader in reader.events(since: known.first { $0.name == reader.name }) }
    }
}
