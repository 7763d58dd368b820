import Foundation
import ToolSupport

/// A program that this one runs in its own place: it has the terminal, the signals and the last word.
struct ForegroundProgram {
    private let pid: pid_t

    /// Starts the program.
    ///
    /// - Parameter command: its path, or its name, which is looked up in PATH; then its arguments.
    /// - Parameter environment: added to this process's.
    /// - Throws: ``ToolError`` of status 127 if there is no such program, and of 126 if it cannot be executed.
    init(_ command: [String], environment: [String: String]) throws {
        Self.takeSignals()
        let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        var argv: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
        var envp: [UnsafeMutablePointer<CChar>?] = variables.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in argv + envp { free(text) } }
        var pid: pid_t = 0
        let name = command.first ?? ""
        // No signal is blocked there as it is in this thread.  What this process ignores, such as SIGHUP under nohup, is
        // ignored there, too.
        var attributes = posix_spawnattr_t()
        var none = sigset_t()
        posix_spawnattr_init(&attributes)
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        defer { posix_spawnattr_destroy(&attributes) }
        let error = posix_spawnp(&pid, name, nil, &attributes, &argv, &envp)
        switch error {
        case 0: break
        case ENOENT, ENOTDIR:
            throw ToolError(
                status: 127, summary: "\(name) was not found", hint: "Check the name, or install the program.")
        default:
            throw ToolError(
                status: 126, summary: "\(name) cannot be executed: \(String(cString: strerror(error)))",
                hint: "Check its permissions: chmod +x \(name)")
        }
        self.pid = pid
    }

    /// Waits until the program ends; blocks the thread.
    ///
    /// Signals from other processes to this one go to the program meanwhile; signals from the terminal reach it
    /// directly.
    ///
    /// - Parameter descriptors: additional descriptors to wait for.
    /// - Parameter handle: is called when some of these can be read, or are at their end.
    /// - Returns: its exit status, or 128 plus the number of the signal that ended it, as in a shell.
    func wait(
        watching descriptors: () -> [Int32] = { [] }, _ handle: () -> Void = {}
    ) -> Int32 {
        while true {
            var status: Int32 = 0
            switch waitpid(pid, &status, WNOHANG) {
            case 0: break
            case pid: return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
            default: return 0
            }
            var waiting = ([arrivals.read] + descriptors()).map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            // Whatever becomes of a signal, the program's end is not missed for long.
            guard poll(&waiting, nfds_t(waiting.count), 1000) > 0 else { continue }
            if waiting[0].revents != 0 { passOn() }
            if waiting.dropFirst().contains(where: { $0.revents != 0 }) { handle() }
        }
    }

    private func passOn() {
        var arrived = [UInt8](repeating: 0, count: 64)
        let count = read(arrivals.read, &arrived, arrived.count)
        for number in arrived.prefix(max(0, count)) where number != 0 { kill(pid, Int32(number)) }
    }

    private static func takeSignals() {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        arrivals = (ends[0], ends[1])
        for number in [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCHLD] {
            var action = sigaction()
            sigaction(number, nil, &action)
            let present = unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            guard number == SIGCHLD || present != unsafeBitCast(SIG_IGN, to: Int.self) else { continue }
            action = sigaction()
            action.sa_flags = SA_SIGINFO | SA_RESTART
            action.__sigaction_handler.sa_sigaction = { number, information, _ in
                // This is all that a signal handler may do.  Zero wakes the waiting thread, and is not passed on.
                let isOthers = number != SIGCHLD && (information?.pointee.si_code ?? 1) <= 0
                var byte = isOthers ? UInt8(truncatingIfNeeded: number) : 0
                write(arrivals.write, &byte, 1)
            }
            sigaction(number, &action, nil)
        }
    }
}

/// The pipe that carries signals to a thread, which may do more than a handler.  Set once, before there is a handler.
private nonisolated(unsafe) var arrivals: (read: Int32, write: Int32) = (-1, -1)

/// Runs `body`, which blocks, on a separate thread.
func onOwnThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Swift.Result(catching: body)) }
    }
}
