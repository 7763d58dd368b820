import CardEncryption
import Foundation
import GRDB
import Glibc

/// The reason for which the store cannot be used by any call.
package enum StoreFailure: Error, Hashable, Sendable {
    /// Another process holds the store.
    case busy
    /// The key cannot be read, with the reason.
    case key(String)
    /// The disk is full.
    case full
    /// The folder or its disk cannot be written to.
    case notWritable(String)
    /// The contents are not those that were written, with details.
    case damaged(String)
    /// The store was created by a newer version of this program.
    case newer
    /// The store was created by an older version of this program, and opening it would lose its contents.
    case older
    /// SQLite or the system failed: SQLite's extended result code, or the system's operation and message.
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
            // SQLite's message may quote stored data; its result code is safe.
            let text = "SQLite \(error.extendedResultCode.rawValue)"
            switch error.resultCode {
            case .SQLITE_FULL: self = .full
            case .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM: self = .notWritable(text)
            case .SQLITE_CORRUPT, .SQLITE_NOTADB: self = .damaged(text)
            case .SQLITE_BUSY, .SQLITE_LOCKED: self = .busy
            // Entries that contradict a constraint were not written by this program.
            case .SQLITE_CONSTRAINT: self = .damaged(text)
            default: self = .system(Int(error.extendedResultCode.rawValue), text)
            }
        default: self = .system(0, "\(type(of: error))")
        }
    }

    /// Maps a system error for a file.
    init(_ code: Int32, _ path: String) {
        let text = "\(path): \(String(cString: strerror(code)))"
        switch code {
        case ENOSPC, EDQUOT: self = .full
        case EROFS, EACCES, EPERM, ENOENT, ENOTDIR: self = .notWritable(text)
        default: self = .system(Int(code), text)
        }
    }

    /// The closest SQLite result code.
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

extension StoreFailure: CustomStringConvertible, LocalizedError {
    package var errorDescription: String? { description }

    package var description: String {
        switch self {
        case .busy: "another program uses the store; stop it: only one program at a time can"
        case .key(let reason):
            "the store's keys cannot be used: \(reason) Without them no stored payment can be read"
        case .full: "the disk is full; nothing was stored; free some space"
        case .notWritable(let text): "the store cannot be written (\(text)); see its folder's owner, mode and disk"
        case .damaged(let what):
            "the store is damaged: \(what); keep its folder as it is, and reconcile with the payment service"
        case .older: "the store was made by an older version of this program; use that version to forward the payments"
        case .newer: "the store was made by a newer version of this program; use that version to forward the payments"
        case .system(let code, let text): "the store failed: \(text) (\(code)); see its folder and its disk"
        }
    }
}

extension PaymentCardReaderError {
    /// Maps a failure of the store during preparation or before a read.
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
    /// Returns the error for a failure of the store during a read: a read error, or the error that preparing would
    /// throw.
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
