package import Crypto
package import FoundationEssentials
import Synchronization

/// A signer for this device, with ECDSA on P-256: a key in a file, or one that never leaves the chip that made it.
package protocol DeviceSigner: Sendable {
    var publicKey: P256.Signing.PublicKey { get }

    /// Blocks as long as the key takes.
    func sign(_ digest: SHA256.Digest) throws -> P256.Signing.ECDSASignature
}

extension P256.Signing.PrivateKey: DeviceSigner {
    package func sign(_ digest: SHA256.Digest) throws -> P256.Signing.ECDSASignature { try signature(for: digest) }
}

/// The keys of a device that stores things, made here, at rest in a ``KeyFile``.  Each is random by itself and has one
/// purpose: one signs (``signer``); one is the root of those that are derived (``derived(for:)``); one seals what is stored
/// (AES-256-GCM), and can be replaced.
///
/// A file that is not wrapped is read all the same where there is a wrapping key, until ``wrap()`` wraps it.
///
/// Whoever has one is alone with it on this machine, as long as the value lives.
package final class DeviceKey: Sendable {
    /// 16 bytes that name these keys, and are no secret.
    package let identifier: Data
    /// Whether it was made, and not read: ``save()`` puts it into the file.
    package let isNew: Bool
    private let signing: P256.Signing.PrivateKey
    private let root: SecretKey
    private let file: LockedKeyFile
    /// The newest first; two while what the older has sealed is sealed anew.
    private let sealing: Mutex<[SymmetricKey]>
    private let isWrapped: Mutex<Bool>

    package var signer: any DeviceSigner { signing }

    /// Identifier, root and signing key; the sealing keys follow.
    private static let lengths = (identifier: 16, root: 32, signing: 32, sealing: 32)

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
            identifier = Self.random(Self.lengths.identifier).withUnsafeBytes { Data($0) }
            signing = P256.Signing.PrivateKey()
            root = Self.random(Self.lengths.root)
            sealing = Mutex([SymmetricKey(size: .bits256)])
            isWrapped = Mutex(self.file.isWrapping)
            return
        }
        let (contents, isWrapped) = try self.file.readToWrap(kind: .deviceKey)
        defer { withExtendedLifetime(contents) {} }
        var rest = contents.readOnly[...]
        func part(_ count: Int) -> UnsafeRawBufferPointer {
            defer { rest = rest.dropFirst(count) }
            return UnsafeRawBufferPointer(rebasing: rest.prefix(count))
        }
        identifier = Data(part(Self.lengths.identifier))
        root = SecretKey(part(Self.lengths.root))
        guard let signing = try? P256.Signing.PrivateKey(rawRepresentation: part(Self.lengths.signing)), !rest.isEmpty,
            rest.count.isMultiple(of: Self.lengths.sealing)
        else { throw KeyFileError(.malformed, file.path) }
        self.signing = signing
        var keys: [SymmetricKey] = []
        while !rest.isEmpty { keys.append(SymmetricKey(data: part(Self.lengths.sealing))) }
        sealing = Mutex(keys)
        self.isWrapped = Mutex(isWrapped)
    }

    private static func random(_ count: Int) -> SecretKey {
        SecretKey(count: count) { bytes in
            SymmetricKey(size: SymmetricKeySize(bitCount: count * 8)).withUnsafeBytes { bytes.copyMemory(from: $0) }
        }
    }

    /// Puts new keys into the file.
    package func save() throws(KeyFileError) { try write(sealing.withLock { $0 }, file.create) }

    /// Whether the file is not wrapped, and there is a wrapping key.
    package var isToBeWrapped: Bool { file.isWrapping && !isWrapped.withLock { $0 } }

    /// Wraps the file; when this returns, the one that was not wrapped is overwritten on the disk.
    package func wrap() throws(KeyFileError) { try write(sealing.withLock { $0 }, file.replace) }

    private func write(
        _ keys: [SymmetricKey], _ put: (UnsafeRawBufferPointer, KeyFile.Kind) throws(KeyFileError) -> Void
    ) throws(KeyFileError) {
        let (identifier, root, signing, sealing) = Self.lengths
        let contents = WipedStorage(count: identifier + root + signing + sealing * keys.count)
        var rest = contents.bytes[...]
        func append(_ part: UnsafeRawBufferPointer) {
            UnsafeMutableRawBufferPointer(rebasing: rest.prefix(part.count)).copyMemory(from: part)
            rest = rest.dropFirst(part.count)
        }
        self.identifier.withUnsafeBytes(append)
        self.root.withUnsafeBytes(append)
        var raw = self.signing.rawRepresentation
        let scalar = WipedStorage(moving: &raw)
        withExtendedLifetime(scalar) { append(scalar.readOnly) }
        for key in keys { key.withUnsafeBytes(append) }
        try put(contents.readOnly, .deviceKey)
        withExtendedLifetime(contents) {}
        isWrapped.withLock { $0 = file.isWrapping }
    }

    /// The key for one purpose (HKDF of RFC 5869 with SHA-256, from the root).
    package func derived(for purpose: String) -> SymmetricKey {
        root.withUnsafeBytes { bytes in
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: SymmetricKey(data: bytes), info: Array(purpose.utf8), outputByteCount: 32)
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

extension DeviceKey: CustomStringConvertible, CustomReflectable {
    package var description: String { "device key" }
    /// Has no children.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
