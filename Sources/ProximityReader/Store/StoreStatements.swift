import Foundation
import GRDB
import GRDBSQLite

/// The prepared statements that add entries.  Storing a payment then takes little more than the disk does.
///
/// Only this type calls SQLite's C functions.
final class StoreStatements {
    private let connection: OpaquePointer
    private let begin: Prepared
    private let commit: Prepared
    private let rollback: Prepared
    private let insert: Prepared

    private final class Prepared {
        let pointer: OpaquePointer

        init(_ sql: String, _ connection: OpaquePointer) throws {
            var statement: OpaquePointer?
            // https://sqlite.org/c3ref/c_prepare_dont_log.html: the statement is used repeatedly.
            let code = sqlite3_prepare_v3(connection, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
            guard code == SQLITE_OK, let statement else { throw StoreStatements.error(code, connection) }
            pointer = statement
        }

        deinit { sqlite3_finalize(pointer) }
    }

    /// Prepares the statements, which are valid as long as the database is open.
    init(_ database: Database) throws {
        guard let connection = database.sqliteConnection else { throw DatabaseError(resultCode: .SQLITE_MISUSE) }
        self.connection = connection
        begin = try Prepared("BEGIN IMMEDIATE", connection)
        commit = try Prepared("COMMIT", connection)
        rollback = try Prepared("ROLLBACK", connection)
        insert = try Prepared("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?)", connection)
    }

    /// Runs a transaction: on the disk when this returns, rolled back when it throws.
    func transaction<Result>(_ body: () throws -> Result) throws -> Result {
        try step(begin)
        do {
            let result = try body()
            try step(commit)
            return result
        } catch {
            // Some errors roll back by themselves.
            if sqlite3_get_autocommit(connection) == 0 { try? step(rollback) }
            throw error
        }
    }

    func insert(_ entry: StoreEntry, detail: Data, _ content: Data?) throws {
        sqlite3_bind_int64(insert.pointer, 1, entry.sequence)
        bind(entry.kind.rawValue, 2)
        bind(entry.subject, 3)
        sqlite3_bind_int64(insert.pointer, 4, entry.time)
        bind(detail, 5)
        bind(entry.hash, 6)
        bind(content, 7)
        defer { sqlite3_clear_bindings(insert.pointer) }
        try step(insert)
    }

    /// Has SQLite copy its argument.
    private static let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    private func bind(_ text: String, _ index: Int32) {
        sqlite3_bind_text(insert.pointer, index, text, Int32(text.utf8.count), Self.copied)
    }

    private func bind(_ bytes: Data?, _ index: Int32) {
        guard let bytes else {
            sqlite3_bind_null(insert.pointer, index)
            return
        }
        bytes.withUnsafeBytes { buffer in
            // An empty blob is not NULL.
            guard let start = buffer.baseAddress else {
                sqlite3_bind_zeroblob(insert.pointer, index, 0)
                return
            }
            sqlite3_bind_blob(insert.pointer, index, start, Int32(buffer.count), Self.copied)
        }
    }

    private func step(_ statement: Prepared) throws {
        let code = sqlite3_step(statement.pointer)
        let failure = code == SQLITE_DONE ? nil : Self.error(code, connection)
        sqlite3_reset(statement.pointer)
        if let failure { throw failure }
    }

    private static func error(_ code: Int32, _ connection: OpaquePointer) -> DatabaseError {
        DatabaseError(
            resultCode: ResultCode(rawValue: sqlite3_extended_errcode(connection)),
            message: String(cString: sqlite3_errmsg(connection)))
    }
}
