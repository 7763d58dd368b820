import Waiting

/// A time that goes on to its next deadline when it is told to, and like the real one when its test is over.
final class TestTime: Time.Simulation {
    /// The time of this task, if it is one of these.
    static var current: TestTime? { Time.current.simulation as? TestTime }

    private struct Deadline {
        let instant: Time.Instant
        let number: UInt64
        let action: @Sendable () -> Void
    }

    private struct State {
        var instant = Time.Instant.now
        var deadlines: [UInt64: Deadline] = [:]
        /// How many deadlines have been set, and how many have passed.
        var (count, passed): (UInt64, UInt64) = (0, 0)
        /// Who wants to look again when a further deadline has passed.
        var watchers: [(passed: UInt64, delivery: Delivery<Void>)] = []
        /// For how long nothing has been left to run, and no deadline to come.
        var idle = Duration.zero
        /// The real time at which the test ended.
        var end: ContinuousClock.Instant?

        var now: Time.Instant { end.map { instant + $0.duration(to: .now) } ?? instant }

        /// - Parameter pause: the real time since this was asked before.
        mutating func next(after pause: Duration) -> Step {
            let first = deadlines.values.min { ($0.instant, $0.number) < ($1.instant, $1.number) }
            let isTheirTurn = watchers.contains { $0.passed < passed } || first == nil
            let looking = isTheirTurn ? watchers.map(\.delivery) : []
            if isTheirTurn { watchers = [] }
            guard looking.isEmpty || first == nil else { return .look(looking) }
            guard let first else {
                idle += pause
                return .nothing(idle, looking)
            }
            deadlines[first.number] = nil
            (instant, passed, idle) = (max(instant, first.instant), passed + 1, .zero)
            return .deadline(first.action)
        }
    }

    private enum Step {
        case deadline(@Sendable () -> Void)
        /// These look whether what has passed is what they wait for.
        case look([Delivery<Void>])
        /// There is no deadline, and has been none for so long.  These may wait for what comes from outside.
        case nothing(Duration, [Delivery<Void>])
    }

    private let state = Lock(State())
    private let patience: Duration
    private let stuck = Delivery<Void>()

    /// - Parameter patience: how long nothing may be left to run until the test is said to wait for ever.
    init(patience: Duration) { self.patience = patience }

    var now: Time.Instant { state.withLock { $0.now } }

    func set(_ instant: Time.Instant, _ action: @escaping @Sendable () -> Void) -> UInt64 {
        let (deadline, rest) = state.withLock { state in
            state.count += 1
            let deadline = Deadline(instant: instant, number: state.count, action: action)
            state.deadlines[deadline.number] = deadline
            return (deadline, state.end.map { _ in instant - state.now })
        }
        if let rest { passes(deadline, after: rest) }
        return deadline.number
    }

    func lift(_ number: UInt64) { _ = state.withLock { $0.deadlines.removeValue(forKey: number) } }

    /// Waits until a further deadline has passed, and what it has set off is over.
    func waitForNext() async throws {
        let delivery = Delivery<Void>()
        state.withLock { $0.watchers.append(($0.passed, delivery)) }
        try await delivery.receive()
    }

    /// Waits until nothing can ever happen.
    func waitForStandstill() async throws { try await stuck.receive() }

    // MARK: Its keeper

    /// Goes on to the next deadline, and does what is to be done then; when nothing is left to run.
    ///
    /// - Parameter pause: the real time since the last call.
    /// - Returns: whether there was something to do.
    func goOn(after pause: Duration) -> Bool {
        switch state.withLock({ $0.next(after: pause) }) {
        case .deadline(let action):
            Time(self).run(action)
            return true
        case .look(let watchers):
            tell(watchers)
            return true
        case .nothing(let idle, let watchers):
            if idle >= patience { stuck.deliver(.success(())) }
            tell(watchers)
            return false
        }
    }

    private func tell(_ watchers: [Delivery<Void>]) {
        Time(self).run { for watcher in watchers { watcher.deliver(.success(())) } }
    }

    /// From now on it goes on by itself.
    func letGo() {
        let rest = state.withLock { state in
            state.end = .now
            return state.deadlines.values.map { ($0, $0.instant - state.instant) }
        }
        for (deadline, rest) in rest { passes(deadline, after: rest) }
    }

    private func passes(_ deadline: Deadline, after rest: Duration) {
        _ = Deadlines.ofThisProcess.set(rest) { [self] in
            guard state.withLock({ $0.deadlines.removeValue(forKey: deadline.number) }) != nil else { return }
            Time(self).run(deadline.action)
        }
    }
}
