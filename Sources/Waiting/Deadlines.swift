import Dispatch
import Synchronization

/// Time limits that are hardly ever reached, all on one timer.
///
/// Setting and lifting one takes a lock and no system call, unless it is the earliest of all: a timer of its own costs more than
/// a short exchange with a card.  A timer that was set for a limit which has been lifted fires once, and finds nothing to do.
package final class Deadlines: Sendable {
    package static let ofThisProcess = Deadlines()

    /// Names a time limit that was set.
    package struct ID: Hashable, Sendable { fileprivate let number: UInt64 }

    private struct State {
        var actions: [ID: (time: UInt64, action: @Sendable () -> Void)] = [:]
        var count: UInt64 = 0
        /// When the timer fires, in nanoseconds of the machine's uptime; nil: never.
        var wake: UInt64?
    }

    private let state = Mutex(State())
    /// Any thread may call it; only its protocol does not say so.
    nonisolated(unsafe) private let timer: any DispatchSourceTimer

    package init() {
        timer = DispatchSource.makeTimerSource(queue: .global())
        timer.setEventHandler { [weak self] in self?.fire() }
        timer.resume()
    }

    deinit { timer.cancel() }

    /// Runs `action` once, on a thread of Dispatch's, when `limit` has passed, unless it is lifted before.
    package func set(_ limit: Duration, _ action: @escaping @Sendable () -> Void) -> ID {
        let time = Self.time(after: limit)
        return state.withLock { state in
            state.count += 1
            let id = ID(number: state.count)
            state.actions[id] = (time, action)
            if time < state.wake ?? .max { wake(at: time, &state) }
            return id
        }
    }

    /// Lifts a time limit.  One that is being carried out just now is carried out.
    package func lift(_ id: ID) { state.withLock { _ = $0.actions.removeValue(forKey: id) } }

    private func fire() {
        let now = DispatchTime.now().uptimeNanoseconds
        let due = state.withLock { state in
            let due = state.actions.filter { $0.value.time <= now }
            for id in due.keys { state.actions[id] = nil }
            state.wake = nil
            if let next = state.actions.values.map(\.time).min() { wake(at: next, &state) }
            return due.values
        }
        for (_, action) in due { action() }
    }

    private func wake(at time: UInt64, _ state: inout State) {
        state.wake = time
        timer.schedule(deadline: DispatchTime(uptimeNanoseconds: time), leeway: .milliseconds(1))
    }

    /// Limits that no clock reaches are at its end.
    private static func time(after limit: Duration) -> UInt64 {
        let (seconds, attoseconds) = limit.components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let now = DispatchTime.now().uptimeNanoseconds
        let most = UInt64(Int64.max)
        guard UInt64(seconds) < (most - now) / 1_000_000_000 - 1 else { return most }
        return now + UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds / 1_000_000_000)
    }
}
