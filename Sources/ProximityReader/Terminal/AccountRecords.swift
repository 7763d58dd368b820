import Foundation
import GRDB
import Logging

/// The records of this machine's merchants: who accepted the terms, which version, and when.
///
/// They are in `accounts.sqlite` of the folder.  A record is on the disk before the call returns.
actor AccountRecords {
    private let file: URL

    /// Runs the blocking disk calls on its own thread.
    private let executor = StoreExecutor()
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(folder: URL) { file = folder.appending(path: "accounts.sqlite") }

    /// Returns true if the merchant has accepted these terms.
    ///
    /// - Throws: ``PaymentCardReaderError/accountLinkingCheckFailed``
    func isLinked(_ merchant: String, of issuer: String, terms: String) throws -> Bool {
        do {
            return try database().read { database in
                try Bool.fetchOne(
                    database, sql: "SELECT terms = ? FROM account WHERE issuer = ? AND merchant = ?",
                    arguments: [terms, issuer, merchant]) ?? false
            }
        } catch {
            logger.error("accounts: \(type(of: error))")
            throw PaymentCardReaderError.accountLinkingCheckFailed
        }
    }

    /// Records that the merchant accepts the terms.
    ///
    /// - Throws: ``PaymentCardReaderError/accountLinkingFailed``
    func link(_ merchant: String, of issuer: String, terms: String, at date: Date) throws {
        do {
            try database().write { database in
                try database.execute(
                    sql: "INSERT OR REPLACE INTO account (issuer, merchant, terms, accepted) VALUES (?, ?, ?, ?)",
                    arguments: [issuer, merchant, terms, date])
            }
        } catch {
            logger.error("accounts: \(type(of: error))")
            throw PaymentCardReaderError.accountLinkingFailed
        }
    }

    /// Returns a random identifier of this machine, which never changes.
    ///
    /// - Throws: ``PaymentCardReaderError/prepareFailed(_:)``
    func machineIdentifier() throws -> String {
        do {
            return try database().write { database in
                try database.execute(
                    sql: "INSERT INTO machine (id) SELECT ? WHERE NOT EXISTS (SELECT * FROM machine)",
                    arguments: [UUID().uuidString])
                return try String.fetchOne(database, sql: "SELECT id FROM machine") ?? ""
            }
        } catch {
            logger.error("accounts: \(type(of: error))")
            throw PaymentCardReaderError.prepareFailed("the records' folder cannot be written")
        }
    }

    /// Opens the database for one call: calls are rare, and other processes of this machine make them, too.
    private func database() throws -> DatabaseQueue {
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
        var configuration = GRDB.Configuration()
        configuration.busyMode = .timeout(5)
        configuration.prepareDatabase { try $0.execute(sql: "PRAGMA synchronous = FULL") }
        let queue = try DatabaseQueue(path: file.path, configuration: configuration)
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { database in
            try database.execute(
                sql: """
                    CREATE TABLE account (
                        issuer TEXT NOT NULL, merchant TEXT NOT NULL, terms TEXT NOT NULL, accepted TEXT NOT NULL,
                        PRIMARY KEY (issuer, merchant));
                    CREATE TABLE machine (id TEXT NOT NULL);
                    """)
        }
        try migrator.migrate(queue)
        return queue
    }
}
