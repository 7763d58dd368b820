import Dispatch
import Synchronization

/// Time limits of the machine's time that are rarely reached, all on one timer.
///
/// Setting or lifting a limit takes a lock, and a system call only if it is the earliest of all: a separate timer costs
/// more than a short exchange with a card.  A timer whose limit was lifted fires once and does nothing.
package final class Deadlines: Sendable {
    package static let ofThisProcess = Deadlines()

    private struct State {
        var actions: [UInt64: (time: UInt64, action: @Sendable () -> Void)] = [:]
        var count: UInt64 = 0
        /// The time at which the timer fires, in nanoseconds of uptime; nil: never.
        var wake: UInt64?
    }

    private let state = Mutex(State())
    /// Any thread may call the timer, although its protocol does not say so.
    nonisolated(unsafe) private let timer: any DispatchSourceTimer

    package init() {
        timer = DispatchSource.makeTimerSource(queue: .global())
        timer.setEventHandler { [weak self] in self?.fire() }
        timer.resume()
    }

    deinit { timer.cancel() }

    /// Runs `action` once, on a thread of Dispatch, after `limit`, unless the limit is lifted first.  Of two actions that
    /// are due, the earlier one runs first.
    ///
    /// - Returns: the number by which it is lifted.
    package func set(_ limit: Duration, _ action: @escaping @Sendable () -> Void) -> UInt64 {
        let time = Self.time(after: limit)
        return state.withLock { state in
            state.count += 1
            state.actions[state.count] = (time, action)
            if time < state.wake ?? .max { wake(at: time, &state) }
            return state.count
        }
    }

    /// Lifts a time limit.  An action that has already begun runs to its end.
    package func lift(_ number: UInt64) { state.withLock { _ = $0.actions.removeValue(forKey: number) } }

    private func fire() {
        let now = DispatchTime.now().uptimeNanoseconds
        let due = state.withLock { state in
            let due = state.actions.filter { $0.value.time <= now }
            for number in due.keys { state.actions[number] = nil }
            state.wake = nil
            if let next = state.actions.values.map(\.time).min() { wake(at: next, &state) }
            return due.values.sorted { $0.time < $1.time }
        }
        for (_, action) in due { action() }
    }

    private func wake(at time: UInt64, _ state: inout State) {
        state.wake = time
        timer.schedule(deadline: DispatchTime(uptimeNanoseconds: time), leeway: .milliseconds(1))
    }

    /// A limit beyond the clock's range becomes the end of that range.
    private static func time(after limit: Duration) -> UInt64 {
        let (seconds, attoseconds) = limit.components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let now = DispatchTime.now().uptimeNanoseconds
        let most = UInt64(Int64.max)
        guard UInt64(seconds) < (most - now) / 1_000_000_000 - 1 else { return most }
        return now + UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds / 1_000_000_000)
    }
}
