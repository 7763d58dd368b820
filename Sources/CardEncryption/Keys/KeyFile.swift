import Crypto
import FoundationEssentials
import Glibc

/// A file that keys rest in: of mode 0600, refused if it has another, and wrapped by AES-256-GCM where there is a wrapping
/// key.
///
/// Its first line says what is in it and whether that is wrapped:
/// `card-encryption 1, AES DUKPT state, wrapped with A256GCM`, or `not wrapped`.  Then follow nonce (12 bytes), ciphertext
/// and tag (16), the line being authenticated with them; or the SHA-256 of line and contents, and the contents.
///
/// A new version is written beside the old one, forced to the disk and put in its place, so that there is always one or
/// the other.
public struct KeyFile: Sendable {
    public let path: String
    private let wrapping: WrappingKey?

    /// - Parameter wrapping: see ``WrappingKey/systemdCredential(_:)``; without it, the file's mode is all that protects
    ///   its contents.
    public init(_ path: String, wrappedBy wrapping: WrappingKey? = nil) {
        self.path = path
        self.wrapping = wrapping
    }

    /// What a file may hold.
    enum Kind: String, CaseIterable {
        case aesDUKPT = "AES DUKPT state"
        case tdesDUKPT = "TDES DUKPT state"
        case jwePrivateKey = "JWE private key"
        case deviceKey = "device key"

        func line(wrapped: Bool) -> [UInt8] {
            Array("card-encryption 1, \(rawValue), \(wrapped ? "wrapped with A256GCM" : "not wrapped")\n".utf8)
        }
    }

    /// No file is longer.
    private static let maximumLength = 1 << 16

    // MARK: Reading

    var exists: Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    /// The contents.
    func read(kind: Kind) throws(KeyFileError) -> WipedStorage {
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            switch errno {
            case ENOENT: throw KeyFileError(.missing, path)
            case ELOOP: throw KeyFileError(.notPrivate, path)
            default: throw KeyFileError(.system(errno), path)
            }
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw KeyFileError(.system(errno), path) }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o077 == 0, status.st_uid == geteuid() else {
            throw KeyFileError(.notPrivate, path)
        }
        let storage = WipedStorage(count: Self.maximumLength + 1)
        let count = try Self.readAll(descriptor, into: storage.bytes, path: path)
        guard count <= Self.maximumLength else { throw KeyFileError(.foreign, path) }
        return try withExtendedLifetime(storage) { () throws(KeyFileError) in
            try unwrap(UnsafeRawBufferPointer(rebasing: storage.readOnly.prefix(count)), kind: kind)
        }
    }

    /// Reads to the end of the file or of the buffer.
    static func readAll(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, path: String
    ) throws(KeyFileError) -> Int {
        var count = 0
        while count < buffer.count {
            let more = Glibc.read(descriptor, buffer.baseAddress.map { $0 + count }, buffer.count - count)
            if more == 0 { break }
            if more < 0 {
                if errno == EINTR { continue }
                throw KeyFileError(.system(errno), path)
            }
            count += more
        }
        return count
    }

    private func unwrap(_ file: UnsafeRawBufferPointer, kind: Kind) throws(KeyFileError) -> WipedStorage {
        for (other, wrapped) in Kind.allCases.flatMap({ [($0, true), ($0, false)] }) {
            let line = other.line(wrapped: wrapped)
            guard file.starts(with: line) else { continue }
            guard other == kind else { throw KeyFileError(.kind(other.rawValue), path) }
            let body = UnsafeRawBufferPointer(rebasing: file[line.count...])
            return wrapped ? try opened(body, line: line) : try checked(body, line: line)
        }
        throw KeyFileError(.foreign, path)
    }

    private func opened(_ body: UnsafeRawBufferPointer, line: [UInt8]) throws(KeyFileError) -> WipedStorage {
        guard let wrapping else { throw KeyFileError(.wrapped, path) }
        guard let box = try? AES.GCM.SealedBox(combined: body),
            var clear = try? AES.GCM.open(box, using: wrapping.key, authenticating: line)
        else { throw KeyFileError(.notAuthentic, path) }
        return WipedStorage(moving: &clear)
    }

    private func checked(_ body: UnsafeRawBufferPointer, line: [UInt8]) throws(KeyFileError) -> WipedStorage {
        guard wrapping == nil else { throw KeyFileError(.notWrapped, path) }
        guard body.count >= SHA256.byteCount,
            body.prefix(SHA256.byteCount).elementsEqual(Self.digest(body.dropFirst(SHA256.byteCount), line: line))
        else { throw KeyFileError(.notAuthentic, path) }
        return WipedStorage(UnsafeRawBufferPointer(rebasing: body.dropFirst(SHA256.byteCount)))
    }

    private static func digest(_ contents: Slice<UnsafeRawBufferPointer>, line: [UInt8]) -> SHA256.Digest {
        var hash = SHA256()
        hash.update(data: line)
        hash.update(bufferPointer: UnsafeRawBufferPointer(rebasing: contents))
        return hash.finalize()
    }

    // MARK: Writing

    /// Puts the contents in place of what was there.  They are on the disk, under this name, when it returns.
    func write(_ contents: UnsafeRawBufferPointer, kind: Kind) throws(KeyFileError) {
        let line = kind.line(wrapped: wrapping != nil)
        let file: WipedStorage
        if let wrapping {
            guard let body = try? AES.GCM.seal(contents, using: wrapping.key, authenticating: line).combined else {
                throw KeyFileError(.malformed, path)
            }
            file = WipedStorage(count: line.count + body.count)
            file.bytes[line.count...].copyBytes(from: body)
        } else {
            let digest = Self.digest(contents[...], line: line)
            file = WipedStorage(count: line.count + SHA256.byteCount + contents.count)
            file.bytes[line.count...].copyBytes(from: Array(digest))
            file.bytes[(line.count + SHA256.byteCount)...].copyBytes(from: contents)
        }
        file.bytes.copyBytes(from: line)
        guard file.bytes.count <= Self.maximumLength else { throw KeyFileError(.malformed, path) }
        try replace(with: file.readOnly)
        withExtendedLifetime(file) {}
    }

    private func replace(with file: UnsafeRawBufferPointer) throws(KeyFileError) {
        let new = path + ".new"
        // What an earlier process left when it was killed.
        guard unlink(new) == 0 || errno == ENOENT else { throw KeyFileError(.system(errno), new) }
        let descriptor = open(new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw KeyFileError(.system(errno), new) }
        do {
            defer { close(descriptor) }
            try Self.writeAll(file, to: descriptor, path: new)
        } catch {
            unlink(new)
            throw error
        }
        guard rename(new, path) == 0 else {
            let code = errno
            unlink(new)
            throw KeyFileError(.system(code), path)
        }
        try synchroniseFolder()
    }

    private static func writeAll(
        _ file: UnsafeRawBufferPointer, to descriptor: Int32, path: String
    ) throws(KeyFileError) {
        var written = 0
        while written < file.count {
            let more = Glibc.write(descriptor, file.baseAddress.map { $0 + written }, file.count - written)
            if more < 0, errno == EINTR { continue }
            guard more > 0 else { throw KeyFileError(.system(more < 0 ? errno : ENOSPC), path) }
            written += more
        }
        guard fsync(descriptor) == 0 else { throw KeyFileError(.system(errno), path) }
    }

    private func synchroniseFolder() throws(KeyFileError) {
        let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw KeyFileError(.system(errno), folder) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw KeyFileError(.system(errno), folder) }
    }

    // MARK: Locking

    /// The right to use a file, one at a time on this machine; held as long as the value lives, and no longer than the
    /// process.
    final class Lock: Sendable {
        private let descriptor: Int32

        fileprivate init(_ descriptor: Int32) { self.descriptor = descriptor }

        deinit { close(descriptor) }
    }

    /// Locks the file, through an empty one beside it, `.lock`, which stays: the file itself is another one after each
    /// write.
    func lock() throws(KeyFileError) -> Lock {
        let name = path + ".lock"
        let descriptor = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw KeyFileError(.system(errno), name) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let code = errno
            close(descriptor)
            throw KeyFileError(code == EWOULDBLOCK ? .inUse : .system(code), path)
        }
        return Lock(descriptor)
    }
}

extension KeyFile: CustomStringConvertible, CustomReflectable {
    /// The path.
    public var description: String { path }
    /// Has no children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
