import Foundation
import Glibc

/// A file that its owner alone may read, and that is whole at any time.
enum PrivateFile {
    /// Writes `data` in the place of what is there.  It is on the disk when this returns; a crash leaves the old or the new.
    ///
    /// - Throws: `CocoaError`, with what the system says as its cause; the old stays then.
    static func replace(_ file: URL, with data: Data) throws {
        let folder = file.deletingLastPathComponent()
        // Nobody else may read it, not even while it is written: Data's own way leaves that to the umask.
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
        // The name, too.
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
