import CardEncryption
import GRDB
import Glibc

/// Why the store cannot be used, whatever is asked of it.
package enum StoreFailure: Error, Hashable, Sendable {
    /// Another process has it.
    case busy
    /// Its key cannot be read: why.
    case key(String)
    /// The disk is full.
    case full
    /// The folder or its disk cannot be written.
    case notWritable(String)
    /// What is in it is not what was put there: what.
    case damaged(String)
    /// A newer version of this program made it.
    case newer
    /// An older version of this program made it, and what it stored would be lost.
    case older
    /// SQLite or the system refused: SQLite's extended result code, and of the system's what was asked and what it says.
    case system(Int, String)

    init(_ error: any Error) {
        switch error {
        case let error as StoreFailure: self = error
        case let error as KeyFileError:
            switch error.reason {
            case .inUse: self = .busy
            case .older: self = .older
            case .system(let code) where [ENOSPC, EDQUOT, EROFS].contains(code): self.init(code, error.path)
            default: self = .key("\(error.description); \(error.hint)")
            }
        case let error as DatabaseError:
            // Its message may quote what is stored; its result code says the same of the disk.
            let text = "SQLite \(error.extendedResultCode.rawValue)"
            switch error.resultCode {
            case .SQLITE_FULL: self = .full
            case .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM: self = .notWritable(text)
            case .SQLITE_CORRUPT, .SQLITE_NOTADB: self = .damaged(text)
            case .SQLITE_BUSY, .SQLITE_LOCKED: self = .busy
            // Entries refuse what contradicts them: the database was written by somebody else.
            case .SQLITE_CONSTRAINT: self = .damaged(text)
            default: self = .system(Int(error.extendedResultCode.rawValue), text)
            }
        default: self = .system(0, "\(type(of: error))")
        }
    }

    /// What the system says of a file.
    init(_ code: Int32, _ path: String) {
        let text = "\(path): \(String(cString: strerror(code)))"
        switch code {
        case ENOSPC, EDQUOT: self = .full
        case EROFS, EACCES, EPERM, ENOENT, ENOTDIR: self = .notWritable(text)
        default: self = .system(Int(code), text)
        }
    }

    /// SQLite's result code, which is what it comes nearest to.
    var code: Int {
        switch self {
        case .busy: 5
        case .key: 23
        case .full: 13
        case .notWritable: 8
        case .damaged: 11
        case .newer, .older: 26
        case .system(let code, _): code
        }
    }
}

extension StoreFailure: CustomStringConvertible {
    package var description: String {
        switch self {
        case .busy: "another program uses the store; stop it, one at a time can"
        case .key(let reason):
            "the store's keys cannot be used: \(reason) Without them nothing that is stored can be read"
        case .full: "the disk is full; nothing was stored; make room"
        case .notWritable(let text): "the store cannot be written (\(text)); see its folder's owner, mode and disk"
        case .damaged(let what):
            "the store is damaged: \(what); keep its folder as it is, and reconcile with the payment service"
        case .older: "the store was made by an older version of this program; use that one to forward what is stored"
        case .newer: "the store was made by a newer version of this program; use that one to forward what is stored"
        case .system(let code, let text): "the store failed: \(text) (\(code)); see its folder and its disk"
        }
    }
}

extension PaymentCardReaderError {
    /// What a failure of the store is while preparing or reading.
    init(_ failure: StoreFailure) {
        switch failure {
        case .busy: self = .readerBusy
        case .key: self = .passcodeDisabled
        case .full: self = .readerMemoryFull
        default: self = .prepareFailed("\(failure)")
        }
    }
}

extension PaymentCardReaderSession.ReadError {
    /// What a failure of the store is while a card is read: an error of this kind, or what preparing would have told.
    static func of(_ failure: StoreFailure) -> any Error {
        switch failure {
        case .busy, .key, .full: PaymentCardReaderError(failure)
        default: Self.unknown(code: failure.code)
        }
    }
}

extension PaymentCardReaderStore.StoreError {
    init(_ failure: StoreFailure) {
        switch failure {
        case .busy: self = .busy
        case .key: self = .passcodeDisabled
        default: self = .unknown(code: failure.code)
        }
    }
}
