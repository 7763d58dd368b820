import Foundation
import Glibc

/// The decision under each idempotency key, in memory and optionally in a file that outlives the process.
///
/// The file contains a line of JSON for each decision, which is on the disk before the decision is answered.
final class Books {
    struct Entry: Codable, Sendable {
        let payment: Sandbox.Payment
        /// The hash of the request; nil if the key was reversed before any request.
        let request: String?
        /// The card data, hashed.
        let cardData: String?
    }

    private var entries: [String: Entry] = [:]
    private var order: [String] = []
    private var keys: [String: String] = [:]
    private var identifiers: [String: String] = [:]
    private var challenges: [String: String] = [:]
    private var descriptor: Int32 = -1
    /// True if the file ends with an incomplete line that could not be removed.
    private var isTorn = false

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// - Parameter path: of the file, made if it is not there; nil: none.
    init(_ path: String?) throws {
        guard let path else { return }
        descriptor = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0, flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            throw Failure(description: "\(path): \(String(cString: strerror(errno)))")
        }
        let bytes = try Data(contentsOf: URL(filePath: path))
        // A line without an end was never answered for.
        let whole = bytes.prefix((bytes.lastIndex(of: 0x0A) ?? -1) + 1)
        guard ftruncate(descriptor, off_t(whole.count)) == 0 else {
            throw Failure(description: "\(path): \(String(cString: strerror(errno)))")
        }
        for (number, line) in whole.split(separator: 0x0A).enumerated() {
            guard let entry = try? JSONDecoder().decode(Entry.self, from: Data(line)) else {
                throw Failure(description: "\(path): line \(number + 1) is none of psp-sandbox's")
            }
            note(entry)
        }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    subscript(key: String) -> Entry? { entries[key] }

    /// The key under which these card data were booked, hashed as in ``Entry/cardData``.
    func key(ofCardData hash: String) -> String? { keys[hash] }

    /// The payment with an identifier.
    func payment(_ id: String) -> Sandbox.Payment? { identifiers[id].flatMap { entries[$0]?.payment } }

    /// The decision that waits, or waited, for a challenge.
    func entry(ofChallenge id: String) -> Entry? { challenges[id].flatMap { entries[$0] } }

    /// The first first.
    var payments: [Sandbox.Payment] { order.compactMap { entries[$0]?.payment } }

    /// - Throws: ``Failure`` if it is not on the disk.
    func add(_ entry: Entry) throws {
        if descriptor >= 0 {
            var line = try JSONEncoder().encode(entry)
            line.append(0x0A)
            let length = lseek(descriptor, 0, SEEK_END)
            guard !isTorn, length >= 0 else { throw Failure(description: "the books end with a line that was cut off") }
            let count = line.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            guard count == line.count, fsync(descriptor) == 0 else {
                let reason = count >= 0 && count < line.count ? "no space" : String(cString: strerror(errno))
                // Anything written after it would be unreadable.
                isTorn = ftruncate(descriptor, length) != 0
                throw Failure(description: "the books cannot be written: \(reason)")
            }
        }
        note(entry)
    }

    private func note(_ entry: Entry) {
        let key = entry.payment.idempotencyKey
        if entries.updateValue(entry, forKey: key) == nil { order.append(key) }
        if let cardData = entry.cardData { keys[cardData] = key }
        identifiers[entry.payment.id] = key
        if let challenge = entry.payment.checkout?.challenge { challenges[challenge] = key }
    }
}
