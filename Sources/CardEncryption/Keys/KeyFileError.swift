import Glibc

/// An error in a key file, with the file.
public struct KeyFileError: Error, Hashable, Sendable {
    public enum Reason: Hashable, Sendable {
        /// There is no such file.
        case missing
        /// The file already exists, and is not replaced: its used keys would be used again.
        case exists
        /// Another process, or another value in this one, uses the file.
        case inUse
        /// The file is not a regular file of this user that nobody else may read or write.
        case notPrivate
        /// Others may rename files in the folder, and so restore an old state.
        case folderNotPrivate
        /// The file is not a key file, or has a newer version.
        case foreign
        /// The file has an older version, which is not supported.
        case older
        /// The file contains keys of another kind, given here.
        case kind(String)
        /// The file was created under another name, given here: it has been copied or renamed.
        case name(String)
        /// The file is wrapped, and there is no wrapping key.
        case wrapped
        /// The file is not wrapped, and there is a wrapping key.
        case notWrapped
        /// The file is torn, changed, or wrapped under another key.
        case notAuthentic
        /// The contents are contradictory.
        case malformed
        /// The contents are too long, with their number of bytes.
        case tooLong(Int)
        /// The service manager has provided no credential of this name.
        case noCredential
        /// The credential has an invalid length, with its number of bytes; required are 32 to 4096.
        case credential(Int)
        /// The system refused, with its `errno`.
        case system(Int32)
    }

    public let reason: Reason
    public let path: String

    init(_ reason: Reason, _ path: String) {
        self.reason = reason
        self.path = path
    }

    /// A sentence that tells a person what to do next.
    public var hint: String {
        switch reason {
        case .missing: "Load a key first."
        case .exists: "Continue with the existing keys, or load a key with another identifier into another file."
        case .inUse: "Stop the other program; one at a time uses a file of keys."
        case .notPrivate:
            "chown it to the user that runs this, and chmod 600; replace the keys if others could read them."
        case .folderNotPrivate:
            "chown the folder to the user that runs this, and chmod go-w; replace the keys if others could write there."
        case .foreign, .kind: "Give the path of the right file."
        case .older: "Move it away and load the keys again; for DUKPT with another identifier."
        case .name:
            "Give the path of the right file; one that was renamed gets its name back, one that was copied is removed."
        case .wrapped: "Start the service with the systemd credential that the file was written with."
        case .notWrapped: "Create the file again with the wrapping key, or read it without."
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
    /// The error as text: `/var/lib/kiosk/dukpt: torn, changed, or wrapped under another key`.
    public var description: String {
        let what =
            switch reason {
            case .missing: "no such file"
            case .exists: "exists and is not replaced"
            case .inUse: "in use"
            case .notPrivate: "not a file that only its owner, this user, can read and write"
            case .folderNotPrivate: "a folder that others can write to"
            case .foreign: "not a known key file"
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
