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
        // One name for all, so that a killed program leaves no more than one, which the next takes over.
        let new = folder.appending(path: ".new", directoryHint: .notDirectory)
        let handle = try openAlone(new)
        do {
            try handle.truncate(atOffset: 0)
            try handle.write(contentsOf: data)
            try handle.synchronize()
            guard rename(new.path, file.path) == 0 else { throw failure(.fileWriteUnknown) }
            try handle.close()
        } catch {
            unlink(new.path)
            throw error
        }
        // The directory entry must reach the disk, too.
        let names = try open(folder, O_RDONLY | O_DIRECTORY)
        try names.synchronize()
        try names.close()
    }

    /// Opens the file for this call alone, once nobody else has it.  Nobody but its owner may read it, even while it is written;
    /// Data's own method leaves that to the umask.
    private static func openAlone(_ url: URL) throws -> FileHandle {
        while true {
            let handle = try open(url, O_WRONLY | O_CREAT | O_NOFOLLOW)
            guard flock(handle.fileDescriptor, LOCK_EX) == 0 else { throw failure(.fileWriteUnknown) }
            var (mine, present) = (stat(), stat())
            // Who had it before may have given it its name meanwhile.
            if fstat(handle.fileDescriptor, &mine) == 0, stat(url.path, &present) == 0, mine.st_ino == present.st_ino {
                guard fchmod(handle.fileDescriptor, 0o600) == 0 else { throw failure(.fileWriteUnknown) }
                return handle
            }
            try handle.close()
        }
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
