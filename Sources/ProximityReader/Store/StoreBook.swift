import CardEncryption
import ContactlessMetrics
import Crypto
import Foundation
import GRDB
import GRDBSQLite
import Glibc
import Logging
import SmartCard
import Waiting

/// The open store: the database, the head, the keys, and the state that the entries produce.  For one thread at a
/// time.
final class StoreBook {
    /// An entry to be written.
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

        /// Creates the entry of a stored payment.
        init(_ payment: String, _ stored: StoreDetail.Stored) {
            kind = .stored
            subject = payment
            detail = { stored.fields }
            self.stored = stored
        }
    }

    /// The state that the entries produce, and the position of the next one.
    private struct State {
        var ledger = StoreLedger()
        var sequence: Int64 = 0
        var hash = StoreEntry.origin
    }

    private var state = State()
    var ledger: StoreLedger { state.ledger }
    /// The number of the last entry.
    var sequence: Int64 { state.sequence }
    /// The last entry at the time of opening.
    private(set) var found: (sequence: Int64, kind: StoreEntry.Kind) = (0, .opened)
    /// True if a write has failed: nothing is written until the store has been read anew.
    private(set) var hasFailed = false
    /// The key of the hashes by which the store knows cards.
    let cardKey: SymmetricKey
    /// The device's keys; nil when the store is closed.
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

    /// Opens the store in `folder` and checks all of it, or creates a store.
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
            // The order of creation: head, database, key.  Without the key no store has existed.
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
            // A leftover of a program that ended while it wrote the file.
            if !key.isNew { unlink(path("store.head.new")) }
            deviceKey = key
            entryKey = key.derived(for: "swift-contactless store entries")
            detailKey = key.derived(for: "swift-contactless store details")
            cardKey = key.derived(for: "swift-contactless card references")
            head = try StoreHead(path("store.head"), isNew: key.isNew, of: key)
            if key.isNew {
                // SQLite creates its other files with the same mode.
                let descriptor = open(
                    path("store.sqlite"), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
                guard descriptor >= 0 else { throw StoreFailure(errno, path("store.sqlite")) }
                Glibc.close(descriptor)
                try StoreHead.synchronize(folder.path)
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
        // This also brings the head up to date after a power failure or a kill.
        writeHead()
        do { if log.hasRoom { try log.clear(database) } } catch {
            // The store works without it, at a lower speed.
            logger.info("store: the log is not prepared: \(StoreFailure(error))")
        }
        compactIfDue(at: time)
    }

    deinit { close() }

    /// Closes the store for all holders of this value.
    func close() {
        // The statements must be finalized before the connection.
        statements = nil
        do { try database.close() } catch { logger.warning("store: not closed: \(StoreFailure(error))") }
        deviceKey = nil
        hasFailed = true
    }

    /// Wraps the key once everything in the store is verified with it: a key file put in place by somebody else is
    /// never wrapped with the credential.
    private static func wrap(_ key: DeviceKey) {
        guard key.isToBeWrapped else { return }
        do {
            try key.wrap()
            logger.notice("store: its key is wrapped from now on")
        } catch {
            // A full disk, for example: stored payments must still be forwarded.
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
            // The head lags behind, as after a power failure.
            logger.warning("store: \(StoreFailure(error))")
        }
    }

    /// Logs an error, and returns it as a failure.
    static func told(_ error: any Error) -> StoreFailure {
        let failure = StoreFailure(error)
        logger.error("store: \(failure)")
        if let reason = MetricTable.StoreFailureReason(failure) { metrics.storeFailures.add(reason) }
        return failure
    }

    // MARK: Reading

    /// Reads and checks every entry and everything that is stored.
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
    ///   - content: the content of the payment that the last entry stores.
    ///   - payments: the payments that the entries remove.
    ///   - remembered: those of them that were forwarded.
    ///   - outcomes: the outcomes for the application.
    /// - Throws: ``StoreFailure``.
    func write(
        _ drafts: [Draft], at time: Date, adding content: StoredContent? = nil,
        removing payments: [StoreLedger.Payment] = [], remembering remembered: [StoreLedger.Payment] = [],
        deciding outcomes: [ProximityReaderSystem.Ledger.Outcome] = []
    ) throws {
        guard !hasFailed else { throw StoreFailure.system(Int(SQLITE_MISUSE), "a write has failed before") }
        let start = Time.now
        // Look up the rows now: the book may have been compacted since the payments were looked up.
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
        metrics.storeTime.add(since: start)
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

    private func transaction<Result>(_ body: (Database) throws -> Result) throws -> Result {
        let statements = try prepared()
        return try database.writeWithoutTransaction { database in try statements.transaction { try body(database) } }
    }

    private func insert(_ draft: Draft, at time: Date, _ content: StoredContent?, into state: inout State) throws {
        let entry = try entry(draft, at: time, following: (state.sequence, state.hash))
        // An entry that contradicts the earlier ones is not written.
        try state.ledger.apply(entry, stored: draft.stored)
        try insert(entry, content)
        (state.sequence, state.hash) = (entry.sequence, entry.hash)
    }

    private func entry(
        _ draft: Draft, at time: Date, following last: (sequence: Int64, hash: Data)
    ) throws -> StoreEntry {
        StoreEntry(
            following: last.hash, sequence: last.sequence + 1, kind: draft.kind, subject: draft.subject,
            time: Int64(time.timeIntervalSince1970 * 1000), detail: try draft.detail(), key: entryKey)
    }

    private func insert(_ entry: StoreEntry, _ content: StoredContent?) throws {
        try prepared().insert(
            entry, detail: sealed(entry.detail, as: entry.sequence), content.map { try sealed($0, as: entry.sequence) })
    }

    /// Seals the detail of an entry.  Its kind, time and subject stay in the clear.
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

    /// Returns the signature: the two numbers of ECDSA.
    func sign(_ digest: SHA256.Digest) throws -> P256.Signing.ECDSASignature {
        try key().signer.sign(digest)
    }

    // MARK: Compacting

    /// Compacts the book when due.  The cost is spread over the entries and payments that have gone, and so does not
    /// grow with the store's history.
    private func compactIfDue(at time: Date) {
        let count = ledger.payments.count
        guard deviceKey?.isReplacing == true || ledger.removed * 2 > count || ledger.entries > 256 + 4 * count else {
            return
        }
        do {
            try compact(at: time)
        } catch {
            // The book continues unchanged or compacted, in the same way on the disk and here.
            let failure = StoreFailure(error)
            logger.warning("store: not compacted: \(failure)")
            // The log keeps the room that was written in vain, which forwarding then lacks.
            if case .full = failure { try? log.clear(database) }
        }
    }

    /// Replaces the book's entries with a checkpoint of their state, and replaces the key that sealed the payments'
    /// keys.  Remains of deleted payments on the disk can then no longer be opened.
    private func compact(at time: Date) throws {
        let key = try key()
        if !key.isReplacing { try key.replaceSealingKey() }
        // The state changes once this has succeeded, in place: a copy would take the memory of all stored payments again.
        let (checkpoint, last) = try transaction { database in
            let draft = Draft(.checkpoint, detail: ledger.checkpoint(after: state.hash, at: time))
            let checkpoint = try entry(draft, at: time, following: (sequence, state.hash))
            try insert(checkpoint, nil)
            var last = checkpoint
            for payment in ledger.payments {
                let draft = Draft(.carried, payment.id, detail: payment.carried)
                last = try entry(draft, at: time, following: (last.sequence, last.hash))
                try insert(last, try content(of: payment, database))
            }
            try database.execute(sql: "DELETE FROM entry WHERE sequence < ?", arguments: [checkpoint.sequence])
            let limit = Int64((time.timeIntervalSince1970 - Self.memory) * 1000)
            try database.execute(sql: "DELETE FROM past WHERE time < ?", arguments: [limit])
            return (checkpoint, last)
        }
        state.ledger.carry(past: checkpoint, to: last)
        (state.sequence, state.hash) = (last.sequence, last.hash)
        writeHead()
        try key.giveUpOldSealingKeys()
        try shrink()
    }

    /// Removes deleted data from the log, and frees its space.
    private func shrink() throws {
        try database.writeWithoutTransaction { database in
            let pages = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
            let free = try Int.fetchOne(database, sql: "PRAGMA freelist_count") ?? 0
            if free > 256, free * 2 > pages { try database.execute(sql: "VACUUM") }
        }
        try log.clear(database)
    }
}
