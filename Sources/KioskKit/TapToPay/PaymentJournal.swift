import Crypto
public import Foundation
import Glibc
import Logging
import Synchronization

/// A payment or a refund that a payment service was asked for and whose outcome the application has not learned, or that has to
/// be taken back.
public struct UnsettledPayment: Hashable, Sendable, Identifiable {
    public enum Kind: String, Codable, Sendable {
        case payment
        case refund
    }

    /// The idempotency key.
    public let id: String
    /// Nil, as are the next two, for a key that had to be taken back and nothing else is known of.
    public let kind: Kind?
    /// In the currency's major unit.
    public let amount: Decimal?
    /// Of ISO 4217.
    public let currency: String?
    /// When it was written down, before the payment service was asked.
    public let time: Date
}

/// The payments that are not settled, on the disk before the payment service hears of them, and without card data.
///
/// In a folder of mode 0700, each in a file of its own, that is locked (flock) by the process that has the payment in hand: whoever
/// can lock it knows that the process has ended.  The name tells what is to be done, `KEY.asked` or `KEY.reversal`, where KEY
/// is the SHA-256 of the idempotency key.
final class PaymentJournal: Sendable {
    fileprivate let folder: String
    /// Blocks for the disk.
    private let queue = DispatchQueue(label: "swift-contactless.journal")

    init(folder: URL) { self.folder = folder.path }

    struct Failure: Error, CustomStringConvertible {
        let description: String
        init(_ code: Int32, _ path: String) { description = "\(path): \(String(cString: strerror(code)))" }
    }

    enum State: String {
        case asked
        case reversal
    }

    /// Writes a payment down: it is on the disk when this returns.
    ///
    /// - Throws: ``Failure``; nothing is written down then.
    func begin(_ payment: UnsettledPayment, _ state: State) async throws -> OpenPayment {
        try await onQueue { [self] in
            if mkdir(folder, 0o700) == 0 {
                try synchronise(URL(filePath: folder).deletingLastPathComponent().path)
            } else if errno == ENOENT {
                try FileManager.default.createDirectory(
                    atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
                try synchronise(URL(filePath: folder).deletingLastPathComponent().path)
            }
            // Under its name when it is whole and locked.
            let new = path(payment.id, "new")
            unlink(new)
            let descriptor = open(new, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard descriptor >= 0 else { throw Failure(errno, new) }
            let open = OpenPayment(payment, state, in: self, descriptor, isLeftover: false)
            do {
                guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { throw Failure(errno, new) }
                let bytes = Array(try JSONEncoder().encode(Record(payment)))
                let count = write(descriptor, bytes, bytes.count)
                guard count == bytes.count else { throw Failure(count < 0 ? errno : ENOSPC, new) }
                guard fsync(descriptor) == 0, rename(new, path(payment.id, state.rawValue)) == 0 else {
                    throw Failure(errno, new)
                }
                try synchronise(folder)
            } catch {
                unlink(new)
                unlink(path(payment.id, state.rawValue))
                throw error
            }
            return open
        }
    }

    /// Takes over what processes have left that are gone, the oldest first.
    func leftovers() async throws -> [OpenPayment] {
        try await onQueue { [self] in
            let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            return names.compactMap(takeOver).sorted { $0.payment.time < $1.payment.time }
        }
    }

    private func takeOver(_ name: String) -> OpenPayment? {
        guard let state = name.split(separator: ".").last.flatMap({ State(rawValue: String($0)) }) else { return nil }
        let path = folder + "/" + name
        let descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return nil }
        var (here, there) = (stat(), stat())
        // Whoever had the lock until now may have renamed or removed it.
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, fstat(descriptor, &here) == 0, lstat(path, &there) == 0,
            here.st_ino == there.st_ino
        else {
            close(descriptor)
            return nil
        }
        guard let bytes = try? Data(contentsOf: URL(filePath: path)),
            let record = try? JSONDecoder().decode(Record.self, from: bytes)
        else {
            close(descriptor)
            logger.critical("\(path) is no payment: whether one has to be taken back is not known")
            return nil
        }
        return OpenPayment(record.payment, state, in: self, descriptor, isLeftover: true)
    }

    // MARK: Files

    fileprivate func path(_ key: String, _ suffix: String) -> String {
        "\(folder)/\(SHA256.hash(data: Data(key.utf8)).map { String(format: "%02x", $0) }.joined()).\(suffix)"
    }

    /// Forces the names in a folder to the disk.
    fileprivate func synchronise(_ folder: String) throws {
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure(errno, folder) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw Failure(errno, folder) }
    }

    fileprivate func onQueue<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { waiter in
            queue.async { waiter.resume(with: Result { try body() }) }
        }
    }

    /// As it is in the file.
    private struct Record: Codable {
        let key: String
        let kind: UnsettledPayment.Kind?
        let amount: String?
        let currency: String?
        let time: Date

        init(_ payment: UnsettledPayment) {
            (key, kind, currency, time) = (payment.id, payment.kind, payment.currency, payment.time)
            amount = payment.amount?.description
        }

        var payment: UnsettledPayment {
            UnsettledPayment(
                id: key, kind: kind, amount: amount.flatMap { Decimal(string: $0, locale: Locale(identifier: "C")) },
                currency: currency, time: time)
        }
    }
}

/// A payment of the journal that this process has in hand.  Let go of before it is settled, it is a leftover.
final class OpenPayment: Sendable {
    let payment: UnsettledPayment
    /// Whether another run of the program has asked for it.
    let isLeftover: Bool
    private let journal: PaymentJournal
    private let descriptor: Int32
    /// What is to be done, nil: nothing any more; and whether it was, or is to be, taken back.
    private let state: Mutex<(toDo: PaymentJournal.State?, isReversal: Bool)>

    fileprivate init(
        _ payment: UnsettledPayment, _ state: PaymentJournal.State, in journal: PaymentJournal, _ descriptor: Int32,
        isLeftover: Bool
    ) {
        (self.payment, self.journal, self.descriptor, self.isLeftover) = (payment, journal, descriptor, isLeftover)
        self.state = Mutex((state, state == .reversal))
    }

    deinit { close(descriptor) }

    /// Whether it has to be taken back, or has been.
    var isReversal: Bool { state.withLock { $0.isReversal } }

    /// From now on it has to be taken back: on the disk when this returns.
    ///
    /// - Throws: ``PaymentJournal/Failure``; it is as before then.
    func willReverse() async throws {
        try await journal.onQueue { [self] in
            try state.withLock { state in
                guard state.toDo == .asked else { return }
                let path = journal.path(payment.id, "asked")
                guard rename(path, journal.path(payment.id, "reversal")) == 0 else {
                    throw PaymentJournal.Failure(errno, path)
                }
                state = (.reversal, true)
            }
            try journal.synchronise(journal.folder)
        }
    }

    /// Nothing remains to be done: on the disk when this returns, unless the log says otherwise.
    func settle() async {
        do {
            try await journal.onQueue { [self] in
                try state.withLock { state in
                    guard let last = state.toDo else { return }
                    let path = journal.path(payment.id, last.rawValue)
                    guard unlink(path) == 0 || errno == ENOENT else { throw PaymentJournal.Failure(errno, path) }
                    state.toDo = nil
                }
                try journal.synchronise(journal.folder)
            }
        } catch {
            logger.critical("payment \(payment.id) is settled, and the journal has it nevertheless: \(error)")
        }
    }
}

let logger = Logger(label: "KioskKit")
