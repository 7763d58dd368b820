import CardEncryption
import Crypto
import Foundation
import Glibc

/// The position of the book's end, in a separate file.  It reveals that somebody removed entries from the end, or
/// restored an old copy of the book.
///
/// It is written after each entry without a flush: after a power failure it may lag behind the book, and it is never
/// ahead.
final class StoreHead {
    private let descriptor: Int32
    private let key: SymmetricKey
    /// The identifier of the store's keys.
    private let identifier: [UInt8]

    /// The identifier of the keys (16 bytes), sequence (8 bytes, most significant first), hash and MAC.
    private static let length = 16 + 8 + SHA256.byteCount + SHA256.byteCount

    /// Opens the head.
    ///
    /// - Parameter isNew: true to create the file for an empty book; it is on the disk when this returns.
    init(_ path: String, isNew: Bool, of key: DeviceKey) throws {
        self.key = key.derived(for: "swift-contactless store head")
        identifier = key.identifier
        // The file gets its name when it is complete.
        let name = isNew ? path + ".new" : path
        if isNew { unlink(name) }
        descriptor = open(name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | (isNew ? O_CREAT | O_EXCL : 0), 0o600)
        guard descriptor >= 0 else {
            if errno == ENOENT { throw StoreFailure.damaged("\(path) is missing") }
            throw StoreFailure(errno, path)
        }
        guard isNew else { return }
        try write(sequence: 0, hash: StoreEntry.origin)
        guard fsync(descriptor) == 0, rename(name, path) == 0 else { throw StoreFailure(errno, path) }
        try Self.synchronize(URL(filePath: path).deletingLastPathComponent().path)
    }

    deinit { close(descriptor) }

    /// Returns true if the head, whose key is missing, belongs to a store that was not completely created; nil if
    /// there is no head.
    static func isOfEmptyBook(_ path: String) -> Bool? {
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return errno == ENOENT ? nil : false }
        defer { close(descriptor) }
        // One byte more than a head: a longer file is not a head.
        var bytes = [UInt8](repeating: 0, count: length + 1)
        return Glibc.read(descriptor, &bytes, bytes.count) == length && bytes[16..<24].allSatisfy { $0 == 0 }
    }

    /// Flushes the directory entries of a folder to the disk.
    static func synchronize(_ folder: String) throws {
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw StoreFailure(errno, folder) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw StoreFailure(errno, folder) }
    }

    /// Reads the head.
    ///
    /// - Throws: ``StoreFailure``: `key` if the keys belong to another store.
    func read() throws -> (sequence: Int64, hash: Data) {
        var buffer = [UInt8](repeating: 0, count: Self.length + 1)
        let count = pread(descriptor, &buffer, buffer.count, 0)
        guard count != Self.length || Array(buffer[..<16]) == identifier else {
            throw StoreFailure.key("store.key is another store's; put this one's own back.")
        }
        let sequence = buffer[16..<24].reduce(0) { $0 << 8 | Int64($1) }
        let hash = Data(buffer[24..<(24 + SHA256.byteCount)])
        guard count == Self.length, Array(buffer.prefix(count)) == line(sequence: sequence, hash: hash) else {
            throw StoreFailure.damaged("its head is not what was written")
        }
        return (sequence, hash)
    }

    /// Writes the head.
    ///
    /// - Throws: ``StoreFailure``; the previous contents stay valid.
    func write(sequence: Int64, hash: Data) throws {
        let line = line(sequence: sequence, hash: hash)
        let count = pwrite(descriptor, line, line.count, 0)
        guard count == line.count else { throw StoreFailure(count < 0 ? errno : ENOSPC, "the store's head") }
    }

    private func line(sequence: Int64, hash: Data) -> [UInt8] {
        var line: [UInt8] = []
        line.reserveCapacity(Self.length)
        line.append(contentsOf: identifier)
        withUnsafeBytes(of: sequence.bigEndian) { line.append(contentsOf: $0) }
        line.append(contentsOf: hash)
        let mac = HMAC<SHA256>.authenticationCode(for: line, using: key)
        mac.withUnsafeBytes { line.append(contentsOf: $0) }
        return line
    }
}
