import CoreFoundation
import Crypto
public import Foundation
import Glibc
import Logging
import Synchronization
import Waiting

/// A payment or a refund whose outcome the application does not know, or that has to be reversed.
public struct UnsettledPayment: Hashable, Sendable, Identifiable {
    public enum Kind: String, Codable, Sendable {
        case payment
        case refund
    }

    /// The idempotency key.
    public let id: String
    /// The kind; nil, like the next two properties, for a key to be reversed about which nothing else is known.
    public let kind: Kind?
    /// The amount in the currency's major unit.
    public let amount: Decimal?
    /// The ISO 4217 code of the currency.
    public let currency: String?
    /// The time at which the entry was written, before the payment service was asked.
    public let time: Date

    package init(id: String, kind: Kind?, amount: Decimal?, currency: String?, time: Date = Date()) {
        (self.id, self.kind, self.amount, self.currency, self.time) = (id, kind, amount, currency, time)
    }
}

/// A problem of the payment journal that a person has to look into.
public enum JournalAlarm: Hashable, Sendable {
    /// A payment has to be reversed, and the disk does not record that.  No other payment begins until it does, or
    /// until the payment service has confirmed the reversal; both are retried.
    case reversalNotWritten(UnsettledPayment, reason: String)
    /// A file of the journal's folder is not an entry: there may be an unknown payment to reverse.
    case unreadable(file: String, reason: String)
}

extension JournalAlarm: CustomStringConvertible {
    public var description: String {
        switch self {
        case .reversalNotWritten(let payment, let reason):
            "Payment \(payment.id) has to be taken back, and that cannot be written down: \(reason). Make room on the disk, and leave the program running."
        case .unreadable(let file, let reason):
            "\(file) is no entry of the journal: \(reason). Ask the payment service about the payments of its time, and move it away."
        }
    }
}

/// The journal of payments that are not settled, on the disk before the payment service is asked, without card data.
///
/// The folder has mode 0700, and each payment its own file, locked (flock) by the process that handles the payment.  A
/// lock that can be taken shows that the process has ended.  The name is `KEY.payment`, where KEY is the SHA-256 of
/// the idempotency key.  Each line is a JSON value: first the payment, then its successive states.  The last line
/// counts; a line without its end was never written.
package final class PaymentJournal: Sendable {
    /// The folder; nil keeps the journal in memory, for the life of the process.
    fileprivate let folder: String?
    fileprivate let disk: Disk
    /// A queue for blocking disk calls.
    fileprivate let queue = DispatchQueue(label: "swift-contactless.journal")
    /// Each element is the whole list, so only the last one is buffered.
    private let allAlarms = Multicast<[JournalAlarm]>([], keeping: .newest(1))

    package init(folder: URL?, disk: Disk = Disk()) { (self.folder, self.disk) = (folder?.path, disk) }

    /// The calls that change an entry, replaceable so that a test can make them fail.  Each returns an errno, or 0.
    package struct Disk: Sendable {
        package var write: @Sendable (_ descriptor: Int32, _ bytes: [UInt8], _ offset: Int) -> Int32 = {
            // A complete longer line may exist that the disk did not confirm.
            guard ftruncate($0, off_t($2)) == 0 else { return errno }
            let count = pwrite($0, $1, $1.count, $2)
            guard count == $1.count else { return count < 0 ? errno : ENOSPC }
            return fsync($0) == 0 ? 0 : errno
        }
        package var remove: @Sendable (_ path: String) -> Int32 = { unlink($0) == 0 || errno == ENOENT ? 0 : errno }
        package init() {}
    }

    package struct Failure: Error, CustomStringConvertible {
        package let description: String
        init(_ code: Int32, _ path: String) { description = "\(path): \(String(cString: strerror(code)))" }

        /// Returns the reason of a failure; for a foreign error, its type alone.
        static func reason(_ error: any Error) -> String {
            (error as? Failure)?.description ?? "\(type(of: error))"
        }
    }

    /// The progress of a payment.
    package enum State: Codable, Hashable, Sendable {
        /// The payment service is asked, and the caller has no result: the payment may be reversed.
        case asked
        /// The payment is decided, and the application may now learn of it: it is reversed only at the application's
        /// request.
        case decided(PaymentResult)
        /// The payment is to be reversed, and the payment service has not confirmed the reversal.
        case reversal
        /// Nothing remains to be done.
        case settled
    }

    /// Records a payment, which is on the disk when this returns.
    ///
    /// - Parameter note: the application's data, without card data.
    /// - Throws: ``Failure``; nothing is recorded then.
    package func begin(_ payment: UnsettledPayment, note: Data? = nil) async throws -> OpenPayment {
        let open = OpenPayment(payment, .asked, note: note, in: self)
        try await queue.blocking { try open.create() }
        return open
    }

    /// Returns a payment to reverse about which nothing else is known: it is on the disk after
    /// ``OpenPayment/willReverse()``.
    func reversal(of key: String) -> OpenPayment {
        OpenPayment(
            UnsettledPayment(id: key, kind: nil, amount: nil, currency: nil), .reversal, note: nil, in: self)
    }

    /// Takes over the entries of ended processes, the oldest first.
    ///
    /// Settled entries are removed.  An unreadable one stays, and raises an alarm (``alarms``).
    package func leftovers() async -> [OpenPayment] {
        await queue.blocking { [self] in
            guard let folder else { return [] }
            let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            let found = names.sorted().map { ($0, takeOver("\(folder)/\($0)")) }
            tell(
                found.compactMap { name, found in
                    if case .unreadable(let reason) = found { .unreadable(file: name, reason: reason) } else { nil }
                },
                insteadOf: { if case .unreadable = $0 { true } else { false } })
            return found.compactMap { if case .payment(let open) = $0.1 { open } else { nil } }
                .sorted { $0.payment.time < $1.payment.time }
        }
    }

    private enum Found {
        case payment(OpenPayment)
        /// The entry is settled, or another process has it.
        case nothing
        case unreadable(String)
    }

    private func takeOver(_ path: String) -> Found {
        let descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            return errno == ENOENT ? .nothing : .unreadable(String(cString: strerror(errno)))
        }
        var (here, there) = (stat(), stat())
        // The previous holder of the lock may have removed the file.
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, fstat(descriptor, &here) == 0, lstat(path, &there) == 0,
            here.st_ino == there.st_ino
        else {
            close(descriptor)
            return .nothing
        }
        guard !path.hasSuffix(".new") else {
            // The file never got its name: the payment service was not asked.
            _ = disk.remove(path)
            Self.unlock(descriptor)
            return .nothing
        }
        guard path.hasSuffix(".payment") else {
            Self.unlock(descriptor)
            return .unreadable("its name is not one of the journal's")
        }
        let entry: (Record, [State], length: Int)
        do { entry = try Self.read(descriptor, size: here.st_size) } catch {
            Self.unlock(descriptor)
            return .unreadable(error.description)
        }
        guard self.path(entry.0.key, "payment") == path else {
            Self.unlock(descriptor)
            return .unreadable("its name is that of another payment")
        }
        let open = OpenPayment(
            entry.0.payment, entry.1.last ?? .asked, note: entry.0.note, in: self,
            file: .init(descriptor: descriptor, length: entry.length), isLeftover: true)
        guard entry.1.last == .settled else { return .payment(open) }
        _ = disk.remove(path)
        return .nothing
    }

    /// Ends the lock at once: a child process that has forked and not yet executed its program has the descriptor, too.
    fileprivate static func unlock(_ descriptor: Int32) {
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    /// The maximum length of an entry.
    private static let longest = 1 << 16

    private static func read(_ descriptor: Int32, size: Int) throws(Damage) -> (Record, [State], length: Int) {
        guard size <= longest else { throw Damage(description: "it is longer than an entry can be") }
        var bytes = [UInt8](repeating: 0, count: size)
        guard pread(descriptor, &bytes, size, 0) == size else { throw Damage(description: "it cannot be read") }
        // A line without an end was being written.
        guard let end = bytes.lastIndex(of: 0x0A) else { throw Damage(description: "it is cut off") }
        let lines = bytes[...end].split(separator: 0x0A, omittingEmptySubsequences: false).dropLast()
        guard let first = lines.first, let record = try? JSONDecoder().decode(Record.self, from: Data(first)) else {
            throw Damage(description: "its first line is no payment")
        }
        let states = lines.dropFirst().compactMap { try? JSONDecoder().decode(State.self, from: Data($0)) }
        guard states.count == lines.count - 1 else {
            throw Damage(description: "a line of it is no state of a payment")
        }
        return (record, states, end + 1)
    }

    private struct Damage: Error, CustomStringConvertible { let description: String }

    // MARK: Alarms

    /// The alarms that nobody has looked into yet.
    package var alarms: [JournalAlarm] { allAlarms.latest ?? [] }

    /// All alarms: the present list first, then each change; the stream buffers the last list.
    package var alarmUpdates: AsyncStream<[JournalAlarm]> { allAlarms.stream() }

    fileprivate func raise(_ alarm: JournalAlarm?, of payment: UnsettledPayment) {
        tell(alarm.map { [$0] } ?? []) { if case .reversalNotWritten(payment, _) = $0 { true } else { false } }
    }

    private func tell(_ new: [JournalAlarm], insteadOf isOld: (JournalAlarm) -> Bool) {
        var news: [JournalAlarm] = []
        allAlarms.update { before in
            let before = before ?? []
            let now = before.filter { !isOld($0) } + new
            news = new.filter { !before.contains($0) }
            return now == before ? nil : now
        }
        for alarm in news { logger.critical("\(alarm)") }
    }

    // MARK: Files

    fileprivate func path(_ key: String, _ suffix: String) -> String {
        let name = SHA256.hash(data: Data(key.utf8)).map { String(format: "%02x", $0) }.joined()
        return "\(folder ?? "")/\(name).\(suffix)"
    }

    fileprivate func makeFolder(_ folder: String) throws {
        let parent = URL(filePath: folder).deletingLastPathComponent().path
        if mkdir(folder, 0o700) == 0 {
            try synchronize(parent)
        } else if errno == ENOENT {
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            try synchronize(parent)
        }
    }

    /// Gives a file its name, unless an unsettled entry has it.
    fileprivate func rename(_ new: String, _ path: String) throws {
        if link(new, path) != 0 {
            guard errno == EEXIST else { throw Failure(errno, path) }
            _ = takeOver(path)
            guard link(new, path) == 0 else { throw Failure(errno, path) }
        }
        unlink(new)
    }

    /// Flushes the directory entries of a folder to the disk.
    fileprivate func synchronize(_ folder: String) throws {
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure(errno, folder) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw Failure(errno, folder) }
    }

    /// An entry as stored in the file.
    fileprivate struct Record: Codable {
        let key: String
        let kind: UnsettledPayment.Kind?
        let amount: String?
        let currency: String?
        let time: Date
        let note: Data?

        init(_ payment: UnsettledPayment, note: Data?) {
            (key, kind, currency, time) = (payment.id, payment.kind, payment.currency, payment.time)
            amount = payment.amount?.description
            self.note = note
        }

        var payment: UnsettledPayment {
            UnsettledPayment(
                id: key, kind: kind, amount: amount.flatMap { Decimal(string: $0, locale: Locale(identifier: "C")) },
                currency: currency, time: time)
        }
    }
}

/// A payment of the journal that this process handles.  If released before it is settled, it becomes a leftover.
package final class OpenPayment: Sendable {
    package let payment: UnsettledPayment
    package let note: Data?
    /// True if an earlier run of the program requested the payment.
    package let isLeftover: Bool
    private let journal: PaymentJournal
    /// The state, changed only on the journal's queue, one call after the other, and read from anywhere.  The mutex is
    /// never held during a disk call.
    private let stand: Mutex<Stand>
    /// The file, used only on the journal's queue.
    private let file: Mutex<File?>

    struct File {
        let descriptor: Int32
        /// The length up to the end of the last line.
        var length: Int
    }

    private struct Stand {
        var state: PaymentJournal.State {
            didSet { if state == .reversal { isReversal = true } }
        }
        var isReversal: Bool
        /// The state on the disk; nil without a file.
        var written: PaymentJournal.State?
    }

    fileprivate init(
        _ payment: UnsettledPayment, _ state: PaymentJournal.State, note: Data?, in journal: PaymentJournal,
        file: File? = nil, isLeftover: Bool = false
    ) {
        (self.payment, self.note, self.journal, self.isLeftover) = (payment, note, journal, isLeftover)
        stand = Mutex(Stand(state: state, isReversal: state == .reversal, written: file == nil ? nil : state))
        self.file = Mutex(file)
    }

    deinit { letGo() }

    private func letGo() { if let file = file.withLock({ $0.take() }) { PaymentJournal.unlock(file.descriptor) } }

    package var state: PaymentJournal.State { stand.withLock { $0.state } }
    /// True if the payment has to be reversed, or was.
    package var isReversal: Bool { stand.withLock { $0.isReversal } }
    /// True if the payment has to be reversed and the disk does not record that.
    package var isUnwritten: Bool { stand.withLock { $0.state == .reversal && $0.written != .reversal } }

    /// Records the decision, which is on the disk when this returns, and may then be delivered.
    ///
    /// - Throws: ``PaymentJournal/Failure``; the entry is then unchanged.  ``TapToPayError/takenBack``.
    package func decide(_ result: PaymentResult) async throws {
        try await journal.queue.blocking { [self] in
            guard !isReversal else { throw TapToPayError.takenBack }
            try write(.decided(result))
            stand.withLock { $0.state = .decided(result) }
        }
    }

    /// Records that the payment has to be reversed.  That holds even if this throws; it is on the disk when this
    /// returns.
    ///
    /// - Throws: ``PaymentJournal/Failure``; then ``isUnwritten`` is true, and ``PaymentJournal/alarms`` contains the
    ///   payment.
    package func willReverse() async throws {
        do {
            try await journal.queue.blocking { [self] in
                guard state != .settled else { return }
                stand.withLock { $0.state = .reversal }
                guard isUnwritten else { return }
                if file.withLock({ $0 == nil }) { try create() } else { try write(.reversal) }
            }
            journal.raise(nil, of: payment)
        } catch {
            journal.raise(.reversalNotWritten(payment, reason: PaymentJournal.Failure.reason(error)), of: payment)
            throw error
        }
    }

    /// Records that the payment is not reversed after all, by the answer of the service that was asked for it.
    ///
    /// - Throws: ``PaymentJournal/Failure``; the entry is then unchanged.
    package func keep() async throws {
        try await journal.queue.blocking { [self] in
            guard state == .reversal else { return }
            try write(.asked)
            stand.withLock { ($0.state, $0.isReversal) = (.asked, false) }
        }
        journal.raise(nil, of: payment)
    }

    /// Records that nothing remains to be done, and removes the entry; the log reports a failure.
    ///
    /// An entry of the same key that begins after this call finds its name free.
    package nonisolated(nonsending) func settle() async {
        do {
            try await journal.queue.blocking { [self] in
                guard state != .settled else { return }
                stand.withLock { $0.state = .settled }
                guard file.withLock({ $0 != nil }), let folder = journal.folder else { return }
                defer { letGo() }
                let path = journal.path(payment.id, "payment")
                let failure = journal.disk.remove(path)
                guard failure != 0 else { return try journal.synchronize(folder) }
                // A process that finds the file knows that the payment is over.
                try write(.settled)
                logger.warning("payment \(payment.id) is settled, and its entry stays: errno \(failure)")
            }
        } catch {
            logger.critical("payment \(payment.id) is settled, and the journal has it nevertheless: \(type(of: error))")
        }
        journal.raise(nil, of: payment)
    }

    /// Writes a state, on the journal's queue.
    ///
    /// - Throws: ``PaymentJournal/Failure``
    private func write(_ state: PaymentJournal.State) throws {
        if journal.folder != nil {
            guard let file = file.withLock({ $0 }) else { return }
            let line = Array(try JSONEncoder().encode(state)) + [0x0A]
            // A partly written line is overwritten.
            let failure = journal.disk.write(file.descriptor, line, file.length)
            guard failure == 0 else { throw PaymentJournal.Failure(failure, journal.path(payment.id, "payment")) }
            self.file.withLock { $0?.length += line.count }
        }
        stand.withLock { $0.written = state }
    }

    /// Creates the file, on the journal's queue: it gets its name when it is complete and locked.
    ///
    /// - Throws: ``PaymentJournal/Failure``; EEXIST if the journal has a file of that name, which is unchanged.
    fileprivate func create() throws {
        let state = state
        defer { if journal.folder == nil { stand.withLock { $0.written = state } } }
        guard let folder = journal.folder else { return }
        try journal.makeFolder(folder)
        let (new, path) = (journal.path(payment.id, "new"), journal.path(payment.id, "payment"))
        unlink(new)
        let descriptor = open(new, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw PaymentJournal.Failure(errno, new) }
        var name = new
        do {
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { throw PaymentJournal.Failure(errno, new) }
            let encoder = JSONEncoder()
            let bytes =
                Array(try encoder.encode(PaymentJournal.Record(payment, note: note))) + [0x0A]
                + Array(try encoder.encode(state)) + [0x0A]
            let failure = journal.disk.write(descriptor, bytes, 0)
            guard failure == 0 else { throw PaymentJournal.Failure(failure, new) }
            try journal.rename(new, path)
            name = path
            try journal.synchronize(folder)
            file.withLock { $0 = File(descriptor: descriptor, length: bytes.count) }
            stand.withLock { $0.written = state }
        } catch {
            unlink(name)
            PaymentJournal.unlock(descriptor)
            throw error
        }
    }
}

let logger = Logger(label: "KioskKit")
