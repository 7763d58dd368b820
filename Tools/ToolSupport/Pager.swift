import Foundation
import Synchronization

/// Long text on a terminal, a page at a time.
package enum Pager {
    /// Whether a pager reads what is printed; who closes it has seen enough.
    package static var isRunning: Bool { running.withLock { $0 } }

    private static let running = Mutex(false)

    /// Runs `body`, with standard output through the program that PAGER names, or less, where standard output is a
    /// terminal; waits until that is closed.
    ///
    /// - Parameter isWanted: false: standard output stays as it is.
    package static func run(_ isWanted: Bool, _ body: () async throws -> Void) async throws {
        // Asked before standard output is another.
        guard isWanted, Terminal.outputIsTerminal, let command, let (pager, terminal) = start(command) else {
            return try await body()
        }
        running.withLock { $0 = true }
        // Interrupting is for the pager, which stops scrolling for it.
        let interrupt = signal(SIGINT, SIG_IGN)
        // A pager that is closed is an error of the write.
        let closedPipe = signal(SIGPIPE, SIG_IGN)
        defer {
            dup2(terminal, STDOUT_FILENO)
            close(terminal)
            var status: Int32 = 0
            while waitpid(pager, &status, 0) < 0 && errno == EINTR {}
            signal(SIGINT, interrupt)
            signal(SIGPIPE, closedPipe)
            running.withLock { $0 = false }
        }
        try await body()
    }

    /// nil: none.
    private static var command: String? {
        let environment = ProcessInfo.processInfo.environment
        guard environment["TERM"] != "dumb" else { return nil }
        let pager = environment["PAGER"] ?? "less -R"
        return ["", "cat"].contains(pager) || !canStart(pager) ? nil : pager
    }

    /// False where the first word of `command` names a program and there is none.  What only the shell understands is left
    /// to the shell.
    private static func canStart(_ command: String) -> Bool {
        let isPlain = { (word: Substring) in
            word.utf8.allSatisfy { !"\"'\\$`~|&;<>()*?[]{}!#=".utf8.contains($0) }
        }
        guard let name = command.split(whereSeparator: \.isWhitespace).first, isPlain(name) else { return true }
        guard !name.contains("/") else { return access(String(name), X_OK) == 0 }
        let path = ProcessInfo.processInfo.environment["PATH", default: "/usr/bin:/bin"]
        return path.split(separator: ":").contains { access("\($0)/\(name)", X_OK) == 0 }
    }

    /// Starts `command` in the shell with standard output leading to it; nil if it cannot.
    private static func start(_ command: String) -> (pager: pid_t, terminal: Int32)? {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(ends[0]) }
        defer { close(ends[1]) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO)
        // One page is printed and not paged; colours are passed on; the screen stays.
        var environment = ProcessInfo.processInfo.environment
        if environment["LESS"] == nil { environment["LESS"] = "FRX" }
        var arguments = strings(["sh", "-c", command])
        var variables = strings(environment.map { "\($0)=\($1)" })
        defer { for string in arguments + variables { free(string) } }
        var pager: pid_t = 0
        guard posix_spawn(&pager, "/bin/sh", &actions, nil, &arguments, &variables) == 0 else { return nil }
        let terminal = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
        dup2(ends[1], STDOUT_FILENO)
        return (pager, terminal)
    }

    /// As C has them, to be freed.
    private static func strings(_ strings: [String]) -> [UnsafeMutablePointer<CChar>?] {
        strings.map { strdup($0) } + [nil]
    }
}
