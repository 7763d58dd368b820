import Crypto
package import Foundation

/// An entry of the store's book: an event that is never changed afterward.
struct StoreEntry: Sendable {
    /// The event of an entry.
    enum Kind: String, Sendable {
        /// The store was created.
        case opened
        /// The reader was prepared online.
        case prepared
        /// A payment was stored.
        case stored
        /// A payment that nobody was asked to charge was withdrawn.
        case withdrawn
        /// A payment was set aside, out of further batches.
        case setAside
        /// A payment that was set aside may go into batches again.
        case putBack
        /// The oldest payments became the batch.
        case batched
        /// The batch was dissolved; its payments are stored as before.
        case reset
        /// The batch is about to be sent.
        case sent
        /// The payment service reported that it took nothing of the batch.
        case refused
        /// The payment service answered about payments of the batch, or failed to answer; with its deletion token.
        case answered
        /// The payment service needs nothing more of the batch, which is deleted here.
        case resolved
        /// A person found out the state of the batch's payments, and the batch was dissolved accordingly.
        case released
        /// The entries before this one were deleted.  Their state follows.
        case checkpoint
        /// A payment that was stored before the checkpoint.
        case carried
    }

    let sequence: Int64
    let kind: Kind
    /// The identifier of the payment or the batch, or empty.
    let subject: String
    /// Milliseconds since 1970.
    let time: Int64
    /// The detail of the kind: ``StoreDetail/Stored/fields`` for `stored`, otherwise JSON, or empty.
    let detail: Data
    /// HMAC-SHA-256 over the hash of the previous entry and all of the above, each preceded by its length.
    let hash: Data

    /// The value in place of a previous hash for the first entry.
    static let origin = Data(count: SHA256.byteCount)

    init(
        following previous: Data, sequence: Int64, kind: Kind, subject: String, time: Int64, detail: Data,
        key: SymmetricKey
    ) {
        self.sequence = sequence
        self.kind = kind
        self.subject = subject
        self.time = time
        self.detail = detail
        var form = StoreFields(capacity: 256 + detail.count)
        form.append(previous)
        form.append(sequence)
        form.append(kind.rawValue)
        form.append(subject)
        form.append(time)
        form.append(detail)
        hash = Data(HMAC<SHA256>.authenticationCode(for: form.bytes, using: key))
    }
}

/// The details of entries, by kind.
enum StoreDetail {
    struct Opened: Codable, Sendable {
        let leafCertificate: String
        let intermediateCertificate: String
    }

    struct Stored: Sendable {
        let amount: Decimal
        let currency: String
        let issuer: String
        let merchant: String
        /// The hash of the payment's canonical form.
        let payment: PaymentHash
        let card: StoredCard?
    }

    struct Withdrawn: Codable, Sendable {
        let reason: String
    }

    struct SetAside: Codable, Sendable {
        let reason: String
    }

    struct Answered: Codable, Sendable {
        /// The answers by the payments' `id`.
        let answers: [String: ProximityReaderSystem.Ledger.Answer]
        let deletionToken: String?
    }

    struct Batched: Codable, Sendable {
        /// The `id` of each payment, the oldest first.
        let payments: [String]
        /// The SHA-256 of the batch's canonical form, in hexadecimal digits.
        let hash: String
        /// The signature of the canonical form, made once, so that the batch is always the same.
        let signature: String
        let reader: String
        let issuer: String
    }

    struct Resolved: Codable, Sendable {
        let token: String
        /// The expiration of the token.
        let expiration: Date
        /// The payments that the token covers; nil stands for all.
        let payments: [String]?
    }

    struct Released: Codable, Sendable {
        let payments: [String: ProximityReaderSystem.Ledger.Finding]
        /// The answers that the book had before.
        let answers: [String: ProximityReaderSystem.Ledger.Answer]
        let person: String
        let reason: String
    }

    struct Checkpoint: Codable, Sendable {
        /// The hash of the previous entry.
        let follows: Data
        let certificates: Opened?
        let preparation: Preparation?
        let batch: Batch?
        /// The used deletion tokens that have not expired, with their expirations.
        let usedTokens: [String: Date]
        /// The payment stored last, unless it was withdrawn.
        let last: String?
        /// The latest time of an entry.
        let latest: Date
        let releases: [ProximityReaderSystem.Ledger.Release]
    }

    struct Batch: Codable, Sendable {
        let id: String
        let detail: Batched
        let isSent: Bool
        let deletionToken: String?
    }

    struct Carried: Codable, Sendable {
        /// The fields of ``Stored``.
        let stored: Data
        /// The number of the entry that stored the payment.
        let number: Int64
        let time: Date
        let answer: ProximityReaderSystem.Ledger.Answer?
        let reason: String?
        let place: StoreLedger.Place
        let wasSent: Bool
    }
}

extension StoreDetail.Stored {
    /// The fields as bytes: amount, currency, issuer, merchant, hash, and the card's reference and masked number or
    /// nothing.  Text is UTF-8, the amount a decimal number.
    var fields: Data {
        var fields = StoreFields(capacity: 256)
        for text in [amount.description, currency, issuer, merchant] { fields.append(text) }
        fields.append(payment.bytes)
        fields.append(card?.reference ?? "")
        fields.append(card?.masked ?? "")
        return Data(fields.bytes)
    }

    init?(fields: Data) {
        guard let fields = StoreFields.split(fields), fields.count == 7, let hash = PaymentHash(fields[4]) else {
            return nil
        }
        func text(_ index: Int) -> String { String(decoding: fields[index], as: UTF8.self) }
        guard let amount = Decimal(string: text(0)) else { return nil }
        self.amount = amount
        (currency, issuer, merchant, payment) = (text(1), text(2), text(3), hash)
        card = fields[5].isEmpty ? nil : StoredCard(reference: text(5), masked: text(6))
    }
}

/// A sequence of byte strings, each preceded by its length: 4 bytes, most significant first.
struct StoreFields {
    private(set) var bytes: [UInt8] = []

    init(capacity: Int) { bytes.reserveCapacity(capacity) }

    mutating func append(_ text: String) {
        append(length: text.utf8.count)
        bytes.append(contentsOf: text.utf8)
    }

    mutating func append(_ data: Data) {
        append(length: data.count)
        bytes.append(contentsOf: data)
    }

    /// Appends a number in 8 bytes, most significant first.
    mutating func append(_ number: Int64) {
        append(length: 8)
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    private mutating func append(length: Int) {
        withUnsafeBytes(of: UInt32(length).bigEndian) { bytes.append(contentsOf: $0) }
    }

    /// Splits bytes into fields.
    ///
    /// - Returns: nil if the bytes do not end with a complete field.
    static func split(_ bytes: Data) -> [Data]? {
        var fields: [Data] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            guard rest.count >= 4 else { return nil }
            let count = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            guard rest.count >= 4 + count else { return nil }
            fields.append(rest.dropFirst(4).prefix(count))
            rest = rest.dropFirst(4 + count)
        }
        return fields
    }
}

/// An online preparation, after which payments may be stored.
package struct Preparation: Codable, Hashable, Sendable {
    package let issuer: String
    package let merchant: String
    package let terminalProfile: String?
    /// The key for card data, a JWK.
    package let cardDataKey: String?
    package let tokenExpiration: Date
    /// The time at which the token was issued; nil if the token does not contain it.
    package let tokenIssued: Date?
    /// The SHA-256 of the token, in hexadecimal digits.
    package let tokenHash: String
    /// The time by the machine's clock.
    package let time: Date
    /// The seconds since boot, including sleep.
    package let uptime: Double
    /// The identifier of the boot.
    package let boot: String
    package let reader: String

    package init(
        issuer: String, merchant: String, terminalProfile: String?, cardDataKey: String?, tokenExpiration: Date,
        tokenIssued: Date? = nil, tokenHash: String = "", time: Date, uptime: Double, boot: String, reader: String
    ) {
        self.issuer = issuer
        self.merchant = merchant
        self.terminalProfile = terminalProfile
        self.cardDataKey = cardDataKey
        self.tokenExpiration = tokenExpiration
        self.tokenIssued = tokenIssued
        self.tokenHash = tokenHash
        self.time = time
        self.uptime = uptime
        self.boot = boot
        self.reader = reader
    }
}
