import Glibc

/// Keeps threads out of libpcsclite while the process ends.
///
/// When a program calls `exit`, libpcsclite is torn down; a thread inside it, such as the one that waits for readers,
/// then crashes.  All calls therefore pass through here.  At exit, waits are canceled, calls in progress have five
/// seconds to end, which a busy machine may need, and no new call begins.
enum ProcessExit {
    private struct State {
        var calls = 0
        /// The closures that end current waits, by call number.
        var cancellers: [Int: @Sendable () -> Void] = [:]
        var nextNumber = 0
        var isExiting = false
        var isRegistered = false
    }

    private static let state = WaitableLock(State())

    /// Runs `call`, unless the process is ending: then this never returns.
    ///
    /// - Parameter canceller: ends a long `call` from another thread.
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
        // A cancellation before the wait begins is lost, so it is repeated.
        for _ in 0..<2500 {
            let cancellers = state.withLock { Array($0.cancellers.values) }
            for cancel in cancellers { cancel() }
            let isQuiet: Bool? = state.wait(atMost: .milliseconds(2)) { $0.calls == 0 ? true : nil }
            if isQuiet == true { return }
        }
    }
}
