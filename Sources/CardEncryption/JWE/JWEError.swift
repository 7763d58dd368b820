/// An error in a compact JWE, or in sealing or opening one, with its position.
public struct JWEError: Error, Hashable, Sendable {
    public enum Reason: Hashable, Sendable {
        /// The text has more bytes than ``CompactJWE/maximumLength``.
        case tooLong(Int)
        /// The text does not have five parts separated by periods.
        case parts(Int)
        /// The part is not base64url without padding.
        case base64
        /// The header is not a JSON object, with the expected token.
        case json(String)
        /// A member of the header is missing, or has a value of the wrong type.
        case member(String)
        /// `alg` is not one of ``JWEAlgorithm``.
        case algorithm(String)
        /// `enc` is not A256GCM.
        case contentEncryption(String)
        /// `crit` is present: the sender requires an extension that is not supported (RFC 7516, section 4.1.13).
        case critical
        /// `zip` is present: the length of compressed content reveals something about it.
        case compressed
        /// `epk` is not a point on P-256.
        case ephemeralKey
        /// The length of a part differs from what the algorithms require.
        case length(Int, due: Int)
        /// A further member of the header to be sealed has a registered name.
        case registeredName(String)
        /// The JWE uses another algorithm than the key's.
        case otherAlgorithm(JWEAlgorithm)
        /// The JWE is sealed to a key with another name.
        case otherKey(String)
        /// The JWE was changed, or is sealed to another key.  Which of the two is not revealed (RFC 7516, section
        /// 11.5).
        case notAuthentic
        /// The cryptographic library refuses.
        case refused
    }

    /// The five parts (RFC 7516, section 7.1).
    public enum Part: String, Hashable, Sendable, CaseIterable {
        case header = "protected header"
        case encryptedKey = "encrypted key"
        case initializationVector = "initialization vector"
        case ciphertext = "ciphertext"
        case tag = "authentication tag"
    }

    public let reason: Reason
    /// The part; nil for the whole text.
    public let part: Part?
    /// The position in bytes from the start of the part's text, or of the header's JSON text; nil for the whole part.
    public let offset: Int?

    init(_ reason: Reason, in part: Part? = nil, at offset: Int? = nil) {
        self.reason = reason
        self.part = part
        self.offset = offset
    }

    /// A sentence that tells a person what to do next.
    public var hint: String {
        switch reason {
        case .tooLong, .parts, .base64, .json, .member, .ephemeralKey, .length:
            "See that the text is passed on unchanged, and that its sender writes the compact form of RFC 7516."
        case .algorithm, .contentEncryption, .critical, .compressed:
            "Have the sender use A256GCM with ECDH-ES, ECDH-ES+A256KW or RSA-OAEP-256, without crit and zip."
        case .registeredName: "Choose another name for this member of the header."
        case .otherAlgorithm, .otherKey: "Open it with the key that its header names."
        case .notAuthentic: "See that the sender has this key's public half, and that the text is passed on unchanged."
        case .refused: "The key is none that the cryptographic library takes; make another."
        }
    }
}

extension JWEError: CustomStringConvertible {
    /// The error as text: `protected header, byte 17: not JSON: a name was due`.
    public var description: String {
        let what =
            switch reason {
            case .tooLong(let count): "\(count) bytes, which is more than \(CompactJWE.maximumLength)"
            case .parts(let count): "\(count) parts where five are due"
            case .base64: "not base64url without padding"
            case .json(let due): "not JSON: \(due) was due"
            case .member(let name): "\(JSON.excerpt(name)) is missing or malformed"
            case .algorithm(let name): "alg \(JSON.excerpt(name)) is not known here"
            case .contentEncryption(let name): "enc \(JSON.excerpt(name)) is not known here"
            case .critical: "\"crit\" demands what is not known here"
            case .compressed: "\"zip\": compressed content is not taken"
            case .ephemeralKey: "\"epk\" is no public key on P-256"
            case .length(let count, let due): "\(count) bytes where \(due) are due"
            case .registeredName(let name): "\(JSON.excerpt(name)) has a meaning of its own"
            case .otherAlgorithm(let algorithm): "sealed for \(algorithm.rawValue), which is not the key's algorithm"
            case .otherKey(let name): "sealed to another key, \(JSON.excerpt(name))"
            case .notAuthentic: "changed on the way, or sealed to another key"
            case .refused: "the cryptographic library refuses the key"
            }
        let place = [part?.rawValue, offset.map { "byte \($0)" }].compactMap { $0 }.joined(separator: ", ")
        return (place.isEmpty ? "JWE" : place) + ": " + what
    }
}
