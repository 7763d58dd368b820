import CardEncryption
import Crypto
import Foundation
import GRDB
import Glibc
import Logging
import SmartCard

/// The open store: database, head and keys, and what the entries come to.  For one thread at a time.
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
    /// What cards are known by.
    let cardKey: SymmetricKey
    private let key: DeviceKey
    private let entryKey: SymmetricKey
    private let detailKey: SymmetricKey
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
            // Made in this order: head, database, key.  Without the key there never was a store.
            key = try DeviceKey(KeyFile(path("store.key"), wrappedBy: wrapping)) {
                !has("store.key") && (StoreHead.isOfEmptyBook(path("store.head")) ?? !has("store.sqlite"))
            }
            if key.isNew {
                for name in ["store.sqlite", "store.sqlite-wal", "store.head"] { unlink(path(name)) }
            } else {
                for name in ["store.head", "store.sqlite"] where !has(name) {
                    throw StoreFailure.damaged("\(name) is missing")
                }
            }
            entryKey = key.derived(for: "swift-contactless store entries")
            detailKey = key.derived(for: "swift-contactless store details")
            cardKey = key.derived(for: "swift-contactless card references")
            head = try StoreHead(
                path("store.head"), isNew: key.isNew, key: key.derived(for: "swift-contactless store head"))
            if key.isNew {
                // Those that SQLite makes beside it have its mode.
                let descriptor = open(
                    path("store.sqlite"), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
                guard descriptor >= 0 else { throw StoreFailure(errno, path("store.sqlite")) }
                close(descriptor)
                try StoreHead.synchronise(folder.path)
            }
            database = try DatabaseQueue(path: path("store.sqlite"), configuration: Self.configuration)
            if key.isNew {
                try makeTables()
                try add([Draft(.opened, detail: try DeviceCertificates.make(for: key))], at: time) { _ in }
                try key.save()
            } else {
                try checkTables()
                try load()
            }
            // Also after a power failure, or where the program was killed.
            try head.write(sequence: sequence, hash: hash)
        } catch {
            throw Self.told(error)
        }
        compactIfDue(at: time)
    }

    /// Logs it.
    private static func told(_ error: any Error) -> StoreFailure {
        let failure = StoreFailure(error)
        logger.error("store: \(failure)")
        return failure
    }

    private static var configuration: GRDB.Configuration {
        var configuration = GRDB.Configuration()
        configuration.prepareDatabase { database in
            // No other process has it, so that the index of the write-ahead log needs no file.
            try database.execute(sql: "PRAGMA locking_mode = EXCLUSIVE")
            guard try String.fetchOne(database, sql: "PRAGMA journal_mode = WAL") == "wal" else {
                throw StoreFailure.notWritable("its disk takes no write-ahead log")
            }
            try database.execute(sql: "PRAGMA synchronous = FULL")
            try database.execute(sql: "PRAGMA secure_delete = ON")
            // What is in the file is not trusted: sqlite.org/security.html.
            try database.execute(sql: "PRAGMA trusted_schema = OFF")
            try database.execute(sql: "PRAGMA cell_size_check = ON")
        }
        return configuration
    }

    // MARK: Format

    /// In `PRAGMA user_version`.
    private static let version = 2

    private static let tables = [
        """
        CREATE TABLE entry (
            sequence INTEGER PRIMARY KEY, kind TEXT NOT NULL, subject TEXT NOT NULL, time INTEGER NOT NULL,
            detail BLOB NOT NULL, hash BLOB NOT NULL) STRICT
        """,
        "CREATE INDEX entry_checkpoint ON entry (sequence) WHERE kind = 'checkpoint'",
        "CREATE TABLE content (number INTEGER PRIMARY KEY, key BLOB NOT NULL, content BLOB NOT NULL) STRICT",
        """
        CREATE TABLE past (
            number INTEGER PRIMARY KEY, payment TEXT NOT NULL, time INTEGER NOT NULL, card TEXT, detail BLOB NOT NULL)
            STRICT
        """,
        "CREATE INDEX past_payment ON past (payment)",
        "CREATE INDEX past_card ON past (card, time) WHERE card IS NOT NULL",
        """
        CREATE TRIGGER entry_stays BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'entries are not changed'); END
        """,
        // A checkpoint has what they came to.
        """
        CREATE TRIGGER entry_remains BEFORE DELETE ON entry
        WHEN OLD.sequence >= ifnull((SELECT max(sequence) FROM entry WHERE kind = 'checkpoint'), 0)
        BEGIN SELECT RAISE(ABORT, 'entries are not deleted'); END
        """,
        """
        CREATE TRIGGER content_stays BEFORE UPDATE OF number, content ON content
        BEGIN SELECT RAISE(ABORT, 'what is stored is not changed'); END
        """,
        // The last entry says why.
        """
        CREATE TRIGGER content_remains BEFORE DELETE ON content
        WHEN (SELECT kind FROM entry ORDER BY sequence DESC LIMIT 1) NOT IN ('withdrawn', 'resolved')
        BEGIN SELECT RAISE(ABORT, 'what is stored is not deleted'); END
        """,
        """
        CREATE TRIGGER past_stays BEFORE UPDATE ON past BEGIN SELECT RAISE(ABORT, 'what was is not changed'); END
        """,
    ]

    private func makeTables() throws {
        try database.write { database in
            for statement in Self.tables { try database.execute(sql: statement) }
            try database.execute(sql: "PRAGMA user_version = \(Self.version)")
        }
    }

    private func checkTables() throws {
        try database.read { database in
            let version = try Int.fetchOne(database, sql: "PRAGMA user_version") ?? 0
            guard version <= Self.version else { throw StoreFailure.newer }
            guard version == Self.version || version == 0 else { throw StoreFailure.older }
            let found = try String.fetchAll(
                database, sql: "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
            guard found == Self.tables else { throw StoreFailure.damaged("its tables are not as they were made") }
        }
    }

    // MARK: Reading

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
            guard sequence > 0 else { throw StoreFailure.damaged("it is empty") }
            try checkContents(database)
        }
    }

    private func next(_ row: Row) throws -> StoreEntry {
        let number: Int64 = row[0]
        guard let kind = StoreEntry.Kind(rawValue: row[1]),
            number == sequence + 1 || kind == .checkpoint && sequence == 0
        else { throw StoreFailure.damaged("entry \(sequence + 1) is missing") }
        let detail = try opened(row[4], as: number)
        if kind == .checkpoint {
            hash = (try? JSONDecoder().decode(StoreDetail.Checkpoint.self, from: detail))?.follows ?? hash
        }
        let entry = StoreEntry(
            following: hash, sequence: number, kind: kind, subject: row[2], time: row[3], detail: detail, key: entryKey)
        guard entry.hash == row[5] as Data else {
            throw StoreFailure.damaged("entry \(number) is not what was written")
        }
        return entry
    }

    private func checkContents(_ database: Database) throws {
        let rows = try Row.fetchCursor(database, sql: "SELECT number, key, content FROM content ORDER BY number")
        var payments = ledger.payments.makeIterator()
        while let row = try rows.next() {
            let number: Int64 = row[0]
            guard let payment = payments.next(), payment.number <= number else {
                throw StoreFailure.damaged("content \(number) is of no payment")
            }
            guard payment.number == number else { throw StoreFailure.damaged("payment \(payment.id) is missing") }
            _ = try content(row, of: payment)
        }
        guard let missing = payments.next() else { return }
        throw StoreFailure.damaged("payment \(missing.id) is missing")
    }

    func contents(of payments: [StoreLedger.Payment]) throws -> [StoredPaymentCardReadResult] {
        do {
            return try database.read { database in
                let statement = try database.makeStatement(
                    sql: "SELECT number, key, content FROM content WHERE number = ?")
                return try payments.map { payment in
                    guard let row = try Row.fetchOne(statement, arguments: [payment.number]) else {
                        throw StoreFailure.damaged("payment \(payment.id) is missing")
                    }
                    return try content(row, of: payment)
                }
            }
        } catch {
            throw Self.told(error)
        }
    }

    private func content(_ row: Row, of payment: StoreLedger.Payment) throws -> StoredPaymentCardReadResult {
        do {
            let result = try Self.content(row, key)
            guard result.id == payment.id, PaymentHash(SHA256.hash(data: result.canonicalForm)) == payment.hash else {
                throw CryptoKitError.authenticationFailure
            }
            return result
        } catch {
            throw StoreFailure.damaged("payment \(payment.id) is not what was stored")
        }
    }

    private static func content(_ row: Row, _ key: DeviceKey) throws -> StoredPaymentCardReadResult {
        let name = name(row[0])
        let bytes = try AES.GCM.open(
            AES.GCM.SealedBox(combined: row[2] as Data), using: key.open(row[1], as: name), authenticating: name)
        let content = try JSONDecoder().decode(StoredContent.self, from: bytes)
        return StoredPaymentCardReadResult(
            id: content.id, paymentCardData: content.paymentCardData, generalCardData: content.generalCardData,
            signature: content.signature)
    }

    private static func name(_ number: Int64) -> Data { withUnsafeBytes(of: number.bigEndian) { Data($0) } }

    /// The payments of a store that cannot be opened, as far as they can be read and have this device's signature, the
    /// oldest first.  The store stays as it is.
    ///
    /// - Throws: ``StoreFailure``, if there is no key or no database.
    static func salvage(_ folder: URL, wrapping: WrappingKey?) throws -> [StoredPaymentCardReadResult] {
        let copy = FileManager.default.temporaryDirectory.appending(path: "store-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: copy) }
        do {
            let key = try DeviceKey(KeyFile(folder.appending(path: "store.key").path, wrappedBy: wrapping)) { false }
            try FileManager.default.createDirectory(
                at: copy, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            for name in ["store.sqlite", "store.sqlite-wal"] {
                let file = folder.appending(path: name)
                guard name == "store.sqlite" || FileManager.default.fileExists(atPath: file.path) else { continue }
                try FileManager.default.copyItem(at: file, to: copy.appending(path: name))
            }
            let database = try DatabaseQueue(path: copy.appending(path: "store.sqlite").path)
            var payments: [Int64: StoredPaymentCardReadResult] = [:]
            // A page that cannot be read ends a search: so from both sides.
            for order in ["ASC", "DESC"] {
                do {
                    try database.read { database in
                        let rows = try Row.fetchCursor(
                            database, sql: "SELECT number, key, content FROM content ORDER BY number \(order)")
                        while let row = try rows.next() {
                            guard let payment = try? content(row, key), payment.isSigned(by: key) else { continue }
                            payments[row[0]] = payment
                        }
                    }
                } catch {
                    logger.warning("store: \(StoreFailure(error))")
                }
            }
            return payments.sorted { $0.key < $1.key }.map(\.value)
        } catch {
            throw told(error)
        }
    }

    // MARK: Writing

    /// Adds entries: all of them, on the disk when this returns, or none.
    ///
    /// - Parameters:
    ///   - content: of the payment that the last entry stores.
    ///   - payments: those that the entries remove.
    ///   - remembered: of these, those that were forwarded.
    /// - Throws: ``StoreFailure``.
    func write(
        _ drafts: [Draft], at time: Date, adding content: StoredPaymentCardReadResult? = nil,
        removing payments: [StoreLedger.Payment] = [], remembering remembered: [StoreLedger.Payment] = []
    ) throws {
        do {
            try add(drafts, at: time) { database in
                if let content { try insert(content, database) }
                let delete = try database.cachedStatement(sql: "DELETE FROM content WHERE number = ?")
                for payment in payments { try delete.execute(arguments: [payment.number]) }
                for payment in remembered { try remember(payment, at: time, database) }
            }
        } catch {
            hasFailed = true
            throw Self.told(error)
        }
        do {
            try head.write(sequence: sequence, hash: hash)
        } catch {
            // It lags behind, as after a power failure.
            logger.warning("store: \(error)")
        }
        if !payments.isEmpty { compactIfDue(at: time) }
    }

    private func add(_ drafts: [Draft], at time: Date, _ more: (Database) throws -> Void) throws {
        try database.write { database in
            for draft in drafts { try insert(draft, at: time, database) }
            try more(database)
        }
    }

    private func insert(_ draft: Draft, at time: Date, _ database: Database) throws {
        let entry = StoreEntry(
            following: hash, sequence: sequence + 1, kind: draft.kind, subject: draft.subject,
            time: Int64(time.timeIntervalSince1970 * 1000),
            detail: try draft.detail.map { try Self.encoder.encode($0) } ?? Data(), key: entryKey)
        // What does not fit the entries before it is not written.
        try ledger.apply(entry)
        try database.cachedStatement(sql: "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)").execute(arguments: [
            entry.sequence, entry.kind.rawValue, entry.subject, entry.time,
            try sealed(entry.detail, as: entry.sequence),
            entry.hash,
        ])
        (sequence, hash) = (entry.sequence, entry.hash)
    }

    private func insert(_ content: StoredPaymentCardReadResult, _ database: Database) throws {
        let recordKey = SymmetricKey(size: .bits256)
        let bytes = try Self.encoder.encode(
            StoredContent(
                id: content.id, paymentCardData: content.paymentCardData, generalCardData: content.generalCardData,
                signature: content.signature))
        let box = try AES.GCM.seal(bytes, using: recordKey, authenticating: Self.name(sequence))
        try database.cachedStatement(sql: "INSERT INTO content VALUES (?, ?, ?)").execute(arguments: [
            sequence, try key.seal(recordKey, as: Self.name(sequence)), box.combined,
        ])
    }

    /// What an entry tells beyond its kind, its time and its subject is nobody else's.
    private func sealed(_ detail: Data, as number: Int64) throws -> Data {
        try AES.GCM.seal(detail, using: detailKey, authenticating: Self.name(number)).combined ?? Data()
    }

    private func opened(_ detail: Data, as number: Int64) throws -> Data {
        do {
            return try AES.GCM.open(
                AES.GCM.SealedBox(combined: detail), using: detailKey, authenticating: Self.name(number))
        } catch {
            throw StoreFailure.damaged("entry \(number) is not what was written")
        }
    }

    /// In DER and Base64.
    func sign(_ bytes: Data) throws -> String {
        try key.signing.signature(for: bytes).derRepresentation.base64EncodedString()
    }

    // MARK: The past

    /// How long payments that were forwarded are remembered.
    private static let memory: TimeInterval = 30 * 24 * 3600

    private func remember(_ payment: StoreLedger.Payment, at time: Date, _ database: Database) throws {
        let detail = try Self.encoder.encode(ProximityReaderSystem.Ledger.Payment(resolved: payment))
        let (time, card) = (Int64(time.timeIntervalSince1970 * 1000), payment.card?.reference)
        let box = try AES.GCM.seal(
            detail, using: detailKey, authenticating: Self.pastName(payment.id, time, card))
        try database.cachedStatement(sql: "INSERT INTO past VALUES (?, ?, ?, ?, ?)").execute(arguments: [
            payment.number, payment.id, time, card, box.combined,
        ])
    }

    private static func pastName(_ payment: String, _ time: Int64, _ card: String?) -> Data {
        Data("\(payment)\n\(time)\n\(card ?? "")".utf8)
    }

    /// Whether a payment was forwarded.
    func remembers(_ payment: String) throws -> Bool {
        try reading {
            try Bool.fetchOne($0, sql: "SELECT 1 FROM past WHERE payment = ?", arguments: [payment]) ?? false
        }
    }

    /// The payments that were forwarded, in the order in which they were stored.
    ///
    /// - Parameter card: nil: all.
    func past(of card: StoredCard? = nil) throws -> [ProximityReaderSystem.Ledger.Payment] {
        try reading { database in
            let rows = try Row.fetchCursor(
                database,
                sql:
                    "SELECT payment, time, card, detail FROM past \(card == nil ? "" : "WHERE card = ? ")ORDER BY number",
                arguments: card.map { [$0.reference] } ?? [])
            var payments: [ProximityReaderSystem.Ledger.Payment] = []
            while let row = try rows.next() {
                do {
                    let bytes = try AES.GCM.open(
                        AES.GCM.SealedBox(combined: row[3] as Data), using: detailKey,
                        authenticating: Self.pastName(row[0], row[1], row[2]))
                    payments.append(try JSONDecoder().decode(ProximityReaderSystem.Ledger.Payment.self, from: bytes))
                } catch {
                    throw StoreFailure.damaged(
                        "what is remembered of payment \(row[0] as String) is not what was written")
                }
            }
            return payments
        }
    }

    private func reading<Value>(_ body: (Database) throws -> Value) throws -> Value {
        do {
            return try database.read(body)
        } catch {
            throw Self.told(error)
        }
    }

    // MARK: Compacting

    /// The cost is shared by the entries and payments that have gone: it does not depend on how many there ever were.
    private func compactIfDue(at time: Date) {
        let count = ledger.payments.count
        guard key.isReplacing || ledger.removed * 2 > count || ledger.entries > 256 + 4 * count else { return }
        do {
            try compact(at: time)
        } catch {
            // Nothing has gone that is not there any more, but what is in memory may be ahead of it.
            hasFailed = true
            logger.warning("store: not compacted: \(StoreFailure(error))")
        }
    }

    /// Begins the book anew with what it has come to, and has the key replaced under which the keys of payments are that
    /// are no more: what is left of them on the disk, nobody can open.
    private func compact(at time: Date) throws {
        if !key.isReplacing { try key.replaceSealingKey() }
        try database.write { database in
            let drafts = ledger.carried(after: hash, at: time)
            let first = sequence + 1
            ledger = StoreLedger()
            for draft in drafts { try insert(draft, at: time, database) }
            try database.execute(sql: "DELETE FROM entry WHERE sequence < ?", arguments: [first])
            let update = try database.makeStatement(sql: "UPDATE content SET key = ? WHERE number = ?")
            let keys = try Row.fetchCursor(database, sql: "SELECT number, key FROM content")
            while let row = try keys.next() {
                let name = Self.name(row[0])
                try update.execute(arguments: [try key.seal(key.open(row[1], as: name), as: name), row[0] as Int64])
            }
            let limit = Int64((time.timeIntervalSince1970 - Self.memory) * 1000)
            try database.execute(sql: "DELETE FROM past WHERE time < ?", arguments: [limit])
        }
        try head.write(sequence: sequence, hash: hash)
        try key.giveUpOldSealingKeys()
        try shrink()
    }

    /// Nothing that is deleted stays in the log, nor the room that it took.
    private func shrink() throws {
        try database.writeWithoutTransaction { database in
            let pages = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
            let free = try Int.fetchOne(database, sql: "PRAGMA freelist_count") ?? 0
            if free > 256, free * 2 > pages { try database.execute(sql: "VACUUM") }
            try database.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)")
        }
    }
}
