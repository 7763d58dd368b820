import Glibc

/// Sockets that systemd opened for this process (sd_listen_fds(3)).
enum SystemdSockets {
    /// Returns the file descriptors, once: they are not passed on.
    static func take() -> [CInt] {
        defer { for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] { unsetenv(name) } }
        guard let process = value("LISTEN_PID"), process == Int(getpid()), let count = value("LISTEN_FDS"),
            (1...8).contains(count)
        else { return [] }
        let sockets = (3..<3 + CInt(count)).map { $0 }
        for socket in sockets { _ = fcntl(socket, F_SETFD, FD_CLOEXEC) }
        return sockets
    }

    private static func value(_ name: String) -> Int? { getenv(name).flatMap { Int(String(cString: $0)) } }
}
