import CardEncryption
import Crypto
import Foundation
import GRDB
import GRDBSQLite
import Glibc
import Logging
import SmartCard

/// The open store: database, head and keys, and what the entries come to.  For one thread at a time.
final class StoreBook {
    /// An entry to be.
    struct Draft {
        let kind: StoreEntry.Kind
        let subject: String
        fileprivate let detail: () throws -> Data
        fileprivate let stored: StoreDetail.Stored?

        init(_ kind: StoreEntry.Kind, _ subject: String = "") {
            self.kind = kind
            self.subject = subject
            detail = { Data() }
            stored = nil
        }

        init(_ kind: StoreEntry.Kind, _ subject: String = "", detail: some Encodable) {
            self.kind = kind
            self.subject = subject
            self.detail = { try encoder.encode(detail) }
            stored = nil
        }

        /// Of a payment that is stored.
        init(_ payment: String, _ stored: StoreDetail.Stored) {
            kind = .stored
            subject = payment
            detail = { stored.fields }
            self.stored = stored
        }
    }

    /// What the entries come to, and where the next one goes on.
    private struct State {
        var ledger = StoreLedger()
        var sequence: Int64 = 0
        var hash = StoreEntry.origin
    }

    private var state = State()
    var ledger: StoreLedger { state.ledger }
    /// The last entry's number.
    var sequence: Int64 { state.sequence }
    /// The last entry that was there when the store was opened.
    private(set) var found: (sequence: Int64, kind: StoreEntry.Kind) = (0, .opened)
    /// A write has failed: what is on the disk has to be read anew, and until then nothing is written.
    private(set) var hasFailed = false
    /// What cards are known by.
    let cardKey: SymmetricKey
    /// nil when the store is closed.
    private var deviceKey: DeviceKey?
    let detailKey: SymmetricKey
    private let entryKey: SymmetricKey
    private let head: StoreHead
    private let log: StoreLog
    let database: DatabaseQueue
    private var statements: StoreStatements?

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
            let key = try DeviceKey(KeyFile(path("store.key"), wrappedBy: wrapping)) {
                !has("store.key") && (StoreHead.isOfEmptyBook(path("store.head")) ?? !has("store.sqlite"))
            }
            if key.isNew {
                for name in ["store.sqlite", "store.sqlite-wal", "store.head"] { unlink(path(name)) }
            } else {
                for name in ["store.head", "store.sqlite"] where !has(name) {
                    throw StoreFailure.damaged("\(name) is missing")
                }
            }
            // Of a program that was ended while it wrote it.
            if !key.isNew { unlink(path("store.head.new")) }
            deviceKey = key
            entryKey = key.derived(for: "swift-contactless store entries")
            detailKey = key.derived(for: "swift-contactless store details")
            cardKey = key.derived(for: "swift-contactless card references")
            head = try StoreHead(path("store.head"), isNew: key.isNew, of: key)
            if key.isNew {
                // Those that SQLite makes beside it have its mode.
                let descriptor = open(
                    path("store.sqlite"), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
                guard descriptor >= 0 else { throw StoreFailure(errno, path("store.sqlite")) }
                Glibc.close(descriptor)
                try StoreHead.synchronise(folder.path)
            }
            log = StoreLog(path: path("store.sqlite-wal"))
            database = try DatabaseQueue(path: path("store.sqlite"), configuration: StoreTables.configuration)
            if key.isNew {
                try StoreTables.make(in: database)
                statements = try database.writeWithoutTransaction { try StoreStatements($0) }
                try add([Draft(.opened, detail: try DeviceCertificates.make(for: key))], at: time)
                try key.save()
            } else {
                try StoreTables.check(in: database)
                statements = try database.writeWithoutTransaction { try StoreStatements($0) }
                try load()
                Self.wrap(key)
            }
        } catch {
            throw Self.told(error)
        }
        // Also after a power failure, or where the program was killed.
        writeHead()
        do { if log.hasRoom { try log.clear(database) } } catch {
            // It works without, and slower.
            logger.info("store: the log is not prepared: \(StoreFailure(error))")
        }
        compactIfDue(at: time)
    }

    deinit { close() }

    /// Lets others have the store, whoever has this value.
    func close() {
        // Before the connection, which they are of.
        statements = nil
        do { try database.close() } catch { logger.warning("store: not closed: \(StoreFailure(error))") }
        deviceKey = nil
        hasFailed = true
    }

    /// Once all that is in the store has been found to be of this key: a file that somebody has put in its place is not
    /// wrapped with the credential.
    private static func wrap(_ key: DeviceKey) {
        guard key.isToBeWrapped else { return }
        do {
            try key.wrap()
            logger.notice("store: its key is wrapped from now on")
        } catch {
            // As on a full disk, where what is stored must be forwarded all the same.
            let reason = "\(error.description); \(error.hint)"
            logger.error("store: its key is still not wrapped, and is when it is opened next: \(reason)")
        }
    }

    func key() throws -> DeviceKey {
        guard let deviceKey else { throw StoreFailure.system(Int(SQLITE_MISUSE), "the store is closed") }
        return deviceKey
    }

    private func writeHead() {
        do {
            try head.write(sequence: sequence, hash: state.hash)
        } catch {
            // It lags behind, as after a power failure.
            logger.warning("store: \(StoreFailure(error))")
        }
    }

    /// Logs it.
    static func told(_ error: any Error) -> StoreFailure {
        let failure = StoreFailure(error)
        logger.error("store: \(failure)")
        return failure
    }

    // MARK: Reading

    /// Reads every entry and all that is stored, and checks it.
    private func load() throws {
        try database.read { database in
            let check = try String.fetchAll(database, sql: "PRAGMA integrity_check(1)")
            guard check == ["ok"] else { throw StoreFailure.damaged("SQLite's integrity check fails") }
            let (headSequence, headHash) = try head.read()
            let rows = try Row.fetchCursor(
                database, sql: "SELECT sequence, kind, subject, time, detail, hash FROM entry ORDER BY sequence")
            if headSequence == 0, headHash != state.hash { throw StoreFailure.damaged("its head is of another book") }
            while let row = try rows.next() {
                let entry = try next(row)
                if entry.sequence == headSequence, entry.hash != headHash {
                    throw StoreFailure.damaged("its head is of another book")
                }
                try state.ledger.apply(entry)
                (state.sequence, state.hash) = (entry.sequence, entry.hash)
                found = (entry.sequence, entry.kind)
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
            let follows = try? JSONDecoder().decode(StoreDetail.Checkpoint.self, from: detail).follows
            state.hash = follows ?? state.hash
        }
        let entry = StoreEntry(
            following: state.hash, sequence: number, kind: kind, subject: row[2], time: row[3], detail: detail,
            key: entryKey)
        guard entry.hash == row[5] as Data else {
            throw StoreFailure.damaged("entry \(number) is not what was written")
        }
        return entry
    }

    // MARK: Writing

    /// Adds entries: all of them, on the disk when this returns, or none.
    ///
    /// - Parameters:
    ///   - content: of the payment that the last entry stores.
    ///   - payments: those that the entries remove.
    ///   - remembered: of these, those that were forwarded.
    ///   - outcomes: what the application is to hear of payments.
    /// - Throws: ``StoreFailure``.
    func write(
        _ drafts: [Draft], at time: Date, adding content: StoredContent? = nil,
        removing payments: [StoreLedger.Payment] = [], remembering remembered: [StoreLedger.Payment] = [],
        deciding outcomes: [ProximityReaderSystem.Ledger.Outcome] = []
    ) throws {
        guard !hasFailed else { throw StoreFailure.system(Int(SQLITE_MISUSE), "a write has failed before") }
        // Where they are now: the book may have been begun anew since they were looked up.
        let places = payments.compactMap { ledger.payments[$0.id]?.entry }
        do {
            guard places.count == payments.count else { throw StoreFailure.damaged("a payment is gone already") }
            try add(drafts, at: time, content) { database in
                for (index, outcome) in outcomes.enumerated() {
                    try add(outcome, as: state.sequence << 20 | Int64(index), database)
                }
                guard !payments.isEmpty else { return }
                let delete = try database.cachedStatement(
                    sql: "UPDATE entry SET content = NULL WHERE sequence = ?")
                for place in places { try delete.execute(arguments: [place]) }
                for payment in remembered { try remember(payment, at: time, database) }
            }
        } catch {
            hasFailed = true
            throw Self.told(error)
        }
        writeHead()
        if !payments.isEmpty { compactIfDue(at: time) }
    }

    private func add(
        _ drafts: [Draft], at time: Date, _ content: StoredContent? = nil,
        _ more: (Database) throws -> Void = { _ in }
    ) throws {
        try transaction { database in
            for (index, draft) in drafts.enumerated() {
                try insert(draft, at: time, index == drafts.count - 1 ? content : nil, into: &state)
            }
            try more(database)
        }
    }

    private func prepared() throws -> StoreStatements {
        guard let statements else { throw StoreFailure.system(Int(SQLITE_MISUSE), "the store is not open") }
        return statements
    }

    private func transaction(_ body: (Database) throws -> Void) throws {
        let statements = try prepared()
        try database.writeWithoutTransaction { database in try statements.transaction { try body(database) } }
    }

    private func insert(
        _ draft: Draft, at time: Date, _ content: StoredContent?, into state: inout State
    ) throws {
        let entry = StoreEntry(
            following: state.hash, sequence: state.sequence + 1, kind: draft.kind, subject: draft.subject,
            time: Int64(time.timeIntervalSince1970 * 1000), detail: try draft.detail(), key: entryKey)
        // What does not fit the entries before it is not written.
        try state.ledger.apply(entry, stored: draft.stored)
        try prepared().insert(
            entry, detail: sealed(entry.detail, as: entry.sequence), content.map { try sealed($0, as: entry.sequence) })
        (state.sequence, state.hash) = (entry.sequence, entry.hash)
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

    /// ECDSA's two numbers.
    func sign(_ digest: SHA256.Digest) throws -> P256.Signing.ECDSASignature {
        try key().signer.sign(digest)
    }

    // MARK: Compacting

    /// The cost is shared by the entries and payments that have gone: it does not depend on how many there ever were.
    private func compactIfDue(at time: Date) {
        let count = ledger.payments.count
        guard deviceKey?.isReplacing == true || ledger.removed * 2 > count || ledger.entries > 256 + 4 * count else {
            return
        }
        do {
            try compact(at: time)
        } catch {
            // The book goes on as it was, or compacted: on the disk and here.
            logger.warning("store: not compacted: \(StoreFailure(error))")
        }
    }

    /// Begins the book anew with what it has come to, and has the key replaced under which the keys of payments are that
    /// are no more: what is left of them on the disk, nobody can open.
    private func compact(at time: Date) throws {
        let key = try key()
        if !key.isReplacing { try key.replaceSealingKey() }
        // Beside the state that there is, which stays where this fails.
        var next = State(sequence: sequence, hash: state.hash)
        try transaction { database in
            let checkpoint = ledger.checkpoint(after: state.hash, at: time)
            try insert(Draft(.checkpoint, detail: checkpoint), at: time, nil, into: &next)
            let first = next.sequence
            for payment in ledger.payments {
                try insert(
                    Draft(.carried, payment.id, detail: payment.carried), at: time,
                    try content(of: payment, database), into: &next)
            }
            try database.execute(sql: "DELETE FROM entry WHERE sequence < ?", arguments: [first])
            let limit = Int64((time.timeIntervalSince1970 - Self.memory) * 1000)
            try database.execute(sql: "DELETE FROM past WHERE time < ?", arguments: [limit])
        }
        state = next
        writeHead()
        try key.giveUpOldSealingKeys()
        try shrink()
    }

    /// Nothing that is deleted stays in the log, nor the room that it took.
    private func shrink() throws {
        try database.writeWithoutTransaction { database in
            let pages = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
            let free = try Int.fetchOne(database, sql: "PRAGMA freelist_count") ?? 0
            if free > 256, free * 2 > pages { try database.execute(sql: "VACUUM") }
        }
        try log.clear(database)
    }
}
