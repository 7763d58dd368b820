import Crypto
package import Foundation

/// A line of the store's book: something that has happened, and is never changed afterwards.
struct StoreEntry: Sendable {
    /// What has happened.
    enum Kind: String, Sendable {
        /// The store was made.
        case opened
        /// The reader was prepared online.
        case prepared
        /// A payment was stored.
        case stored
        /// A payment that nobody was asked to charge was taken back.
        case withdrawn
        /// A payment comes into no batch.
        case setAside
        /// It does again.
        case putBack
        /// The oldest payments became the batch.
        case batched
        /// The batch was dissolved; its payments are as if never in it.
        case reset
        /// The batch is about to be sent.
        case sent
        /// The payment service has said that it took nothing of the batch.
        case refused
        /// What the payment service has said of payments of the batch, or that it did not answer; and its deletion token.
        case answered
        /// The payment service has everything of the batch that it wants, and it is deleted here.
        case resolved
        /// A person has found out what became of the batch's payments, and the batch was dissolved accordingly.
        case released
        /// The entries before this one were deleted.  What they came to follows.
        case checkpoint
        /// A payment that was stored before the checkpoint.
        case carried
    }

    let sequence: Int64
    let kind: Kind
    /// The payment or the batch, or empty.
    let subject: String
    /// Milliseconds since 1970.
    let time: Int64
    /// What belongs to the kind: ``StoreDetail/Stored/fields`` for `stored`, else JSON, or empty.
    let detail: Data
    /// HMAC-SHA-256 over the hash of the entry before and everything above, each behind its length.
    let hash: Data

    /// What the first entry's hash begins with.
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

/// What entries hold beyond their subject.
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
        /// Of the payment's canonical form.
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
        /// By the payments' `id`.
        let answers: [String: ProximityReaderSystem.Ledger.Answer]
        let deletionToken: String?
    }

    struct Batched: Codable, Sendable {
        /// The `id` of each, the oldest first.
        let payments: [String]
        /// SHA-256 of the batch's canonical form, in hexadecimal digits.
        let hash: String
        /// Of the canonical form: made once, so that the batch is the same whenever it is sent.
        let signature: String
        let reader: String
        let issuer: String
    }

    struct Resolved: Codable, Sendable {
        let token: String
        /// Of the token.
        let expiration: Date
        /// The payments that it is for; nil: all.
        let payments: [String]?
    }

    struct Released: Codable, Sendable {
        let payments: [String: ProximityReaderSystem.Ledger.Finding]
        /// What the book had of them before.
        let answers: [String: ProximityReaderSystem.Ledger.Answer]
        let person: String
        let reason: String
    }

    struct Checkpoint: Codable, Sendable {
        /// The hash of the entry before.
        let follows: Data
        let certificates: Opened?
        let preparation: Preparation?
        let batch: Batch?
        /// The deletion tokens that were used and have not expired, and when they will have.
        let usedTokens: [String: Date]
        /// The payment that was stored last, unless it was taken back.
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
        /// ``Stored/fields``
        let stored: Data
        /// The entry that it was stored with.
        let number: Int64
        let time: Date
        let answer: ProximityReaderSystem.Ledger.Answer?
        let reason: String?
        let place: StoreLedger.Place
        let wasSent: Bool
    }
}

extension StoreDetail.Stored {
    /// Amount, currency, issuer, merchant, hash, and of the card its reference and its masked number, or nothing: texts in
    /// UTF-8, the amount as a decimal number.
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

/// Bytes one after the other, each behind its length in 4 bytes, the highest first.
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

    /// In 8 bytes, the highest first.
    mutating func append(_ number: Int64) {
        append(length: 8)
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    private mutating func append(length: Int) {
        withUnsafeBytes(of: UInt32(length).bigEndian) { bytes.append(contentsOf: $0) }
    }

    /// - Returns: nil for what does not end with a field.
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

/// The online preparation that payments may be stored after.
package struct Preparation: Codable, Hashable, Sendable {
    package let issuer: String
    package let merchant: String
    package let terminalProfile: String?
    /// A JWK.
    package let cardDataKey: String?
    package let tokenExpiration: Date
    /// nil if the token does not tell.
    package let tokenIssued: Date?
    /// SHA-256 of the token, in hexadecimal digits.
    package let tokenHash: String
    /// By the machine's clock.
    package let time: Date
    /// Seconds since the machine was started, asleep or not.
    package let uptime: Double
    /// Of the machine's start.
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
