import Foundation
import SmartCardTrace
import ToolSupport

/// A file that a subcommand makes.  It takes its name when it is whole: until then what is there stays, and who fails leaves
/// nothing behind.  Devices, pipes and standard output, `-`, are written into at once.
final class NewFile {
    private let path: String
    private let replacing: Bool
    private let keepsMode: Bool
    private let file: FileHandle
    /// Where it is written and what it is to be called, without links; nil once it is, and for what has no name to take.
    private var names: (temporary: String, last: String)?

    /// - Parameter replacing: whether a file that is there may go.
    /// - Parameter keepsMode: whether who may read that file may read the new one; otherwise its owner alone may.
    /// - Throws: ``ToolError``.
    init(_ path: String, replacing: Bool, keepsMode: Bool = false) throws {
        (self.path, self.replacing, self.keepsMode) = (path, replacing, keepsMode)
        try Self.check(path, replacing: replacing)
        if path == "-" {
            file = .standardOutput
        } else if TraceFile.isDevice(path) {
            let descriptor = open(path, O_WRONLY | O_CLOEXEC)
            guard descriptor >= 0 else { throw Self.notWritable(path) }
            file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        } else {
            // A link stays, and what it leads to is replaced.
            let last = Self.resolved(path)
            var template = Array("\(last).XXXXXX".utf8CString)
            let descriptor = mkstemp(&template)
            guard descriptor >= 0 else { throw Self.notWritable(path) }
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
            names = (String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self), last)
        }
    }

    deinit { if let names { unlink(names.temporary) } }

    func write(_ bytes: some Sequence<UInt8>) throws {
        do { try file.write(contentsOf: Data(bytes)) } catch { throw Self.notWritable(path) }
    }

    /// The file is whole.
    ///
    /// - Throws: ``ToolError``, also where another file has come to be at its place and may not go.
    func finish() throws {
        guard let names else { return }
        var old = stat()
        if keepsMode, stat(names.last, &old) == 0 { fchmod(file.fileDescriptor, old.st_mode & 0o777) }
        // A link is made only where nothing is.
        if !replacing {
            if link(names.temporary, names.last) == 0 { return }
            if errno == EEXIST { throw Self.isThere(path) }
            // Not every file system has links.
            try Self.check(path, replacing: false)
        }
        guard rename(names.temporary, names.last) == 0 else { throw Self.notWritable(path) }
        self.names = nil
    }

    /// Writes all of `text`.
    static func write(_ text: String, to path: String, replacing: Bool) throws {
        guard path != "-" else { return Terminal.print(text) }
        let file = try NewFile(path, replacing: replacing)
        try file.write(text.utf8)
        try file.finish()
    }

    // MARK: What is there

    /// - Throws: ``ToolError`` if a new file at `path` would find one that must stay.
    static func check(_ path: String, replacing: Bool) throws {
        guard path != "-", !replacing, TraceFile.isThere(path) else { return }
        throw isThere(path)
    }

    /// As ``check(_:replacing:)``, and whether a file can be made there at all, for who makes it later.
    static func checkWritable(_ path: String, replacing: Bool) throws {
        try check(path, replacing: replacing)
        guard path != "-", !TraceFile.isDevice(path) else { return }
        let last = resolved(path)
        let folder = URL(fileURLWithPath: last).deletingLastPathComponent().path
        let isWritable = access(last, F_OK) == 0 ? access(last, W_OK) == 0 : access(folder, W_OK | X_OK) == 0
        var status = stat()
        guard isWritable, stat(last, &status) != 0 || status.st_mode & S_IFMT != S_IFDIR else {
            throw notWritable(path)
        }
    }

    private static func resolved(_ path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    private static func isThere(_ path: String) -> ToolError {
        .usage("\(path) is there already", "Name another file, or replace it by --force.")
    }

    private static func notWritable(_ path: String) -> ToolError {
        .usage(
            "\(path) cannot be written", "Check that its folder is there and may be written to, and its disk has room.")
    }

    /// Takes the trace at `path` away if there is no exchange in it, and no failure of one.
    static func removeIfEmpty(_ path: String) {
        var status = stat()
        guard path != "-", lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            var reader = try? TraceReader(path: path)
        else { return }
        do {
            while let event = try reader.next() {
                switch event.what {
                case .reader, .meta: continue
                default: return
                }
            }
            unlink(path)
        } catch {
            // What cannot be read is not empty.
        }
    }
}
