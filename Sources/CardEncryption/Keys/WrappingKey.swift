import Crypto
import Glibc

/// The key that wraps keys on the disk: from the service manager, which may have it from a TPM.
///
/// `systemd-creds encrypt --with-key=tpm2` makes a credential that only this machine's TPM opens; the service names it with
/// `LoadCredentialEncrypted=`, and systemd hands it over in `$CREDENTIALS_DIRECTORY`.
public struct WrappingKey: Sendable {
    let key: SymmetricKey

    /// - Parameter secret: at least 32 random bytes.
    /// - Returns: nil for less.
    public init?(_ secret: SecretKey) {
        guard secret.count >= 32 else { return nil }
        key = secret.withUnsafeBytes { bytes in
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: SymmetricKey(data: bytes), info: Array("card-encryption key file".utf8),
                outputByteCount: 32)
        }
    }

    /// The credential that systemd has for this service.
    ///
    /// - Parameter name: as `LoadCredential=` names it.
    /// - Returns: nil where there is none: no `$CREDENTIALS_DIRECTORY`, or no such file in it.
    /// - Throws: ``KeyFileError`` where it cannot be read, or has less than 32 bytes.
    public static func systemdCredential(_ name: String) throws(KeyFileError) -> WrappingKey? {
        try systemdCredential(name, in: getenv("CREDENTIALS_DIRECTORY").map { String(cString: $0) })
    }

    static func systemdCredential(_ name: String, in directory: String?) throws(KeyFileError) -> WrappingKey? {
        guard let directory, !name.isEmpty, !name.contains("/"), name != ".", name != ".." else { return nil }
        let path = directory + "/" + name
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw KeyFileError(.system(errno), path)
        }
        defer { close(descriptor) }
        // systemd bounds credentials to 1 MiB; a key is no longer than this.
        let storage = WipedStorage(count: 4096)
        let count = try KeyFile.readAll(descriptor, into: storage.bytes, path: path)
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
