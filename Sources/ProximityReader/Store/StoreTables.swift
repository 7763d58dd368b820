import GRDB

/// The tables of `store.sqlite`, and its settings.
enum StoreTables {
    static var configuration: GRDB.Configuration {
        var configuration = GRDB.Configuration()
        configuration.prepareDatabase { database in
            // No other process has the database, so the index of the write-ahead log needs no file.
            try database.execute(sql: "PRAGMA locking_mode = EXCLUSIVE")
            guard try String.fetchOne(database, sql: "PRAGMA journal_mode = WAL") == "wal" else {
                throw StoreFailure.notWritable("its disk takes no write-ahead log")
            }
            try database.execute(sql: "PRAGMA synchronous = FULL")
            try database.execute(sql: "PRAGMA wal_autocheckpoint = \(StoreLog.frames)")
            try database.execute(sql: "PRAGMA secure_delete = ON")
            // The file's contents are untrusted: sqlite.org/security.html.
            try database.execute(sql: "PRAGMA trusted_schema = OFF")
            try database.execute(sql: "PRAGMA cell_size_check = ON")
        }
        return configuration
    }

    /// The version in `PRAGMA user_version`.
    private static let version = 4

    private static let statements = [
        // `content`: of a payment, until it is deleted.
        """
        CREATE TABLE entry (
            sequence INTEGER PRIMARY KEY, kind TEXT NOT NULL, subject TEXT NOT NULL, time INTEGER NOT NULL,
            detail BLOB NOT NULL, hash BLOB NOT NULL, content BLOB) STRICT
        """,
        "CREATE INDEX entry_checkpoint ON entry (sequence) WHERE kind = 'checkpoint'",
        """
        CREATE TABLE past (
            number INTEGER PRIMARY KEY, payment TEXT NOT NULL, time INTEGER NOT NULL, card TEXT, detail BLOB NOT NULL)
            STRICT
        """,
        "CREATE INDEX past_payment ON past (payment)",
        "CREATE INDEX past_card ON past (card, time) WHERE card IS NOT NULL",
        // The outcomes of payments, until the application acknowledges them.
        """
        CREATE TABLE outcome (
            number INTEGER PRIMARY KEY, payment TEXT NOT NULL UNIQUE, detail BLOB NOT NULL) STRICT
        """,
        """
        CREATE TRIGGER entry_stays BEFORE UPDATE OF sequence, kind, subject, time, detail, hash ON entry
        BEGIN SELECT RAISE(ABORT, 'entries are not changed'); END
        """,
        // A checkpoint contains their state.
        """
        CREATE TRIGGER entry_remains BEFORE DELETE ON entry
        WHEN OLD.sequence >= ifnull((SELECT max(sequence) FROM entry WHERE kind = 'checkpoint'), 0)
        BEGIN SELECT RAISE(ABORT, 'entries are not deleted'); END
        """,
        """
        CREATE TRIGGER content_stays BEFORE UPDATE OF content ON entry WHEN NEW.content IS NOT NULL
        BEGIN SELECT RAISE(ABORT, 'what is stored is not changed'); END
        """,
        // The last entry gives the reason.
        """
        CREATE TRIGGER content_remains BEFORE UPDATE OF content ON entry
        WHEN NEW.content IS NULL
            AND (SELECT kind FROM entry ORDER BY sequence DESC LIMIT 1) NOT IN ('withdrawn', 'resolved', 'released')
        BEGIN SELECT RAISE(ABORT, 'what is stored is not deleted'); END
        """,
        """
        CREATE TRIGGER outcome_stays BEFORE UPDATE ON outcome
        BEGIN SELECT RAISE(ABORT, 'what was decided is not changed'); END
        """,
        """
        CREATE TRIGGER past_stays BEFORE UPDATE ON past BEGIN SELECT RAISE(ABORT, 'what was is not changed'); END
        """,
    ]

    static func make(in database: DatabaseQueue) throws {
        try database.write { database in
            for statement in statements { try database.execute(sql: statement) }
            try database.execute(sql: "PRAGMA user_version = \(version)")
        }
    }

    /// Checks the schema.
    ///
    /// - Throws: ``StoreFailure`` unless the tables are those that this version creates.
    static func check(in database: DatabaseQueue) throws {
        try database.read { database in
            let found = try Int.fetchOne(database, sql: "PRAGMA user_version") ?? 0
            guard found <= version else { throw StoreFailure.newer }
            guard found == version || found == 0 else { throw StoreFailure.older }
            let tables = try String.fetchAll(database, sql: "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
            // VACUUM changes their order.
            guard tables.sorted() == statements.sorted() else {
                throw StoreFailure.damaged("its tables are not as they were made")
            }
        }
    }
}
