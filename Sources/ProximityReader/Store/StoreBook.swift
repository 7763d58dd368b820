import CardEncryption
import Crypto
import Foundation
import GRDB
import Glibc
import Logging
import SmartCard

/// The open store: database, head and key, and what the entries come to.  For one thread at a time.
final class StoreBook {
    /// An entry to be.
    struct Draft {
        let kind: StoreEntry.Kind
        let subject: String
        let detail: (any Encodable)?

        init(_ kind: StoreEntry.Kind, _ subject: String = "", detail: (any Encodable)? = nil) {
            self.kind = kind
            self.subject = subject
            self.detail = detail
        }
    }

    private(set) var ledger = StoreLedger()
    /// A write has failed: what is on the disk has to be read anew.
    private(set) var hasFailed = false
    private let key: DeviceKey
    private let entryKey: SymmetricKey
    private let head: StoreHead
    private let database: DatabaseQueue
    private var sequence: Int64 = 0
    private var hash = StoreEntry.origin

    static let encoder: JSONEncoder = {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }()

    /// Opens what is in `folder`, having checked all of it, or makes it.
    ///
    /// - Throws: ``StoreFailure``.
    init(_ folder: URL, wrapping: WrappingKey?, at time: Date) throws {
        do {
            do {
                try FileManager.default.createDirectory(
                    at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            } catch {
                throw StoreFailure.notWritable("\(folder.path): no such folder, and it cannot be made")
            }
            func path(_ name: String) -> String { folder.appending(path: name).path }
            func has(_ name: String) -> Bool { FileManager.default.fileExists(atPath: path(name)) }
            // Made in this order: key, head, database.  What comes first is never made for what is there already.
            let isKeyNew = !has("store.key") && !has("store.head") && !has("store.sqlite")
            let isHeadNew = !has("store.head") && !has("store.sqlite")
            key = try DeviceKey(KeyFile(path("store.key"), wrappedBy: wrapping), isNew: isKeyNew)
            entryKey = key.derived(for: "swift-contactless store entries")
            head = try StoreHead(
                path("store.head"), isNew: isHeadNew, key: key.derived(for: "swift-contactless store head"))
            // Those that SQLite makes beside it have its mode.
            let descriptor = open(path("store.sqlite"), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw StoreFailure(errno, path("store.sqlite")) }
            close(descriptor)
            try StoreHead.synchronise(folder.path)
            database = try DatabaseQueue(path: path("store.sqlite"), configuration: Self.configuration)
            try makeTables()
            try load()
            if sequence == 0 {
                try write([Draft(.opened, detail: try DeviceCertificates.make(for: key))], at: time)
            }
        } catch {
            let failure = StoreFailure(error)
            logger.error("store: \(failure)")
            throw failure
        }
    }

    private static var configuration: GRDB.Configuration {
        var configuration = GRDB.Configuration()
        configuration.prepareDatabase { database in
            // No other process has it, so that the index of the write-ahead log needs no file.
            try database.execute(sql: "PRAGMA locking_mode = EXCLUSIVE")
            try database.execute(sql: "PRAGMA journal_mode = WAL")
            try database.execute(sql: "PRAGMA synchronous = FULL")
            try database.execute(sql: "PRAGMA secure_delete = ON")
        }
        return configuration
    }

    /// The format, in `PRAGMA user_version`.
    private static let version = 1

    private static let tables = [
        """
        CREATE TABLE entry (
            sequence INTEGER PRIMARY KEY, kind TEXT NOT NULL, subject TEXT NOT NULL, time INTEGER NOT NULL,
            detail BLOB NOT NULL, hash BLOB NOT NULL) STRICT
        """,
        "CREATE INDEX entry_subject ON entry (subject)",
        "CREATE TABLE content (payment TEXT PRIMARY KEY, content BLOB NOT NULL) STRICT, WITHOUT ROWID",
        """
        CREATE TRIGGER entry_stays BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'entries are not changed'); END
        """,
        """
        CREATE TRIGGER entry_remains BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'entries are not deleted'); END
        """,
        """
        CREATE TRIGGER content_stays BEFORE UPDATE ON content
        BEGIN SELECT RAISE(ABORT, 'what is stored is not changed'); END
        """,
        // The last entry says why.
        """
        CREATE TRIGGER content_remains BEFORE DELETE ON content
        WHEN (SELECT kind FROM entry ORDER BY sequence DESC LIMIT 1) NOT IN ('withdrawn', 'resolved')
        BEGIN SELECT RAISE(ABORT, 'what is stored is not deleted'); END
        """,
    ]

    private func makeTables() throws {
        try database.write { database in
            let version = try Int.fetchOne(database, sql: "PRAGMA user_version") ?? 0
            guard version <= Self.version else { throw StoreFailure.newer }
            if version == 0, try head.read().sequence == 0 {
                for statement in Self.tables { try database.execute(sql: statement) }
                try database.execute(sql: "PRAGMA user_version = \(Self.version)")
            }
            let found = try String.fetchAll(
                database, sql: "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
            guard found == Self.tables else { throw StoreFailure.damaged("its tables are not as they were made") }
        }
    }

    /// Reads every entry and all that is stored, and checks it.
    private func load() throws {
        try database.read { database in
            let check = try String.fetchAll(database, sql: "PRAGMA integrity_check(1)")
            guard check == ["ok"] else { throw StoreFailure.damaged(check.joined(separator: "; ")) }
            let (headSequence, headHash) = try head.read()
            let rows = try Row.fetchCursor(
                database, sql: "SELECT sequence, kind, subject, time, detail, hash FROM entry ORDER BY sequence")
            if headSequence == 0, headHash != hash { throw StoreFailure.damaged("its head is of another book") }
            while let row = try rows.next() {
                let entry = try next(row)
                if entry.sequence == headSequence, entry.hash != headHash {
                    throw StoreFailure.damaged("its head is of another book")
                }
                try ledger.apply(entry)
                (sequence, hash) = (entry.sequence, entry.hash)
            }
            guard sequence >= headSequence else {
                throw StoreFailure.damaged("\(headSequence - sequence) entries are missing at its end")
            }
            guard sequence > 0 || headSequence == 0 else { throw StoreFailure.damaged("it is empty") }
            try checkContents(database)
        }
        // After a power failure, or where the program was killed.
        try head.write(sequence: sequence, hash: hash)
    }

    private func next(_ row: Row) throws -> StoreEntry {
        let number: Int64 = row[0]
        guard number == sequence + 1, let kind = StoreEntry.Kind(rawValue: row[1]) else {
            throw StoreFailure.damaged("entry \(sequence + 1) is missing")
        }
        let entry = StoreEntry(
            following: hash, sequence: number, kind: kind, subject: row[2], time: row[3], detail: row[4],
            key: entryKey)
        guard entry.hash == row[5] as Data else {
            throw StoreFailure.damaged("entry \(number) is not what was written")
        }
        return entry
    }

    private func checkContents(_ database: Database) throws {
        var expected = Dictionary(uniqueKeysWithValues: ledger.payments.map { ($0.id, $0.content) })
        let rows = try Row.fetchCursor(database, sql: "SELECT payment, content FROM content")
        while let row = try rows.next() {
            let id: String = row[0]
            guard let hash = expected.removeValue(forKey: id), Data(SHA256.hash(data: row[1] as Data)).hex == hash
            else { throw StoreFailure.damaged("payment \(id) is not what was stored") }
        }
        guard let missing = expected.keys.min() else { return }
        throw StoreFailure.damaged("payment \(missing) is missing")
    }

    /// Adds entries: all of them, on the disk when this returns, or none.
    ///
    /// - Throws: ``StoreFailure``.
    func write(
        _ drafts: [Draft], at time: Date, adding content: (payment: String, bytes: Data)? = nil,
        removing payments: [String] = []
    ) throws {
        do {
            var (sequence, hash) = (sequence, hash)
            let entries = try drafts.map { draft in
                sequence += 1
                let entry = StoreEntry(
                    following: hash, sequence: sequence, kind: draft.kind, subject: draft.subject,
                    time: Int64(time.timeIntervalSince1970 * 1000),
                    detail: try draft.detail.map { try Self.encoder.encode($0) } ?? Data(), key: entryKey)
                hash = entry.hash
                return entry
            }
            try database.write { database in
                for entry in entries {
                    // What does not fit the entries before it is not written.
                    try ledger.apply(entry)
                    try database.execute(
                        sql: "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)",
                        arguments: [
                            entry.sequence, entry.kind.rawValue, entry.subject, entry.time, entry.detail, entry.hash,
                        ])
                }
                if let content {
                    try database.execute(
                        sql: "INSERT INTO content VALUES (?, ?)", arguments: [content.payment, content.bytes])
                }
                for payment in payments {
                    try database.execute(sql: "DELETE FROM content WHERE payment = ?", arguments: [payment])
                }
            }
            (self.sequence, self.hash) = (sequence, hash)
        } catch {
            hasFailed = true
            let failure = StoreFailure(error)
            logger.error("store: \(failure)")
            throw failure
        }
        do {
            try head.write(sequence: sequence, hash: hash)
        } catch {
            // It lags behind, as after a power failure.
            logger.warning("store: \(error)")
        }
    }

    func contents(of payments: some Collection<StoreLedger.Payment>) throws -> [StoredPaymentCardReadResult] {
        do {
            return try database.read { database in
                try payments.map { payment in
                    let bytes = try Data.fetchOne(
                        database, sql: "SELECT content FROM content WHERE payment = ?", arguments: [payment.id])
                    guard let bytes, Data(SHA256.hash(data: bytes)).hex == payment.content else {
                        throw StoreFailure.damaged("payment \(payment.id) is not what was stored")
                    }
                    let content = try JSONDecoder().decode(StoredContent.self, from: bytes)
                    return StoredPaymentCardReadResult(
                        id: content.id, paymentCardData: content.paymentCardData,
                        generalCardData: content.generalCardData, signature: content.signature)
                }
            }
        } catch {
            let failure = StoreFailure(error)
            logger.error("store: \(failure)")
            throw failure
        }
    }

    /// Whether there is an entry of this kind on `subject`.
    func has(_ kind: StoreEntry.Kind, _ subject: String) throws -> Bool {
        do {
            return try database.read { database in
                try Bool.fetchOne(
                    database, sql: "SELECT EXISTS (SELECT * FROM entry WHERE subject = ? AND kind = ?)",
                    arguments: [subject, kind.rawValue]) ?? false
            }
        } catch {
            throw StoreFailure(error)
        }
    }

    /// In DER and Base64.
    func sign(_ bytes: Data) throws -> String {
        try key.signing.signature(for: bytes).derRepresentation.base64EncodedString()
    }
}
