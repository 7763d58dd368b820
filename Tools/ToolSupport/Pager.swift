import Foundation
import Synchronization

/// Shows long text on a terminal, a page at a time.
package enum Pager {
    /// True while a pager reads the output.  Closing it is no error.
    package static var isRunning: Bool { running.withLock { $0 } }

    private static let running = Mutex(false)

    /// Runs `body` with standard output through the program in PAGER, or less, if standard output is a terminal; waits
    /// until the pager is closed.
    ///
    /// - Parameter isWanted: false to leave standard output unchanged.
    package static func run(_ isWanted: Bool, _ body: () async throws -> Void) async throws {
        // Asked before standard output is redirected.
        guard isWanted, Terminal.outputIsTerminal, let command, let (pager, terminal) = start(command) else {
            return try await body()
        }
        running.withLock { $0 = true }
        // Interrupts are for the pager, which stops scrolling.
        let interrupt = signal(SIGINT, SIG_IGN)
        // A closed pager becomes an error of the write.
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

    /// The pager's command; nil: none.
    private static var command: String? {
        let environment = ProcessInfo.processInfo.environment
        guard environment["TERM"] != "dumb" else { return nil }
        let pager = environment["PAGER"] ?? "less -R"
        return ["", "cat"].contains(pager) || !canStart(pager) ? nil : pager
    }

    /// Returns false if the first word of `command` names a missing program.  Commands that only the shell understands
    /// count as present.
    private static func canStart(_ command: String) -> Bool {
        let isPlain = { (word: Substring) in
            word.utf8.allSatisfy { !"\"'\\$`~|&;<>()*?[]{}!#=".utf8.contains($0) }
        }
        guard let name = command.split(whereSeparator: \.isWhitespace).first, isPlain(name) else { return true }
        guard !name.contains("/") else { return access(String(name), X_OK) == 0 }
        let path = ProcessInfo.processInfo.environment["PATH", default: "/usr/bin:/bin"]
        return path.split(separator: ":").contains { access("\($0)/\(name)", X_OK) == 0 }
    }

    /// Starts `command` in the shell and redirects standard output to it; nil on failure.
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
        // less prints a single page without paging, passes colors on, and leaves the screen as it is.
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

    /// Copies strings to C; the caller frees them.
    private static func strings(_ strings: [String]) -> [UnsafeMutablePointer<CChar>?] {
        strings.map { strdup($0) } + [nil]
    }
}
