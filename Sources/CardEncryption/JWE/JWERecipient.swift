import Crypto
import CryptoExtras

/// The recipient of sealed card data: a public key, with its algorithm.
public struct JWERecipient: Sendable {
    public let algorithm: JWEAlgorithm
    /// The key's `kid`.
    public let keyID: String?
    private let key: Key

    private enum Key: @unchecked Sendable {
        case p256(P256.KeyAgreement.PublicKey)
        // BoringSSL's keys are not changed by their use, from any number of threads.
        case rsa(_RSA.Encryption.PublicKey)
    }

    /// Creates a recipient from a JWK (RFC 7517): on P-256, or RSA with at least 2048 bits.
    ///
    /// - Parameters:
    ///   - jwk: the recipient's public key.
    ///   - algorithm: the algorithm to use; nil for the key's `alg`.  If both are present they must agree, and `use`
    ///     and `key_ops`, if present, must permit it.
    /// - Throws: ``JWKError``.
    public init(_ jwk: JWK, algorithm: JWEAlgorithm? = nil) throws(JWKError) {
        let jwk = try JWEKey(jwk.members, algorithm: algorithm, isPrivate: false)
        self.algorithm = jwk.algorithm
        keyID = jwk.keyID
        switch jwk.algorithm {
        case .ecdhES, .ecdhESA256KW: key = .p256(try P256Point(jwk: jwk.members).key)
        case .rsaOAEP256: key = .rsa(try jwk.publicRSAKey())
        }
    }

    /// Creates a recipient from the text of a JWK, by the rules of ``init(_:algorithm:)``.
    ///
    /// - Throws: ``JWKError``, also for a private key.
    public init(jwk text: some StringProtocol, algorithm: JWEAlgorithm? = nil) throws(JWKError) {
        try self.init(JWK(text), algorithm: algorithm)
    }

    /// Seals card data to this key, each time with a new content key and a new initialization vector.
    ///
    /// - Parameters:
    ///   - data: the card data.
    ///   - header: further header members; `kid` defaults to the key's.
    /// - Throws: ``JWEError``.
    public func seal(_ data: ClearCardData, header: JWEHeader = JWEHeader()) throws(JWEError) -> SealedCardData {
        var header = header
        header.keyID = header.keyID ?? keyID
        do {
            return .jwe(try sealed(data, header: header))
        } catch let error as JWEError {
            throw error
        } catch {
            throw JWEError(.refused)
        }
    }

    private func sealed(_ data: ClearCardData, header: JWEHeader) throws -> CompactJWE {
        let contentKey: SymmetricKey
        let encryptedKey: [UInt8]
        var ephemeralPoint: P256Point?
        switch key {
        case .rsa(let key):
            contentKey = SymmetricKey(size: .bits256)
            encryptedKey = Array(
                try contentKey.withUnsafeBytes { try key.encrypt($0, padding: .PKCS1_OAEP_SHA256) })
        case .p256(let key):
            let ephemeral = P256.KeyAgreement.PrivateKey()
            ephemeralPoint = P256Point(ephemeral.publicKey)
            let agreed = algorithm.agreedKey(
                try ephemeral.sharedSecretFromKeyAgreement(with: key), header: header)
            if algorithm == .ecdhES {
                (contentKey, encryptedKey) = (agreed, [])
            } else {
                contentKey = SymmetricKey(size: .bits256)
                encryptedKey = Array(try AES.KeyWrap.wrap(contentKey, using: agreed))
            }
        }
        let protected = Base64.url.encode(
            Array(try header.json(algorithm: algorithm, ephemeralKey: ephemeralPoint).utf8))
        let box = try data.withUnsafeBytes {
            try AES.GCM.seal($0, using: contentKey, authenticating: Array(protected.utf8))
        }
        let parts = [encryptedKey, Array(box.nonce), Array(box.ciphertext), Array(box.tag)]
        return try CompactJWE(parsing: ([protected] + parts.map(Base64.url.encode)).joined(separator: "."))
    }
}

extension JWEAlgorithm {
    /// Derives the agreed key: the content key, or the key that wraps it.
    func agreedKey(_ secret: SharedSecret, header: JWEHeader) -> SymmetricKey {
        ConcatKDF.key(
            secret, algorithm: self == .ecdhES ? Self.contentEncryption : rawValue,
            partyU: header.agreementPartyU ?? [], partyV: header.agreementPartyV ?? [], bitCount: 256)
    }
}
