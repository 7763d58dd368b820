import Glibc

/// A file that is read or written in order.
final class TraceFile: Sendable {
    private let descriptor: CInt
    private let isOwned: Bool

    init(reading path: String) throws(TraceError) {
        isOwned = path != "-"
        descriptor = isOwned ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO
        guard descriptor >= 0 else { throw Self.failure(path) }
    }

    init(writing path: String, replacing: Bool) throws(TraceError) {
        isOwned = path != "-"
        let flags = O_WRONLY | O_CREAT | O_CLOEXEC | (replacing ? O_TRUNC : O_EXCL)
        descriptor = isOwned ? open(path, flags, 0o600) : STDOUT_FILENO
        guard descriptor >= 0 else { throw Self.failure(path) }
    }

    deinit { if isOwned { close(descriptor) } }

    /// The next bytes, up to 64 KiB; none at the end.
    func read() throws(TraceError) -> [UInt8] {
        var count = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, initialized in
            repeat {
                count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            } while count < 0 && errno == EINTR
            initialized = max(count, 0)
        }
        guard count >= 0 else { throw Self.failure("reading") }
        return bytes
    }

    func write(_ bytes: [UInt8]) throws(TraceError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw Self.failure("writing") }
            rest = rest.dropFirst(count)
        }
    }

    private static func failure(_ what: String) -> TraceError {
        TraceError(.file("\(what): \(String(cString: strerror(errno)))"))
    }
}
