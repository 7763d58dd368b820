/// A compact JWE that is none, or that cannot be sealed or opened: what, and where.
public struct JWEError: Error, Hashable, Sendable {
    public enum Reason: Hashable, Sendable {
        /// More bytes than ``CompactJWE/maximumLength``.
        case tooLong(Int)
        /// Not five parts with points between.
        case parts(Int)
        /// Not base64url without padding.
        case base64
        /// Not the JSON object of a header: what was due.
        case json(String)
        /// A member of the header is missing, or its value is not of its kind.
        case member(String)
        /// `alg` is none of ``JWEAlgorithm``.
        case algorithm(String)
        /// `enc` is not A256GCM.
        case contentEncryption(String)
        /// `crit`: the sender demands what is not understood here (RFC 7516, section 4.1.13).
        case critical
        /// `zip`: compressed content gives away what is in it by its length.
        case compressed
        /// `epk` is no point of P-256.
        case ephemeralKey
        /// A part has another number of bytes than the algorithms give it.
        case length(Int, due: Int)
        /// A header that is to be sealed has a further member whose name has a meaning of its own.
        case registeredName(String)
        /// Sealed for another algorithm than the key's.
        case otherAlgorithm(JWEAlgorithm)
        /// Sealed to a key of another name.
        case otherKey(String)
        /// Changed on the way, or sealed to another key; which of the two, nobody is told (RFC 7516, section 11.5).
        case notAuthentic
        /// The cryptographic library refuses.
        case refused
    }

    /// The five parts (RFC 7516, section 7.1).
    public enum Part: String, Hashable, Sendable, CaseIterable {
        case header = "protected header"
        case encryptedKey = "encrypted key"
        case initialisationVector = "initialisation vector"
        case ciphertext = "ciphertext"
        case tag = "authentication tag"
    }

    public let reason: Reason
    /// The part; nil where it is the whole.
    public let part: Part?
    /// In bytes from the start of the part's text, or of the header's JSON text; nil where it is the whole part.
    public let offset: Int?

    init(_ reason: Reason, in part: Part? = nil, at offset: Int? = nil) {
        self.reason = reason
        self.part = part
        self.offset = offset
    }

    /// One sentence for a person: what to do next.
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
    /// `protected header, byte 17: not JSON: a name was due`
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
