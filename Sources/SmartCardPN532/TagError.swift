/// A refusal by a tag, or a tag of the wrong kind.
///
/// If the link fails, the error is a `CardError` instead.
public enum TagError: Error, Hashable, Sendable {
    /// The key does not open the sector of this block, or the block does not exist.  The tag has been selected anew.
    case authenticationFailed(block: UInt8)
    /// The tag, or the reader on its behalf, refuses: the block does not exist, is not readable or not writable, or the
    /// sector is not open.  The tag has been selected anew.
    case refused(String)
    /// The number of bytes to write is not that of the block or page.
    case wrongLength(Int, expected: Int)
    /// Access bits that contradict their complements; a card that receives them is locked for ever.
    case invalidAccessBits
    /// A block without a value.
    case notAValue(block: UInt8)
    /// No NDEF data, or none of a known version.
    case notNDEF(String)
    /// The tag's NDEF data is malformed at this byte of its memory or file.
    case malformed(String, offset: Int)
    /// The tag is read-only.
    case readOnly
    /// A page that must be written is locked.
    case locked(page: Int)
    /// The message is longer than the capacity.
    case tooLong(Int, capacity: Int)
}

extension TagError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .authenticationFailed(let block): "the key does not open block \(block)"
        case .refused(let what): "the tag refuses \(what)"
        case .wrongLength(let count, let expected): "\(count) bytes to write; it takes \(expected)"
        case .invalidAccessBits: "the access bits contradict their complements"
        case .notAValue(let block): "block \(block) holds no value"
        case .notNDEF(let why): "not an NDEF tag: \(why)"
        case .malformed(let what, let offset): "\(what), at offset \(offset)"
        case .readOnly: "the tag is read-only"
        case .locked(let page): "page \(page) of the tag is locked"
        case .tooLong(let count, let capacity): "\(count) bytes; the tag has room for \(capacity)"
        }
    }

    /// One sentence for a person: the next step.
    public var hint: String {
        switch self {
        case .authenticationFailed: "Use the key that the card's issuer has set for this sector."
        case .refused: "Authenticate the sector with a key that has the right; check that the block exists."
        case .wrongLength: "Write whole blocks of 16 bytes and whole pages of 4."
        case .invalidAccessBits: "Make access bits from their conditions, not by hand."
        case .notAValue: "Store a value in the block first."
        case .notNDEF: "Use another tag, or format this one for NDEF first."
        case .malformed: "Write the tag anew."
        case .readOnly, .locked: "Use another tag; a lock cannot be undone."
        case .tooLong: "Write a shorter message or use a larger tag."
        }
    }
}
