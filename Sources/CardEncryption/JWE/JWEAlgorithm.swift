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

    init?(named name: JSON.Text) {
        guard let algorithm = Self.allCases.first(where: { JSON.Text($0.rawValue) == name }) else { return nil }
        self = algorithm
    }

    /// `kty` of the keys that it takes (RFC 7518, section 6.1).
    var keyType: JSON.Text { self == .rsaOAEP256 ? "RSA" : "EC" }

    /// What of `key_ops` a public and a private key must permit, one of them (RFC 7517, section 4.3).
    var publicOperations: Set<JSON.Text> {
        self == .rsaOAEP256 ? ["wrapKey", "encrypt"] : ["deriveKey", "deriveBits"]
    }
    var privateOperations: Set<JSON.Text> { self == .rsaOAEP256 ? ["unwrapKey", "decrypt"] : publicOperations }
}
