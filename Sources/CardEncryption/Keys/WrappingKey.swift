import Crypto
import Glibc

/// The key that wraps keys on the disk: from the service manager, which may have it from a TPM.
///
/// `systemd-creds encrypt --with-key=tpm2` makes a credential that only this machine's TPM opens; the service names it with
/// `LoadCredentialEncrypted=`, and systemd hands it over in `$CREDENTIALS_DIRECTORY`.
public struct WrappingKey: Sendable {
    private let key: SecretKey

    /// - Parameter secret: at least 32 random bytes.
    /// - Returns: nil for less.
    public init?(_ secret: SecretKey) {
        guard secret.count >= 32 else { return nil }
        let derived = secret.withUnsafeBytes { bytes in
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: SymmetricKey(data: bytes), info: Array("card-encryption key file".utf8),
                outputByteCount: 32)
        }
        key = SecretKey(count: 32) { key in derived.withUnsafeBytes { key.copyMemory(from: $0) } }
    }

    /// The key as swift-crypto takes it, for the time of a call: it wipes it, and keeps it from no swap file.
    func withKey<Result>(_ body: (SymmetricKey) throws -> Result) rethrows -> Result {
        try body(key.withUnsafeBytes { SymmetricKey(data: $0) })
    }

    /// The credential that systemd has for this service.
    ///
    /// - Parameter name: as `LoadCredential=` names it.
    /// - Throws: ``KeyFileError``: `noCredential` where there is none, so that nothing rests unwrapped because of a wrong name
    ///   or a unit that lacks it; where it cannot be read, or is not 32 to 4096 bytes long.
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
        // systemd bounds credentials to 1 MiB; a key is no longer than this.
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
    /// Has no children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
