import Glibc

/// Keeps threads out of libpcsclite while the process ends.
///
/// When a program calls `exit`, the library takes itself apart, and a thread that is inside it then, such as the one that
/// waits for readers, crashes.  So all calls pass through here; at exit the waits are cancelled, the calls that are
/// under way have five seconds to end, which a busy machine may need, and no call begins any more.
enum ProcessExit {
    private struct State {
        var calls = 0
        /// What ends the waits under way, by the number of the call.
        var cancellers: [Int: @Sendable () -> Void] = [:]
        var nextNumber = 0
        var isExiting = false
        var isRegistered = false
    }

    private static let state = WaitableLock(State())

    /// Runs `call`, unless the process is ending: then this never returns.
    ///
    /// - Parameter canceller: ends `call` from another thread, where it may wait for long.
    static func guarded<Result>(
        cancelledBy canceller: (@Sendable () -> Void)? = nil, _ call: () throws -> Result
    ) rethrows -> Result {
        let number: Int? = state.withLock { state in
            guard !state.isExiting else { return nil }
            if !state.isRegistered { state.isRegistered = atexit { ProcessExit.quiesce() } == 0 }
            state.calls += 1
            state.nextNumber += 1
            state.cancellers[state.nextNumber] = canceller
            return state.nextNumber
        }
        guard let number else { while true { pause() } }
        defer {
            state.withLock { state in
                state.calls -= 1
                state.cancellers[number] = nil
            }
        }
        return try call()
    }

    private static func quiesce() {
        state.withLock { $0.isExiting = true }
        // A cancellation that comes before the wait has begun is lost, so it is repeated.
        for _ in 0..<2500 {
            let cancellers = state.withLock { Array($0.cancellers.values) }
            for cancel in cancellers { cancel() }
            let isQuiet: Bool? = state.wait(atMost: .milliseconds(2)) { $0.calls == 0 ? true : nil }
            if isQuiet == true { return }
        }
    }
}
