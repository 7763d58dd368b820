/// The one clock: whatever waits in this package, and asks how long something took, does it here.
///
///     let start = Time.now
///     let work = Task { try await Time.sleep(for: .milliseconds(200)) }
///     let deadline = Time.deadline(after: .seconds(5)) { work.cancel() }
///     defer { deadline.lift() }
///
/// It is the machine's clock, unless a task has a ``Simulation``: then it is that one's, for the task and for all that it
/// starts.  A thread without a task, such as a C library's or a queue's, sees the machine's.  An object with a thread of its
/// own takes ``current`` when it is made, and asks that.
///
/// While the machine is suspended, ``now`` and ``sleep(until:)`` go on, and the time of a deadline stands still.
package struct Time: Sendable {
    package typealias Instant = ContinuousClock.Instant

    /// The time of this task.
    @TaskLocal package static var current = Time()

    /// The one that lets it pass; nil: the machine's clock.
    package let simulation: (any Simulation)?

    /// The machine's time.
    private init() { simulation = nil }

    /// A time that somebody else lets pass.
    package init(_ simulation: any Simulation) { self.simulation = simulation }

    package var now: Instant { simulation?.now ?? .now }

    /// Waits until `instant`.
    ///
    /// - Throws: `CancellationError`, at once, when the task is canceled.
    nonisolated(nonsending) package func sleep(until instant: Instant) async throws {
        guard let simulation else { return try await Task.sleep(until: instant, clock: .continuous) }
        try Task.checkCancellation()
        let awake = Delivery<Void>()
        let number = simulation.set(instant) { awake.deliver(.success(())) }
        defer { simulation.lift(number) }
        try await awake.receive()
    }

    /// Waits for `duration`.
    ///
    /// - Throws: `CancellationError`, at once, when the task is canceled.
    nonisolated(nonsending) package func sleep(for duration: Duration) async throws {
        guard simulation != nil else { return try await Task.sleep(for: duration) }
        try await sleep(until: now + duration)
    }

    /// Runs `action` once, on a thread without a task, after `limit`, unless the deadline is lifted first.  Of two actions
    /// that are due, the earlier one runs first.
    package func deadline(after limit: Duration, _ action: @escaping @Sendable () -> Void) -> Deadline {
        guard let simulation else { return Deadline(number: Deadlines.ofThisProcess.set(limit, action), in: nil) }
        return Deadline(number: simulation.set(now + limit, action), in: simulation)
    }

    /// Runs `body` in this time, on whatever thread: what it asks of ``Time``, and the tasks that it starts, belong to it.
    package func run<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        guard simulation != nil else { return try body() }
        // withValue loses the type of an error.
        let result = Self.$current.withValue(self) { () -> Swift.Result<Result, Failure> in
            do throws(Failure) { return .success(try body()) } catch { return .failure(error) }
        }
        return try result.get()
    }

    // MARK: The task's

    package static var now: Instant { current.now }

    nonisolated(nonsending) package static func sleep(until instant: Instant) async throws {
        try await current.sleep(until: instant)
    }

    nonisolated(nonsending) package static func sleep(for duration: Duration) async throws {
        try await current.sleep(for: duration)
    }

    package static func deadline(after limit: Duration, _ action: @escaping @Sendable () -> Void) -> Deadline {
        current.deadline(after: limit, action)
    }

    /// An action that a time limit has in store.
    package struct Deadline: Sendable {
        private let number: UInt64
        private let simulation: (any Simulation)?

        fileprivate init(number: UInt64, in simulation: (any Simulation)?) {
            (self.number, self.simulation) = (number, simulation)
        }

        /// Lifts the limit.  An action that has already begun runs to its end.
        package func lift() {
            if let simulation { simulation.lift(number) } else { Deadlines.ofThisProcess.lift(number) }
        }
    }

    /// A time that passes when somebody says so.
    package protocol Simulation: AnyObject, Sendable {
        var now: Instant { get }

        /// Runs `action` once, in ``Time/run(_:)`` of this time, when it is `instant`, unless it is lifted before.
        ///
        /// - Returns: the number by which it is lifted.
        func set(_ instant: Instant, _ action: @escaping @Sendable () -> Void) -> UInt64

        func lift(_ number: UInt64)
    }
}
