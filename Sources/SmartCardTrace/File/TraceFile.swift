import Glibc

/// A file that is read or written in order.
package final class TraceFile: Sendable {
    private let descriptor: CInt
    private let isOwned: Bool

    init(reading path: String) throws(TraceError) {
        isOwned = path != "-"
        descriptor = isOwned ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO
        guard descriptor >= 0 else { throw Self.failure(path) }
    }

    /// Opens a file for writing.  An existing file is emptied after its permissions are limited to its owner.  Devices
    /// and pipes are opened as they are.
    init(writing path: String, replacing: Bool) throws(TraceError) {
        isOwned = path != "-"
        let isNew = replacing ? O_CREAT : O_CREAT | O_EXCL
        let flags = O_WRONLY | O_CLOEXEC | (Self.isDevice(path) ? 0 : isNew)
        descriptor = isOwned ? open(path, flags, 0o600) : STDOUT_FILENO
        guard descriptor >= 0 else { throw Self.failure(path) }
        guard isOwned, replacing else { return }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw Self.failure(path) }
        guard status.st_mode & S_IFMT == S_IFREG else { return }
        guard status.st_mode & 0o077 == 0 || fchmod(descriptor, 0o600) == 0, ftruncate(descriptor, 0) == 0 else {
            throw Self.failure(path)
        }
    }

    deinit { if isOwned { close(descriptor) } }

    /// Returns true if `path` is written in place rather than replaced: a device or a pipe, also through a link.
    package static func isDevice(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && ![S_IFREG, S_IFDIR].contains(status.st_mode & S_IFMT)
    }

    /// Returns true if a new file at `path` would replace another.  A dangling link counts as a file.
    package static func isThere(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && !isDevice(path)
    }

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
