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

    /// True for a socket of a stream.  NIO ends the process at a descriptor that is not open.
    static func isStream(_ socket: CInt) -> Bool {
        var type: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        return getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == CInt(SOCK_STREAM.rawValue)
    }

    private static func value(_ name: String) -> Int? { getenv(name).flatMap { Int(String(cString: $0)) } }
}
