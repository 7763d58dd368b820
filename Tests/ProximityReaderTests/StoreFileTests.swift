import Foundation
import GRDB
import Testing

@testable import ProximityReader

/// The store's reserve and its log, each as a file alone.
@Suite(.timeLimit(.minutes(2))) struct StoreFileTests {
    /// A file in a folder of its own, which goes with it.
    private final class File {
        let folder = FileManager.default.temporaryDirectory.appending(path: "store-file-\(UUID().uuidString)")
        var path: String { folder.appending(path: "file").path }

        init() throws { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false) }
        deinit { try? FileManager.default.removeItem(at: folder) }

        func size(_ suffix: String = "") throws -> Int {
            let attributes = try FileManager.default.attributesOfItem(atPath: path + suffix)
            return try #require(attributes[.size] as? Int)
        }
    }

    private static let (kibi, mebi) = (1 << 10, 1 << 20)

    @Test("the reserve has room for the payments, in steps of a quarter of a mebibyte")
    func steps() throws {
        let file = try File()
        var reserve = StoreReserve(file.path)
        for (payments, quarters) in [(0, 4), (1, 5), (85, 5), (86, 6)] {
            try reserve.keep(for: payments)
            #expect(try file.size() == quarters * 256 * Self.kibi, "\(payments)")
        }
    }

    @Test("a batch of more than 64 payments has more room", arguments: [(64, 4), (65, 6)])
    func batches(_ batch: Int, _ quarters: Int) throws {
        let file = try File()
        var reserve = StoreReserve(file.path)
        try reserve.keep(for: 0, batch: batch)
        #expect(try file.size() == quarters * 256 * Self.kibi)
    }

    @Test("room for a large batch is given back once it is more than twice what is needed")
    func givenBack() throws {
        let file = try File()
        var reserve = StoreReserve(file.path)
        // 1 MiB and 4 KiB for each.
        try reserve.keep(for: 0, batch: 256)
        reserve.restore(for: 0)
        #expect(try file.size() == 2 * Self.mebi)
        try reserve.keep(for: 0, batch: 257)
        reserve.restore(for: 0)
        #expect(try file.size() == Self.mebi)
    }

    @Test("the reserve gives up all that it has, piece by piece, then nothing, and is restored")
    func givenUp() throws {
        let file = try File()
        var reserve = StoreReserve(file.path)
        try reserve.keep(for: 0)
        // Not a multiple of a piece, as a file system that was full may leave it.
        try #require(truncate(file.path, 100 << 10) == 0)
        for size in [36 * Self.kibi, 0] {
            let hasGiven = reserve.giveUp()
            #expect(try hasGiven && file.size() == size)
        }
        let hasMore = reserve.giveUp()
        #expect(!hasMore)
        try reserve.keep(for: 0)
        #expect(try file.size() == Self.mebi)
    }

    @Test(
        "a cleared log has its constant size, whatever its size was, and one that was not longer only zeros",
        arguments: [1, 600])
    func cleared(_ pages: Int) throws {
        let file = try File()
        let database = try DatabaseQueue(path: file.path, configuration: StoreTables.configuration)
        let log = StoreLog(path: file.path + "-wal")
        try #require(log.hasRoom)
        try database.writeWithoutTransaction { try $0.execute(sql: "CREATE TABLE secret (value BLOB)") }
        try database.write { database in
            for _ in 0..<pages {
                try database.execute(
                    sql: "INSERT INTO secret VALUES (?)", arguments: [Data(repeating: 0x5A, count: 4000)])
            }
        }
        #expect(try pages == 1 || file.size("-wal") > Self.mebi)
        try log.clear(database)
        let left = try Data(contentsOf: URL(filePath: log.path))
        #expect(left.count == Self.mebi && left.allSatisfy { $0 == 0 })
        #expect(try database.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM secret") } == pages)
        try database.close()
    }
}
