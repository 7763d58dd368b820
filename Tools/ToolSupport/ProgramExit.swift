import Dispatch
import Glibc
import Synchronization

/// The orderly end of the program: it restores changed settings and releases resources first, whatever the reason.
package enum ProgramExit {
    case status(Int32)
    /// Ends the program by the signal, as by default.
    case signal(Int32)

    private struct State {
        /// The longest wait for resources to be released.
        var limit = DispatchTimeInterval.seconds(10)
        var hasBegun = false
        /// The program's main task.
        var command: Task<Int32, Never>?
        var commandIsAwaited = false
        var giveBack: @Sendable () async -> Void = {}
    }

    private static let state = Mutex(State())

    /// From now on, the program cancels the command and waits for it before it ends: the command may have changed a
    /// setting.
    package static func waitForCommand() { state.withLock { $0.commandIsAwaited = true } }

    /// From now on, the release of resources may take this long: something is lost if it does not end.
    package static func wait(seconds: Int) { state.withLock { $0.limit = .seconds(seconds) } }

    /// True once the program is ending: later failures are not reported.
    package static var isUnderWay: Bool { state.withLock { $0.hasBegun } }

    /// Runs the program's main task and ends the program with the returned status.
    package static func whenDone(_ body: @escaping @Sendable () async -> Int32) async -> Never {
        let task = Task { await body() }
        state.withLock { $0.command = task }
        await end(.status(task.value))
    }

    /// Ends the command, releases resources and ends the program.  Returns at once; only the first call counts.
    package static func begin(_ ending: ProgramExit) {
        let isFirst = state.withLock { state in
            defer { state.hasBegun = true }
            return !state.hasBegun
        }
        guard isFirst else { return }
        // A second signal ends the program at once.
        for number in signals { Glibc.signal(number, SIG_DFL) }
        Task {
            if let command = state.withLock({ $0.command }) {
                command.cancel()
                // A command without changes may wait for something that cannot be canceled.
                if state.withLock({ $0.commandIsAwaited }) { _ = await command.value }
            }
            await state.withLock({ $0.giveBack })()
            ending.finish()
        }
        DispatchQueue.global().asyncAfter(deadline: .now() + state.withLock { $0.limit }) { ending.finish() }
    }

    /// Ends the program as ``begin(_:)`` does, and never returns.
    package static func end(_ ending: ProgramExit) async -> Never {
        begin(ending)
        while true { try? await Task.sleep(for: .seconds(3600)) }
    }

    private func finish() {
        switch self {
        case .status(let status): exit(status)
        case .signal(let number):
            Glibc.signal(number, SIG_DFL)
            kill(getpid(), number)
            // The first process of a container, which has no such default (pid_namespaces(7)).
            _exit(128 + number)
        }
    }

    // MARK: Signals

    private static let signals = [SIGINT, SIGTERM, SIGHUP]

    /// From now on, signals end the program in order, except those that the parent process ignores.  A closed pipe
    /// becomes an error of the write.
    ///
    /// - Parameter giveBack: releases the machine's resources at the end of the program.
    package static func takeSignals(giveBack: @escaping @Sendable () async -> Void = {}) {
        state.withLock { $0.giveBack = giveBack }
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let source = DispatchSource.makeReadSource(fileDescriptor: ends[0])
        source.setEventHandler {
            var number: UInt8 = 0
            if read(Int32(source.handle), &number, 1) == 1 { begin(.signal(Int32(number))) }
        }
        source.activate()
        arrivals = ends[1]
        for number in signals where !isIgnored(number) {
            Glibc.signal(number) { number in
                // A signal handler may do nothing more.
                var byte = UInt8(truncatingIfNeeded: number)
                write(arrivals, &byte, 1)
            }
        }
        Glibc.signal(SIGPIPE) { _ in }
    }

    private static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        sigaction(number, nil, &action)
        let handler = unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
        return handler == unsafeBitCast(SIG_IGN, to: Int.self)
    }
}

/// The pipe from the signal handler to a thread that may do more.  Set once, before any handler.
private nonisolated(unsafe) var arrivals: Int32 = -1
