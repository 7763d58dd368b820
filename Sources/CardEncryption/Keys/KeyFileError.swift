import Glibc

/// A file of keys that cannot be used: what, and which file.
public struct KeyFileError: Error, Hashable, Sendable {
    public enum Reason: Hashable, Sendable {
        /// There is no such file.
        case missing
        /// There is one already, and it is not replaced: keys that were used would be used again.
        case exists
        /// Another process, or another value in this one, uses it.
        case inUse
        /// Not a regular file of this user's that nobody else may read or write.
        case notPrivate
        /// Others may rename what is in the folder, and so bring an old state back.
        case folderNotPrivate
        /// Not a file of keys, or of a newer version.
        case foreign
        /// Of an older version, which is not read.
        case older
        /// Holds keys of another kind: which.
        case kind(String)
        /// Was made under another name: which.  It has been copied or renamed.
        case name(String)
        /// Is wrapped, and there is no wrapping key.
        case wrapped
        /// Is not wrapped, and there is a wrapping key.
        case notWrapped
        /// Torn, changed, or wrapped under another key.
        case notAuthentic
        /// What is in it contradicts itself.
        case malformed
        /// What is to be written does not fit: its bytes.
        case tooLong(Int)
        /// The service manager has handed over no credential of this name.
        case noCredential
        /// The credential is too short or too long to be a key: its bytes, where 32 to 4096 are due.
        case credential(Int)
        /// The system refused; `errno`.
        case system(Int32)
    }

    public let reason: Reason
    public let path: String

    init(_ reason: Reason, _ path: String) {
        self.reason = reason
        self.path = path
    }

    /// One sentence for a person: what to do next.
    public var hint: String {
        switch reason {
        case .missing: "Load a key first."
        case .exists: "Go on with the keys that are there, or load a key with another identifier into another file."
        case .inUse: "Stop the other program; one at a time uses a file of keys."
        case .notPrivate:
            "chown it to the user that runs this, and chmod 600; replace the keys if others could read them."
        case .folderNotPrivate:
            "chown the folder to the user that runs this, and chmod go-w; replace the keys if others could write there."
        case .foreign, .kind: "Give the path of the right file."
        case .older: "Move it away and load the keys anew; for DUKPT with another identifier."
        case .name:
            "Give the path of the right file; one that was renamed gets its name back, one that was copied is removed."
        case .wrapped: "Start the service with the systemd credential that the file was written with."
        case .notWrapped: "Make the file anew with the wrapping key, or read it without."
        case .notAuthentic:
            "Start with the credential that the file was written with. If that is gone, load a new key; for DUKPT with "
                + "another identifier, since a copy that is restored would use keys twice."
        case .malformed:
            "Load a new key; for DUKPT with another identifier, since a copy that is restored would use keys twice."
        case .tooLong: "Give the key a shorter name."
        case .noCredential: "Start it as a service with LoadCredentialEncrypted=NAME:FILE."
        case .credential:
            "Make it of 32 random bytes: head -c 32 /dev/urandom | systemd-creds encrypt --name=NAME - FILE"
        case .system: "See that the folder exists, belongs to this user, and that its disk is writable and not full."
        }
    }
}

extension KeyFileError: CustomStringConvertible {
    /// `/var/lib/kiosk/dukpt: torn, changed, or wrapped under another key`
    public var description: String {
        let what =
            switch reason {
            case .missing: "no such file"
            case .exists: "exists and is not replaced"
            case .inUse: "in use"
            case .notPrivate: "not a file that only its owner, this user, can read and write"
            case .folderNotPrivate: "a folder that others can write to"
            case .foreign: "not a file of keys that is known here"
            case .older: "a file of keys of an older version"
            case .kind(let kind): "a file of \(kind)"
            case .name(let name): "made under another name, \(JSON.excerpt(name))"
            case .wrapped: "wrapped, and there is no wrapping key"
            case .notWrapped: "not wrapped, and there is a wrapping key"
            case .notAuthentic: "torn, changed, or wrapped under another key"
            case .malformed: "its contents contradict themselves"
            case .tooLong(let count): "\(count) bytes do not fit"
            case .noCredential: "no such credential"
            case .credential(let count): "\(count) bytes are no wrapping key"
            case .system(let code): String(cString: strerror(code))
            }
        return "\(path): \(what)"
    }
}
