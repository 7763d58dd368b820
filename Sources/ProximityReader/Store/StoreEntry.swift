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
        /// The last payment was taken back.
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
        /// What the payment service has said of a payment, or that it did not answer.
        case answered
        /// The payment service has everything of the batch that it wants, and it is deleted here.
        case resolved
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
    /// JSON, of the type that belongs to the kind; or empty.
    let detail: Data
    /// HMAC-SHA-256 over the hash of the entry before and everything above.
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
        var hash = HMAC<SHA256>(key: key)
        hash.update(data: previous)
        for part in [Self.bytes(sequence), Data(kind.rawValue.utf8), Data(subject.utf8), Self.bytes(time), detail] {
            hash.update(data: Self.bytes(Int64(part.count)))
            hash.update(data: part)
        }
        self.hash = Data(hash.finalize())
    }

    private static func bytes(_ number: Int64) -> Data { withUnsafeBytes(of: number.bigEndian) { Data($0) } }
}

/// What entries hold beyond their subject.
enum StoreDetail {
    struct Opened: Codable, Sendable {
        let leafCertificate: String
        let intermediateCertificate: String
    }

    struct Stored: Codable, Sendable {
        /// In the currency's major unit.
        let amount: String
        let currency: String
        let issuer: String
        let merchant: String
        /// SHA-256 of the payment's canonical form, in hexadecimal digits.
        let payment: String
        let card: StoredCard?
    }

    struct Withdrawn: Codable, Sendable {
        let reason: String
    }

    struct SetAside: Codable, Sendable {
        let reason: String
    }

    struct Answered: Codable, Sendable {
        let answer: ProximityReaderSystem.Ledger.Answer
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
    }

    struct Batch: Codable, Sendable {
        let id: String
        let detail: Batched
        let isSent: Bool
    }

    struct Carried: Codable, Sendable {
        let stored: Stored
        /// The entry that it was stored with.
        let number: Int64
        let time: Date
        let answer: ProximityReaderSystem.Ledger.Answer?
        let reason: String?
        let place: StoreLedger.Place
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
