/// How the key of the content reaches the recipient (RFC 7518, section 4.1).  The content is always encrypted with
/// `A256GCM` (section 5.3).
public enum JWEAlgorithm: String, Hashable, Sendable, CaseIterable {
    /// The key is agreed upon directly, on P-256 (section 4.6).
    case ecdhES = "ECDH-ES"
    /// The key is wrapped by one that is agreed upon, on P-256 (section 4.6).
    case ecdhESA256KW = "ECDH-ES+A256KW"
    /// The key is encrypted to an RSA key, with SHA-256 and MGF1 with SHA-256 (section 4.3).
    case rsaOAEP256 = "RSA-OAEP-256"

    /// The only value of `enc`.
    static let contentEncryption = "A256GCM"

    /// The algorithm of this name, byte for byte: Swift takes U+212A, the sign for kelvin, for a K.
    init?(named name: String) {
        guard let algorithm = Self.allCases.first(where: { $0.rawValue.utf8.elementsEqual(name.utf8) }) else {
            return nil
        }
        self = algorithm
    }

    /// `kty` of the keys that it takes (RFC 7518, section 6.1).
    var keyType: String { self == .rsaOAEP256 ? "RSA" : "EC" }

    /// What of `key_ops` a public and a private key must permit, one of them (RFC 7517, section 4.3).
    var publicOperations: Set<String> { self == .rsaOAEP256 ? ["wrapKey", "encrypt"] : ["deriveKey", "deriveBits"] }
    var privateOperations: Set<String> { self == .rsaOAEP256 ? ["unwrapKey", "decrypt"] : publicOperations }
}
