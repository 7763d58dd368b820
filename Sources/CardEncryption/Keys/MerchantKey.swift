package import Crypto
import FoundationEssentials

/// A merchant's private key for passes in wallets, on P-256: Apple's passes are encrypted to it, Google's wallet expects
/// its signature.
///
/// It prints only its kind, and is wiped when the last reference is released.
public final class MerchantKey: Sendable {
    private let scalar: SecretKey

    /// The number of bytes of a private key.
    private static let length = 32

    /// Generates a key.
    public convenience init() { self.init(P256.KeyAgreement.PrivateKey()) }

    package init(_ key: P256.KeyAgreement.PrivateKey) {
        var raw = key.rawRepresentation
        scalar = WipedStorage(moving: &raw).withUnsafeBytes { SecretKey($0) }
    }

    /// Creates a key from its number, as published test keys are written.
    ///
    /// - Parameter number: 32 bytes, most significant first.
    /// - Returns: nil for a number that is no key on P-256.
    public convenience init?(_ number: [UInt8]) {
        guard let key = try? P256.KeyAgreement.PrivateKey(rawRepresentation: number) else { return nil }
        self.init(key)
    }

    /// Parses a key as `openssl ecparam -name prime256v1 -genkey` and `openssl genpkey` write it: PEM, with an EC PRIVATE KEY
    /// (RFC 5915) or a PRIVATE KEY (RFC 5208) that is not encrypted.  The text is not wiped.
    ///
    /// - Returns: nil for another text, or a key that is not on P-256.
    public convenience init?(pem text: String) {
        guard let key = Self.key(pem: text) else { return nil }
        self.init(key)
    }

    /// Reads a key from a file that only this user can read: one that ``save(to:)`` wrote, or PEM as ``init(pem:)`` takes it.
    ///
    /// Blocks on the disk: call it only at start, and not on the threads that Swift's tasks share.
    ///
    /// - Throws: ``KeyFileError``, including `foreign` for a file that is neither.
    public convenience init(_ file: KeyFile) throws(KeyFileError) {
        let locked = try LockedKeyFile(file, isThere: true)
        let (storage, count) = try locked.readWhole()
        defer { withExtendedLifetime(storage) {} }
        let bytes = UnsafeRawBufferPointer(rebasing: storage.readOnly.prefix(count))
        if String(decoding: bytes.prefix(64), as: UTF8.self).contains("-----BEGIN ") {
            guard let key = Self.key(pem: String(decoding: bytes, as: UTF8.self)) else {
                throw KeyFileError(.malformed, file.path)
            }
            self.init(key)
            return
        }
        let contents = try locked.read(kind: .merchantKey)
        defer { withExtendedLifetime(contents) {} }
        guard let key = try? P256.KeyAgreement.PrivateKey(rawRepresentation: contents.readOnly) else {
            throw KeyFileError(.malformed, file.path)
        }
        self.init(key)
    }

    /// Writes the key to `file`, in place of an earlier merchant key; it is on the disk when this returns.
    ///
    /// Blocks on the disk, and for some seconds if the file is in use.
    ///
    /// - Throws: ``KeyFileError``, including `kind` if the file contains other keys.
    public func save(to file: KeyFile) throws(KeyFileError) {
        let contents = WipedStorage(count: Self.length)
        scalar.withUnsafeBytes { contents.bytes.copyMemory(from: $0) }
        let locked = try LockedKeyFile(file, isThere: false)
        try (locked.isThere ? locked.replace : locked.create)(contents.readOnly, .merchantKey)
        withExtendedLifetime(contents) {}
    }

    private static func key(pem: String) -> P256.KeyAgreement.PrivateKey? {
        // EC PARAMETERS, which OpenSSL writes before the key, are no part of it.
        guard let start = pem.ranges(of: "-----BEGIN ").map(\.lowerBound).last(where: { !pem[$0...].isParameters })
        else {
            return nil
        }
        return try? P256.KeyAgreement.PrivateKey(pemRepresentation: String(pem[start...]))
    }

    /// The key for agreement: swift-crypto's copy, which it wipes, but does not keep out of the swap file.
    package var agreement: P256.KeyAgreement.PrivateKey {
        get throws { try scalar.withUnsafeBytes { try P256.KeyAgreement.PrivateKey(rawRepresentation: $0) } }
    }

    /// The same key for signatures.
    package var signing: P256.Signing.PrivateKey {
        get throws { try scalar.withUnsafeBytes { try P256.Signing.PrivateKey(rawRepresentation: $0) } }
    }
}

extension Substring {
    fileprivate var isParameters: Bool { hasPrefix("-----BEGIN EC PARAMETERS") }
}

extension MerchantKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "a merchant's private key" }
    public var debugDescription: String { description }
    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
