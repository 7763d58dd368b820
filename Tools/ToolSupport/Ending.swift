import Dispatch
import Glibc
import Synchronization

/// How the program ends, whoever ends it: what it has changed is put back first, and what it has taken is given back.
package enum Ending {
    case status(Int32)
    /// By the signal, as if nobody had taken it.
    case signal(Int32)

    /// What does not let go is not waited for longer than this.
    private static let limit = DispatchTimeInterval.seconds(10)

    private static let hasBegun = Mutex(false)
    /// What the program is there for.
    private static let command = Mutex<Task<Int32, Never>?>(nil)
    private static let commandIsAwaited = Mutex(false)
    private static let giveBack = Mutex<@Sendable () async -> Void>({})

    /// From now on the command may have changed the state of something: it is cancelled, and waited for, before the program
    /// ends.
    package static func waitForCommand() { commandIsAwaited.withLock { $0 = true } }

    /// Whether what fails from now on is no news.
    package static var isUnderWay: Bool { hasBegun.withLock { $0 } }

    /// Runs what the program is there for, and ends the program with the status that this returns.
    package static func whenDone(_ body: @escaping @Sendable () async -> Int32) async -> Never {
        let task = Task { await body() }
        command.withLock { $0 = task }
        await end(.status(task.value))
    }

    /// Ends the command, gives back what was taken and ends the program.  Returns at once; the first call counts.
    package static func begin(_ ending: Ending) {
        let isFirst = hasBegun.withLock { hasBegun in
            defer { hasBegun = true }
            return !hasBegun
        }
        guard isFirst else { return }
        // Whoever asks a second time will not wait.
        for number in signals { Glibc.signal(number, SIG_DFL) }
        Task {
            if let command = command.withLock({ $0 }) {
                command.cancel()
                // One that has changed nothing may wait for something that nobody can cancel.
                if commandIsAwaited.withLock({ $0 }) { _ = await command.value }
            }
            await giveBack.withLock({ $0 })()
            ending.finish()
        }
        DispatchQueue.global().asyncAfter(deadline: .now() + limit) { ending.finish() }
    }

    /// As ``begin(_:)``, for who has nothing left to do.
    package static func end(_ ending: Ending) async -> Never {
        begin(ending)
        while true { try? await Task.sleep(for: .seconds(3600)) }
    }

    private func finish() {
        switch self {
        case .status(let status): exit(status)
        case .signal(let number):
            Glibc.signal(number, SIG_DFL)
            kill(getpid(), number)
        }
    }

    // MARK: Signals

    private static let signals = [SIGINT, SIGTERM, SIGHUP]

    /// From now on signals end the program in order, but for those that whoever started it has it ignore; a closed pipe is
    /// an error of the write.
    ///
    /// - Parameter giveBack: gives back, at any end of the program, what it may have taken of the machine.
    package static func takeSignals(giveBack: @escaping @Sendable () async -> Void = {}) {
        Self.giveBack.withLock { $0 = giveBack }
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
                // All that a signal handler may do.
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

/// Where signals are written to be read by a thread that may do more.  Set once, before there is a handler.
private nonisolated(unsafe) var arrivals: Int32 = -1
