import Crypto
import CryptoExtras
import FoundationEssentials

/// A private key, which opens what is sealed to it.  For payment services under development, and for tests; a payment
/// service in production keeps it in a hardware security module.
///
/// It prints only its name.
public final class JWEPrivateKey: Sendable {
    public let algorithm: JWEAlgorithm
    /// The key's `kid`.
    public let keyID: String?
    private let key: Key

    private enum Key: @unchecked Sendable {
        case p256(P256.KeyAgreement.PrivateKey)
        // BoringSSL's keys are not changed by their use, from any number of threads.
        case rsa(_RSA.Encryption.PrivateKey)
    }

    /// Generates a key: on P-256, or RSA with 3072 bits, which takes about a second.
    public init(generating algorithm: JWEAlgorithm, keyID: String? = nil) throws(JWEError) {
        self.algorithm = algorithm
        self.keyID = keyID
        if algorithm == .rsaOAEP256 {
            guard let rsa = try? _RSA.Encryption.PrivateKey(keySize: .bits3072) else { throw JWEError(.refused) }
            key = .rsa(rsa)
        } else {
            key = .p256(P256.KeyAgreement.PrivateKey())
        }
    }

    /// Parses a JWK with its private members (RFC 7518, sections 6.2.2 and 6.3.2); RSA requires all of them.
    ///
    /// The text is not wiped: for keys that tests and services under development have as text.
    ///
    /// - Parameters:
    ///   - text: the JSON text of the JWK.
    ///   - algorithm: as in ``JWERecipient/init(jwk:algorithm:)``.
    public init(jwk text: some StringProtocol, algorithm: JWEAlgorithm? = nil) throws(JWKError) {
        let jwk = try JWEKey(JWK.object(text.utf8), algorithm: algorithm, isPrivate: true)
        self.algorithm = jwk.algorithm
        keyID = jwk.keyID
        switch jwk.algorithm {
        case .ecdhES, .ecdhESA256KW:
            let point = try P256Point(jwk: jwk.members)
            let scalar = try jwk.bytes("d")
            guard scalar.count == 32, let key = try? P256.KeyAgreement.PrivateKey(rawRepresentation: scalar) else {
                throw JWKError(.malformed, "d")
            }
            guard P256Point(key.publicKey) == point else { throw JWKError(.mismatch) }
            self.key = .p256(key)
        case .rsaOAEP256:
            var numbers: [[UInt8]] = [[0]]
            for name in ["n", "e", "d", "p", "q", "dp", "dq", "qi"] { numbers.append(try jwk.number(name)) }
            let publicHalf = try jwk.publicRSAKey()
            // RSAPrivateKey (RFC 8017, A.1.2), whose parser checks that the numbers agree.
            let der = DER.sequence(numbers.map(DER.integer))
            guard let key = try? _RSA.Encryption.PrivateKey(derRepresentation: der),
                key.publicKey.derRepresentation == publicHalf.derRepresentation
            else { throw JWKError(.mismatch) }
            self.key = .rsa(key)
        }
    }

    /// Reads the key that ``save(to:)`` wrote to `file`.
    ///
    /// Blocks on the disk: call it only at start, and not on the threads that Swift's tasks share.
    ///
    /// - Throws: ``KeyFileError``.
    public init(_ file: KeyFile) throws(KeyFileError) {
        let contents = try LockedKeyFile(file, isThere: true).read(kind: .jwePrivateKey)
        defer { withExtendedLifetime(contents) {} }
        var rest = contents.readOnly[...]
        /// Reads a part that is preceded by its length.
        func part() throws(KeyFileError) -> String {
            guard let count = rest.popFirst(), rest.count >= Int(count),
                let text = String(validating: rest.prefix(Int(count)), as: UTF8.self)
            else { throw KeyFileError(.malformed, file.path) }
            rest = rest.dropFirst(Int(count))
            return text
        }
        guard let algorithm = JWEAlgorithm(named: JSON.Text(try part())) else {
            throw KeyFileError(.malformed, file.path)
        }
        self.algorithm = algorithm
        switch rest.popFirst() {
        case 0: keyID = nil
        case 1: keyID = try part()
        default: throw KeyFileError(.malformed, file.path)
        }
        do {
            key =
                algorithm == .rsaOAEP256
                ? .rsa(try _RSA.Encryption.PrivateKey(derRepresentation: UnsafeRawBufferPointer(rebasing: rest)))
                : .p256(try P256.KeyAgreement.PrivateKey(rawRepresentation: UnsafeRawBufferPointer(rebasing: rest)))
        } catch {
            throw KeyFileError(.malformed, file.path)
        }
    }

    /// Writes the key to `file`, in place of an earlier JWE key; it is on the disk when this returns.
    ///
    /// Blocks on the disk, and for some seconds if the file is in use.
    ///
    /// - Throws: ``KeyFileError``, including `kind` if the file contains other keys, and `tooLong` for a ``keyID`` of
    ///   more than 255 bytes.
    public func save(to file: KeyFile) throws(KeyFileError) {
        // The algorithm, preceded by its length; 0 without a kid, or 1 and the kid, preceded by its length; the key.
        var start: [UInt8] = []
        for (mark, text) in [([], algorithm.rawValue), (keyID == nil ? [0] : [1], keyID)] as [([UInt8], String?)] {
            start += mark
            guard let text else { continue }
            guard let count = UInt8(exactly: text.utf8.count) else {
                throw KeyFileError(.tooLong(text.utf8.count), file.path)
            }
            start += [count] + text.utf8
        }
        var raw =
            switch key {
            case .p256(let key): key.rawRepresentation
            case .rsa(let key): key.derRepresentation
            }
        let clear = WipedStorage(moving: &raw)
        let contents = WipedStorage(count: start.count + clear.bytes.count)
        contents.bytes.copyBytes(from: start)
        contents.bytes[start.count...].copyBytes(from: clear.bytes)
        let locked = try LockedKeyFile(file, isThere: false)
        try (locked.isThere ? locked.replace : locked.create)(contents.readOnly, .jwePrivateKey)
        withExtendedLifetime((clear, contents)) {}
    }

    /// The public key as a JWK, for senders.
    public var publicJWK: String {
        let members =
            switch key {
            case .p256(let key): P256Point(key.publicKey).members
            case .rsa(let key): Self.members(of: key.publicKey)
            }
        let name = keyID.map { #","kid":"# + JSON.quoted($0) } ?? ""
        return "{\(members),\"use\":\"enc\",\"alg\":\"\(algorithm.rawValue)\"\(name)}"
    }

    private static func members(of key: _RSA.Encryption.PublicKey) -> String {
        guard let numbers = try? key.getKeyPrimitives() else { return #""kty":"RSA""# }
        return
            #""kty":"RSA","n":"\#(Base64.url.encode(numbers.modulus))","e":"\#(Base64.url.encode(numbers.publicExponent))""#
    }

    /// Opens a JWE that is sealed to this key.
    ///
    /// A content key that cannot be recovered is replaced with a random one: the content then fails to open, and the
    /// error does not reveal the difference (RFC 7516, section 11.5).  The time may differ by microseconds.
    ///
    /// - Parameters:
    ///   - jwe: the sealed card data.
    ///   - body: receives the card data in storage that is wiped when it returns.  It must not keep the buffer.
    /// - Throws: ``JWEError``; errors of `body`.
    public func open<Result>(
        _ jwe: CompactJWE, _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        guard jwe.algorithm == algorithm else { throw JWEError(.otherAlgorithm(jwe.algorithm), in: .header) }
        if let keyID, let other = jwe.header.keyID, JSON.Text(other) != JSON.Text(keyID) {
            throw JWEError(.otherKey(other), in: .header)
        }
        guard
            let nonce = try? AES.GCM.Nonce(data: jwe.initializationVector),
            let box = try? AES.GCM.SealedBox(nonce: nonce, ciphertext: jwe.ciphertext, tag: jwe.tag),
            var opened = try? AES.GCM.open(box, using: contentKey(of: jwe), authenticating: jwe.authenticatedData)
        else { throw JWEError(.notAuthentic) }
        let clear = WipedStorage(moving: &opened)
        return try withExtendedLifetime(clear) { try body(clear.readOnly) }
    }

    /// Returns the content key, or a random one.
    private func contentKey(of jwe: CompactJWE) -> SymmetricKey {
        switch key {
        case .rsa(let key):
            // Both branches generate random bytes, and create a key from the final contents.
            let content = SecretKey(count: 32) { bytes in
                SymmetricKey(size: .bits256).withUnsafeBytes { bytes.copyMemory(from: $0) }
                guard var recovered = try? key.decrypt(jwe.encryptedKey, padding: .PKCS1_OAEP_SHA256) else { return }
                let clear = WipedStorage(moving: &recovered)
                if clear.bytes.count == 32 { bytes.copyMemory(from: clear.readOnly) }
                withExtendedLifetime(clear) {}
            }
            return content.withUnsafeBytes { SymmetricKey(data: $0) }
        case .p256(let key):
            guard let point = jwe.ephemeralKey?.key,
                let secret = try? key.sharedSecretFromKeyAgreement(with: point)
            else { return SymmetricKey(size: .bits256) }
            let agreed = algorithm.agreedKey(secret, header: jwe.header)
            if algorithm == .ecdhES { return agreed }
            return (try? AES.KeyWrap.unwrap(jwe.encryptedKey, using: agreed)) ?? SymmetricKey(size: .bits256)
        }
    }
}

extension JWEPrivateKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The algorithm and the name.
    public var description: String { "private key for \(algorithm.rawValue)" + (keyID.map { ", \($0)" } ?? "") }
    public var debugDescription: String { description }
    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The part of DER (X.690) that an RSA key requires.
private enum DER {
    static func sequence(_ items: [[UInt8]]) -> [UInt8] { item(0x30, Array(items.joined())) }

    /// Encodes a nonnegative number.
    static func integer(_ bytes: [UInt8]) -> [UInt8] { item(0x02, bytes[0] < 0x80 ? bytes : [0] + bytes) }

    private static func item(_ tag: UInt8, _ value: [UInt8]) -> [UInt8] {
        var length: [UInt8] = []
        var rest = value.count
        while rest > 0 {
            length.insert(UInt8(truncatingIfNeeded: rest), at: 0)
            rest >>= 8
        }
        return [tag] + (value.count < 0x80 ? [UInt8(value.count)] : [0x80 | UInt8(length.count)] + length) + value
    }
}
