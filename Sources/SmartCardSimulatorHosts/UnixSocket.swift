import Glibc

/// Sockets with a name in the file system.
public enum UnixSocket {
    /// Connects to the socket at `path`.
    ///
    /// - Returns: a connected descriptor whose reads give up after two seconds; nil if no program listens there, or the
    ///   listener is too busy to accept for as long.
    public static func connect(to path: String) -> Int32? {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        var patience = timeval(tv_sec: 2, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &patience, socklen_t(MemoryLayout<timeval>.size))
        }
        guard withAddress(of: path, { Glibc.connect(descriptor, $0, $1) }) == 0 else {
            close(descriptor)
            return nil
        }
        return descriptor
    }

    /// Returns true if the datagram socket at `path` gets room for another message within `patience`.
    static func takesDatagrams(_ path: String, within patience: Duration) -> Bool {
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        guard withAddress(of: path, { Glibc.connect(descriptor, $0, $1) }) == 0 else { return false }
        var event = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        let milliseconds = min(Int64(Int32.max), patience.components.seconds * 1000)
        return poll(&event, 1, Int32(milliseconds)) > 0 && event.revents & Int16(POLLOUT) != 0
    }

    /// Listens at `path`, for this user alone.  Replaces a socket without a listener.
    ///
    /// - Throws: ``HostError`` if there is another file, or a program listens.
    public static func listen(at path: String) throws -> Int32 {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var result = bind(descriptor, to: path)
        if result != 0, errno == EADDRINUSE, isAbandoned(path) {
            unlink(path)
            result = bind(descriptor, to: path)
        }
        guard result == 0, chmod(path, 0o600) == 0, Glibc.listen(descriptor, 8) == 0 else {
            let reason = String(cString: strerror(errno))
            close(descriptor)
            throw HostError(
                "cannot listen at \(path): \(reason)", hint: "Name a file that does not exist, in a directory of yours."
            )
        }
        return descriptor
    }

    private static func bind(_ descriptor: Int32, to path: String) -> Int32 {
        withAddress(of: path) { Glibc.bind(descriptor, $0, $1) }
    }

    private static func isAbandoned(_ path: String) -> Bool {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return false }
        guard let connection = connect(to: path) else { return true }
        close(connection)
        return false
    }

    /// Calls `body` with the address of a path; -1 if the path is too long for one.
    private static func withAddress(of path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let room = MemoryLayout.size(ofValue: address.sun_path)
        guard path.utf8.count < room else { return -1 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
