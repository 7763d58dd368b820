import Crypto
import Glibc

/// The key that wraps keys on the disk, provided by the service manager, possibly from a TPM.
///
/// `systemd-creds encrypt --with-key=tpm2` creates a credential that only this machine's TPM opens.  The service names
/// it with `LoadCredentialEncrypted=`, and systemd provides it in `$CREDENTIALS_DIRECTORY`.
public struct WrappingKey: Sendable {
    private let key: SecretKey

    /// Creates a wrapping key.
    ///
    /// - Parameter secret: at least 32 random bytes.
    /// - Returns: nil for fewer.
    public init?(_ secret: SecretKey) {
        guard secret.count >= 32 else { return nil }
        let derived = secret.withUnsafeBytes { bytes in
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: SymmetricKey(data: bytes), info: Array("card-encryption key file".utf8),
                outputByteCount: 32)
        }
        key = SecretKey(count: 32) { key in derived.withUnsafeBytes { key.copyMemory(from: $0) } }
    }

    /// Lends the key to swift-crypto for one call.  swift-crypto wipes its copy, but does not keep it out of the swap
    /// file.
    func withKey<Result>(_ body: (SymmetricKey) throws -> Result) rethrows -> Result {
        try body(key.withUnsafeBytes { SymmetricKey(data: $0) })
    }

    /// Reads the credential that systemd provides to this service.
    ///
    /// - Parameter name: the name in `LoadCredential=`.
    /// - Throws: ``KeyFileError``: `noCredential` if there is none, so that no key is stored unwrapped because of a
    ///   wrong name or an incomplete unit; also if it cannot be read, or does not have 32 to 4096 bytes.
    public static func systemdCredential(_ name: String) throws(KeyFileError) -> WrappingKey {
        try systemdCredential(name, in: getenv("CREDENTIALS_DIRECTORY").map { String(cString: $0) })
    }

    static func systemdCredential(_ name: String, in directory: String?) throws(KeyFileError) -> WrappingKey {
        guard let directory, !name.isEmpty, !name.contains("/"), name != ".", name != ".." else {
            throw KeyFileError(.noCredential, name)
        }
        let path = directory + "/" + name
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw KeyFileError(errno == ENOENT ? .noCredential : .system(errno), path) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw KeyFileError(.system(errno), path) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw KeyFileError(.notPrivate, path) }
        // systemd limits credentials to 1 MiB; a key is shorter than this.
        let storage = WipedStorage(count: 4096 + 1)
        let count = try LockedKeyFile.readAll(descriptor, into: storage.bytes, path: path)
        guard count <= 4096 else { throw KeyFileError(.credential(Int(status.st_size)), path) }
        let secret = storage.withUnsafeBytes { SecretKey($0.prefix(count)) }
        guard let key = WrappingKey(secret) else { throw KeyFileError(.credential(count), path) }
        return key
    }
}

extension WrappingKey: CustomStringConvertible, CustomReflectable {
    public var description: String { "wrapping key" }
    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
