/// The key management algorithm of a JWE (RFC 7518, section 4.1).  The content is always encrypted with `A256GCM`
/// (section 5.3).
public enum JWEAlgorithm: String, Hashable, Sendable, CaseIterable {
    /// Direct key agreement on P-256 (section 4.6).
    case ecdhES = "ECDH-ES"
    /// Key agreement on P-256, with a wrapped content key (section 4.6).
    case ecdhESA256KW = "ECDH-ES+A256KW"
    /// Encryption of the content key with RSA, with SHA-256 and MGF1 with SHA-256 (section 4.3).
    case rsaOAEP256 = "RSA-OAEP-256"

    /// The only value of `enc`.
    static let contentEncryption = "A256GCM"

    init?(named name: JSON.Text) {
        guard let algorithm = Self.allCases.first(where: { JSON.Text($0.rawValue) == name }) else { return nil }
        self = algorithm
    }

    /// The `kty` of the algorithm's keys (RFC 7518, section 6.1).
    var keyType: JSON.Text { self == .rsaOAEP256 ? "RSA" : "EC" }

    /// The values of `key_ops`, one of which a public or a private key must permit (RFC 7517, section 4.3).
    var publicOperations: Set<JSON.Text> {
        self == .rsaOAEP256 ? ["wrapKey", "encrypt"] : ["deriveKey", "deriveBits"]
    }
    var privateOperations: Set<JSON.Text> { self == .rsaOAEP256 ? ["unwrapKey", "decrypt"] : publicOperations }
}
