import Glibc

/// Takes connections on 127.0.0.1.
final class USBIPListener: Sendable {
    let port: UInt16
    private let descriptor: Int32

    /// - Parameter port: 0 is any port that is free.
    /// - Throws: ``HostError`` if it is taken.
    init(port: UInt16) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var one: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let isListening = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && listen(descriptor, 8) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        guard isListening else {
            let reason = String(cString: strerror(errno))
            close(descriptor)
            throw HostError(
                "cannot listen on port \(port) of 127.0.0.1: \(reason)",
                hint: "Name another port, or end the program that has it, perhaps usbipd.")
        }
        self.port = UInt16(bigEndian: address.sin_port)
    }

    deinit { close(descriptor) }

    /// Waits for the next connection.
    ///
    /// - Returns: nil after ``end()``.
    func accept() -> USBIPConnection? {
        while true {
            let connection = Glibc.accept(descriptor, nil, nil)
            if connection >= 0 {
                _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
                return USBIPConnection(connection)
            }
            switch errno {
            case EINTR, ECONNABORTED: continue
            // A flood of clients of other servers in this process; they will pass.
            case EMFILE, ENFILE, ENOBUFS, ENOMEM: usleep(10_000)
            default: return nil
            }
        }
    }

    /// Nobody can connect from now on.
    func end() { shutdown(descriptor, Int32(SHUT_RDWR)) }
}

/// A client's connection.
final class USBIPConnection: Sendable {
    private let descriptor: Int32

    /// - Parameter descriptor: closed with this object.  A client that sends no request for five seconds, or does not
    ///   accept
    ///   its data for as long, is disconnected.
    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        var one: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] { setPatience(option, seconds: 5) }
    }

    deinit { close(descriptor) }

    /// A client that has a device may be silent.
    func waitForever() { setPatience(SO_RCVTIMEO, seconds: 0) }

    private func setPatience(_ option: Int32, seconds: Int) {
        var patience = timeval(tv_sec: seconds, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, option, &patience, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Receives exactly `count` bytes.
    ///
    /// - Returns: nil if the client has left or takes too long.
    func receive(_ count: Int) -> [UInt8]? {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: count)
        while bytes.count < count {
            let received = recv(descriptor, &buffer, count - bytes.count, 0)
            guard received > 0 else { return nil }
            bytes += buffer[..<received]
        }
        return bytes
    }

    /// - Returns: false if the client has left or does not take it.
    func send(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard sent > 0 else { return false }
            rest = rest.dropFirst(sent)
        }
        return true
    }

    /// The client, and all that wait for it, see the end of the connection.
    func end() { shutdown(descriptor, Int32(SHUT_RDWR)) }
}
