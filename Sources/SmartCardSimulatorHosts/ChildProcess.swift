public import Glibc

/// A program that this process has started.
public struct ChildProcess: Sendable {
    public let pid: pid_t

    /// Starts a program with no signal blocked or ignored.
    ///
    /// - Parameter arguments: the path of the program, then its arguments.
    /// - Parameter environment: the program's whole environment.
    /// - Parameter descriptors: the descriptors that the program gets in addition to standard input, output and error:
    ///   its
    ///   numbers and ours.  Descriptors of ours that are closed on exec stay ours.
    /// - Parameter ownGroup: true if the terminal's Ctrl-C does not reach it.
    /// - Throws: ``HostError`` if it cannot be started.
    public init(
        _ arguments: [String], environment: [String: String], descriptors: [Int32: Int32] = [:], ownGroup: Bool = false
    ) throws {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (theirs, ours) in descriptors { posix_spawn_file_actions_adddup2(&actions, ours, theirs) }

        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        var all = sigset_t()
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        let flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (ownGroup ? POSIX_SPAWN_SETPGROUP : 0)
        posix_spawnattr_setflags(&attributes, Int16(flags))

        var pid: pid_t = 0
        let error = withCStrings(arguments) { argv in
            withCStrings(environment.map { "\($0.key)=\($0.value)" }) { envp in
                posix_spawn(&pid, arguments.first ?? "", &actions, &attributes, argv, envp)
            }
        }
        guard error == 0 else {
            throw HostError(
                "cannot run \(arguments.first ?? "nothing"): \(String(cString: strerror(error)))",
                hint: "Check that it is installed and may be executed.")
        }
        self.pid = pid
    }

    /// Waits until the program ends.
    ///
    /// - Returns: its exit status, or 128 plus the number of the signal that ended it, as in a shell.
    @discardableResult
    public func wait() -> Int32 {
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0 { guard errno == EINTR else { return 0 } }
        return Self.exitStatus(status)
    }

    /// Returns the exit status without waiting.
    ///
    /// - Returns: as ``wait()``; nil while the program runs.  The status is reported once, and is 0 from then on.
    public func poll() -> Int32? {
        var status: Int32 = 0
        switch waitpid(pid, &status, WNOHANG) {
        case pid: return Self.exitStatus(status)
        case 0: return nil
        // There is no such child any more: it has been waited for.
        default: return 0
        }
    }

    private static func exitStatus(_ status: Int32) -> Int32 {
        status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
    }

    /// The path of a program: `name` itself if it has a slash, else as found in PATH and where administrators' programs
    /// are, which a user's PATH often leaves out.
    public static func find(_ name: String) -> String? {
        if name.contains("/") { return access(name, X_OK) == 0 ? name : nil }
        let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
        return (path.split(separator: ":").map(String.init) + ["/usr/sbin", "/sbin"])
            .map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 && !isDirectory($0) }
    }

    /// This process's environment.
    public static var environment: [String: String] {
        var variables: [String: String] = [:]
        var next = environ
        while let variable = next.pointee {
            let text = String(cString: variable)
            if let equals = text.firstIndex(of: "=") {
                variables[String(text[..<equals])] = String(text[text.index(after: equals)...])
            }
            next += 1
        }
        return variables
    }
}

private func isDirectory(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
}

/// Calls `body` with a null-terminated array of C strings.
func withCStrings<Result>(
    _ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
) -> Result {
    let copies: [UnsafeMutablePointer<CChar>?] = strings.map { strdup($0) } + [nil]
    defer { for copy in copies { free(copy) } }
    return copies.withUnsafeBufferPointer { buffer in
        guard let base = buffer.baseAddress else { return withUnsafePointer(to: nil, body) }
        return body(base)
    }
}
