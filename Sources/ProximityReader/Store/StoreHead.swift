import Crypto
import Foundation
import Glibc
import SmartCard

/// How far the book has come, beside it in a file of its own: whoever takes entries off its end, or puts an old copy of it
/// in place, is found out.
///
/// Written after each entry, and not forced to the disk: after a power failure it may lag behind, and is never ahead.
final class StoreHead {
    private let descriptor: Int32
    private let key: SymmetricKey

    /// `00000000000000000042 HASH MAC\n`, hash and MAC in hexadecimal digits.
    private static let length = 20 + 1 + 64 + 1 + 64 + 1

    /// - Parameter isNew: makes the file, of an empty book; on the disk when this returns.
    init(_ path: String, isNew: Bool, key: SymmetricKey) throws {
        self.key = key
        // Under its name when it is whole.
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
        try Self.synchronise(URL(filePath: path).deletingLastPathComponent().path)
    }

    deinit { close(descriptor) }

    /// Whether a head, which nobody has the key of, is that of a store that was not made to its end; nil if there is none.
    static func isOfEmptyBook(_ path: String) -> Bool? {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return nil }
        return text.hasPrefix(String(repeating: "0", count: 20))
    }

    /// Forces the names in a folder to the disk.
    static func synchronise(_ folder: String) throws {
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw StoreFailure(errno, folder) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw StoreFailure(errno, folder) }
    }

    func read() throws -> (sequence: Int64, hash: Data) {
        var buffer = [UInt8](repeating: 0, count: Self.length + 1)
        let count = pread(descriptor, &buffer, buffer.count, 0)
        let text = String(decoding: buffer.prefix(max(count, 0)), as: UTF8.self)
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        guard count == Self.length, parts.count == 3, let sequence = Int64(parts[0]),
            let bytes = try? [UInt8](hex: parts[1]),
            text == line(sequence: sequence, hash: Data(bytes))
        else { throw StoreFailure.damaged("its head is not what was written") }
        return (sequence, Data(bytes))
    }

    /// - Throws: ``StoreFailure``; what was written before stays good.
    func write(sequence: Int64, hash: Data) throws {
        let line = Array(line(sequence: sequence, hash: hash).utf8)
        let count = pwrite(descriptor, line, line.count, 0)
        guard count == line.count else { throw StoreFailure(count < 0 ? errno : ENOSPC, "the store's head") }
    }

    private func line(sequence: Int64, hash: Data) -> String {
        let digits = String(sequence)
        let number = String(repeating: "0", count: max(0, 20 - digits.count)) + digits
        let mac = HMAC<SHA256>.authenticationCode(for: Data("\(number) \(hash.hex)".utf8), using: key)
        return "\(number) \(hash.hex) \(Data(mac).hex)\n"
    }
}
