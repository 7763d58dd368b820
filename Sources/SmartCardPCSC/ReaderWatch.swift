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

    /// Whether a card has been reported.
    var hasKnownCard: Bool { slotState.presence.isCard }

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
final class ReaderWatch: Sendable {
    static let shared = ReaderWatch()

    private struct State: Sendable {
        var subscribers: [UInt64: Subscriber] = [:]
        var nextID: UInt64 = 0
        /// The readers as last seen; nil while the service is away.
        var readers: [ReaderSnapshot]?
        /// The pair of threads at work; nil for none.
        var run: UInt64?
        /// The wait under way.
        var wait: Wait?
        /// Who subscribed since the watch last looked.
        var hasNews = false
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
        var subscriber = Subscriber(sink: sink(continuation))
        let (id, ending, mustStart) = state.withLock { state in
            let id = state.nextID
            state.nextID += 1
            let ending = state.readers.flatMap { subscriber.receive($0) }
            if ending == nil {
                state.subscribers[id] = subscriber
                state.hasNews = true
            }
            let mustStart = ending == nil && state.run == nil
            if mustStart { state.run = id }
            return (id, ending, mustStart)
        }
        // After the lock: finishing a stream calls this back.
        continuation.onTermination = { [self] _ in unsubscribe(id) }
        ending?()
        if mustStart { start(run: id) }
        return stream
    }

    private func unsubscribe(_ id: UInt64) {
        state.withLock { state in
            state.subscribers[id] = nil
            guard state.subscribers.isEmpty else { return }
            state.wait?.isUnwanted = true
            // Whoever comes next is to be told what is, not what was.
            state.readers = nil
        }
    }

    /// Looks whether the watch knows what pcscd knows; to be called after the library has asked pcscd for the readers
    /// elsewhere, for that may have made a wait miss a change.
    func verify() { state.withLock { $0.wait?.needsCheck = true } }

    // MARK: Waiting

    private func start(run: UInt64) {
        if startThread({ [self] in assist(run) }), startThread({ [self] in watch() }) { return }
        let error = CardError(.other, "the system starts no more threads")
        state.withLock { $0.run = nil }
        fail(error, .forGood)
    }

    /// The body of the waiting thread.
    private func watch() {
        var pause = Duration.milliseconds(50)
        while goOn() {
            var loss = Loss.ofService
            do throws(CardError) {
                let context = try SCardContext.forOperation()
                pause = .milliseconds(50)
                loss = .ofConnection
                try watch(in: context)
            } catch {
                fail(error, loss)
                // pcscd tells nobody that it has started.  Asking for its socket costs a stat and a connect, and wakes
                // it where systemd holds the socket.
                _ = state.wait(atMost: pause) { $0.hasNews || $0.subscribers.isEmpty ? true : nil }
                pause = min(pause * 2, .seconds(1))
            }
        }
    }

    /// Whether anybody still subscribes.
    private func goOn() -> Bool {
        state.withLock { state in
            state.hasNews = false
            guard state.subscribers.isEmpty else { return true }
            state.run = nil
            state.readers = nil
            return false
        }
    }

    private func watch(in context: borrowing SCardContext) throws(CardError) {
        var plugAndPlay: UInt16 = 0
        while goOn() {
            do throws(PCSCStatus) {
                let readers = try context.snapshot(of: context.readers())
                publish(readers)
                guard begin(Wait(id: 0, canceller: context.canceller, known: readers)) else { continue }
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

    /// False if there is nobody to wait for any more.
    private func begin(_ wait: Wait) -> Bool {
        state.withLock { state in
            guard !state.subscribers.isEmpty else { return false }
            state.nextID += 1
            state.wait = Wait(id: state.nextID, canceller: wait.canceller, known: wait.known)
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

    private func publish(_ readers: [ReaderSnapshot]) {
        let endings = state.withLock { state in
            state.readers = readers
            return state.subscribers.keys.sorted().compactMap { id in
                let ending = state.subscribers[id]?.receive(readers)
                if ending != nil { state.subscribers[id] = nil }
                return ending
            }
        }
        for end in endings { end() }
    }

    /// What a failure is about, and so whom it concerns.
    enum Loss: Sendable {
        /// A service that answered no longer does; who has come since may find another one.
        case ofConnection
        /// No service answers.
        case ofService
        case forGood
    }

    /// Ends the streams of all whom it concerns, save those who wait for the service.
    private func fail(_ error: CardError, _ loss: Loss) {
        let endings = state.withLock { state in
            state.readers = nil
            return state.subscribers.keys.sorted().compactMap { id in
                let ending = state.subscribers[id]?.fail(error, loss)
                if ending != nil { state.subscribers[id] = nil }
                return ending
            }
        }
        for end in endings { end() }
    }
}

/// One stream, and what it has been told.
private struct Subscriber: Sendable {
    enum Sink: Sendable {
        case events(AsyncThrowingStream<PCSCEvent, any Error>.Continuation, waitsForService: Bool)
        case slot(AsyncThrowingStream<SlotState, any Error>.Continuation, reader: String)
    }
    typealias Ending = @Sendable () -> Void

    let sink: Sink
    private var known: [ReaderSnapshot] = []
    private var knowsOfFailure = false
    private var hasBeenTold = false

    init(sink: Sink) { self.sink = sink }

    /// - Returns: how to end the stream, if that is due; not to be done with the lock held.
    mutating func receive(_ readers: [ReaderSnapshot]) -> Ending? {
        defer {
            known = readers
            knowsOfFailure = false
            hasBeenTold = true
        }
        switch sink {
        case .events(let continuation, _):
            for gone in known where !readers.contains(where: { $0.name == gone.name }) {
                if gone.hasKnownCard { continuation.yield(.cardRemoved(PCSCReader(name: gone.name))) }
                continuation.yield(.readerRemoved(PCSCReader(name: gone.name)))
            }
            for reader in readers {
                let previous = known.first { $0.name == reader.name }
                for event in reader.events(since: previous) { continuation.yield(event) }
            }
            return nil
        case .slot(let continuation, let name):
            let previous = known.first { $0.name == name }
            guard let reader = readers.first(where: { $0.name == name }) else {
                return { continuation.finish(throwing: previous == nil ? CardError(.readerGone, name) : nil) }
            }
            for state in previous.map({ reader.slotStates(since: $0) }) ?? [reader.slotState] {
                continuation.yield(state)
            }
            return nil
        }
    }

    mutating func fail(_ error: CardError, _ loss: ReaderWatch.Loss) -> Ending? {
        if loss == .ofConnection, !hasBeenTold { return nil }
        switch sink {
        case .events(let continuation, waitsForService: true) where loss != .forGood:
            if !knowsOfFailure {
                _ = receive([])
                continuation.yield(.serviceUnavailable(PCSCServiceFailure(error)))
            }
            knowsOfFailure = true
            return nil
        case .events(let continuation, _):
            return { continuation.finish(throwing: error) }
        case .slot(let continuation, _):
            return { continuation.finish(throwing: error) }
        }
    }
}
