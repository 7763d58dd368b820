import Foundation
import GRDB
import Glibc
import Logging

/// The write-ahead log's file, whose size stays constant: commits overwrite existing blocks, so that the file system
/// has no metadata to flush with them.  On a nearly full disk the space is not allocated in advance.
struct StoreLog {
    let path: String

    /// The number of frames that the log rarely exceeds, since SQLite then moves them into the database.  A frame has
    /// 4096 bytes and a header.
    static let frames = 250
    private static let size = 1 << 20
    private static let frame = 24 + 4096
    private static let header = 32

    /// True if the disk has ample space for the log's file.
    var hasRoom: Bool {
        let folder = URL(filePath: path).deletingLastPathComponent().path
        let attributes = try? FileManager.default.attributesOfFileSystem(forPath: folder)
        return (attributes?[.systemFreeSize] as? NSNumber)?.intValue ?? 0 > 64 * Self.size
    }

    /// Moves the log's contents into the database, overwrites them with zeros, and extends the file to its size; on a
    /// nearly full disk truncates it.
    ///
    /// SQLite ignores a log that begins with zeros, as if it were absent (sqlite.org/fileformat.html, section 4.1).
    ///
    /// - Throws: an error of SQLite or of the system; the log continues unchanged, and nothing is lost.
    func clear(_ database: DatabaseQueue) throws {
        guard hasRoom else {
            return try database.writeWithoutTransaction { database in
                try database.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)")
            }
        }
        let state = try database.writeWithoutTransaction { database in
            try Row.fetchOne(database, sql: "PRAGMA wal_checkpoint(RESTART)").map { row in
                (isBusy: row[0] as Int != 0, written: row[1] as Int, moved: row[2] as Int)
            }
        }
        // Nobody reads the log any more, and the next writer starts at its beginning.
        guard let state, !state.isBusy, state.written == state.moved else { return }
        let descriptor = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { throw StoreFailure(errno, path) }
        defer { close(descriptor) }
        let before = Int(lseek(descriptor, 0, SEEK_END))
        guard before >= 0 else { throw StoreFailure(errno, path) }
        try overwrite(descriptor, 0..<used(descriptor, before))
        if before > Self.size {
            guard ftruncate(descriptor, off_t(Self.size)) == 0 else { throw StoreFailure(errno, path) }
        } else if before < Self.size {
            do { try overwrite(descriptor, before..<Self.size) } catch {
                ftruncate(descriptor, off_t(before))
                throw error
            }
        }
        guard fsync(descriptor) == 0 else { throw StoreFailure(errno, path) }
    }

    /// Returns the offset at which zeros begin, at most the log's size: a frame may reach beyond it.  Frames of earlier rounds
    /// lie after those of the last round.
    private func used(_ descriptor: Int32, _ size: Int) -> Int {
        let limit = min(size, Self.size)
        var end = 0
        for length in sequence(first: Self.header, next: { _ in Self.frame }) {
            var start = [UInt8](repeating: 0, count: 24)
            guard end < limit, pread(descriptor, &start, start.count, off_t(end)) > 0,
                start.contains(where: { $0 != 0 })
            else { break }
            end = min(end + length, limit)
        }
        return end
    }

    private func overwrite(_ descriptor: Int32, _ range: Range<Int>) throws {
        let zeros = [UInt8](repeating: 0, count: min(range.count, 1 << 16))
        var place = range.lowerBound
        while place < range.upperBound {
            let count = pwrite(descriptor, zeros, min(zeros.count, range.upperBound - place), off_t(place))
            guard count > 0 else { throw StoreFailure(count < 0 ? errno : ENOSPC, path) }
            place += count
        }
    }
}
