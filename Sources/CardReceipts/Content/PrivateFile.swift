import Foundation
import Glibc

/// A file that only its owner can read, and that is complete at any time.
enum PrivateFile {
    /// Replaces the contents with `data`.  When this returns the data is on the disk; a crash leaves the old or the
    /// new contents.
    ///
    /// - Throws: `CocoaError`, with the system's error as its cause; the old contents stay.
    static func replace(_ file: URL, with data: Data) throws {
        let folder = file.deletingLastPathComponent()
        // Nobody else may read the file, even while it is written; Data's own method leaves that to the umask.
        let new = folder.appending(path: ".\(UUID().uuidString)", directoryHint: .notDirectory)
        let handle = try open(new, O_WRONLY | O_CREAT | O_EXCL)
        do {
            try handle.write(contentsOf: data)
            try handle.synchronize()
            try handle.close()
            guard rename(new.path, file.path) == 0 else { throw failure(.fileWriteUnknown) }
        } catch {
            unlink(new.path)
            throw error
        }
        // The directory entry must reach the disk, too.
        let names = try open(folder, O_RDONLY | O_DIRECTORY)
        try names.synchronize()
        try names.close()
    }

    private static func open(_ url: URL, _ flags: Int32) throws -> FileHandle {
        let descriptor = Glibc.open(url.path, flags | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure(.fileWriteNoPermission) }
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    private static func failure(_ code: CocoaError.Code) -> CocoaError {
        CocoaError(code, userInfo: [NSUnderlyingErrorKey: NSError(domain: NSPOSIXErrorDomain, code: Int(errno))])
    }
}
