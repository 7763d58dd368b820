/// An error in a DUKPT key, counter or envelope.
public enum DUKPTError: Error, Hashable, Sendable {
    /// The key has an invalid number of bytes.
    case keyLength(Int)
    /// The identifier of an initial key has an invalid number of bytes; required are 8, or 10 with TDES.
    case initialKeyIDLength(Int)
    /// The key serial number has a wrong length, the counter 0, or too many one bits.
    case keySerialNumber
    /// The working key would be longer than the initial key, and so promise more strength than there is.
    case workingKeyTooLong
    /// All counters are used up.
    case exhausted
    /// The envelope is malformed at this byte.
    case envelope(at: Int)
    /// The envelope's text is not Base64 at this byte.
    case notBase64(at: Int)
    /// The envelope was changed, belongs to another key, or is bound to other data.
    case notAuthentic
    /// libcrypto refuses the cipher; its configuration may disable TDES.
    case cipher

    /// A sentence that tells a person what to do next.
    public var hint: String {
        switch self {
        case .keyLength: "Give a key of AES with 16, 24 or 32 bytes, of TDES with 16."
        case .initialKeyIDLength:
            "Give the bytes that the acquirer has assigned: 8, or the 10 of an initial key serial number with TDES."
        case .keySerialNumber: "Give the key serial number as the device has sent it."
        case .workingKeyTooLong: "Ask for working keys that are no longer than the initial key."
        case .exhausted: "Load a new initial key, with another identifier."
        case .envelope, .notBase64: "See that the text is passed on unchanged."
        case .notAuthentic:
            "See that it is the device's base derivation key, and that envelope and bound data are passed on unchanged."
        case .cipher: "See whether OpenSSL's configuration forbids the cipher."
        }
    }
}

extension DUKPTError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .keyLength(let count): "a key of \(count) bytes"
        case .initialKeyIDLength(let count): "an identifier of \(count) bytes"
        case .keySerialNumber: "not a key serial number"
        case .workingKeyTooLong: "a working key longer than the initial key"
        case .exhausted: "all transaction counters of this key are used up"
        case .envelope(let offset): "envelope: malformed at byte \(offset)"
        case .notBase64(let offset): "envelope: not Base64 at byte \(offset)"
        case .notAuthentic: "envelope: changed on the way, under another key, or bound to other data"
        case .cipher: "libcrypto refuses the cipher"
        }
    }
}
