import Foundation
import Glibc
import SmartCardTrace
import ToolSupport

/// A file that a subcommand makes.
///
/// It takes its name when it is complete.  Until then an existing file stays, and a subcommand that fails or is killed
/// leaves nothing behind.  Devices, pipes and standard output, `-`, are written directly.
final class NewFile {
    private let path: String
    private let replacing: Bool
    private let keepsMode: Bool
    private let file: FileHandle
    /// The final path, without links; nil once the file has it, and for output without a path of its own.
    private var name: String?
    /// The path until then, on a file system without unnamed files; a killed program leaves this file behind.
    private var temporary: String?

    /// - Parameter replacing: true to permit the replacement of an existing file.
    /// - Parameter keepsMode: true if the new file keeps the read permissions of that file; otherwise only its owner
    ///   can read it.
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
            // A link stays, and its target is replaced.
            let name = Self.resolved(path)
            let folder = URL(fileURLWithPath: name).deletingLastPathComponent().path
            let hasLinks = access(Self.descriptors, X_OK) == 0
            var descriptor = hasLinks ? open(folder, Self.withoutName | O_WRONLY | O_CLOEXEC, 0o600) : -1
            if descriptor < 0 {
                var template = Array("\(name).XXXXXX".utf8CString)
                descriptor = mkstemp(&template)
                guard descriptor >= 0 else { throw Self.notWritable(path) }
                _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
                temporary = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
            }
            file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
            self.name = name
        }
    }

    deinit { if let temporary { unlink(temporary) } }

    func write(_ bytes: some Sequence<UInt8>) throws {
        guard path != "-" else { return Terminal.write(Array(bytes)) }
        do { try file.write(contentsOf: Data(bytes)) } catch { throw Self.notWritable(path) }
    }

    /// Gives the complete file its name.  Later writes go to it directly.
    ///
    /// - Throws: ``ToolError``, also where another file has come to be at its place and may not go.
    func finish() throws {
        guard let name else { return }
        var old = stat()
        if keepsMode, stat(name, &old) == 0 { fchmod(file.fileDescriptor, old.st_mode & 0o777) }
        // A link is made only where nothing is.
        if !link(to: name) {
            guard replacing || errno != EEXIST else { throw Self.isThere(path) }
            // Not every file system has links.
            try Self.check(path, replacing: replacing)
            if temporary == nil {
                let new = "\(name).\(String(UInt64.random(in: 0...UInt64.max), radix: 36))"
                guard link(to: new) else { throw Self.notWritable(path) }
                temporary = new
            }
            guard let temporary, rename(temporary, name) == 0 else { throw Self.notWritable(path) }
        } else if let temporary {
            unlink(temporary)
        }
        (self.name, temporary) = (nil, nil)
    }

    /// O_TMPFILE (Linux, include/uapi/asm-generic/fcntl.h), a macro that Swift does not see.
    private static let withoutName = O_DIRECTORY | 0o20_000_000

    /// The directory of this program's descriptors, through which unnamed files are linked (open(2), O_TMPFILE).
    private static let descriptors = "/proc/self/fd"

    /// - Returns: false, and `errno`, if there is no such link now.
    private func link(to name: String) -> Bool {
        if let temporary { return Glibc.link(temporary, name) == 0 }
        return linkat(AT_FDCWD, "\(Self.descriptors)/\(file.fileDescriptor)", AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0
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

    /// Performs ``check(_:replacing:)``, and checks that a file can be made there later.
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
        .usage("\(path) already exists", "Name another file, or replace it with --force.")
    }

    private static func notWritable(_ path: String) -> ToolError {
        .usage(
            "\(path) cannot be written", "Check that its folder exists and is writable, and that its disk has room.")
    }
}
