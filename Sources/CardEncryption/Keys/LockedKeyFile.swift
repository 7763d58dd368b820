import Glibc

/// A ``KeyFile`` locked against all other users on this machine, as long as this value and the process exist.
///
/// All reading and writing goes through such a value.  Names refer to the folder as it was opened, which nobody else
/// may change.  Every call blocks on the disk.
final class LockedKeyFile: Sendable {
    private let file: KeyFile
    private let folder: Descriptor
    private let folderPath: String
    private let name: String
    private let lock: Descriptor

    /// The name of the next version until it is complete, and of the previous one until it is erased.
    private var newName: String { name + ".new" }
    private var oldName: String { name + ".old" }

    private final class Descriptor: Sendable {
        let value: Int32

        init(_ value: Int32) { self.value = value }

        deinit { close(value) }
    }

    /// The time to wait for another user.  A process that is being started briefly has copies of our descriptors, and
    /// so of locks that were already released.
    static let patience = Duration.seconds(2)

    /// Locks the file through the empty `.lock` file: the file itself is replaced by each write.  Remains of a killed
    /// process are erased.
    ///
    /// - Parameter isThere: true if the file must exist; otherwise it may.
    init(_ file: KeyFile, isThere: Bool, patience: Duration = patience) throws(KeyFileError) {
        self.file = file
        let slash = file.path.lastIndex(of: "/")
        name = file.name
        folderPath = slash.map { $0 == file.path.startIndex ? "/" : String(file.path[..<$0]) } ?? "."
        guard !name.isEmpty else { throw KeyFileError(.notPrivate, file.path) }
        do {
            folder = try Self.folder(folderPath)
        } catch {
            throw isThere && error.reason == .system(ENOENT) ? KeyFileError(.missing, file.path) : error
        }
        if isThere {
            var status = stat()
            guard fstatat(folder.value, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
                throw KeyFileError(errno == ENOENT ? .missing : .system(errno), file.path)
            }
        }
        lock = try Self.lock(name + ".lock", in: folder, of: file.path, patience: patience)
        try eraseLeftovers()
    }

    private static func folder(_ path: String) throws(KeyFileError) -> Descriptor {
        let descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw KeyFileError(.system(errno), path) }
        let folder = Descriptor(descriptor)
        let status = try Self.status(of: folder, path)
        // With the sticky bit, only its owner and the file's owner can rename a file.
        guard status.st_uid == geteuid() || status.st_uid == 0,
            status.st_mode & 0o022 == 0 || status.st_mode & S_ISVTX != 0
        else { throw KeyFileError(.folderNotPrivate, path) }
        return folder
    }

    private static func lock(
        _ name: String, in folder: Descriptor, of path: String, patience: Duration
    ) throws(KeyFileError) -> Descriptor {
        let end = ContinuousClock.now + patience
        while true {
            let value = openat(folder.value, name, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0o600)
            guard value >= 0 else { throw KeyFileError(errno == ELOOP ? .notPrivate : .system(errno), path + ".lock") }
            let lock = Descriptor(value)
            let mine = try privateStatus(of: lock, path + ".lock")
            if flock(lock.value, LOCK_EX | LOCK_NB) == 0 {
                // If the name was removed in the meantime, others could lock the file that now has it.
                var named = stat()
                if fstatat(folder.value, name, &named, AT_SYMLINK_NOFOLLOW) == 0, named.st_ino == mine.st_ino {
                    return lock
                }
            } else if errno != EWOULDBLOCK, errno != EINTR {
                throw KeyFileError(.system(errno), path + ".lock")
            }
            guard ContinuousClock.now < end else { throw KeyFileError(.inUse, path) }
            usleep(10_000)
        }
    }

    private static func status(of descriptor: Descriptor, _ path: String) throws(KeyFileError) -> stat {
        var status = stat()
        guard fstat(descriptor.value, &status) == 0 else { throw KeyFileError(.system(errno), path) }
        return status
    }

    /// Returns the status of a regular file that only this user can read and write.
    private static func privateStatus(of descriptor: Descriptor, _ path: String) throws(KeyFileError) -> stat {
        let status = try status(of: descriptor, path)
        guard status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o077 == 0, status.st_uid == geteuid() else {
            throw KeyFileError(.notPrivate, path)
        }
        return status
    }

    /// Opens a file in the folder, which is private.
    private func open(_ name: String, _ access: Int32) throws(KeyFileError) -> Descriptor {
        let path = path(name)
        let value = openat(folder.value, name, access | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard value >= 0 else {
            switch errno {
            case ENOENT: throw KeyFileError(.missing, path)
            case ELOOP, EISDIR: throw KeyFileError(.notPrivate, path)
            default: throw KeyFileError(.system(errno), path)
            }
        }
        let descriptor = Descriptor(value)
        _ = try Self.privateStatus(of: descriptor, path)
        return descriptor
    }

    private func path(_ name: String) -> String { file.path + name.dropFirst(self.name.count) }

    // MARK: Reading

    var isThere: Bool { faccessat(folder.value, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 }

    /// Reads the contents.
    ///
    /// - Throws: ``KeyFileError``, including `notWrapped` if there is a wrapping key.
    func read(kind: KeyFile.Kind) throws(KeyFileError) -> WipedStorage {
        let (contents, isWrapped) = try readToWrap(kind: kind)
        guard isWrapped || !file.isWrapping else { throw KeyFileError(.notWrapped, file.path) }
        return contents
    }

    /// Reads the contents, even if they are not wrapped despite a wrapping key: ``replace(_:kind:)`` wraps them.
    func readToWrap(kind: KeyFile.Kind) throws(KeyFileError) -> (contents: WipedStorage, isWrapped: Bool) {
        let (storage, count) = try readWhole()
        return try withExtendedLifetime(storage) { () throws(KeyFileError) in
            try file.contents(of: UnsafeRawBufferPointer(rebasing: storage.readOnly.prefix(count)), kind: kind)
        }
    }

    /// Reads the file's bytes, whatever they are; `count` of the storage's are filled.
    func readWhole() throws(KeyFileError) -> (storage: WipedStorage, count: Int) {
        let descriptor = try open(name, O_RDONLY)
        defer { withExtendedLifetime(descriptor) {} }
        let storage = WipedStorage(count: KeyFile.maximumLength + 1)
        let count = try Self.readAll(descriptor.value, into: storage.bytes, path: file.path)
        guard count <= KeyFile.maximumLength else { throw KeyFileError(.foreign, file.path) }
        return (storage, count)
    }

    /// True if the key is written wrapped.
    var isWrapping: Bool { file.isWrapping }

    /// Reads to the end of a file or of the buffer.
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

    // MARK: Writing

    /// Writes the contents to a new file.  They are on the disk, under this name, when this returns.
    ///
    /// - Throws: ``KeyFileError``, including `exists`.
    func create(_ contents: UnsafeRawBufferPointer, kind: KeyFile.Kind) throws(KeyFileError) {
        guard !isThere else { throw KeyFileError(.exists, file.path) }
        try writeNew(contents, kind: kind)
        try name {
            // Unlike a rename, a link never replaces another file.
            linkat(folder.value, newName, folder.value, name, 0)
        }
    }

    /// Replaces contents of the same kind.  When this returns, the new contents are on the disk, and the old ones are
    /// overwritten there.
    ///
    /// - Throws: ``KeyFileError``, including `missing` and `kind`.
    func replace(_ contents: UnsafeRawBufferPointer, kind: KeyFile.Kind) throws(KeyFileError) {
        let old = try open(name, O_RDONLY)
        let line = WipedStorage(count: KeyFile.maximumLineLength)
        let count = try Self.readAll(old.value, into: line.bytes, path: file.path)
        _ = try withExtendedLifetime((line, old)) { () throws(KeyFileError) in
            try file.line(of: UnsafeRawBufferPointer(rebasing: line.readOnly.prefix(count)), kind: kind)
        }
        try writeNew(contents, kind: kind)
        try name {
            linkat(folder.value, name, folder.value, oldName, 0) == 0
                ? renameat(folder.value, newName, folder.value, name) : -1
        }
    }

    /// Writes the contents to the disk under the new name.
    private func writeNew(_ contents: UnsafeRawBufferPointer, kind: KeyFile.Kind) throws(KeyFileError) {
        let new = try file.file(of: contents, kind: kind)
        let path = path(newName)
        let value = openat(folder.value, newName, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard value >= 0 else { throw KeyFileError(.system(errno), path) }
        let descriptor = Descriptor(value)
        do {
            try withExtendedLifetime((new, descriptor)) { () throws(KeyFileError) in
                try Self.writeAll(new.readOnly, to: descriptor.value, path: path)
                guard fsync(descriptor.value) == 0 else { throw KeyFileError(.system(errno), path) }
            }
        } catch {
            try? eraseLeftovers()
            throw error
        }
    }

    private static func writeAll(
        _ bytes: UnsafeRawBufferPointer, to descriptor: Int32, path: String
    ) throws(KeyFileError) {
        var written = 0
        while written < bytes.count {
            let more = Glibc.write(descriptor, bytes.baseAddress.map { $0 + written }, bytes.count - written)
            if more < 0, errno == EINTR { continue }
            guard more > 0 else { throw KeyFileError(.system(more < 0 ? errno : ENOSPC), path) }
            written += more
        }
    }

    /// Gives the new file its name permanently, and erases the previous one.  After a kill the next process does that.
    private func name(_ rename: () -> Int32) throws(KeyFileError) {
        guard rename() == 0 else {
            let code = errno
            try? eraseLeftovers()
            throw KeyFileError(code == EEXIST ? .exists : .system(code), file.path)
        }
        guard fsync(folder.value) == 0 else { throw KeyFileError(.system(errno), folderPath) }
        try eraseLeftovers()
    }

    private func eraseLeftovers() throws(KeyFileError) {
        for name in [newName, oldName] { try erase(name) }
    }

    /// Overwrites a version that is not in use on the disk, and removes its name.
    private func erase(_ name: String) throws(KeyFileError) {
        let path = path(name)
        let leftover: Descriptor
        do throws(KeyFileError) {
            leftover = try open(name, O_WRONLY)
        } catch {
            guard error.reason == .missing else { throw error }
            return
        }
        let status = try Self.status(of: leftover, path)
        var inUse = stat()
        // The version in use may briefly have two names.
        if fstatat(folder.value, self.name, &inUse, AT_SYMLINK_NOFOLLOW) != 0 || inUse.st_ino != status.st_ino {
            let zeros = WipedStorage(count: min(Int(status.st_size), KeyFile.maximumLength))
            try withExtendedLifetime(zeros) { () throws(KeyFileError) in
                try Self.writeAll(zeros.readOnly, to: leftover.value, path: path)
            }
            guard fdatasync(leftover.value) == 0 else { throw KeyFileError(.system(errno), path) }
        }
        guard unlinkat(folder.value, name, 0) == 0 else { throw KeyFileError(.system(errno), path) }
    }
}
