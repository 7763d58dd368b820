package import Crypto
package import FoundationEssentials
import Synchronization

/// The keys of a device that stores things, made here, at rest in a ``KeyFile``: one that it signs them with (ECDSA on
/// P-256), and one that seals what it stores (AES-256-GCM), which can be replaced.
///
/// Whoever has one is alone with it on this machine, as long as the value lives.
package final class DeviceKey: Sendable {
    package let signing: P256.Signing.PrivateKey
    /// Whether it was made, and not read: ``save()`` puts it into the file.
    package let isNew: Bool
    private let file: LockedKeyFile
    /// The newest first; two while what the older has sealed is sealed anew.
    private let sealing: Mutex<[SymmetricKey]>

    /// The keys in `file`, or new ones.
    ///
    /// Blocks for the disk, and for some seconds where another uses the file.
    ///
    /// - Parameter isNew: whether there are to be new ones; asked when nobody else has the file.
    /// - Throws: ``KeyFileError``, among them `inUse`.
    package init(_ file: KeyFile, isNew: () -> Bool) throws(KeyFileError) {
        self.file = try LockedKeyFile(file, isThere: false)
        self.isNew = isNew()
        guard !self.isNew else {
            guard !self.file.isThere else { throw KeyFileError(.exists, file.path) }
            signing = P256.Signing.PrivateKey()
            sealing = Mutex([SymmetricKey(size: .bits256)])
            return
        }
        let contents = try self.file.read(kind: .deviceKey)
        defer { withExtendedLifetime(contents) {} }
        let bytes = contents.readOnly
        guard bytes.count >= 64, bytes.count % 32 == 0 else { throw KeyFileError(.malformed, file.path) }
        do {
            signing = try P256.Signing.PrivateKey(rawRepresentation: UnsafeRawBufferPointer(rebasing: bytes[..<32]))
        } catch {
            throw KeyFileError(.malformed, file.path)
        }
        sealing = Mutex(
            stride(from: 32, to: bytes.count, by: 32).map { offset in
                SymmetricKey(data: UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + 32)]))
            })
    }

    /// Puts new keys into the file.
    package func save() throws(KeyFileError) { try write(sealing.withLock { $0 }, file.create) }

    private func write(
        _ keys: [SymmetricKey], _ put: (UnsafeRawBufferPointer, KeyFile.Kind) throws(KeyFileError) -> Void
    ) throws(KeyFileError) {
        let contents = WipedStorage(count: 32 * (1 + keys.count))
        var raw = signing.rawRepresentation
        let signing = WipedStorage(moving: &raw)
        contents.bytes.copyBytes(from: signing.readOnly)
        for (index, key) in keys.enumerated() {
            key.withUnsafeBytes { contents.bytes[(32 * (index + 1))...].copyBytes(from: $0) }
        }
        withExtendedLifetime(signing) {}
        try put(contents.readOnly, .deviceKey)
        withExtendedLifetime(contents) {}
    }

    /// A key that only who has the device's can make.
    package func derived(for purpose: String) -> SymmetricKey {
        var raw = signing.rawRepresentation
        let contents = WipedStorage(moving: &raw)
        return contents.withUnsafeBytes { bytes in
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: SymmetricKey(data: UnsafeRawBufferPointer(bytes)), info: Array(purpose.utf8),
                outputByteCount: 32)
        }
    }

    // MARK: Sealing

    /// - Parameter name: what has to be given to open it.
    package func seal(_ contents: some ContiguousBytes, as name: Data) throws -> Data {
        guard let newest = sealing.withLock({ $0.first }),
            let sealed = try contents.withUnsafeBytes({
                try AES.GCM.seal($0, using: newest, authenticating: name).combined
            })
        else { throw CryptoKitError.incorrectParameterSize }
        return sealed
    }

    /// - Throws: `CryptoKitError` for what is not as it was sealed, or was by a key that was given up.
    package func open(_ sealed: Data, as name: Data) throws -> Data {
        let box = try AES.GCM.SealedBox(combined: sealed)
        for key in sealing.withLock({ $0 }) {
            if let contents = try? AES.GCM.open(box, using: key, authenticating: name) { return contents }
        }
        throw CryptoKitError.authenticationFailure
    }

    /// Whether there is an older key besides the one that seals.
    package var isReplacing: Bool { sealing.withLock { $0.count > 1 } }

    /// From now on a new key seals; what the one before has sealed can be opened until that is given up.
    package func replaceSealingKey() throws(KeyFileError) {
        let keys = [SymmetricKey(size: .bits256)] + sealing.withLock { $0 }
        try write(keys, file.replace)
        sealing.withLock { $0 = keys }
    }

    /// Nobody opens any more what the key before the newest has sealed.
    package func giveUpOldSealingKeys() throws(KeyFileError) {
        let keys = Array(sealing.withLock { $0 }.prefix(1))
        try write(keys, file.replace)
        sealing.withLock { $0 = keys }
    }
}
