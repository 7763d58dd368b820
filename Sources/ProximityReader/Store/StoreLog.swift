import Foundation
import GRDB
import Glibc
import Logging

/// The file of the write-ahead log, which keeps its size: what is committed is written over blocks that are there, and the
/// file system has no change of its own to force to the disk with it.  Where the disk has little room, it takes none in advance.
struct StoreLog {
    let path: String

    /// What the log seldom grows beyond: SQLite moves it into the database by then.  Of 4096 bytes each, and a header.
    static let frames = 250
    private static let size = 1 << 20
    private static let frame = 24 + 4096
    private static let header = 32

    /// Whether the disk has so much room that the log's file is nothing to it.
    var hasRoom: Bool {
        let folder = URL(filePath: path).deletingLastPathComponent().path
        let attributes = try? FileManager.default.attributesOfFileSystem(forPath: folder)
        return (attributes?[.systemFreeSize] as? NSNumber)?.intValue ?? 0 > 64 * Self.size
    }

    /// Moves what is in the log into the database, overwrites it with zeros, and has the file take its size; where there is
    /// little room, none.
    ///
    /// Of a log that begins with zeros SQLite takes nothing, as of none (sqlite.org/fileformat.html, section 4.1).
    ///
    /// - Throws: what SQLite or the system says; the log goes on as it is then, and nothing is lost.
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
        // Nobody reads in the log any more, and who writes begins at its beginning.
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

    /// Where the zeros begin that were written here: frames of earlier rounds are behind those of the last.
    private func used(_ descriptor: Int32, _ size: Int) -> Int {
        var start = [UInt8](repeating: 0, count: 24)
        var end = 0
        for length in sequence(first: Self.header, next: { _ in Self.frame }) {
            guard end + length <= min(size, Self.size),
                pread(descriptor, &start, start.count, off_t(end)) == start.count,
                start.contains(where: { $0 != 0 })
            else { break }
            end += length
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
