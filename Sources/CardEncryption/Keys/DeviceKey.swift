package import Crypto
import FoundationEssentials

/// The key that a device signs what it stores with: ECDSA on P-256, made here, at rest in a ``KeyFile``.
///
/// Whoever has one is alone with it on this machine, as long as the value lives.
package final class DeviceKey: Sendable {
    package let signing: P256.Signing.PrivateKey
    private let file: LockedKeyFile

    /// The key in `file`.
    ///
    /// Blocks for the disk, and for some seconds where another uses the file.
    ///
    /// - Parameter isNew: makes one, and the file, which must not be there yet.
    /// - Throws: ``KeyFileError``, among them `inUse`.
    package init(_ file: KeyFile, isNew: Bool) throws(KeyFileError) {
        self.file = try LockedKeyFile(file, isThere: !isNew)
        if isNew {
            signing = P256.Signing.PrivateKey()
            var raw = signing.rawRepresentation
            let contents = WipedStorage(moving: &raw)
            try self.file.create(contents.readOnly, kind: .deviceKey)
            withExtendedLifetime(contents) {}
            return
        }
        let contents = try self.file.read(kind: .deviceKey)
        do {
            signing = try P256.Signing.PrivateKey(rawRepresentation: contents.readOnly)
        } catch {
            throw KeyFileError(.malformed, file.path)
        }
        withExtendedLifetime(contents) {}
    }

    /// A key for keyed hashes that only who has the device's key can make.
    package func derived(for purpose: String) -> SymmetricKey {
        var raw = signing.rawRepresentation
        let contents = WipedStorage(moving: &raw)
        return contents.withUnsafeBytes { bytes in
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: SymmetricKey(data: UnsafeRawBufferPointer(bytes)), info: Array(purpose.utf8),
                outputByteCount: 32)
        }
    }
}
