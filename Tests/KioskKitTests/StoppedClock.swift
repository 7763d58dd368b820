import Synchronization

/// Time that passes where somebody sleeps, and at once.
final class StoppedClock: Clock {
    struct Instant: InstantProtocol {
        let time: Duration
        func advanced(by duration: Duration) -> Instant { Instant(time: time + duration) }
        func duration(to other: Instant) -> Duration { other.time - time }
        static func < (left: Instant, right: Instant) -> Bool { left.time < right.time }
    }

    private let state = Mutex<(now: Duration, pauses: [Duration])>((.zero, []))
    private let onSleep: @Sendable () async -> Void

    /// - Parameter onSleep: called by whoever sleeps, before they wake.
    init(onSleep: @escaping @Sendable () async -> Void = {}) { self.onSleep = onSleep }

    var now: Instant { state.withLock { Instant(time: $0.now) } }
    var minimumResolution: Duration { .nanoseconds(1) }
    /// How long it was slept, each time, where it was at all.
    var pauses: [Duration] { state.withLock { $0.pauses } }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        try Task.checkCancellation()
        let isLater = state.withLock { state in
            guard deadline.time > state.now else { return false }
            state.pauses.append(deadline.time - state.now)
            state.now = deadline.time
            return true
        }
        if isLater { await onSleep() }
        try Task.checkCancellation()
    }
}
