import Crypto
import Foundation
import ToolSupport

/// A folder that remembers the traces that passed, so that unchanged ones are not replayed again.
///
/// An empty file stands for each; its name is the digest of program, configuration and trace.  Differences are not
/// remembered, so that they are shown each time.  A use renews the file's time of modification, for those who remove old
/// files.
struct ReplayCache {
    private let folder: String
    /// The digest of the program itself, as all builds of code that is not committed have one version.
    private let program: String
    private let configuration: String

    /// - Parameter folder: is created if it does not exist.
    /// - Throws: ``ToolError``.
    init(_ folder: String, configuration: String) throws {
        do {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            program = try Data(contentsOf: URL(fileURLWithPath: "/proc/self/exe"), options: .alwaysMapped).digest
        } catch {
            throw Self.notWritable(folder)
        }
        guard access(folder, W_OK | X_OK) == 0 else { throw Self.notWritable(folder) }
        (self.folder, self.configuration) = (folder, configuration)
    }

    /// Returns the entry for the trace at `path` as it is now; nil if it is no regular file, which reading would empty.
    func entry(for path: String) -> String? {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            let trace = FileManager.default.contents(atPath: path)
        else { return nil }
        return "\(folder)/\(Data("\(program) \(configuration) \(trace.digest)".utf8).digest)"
    }

    func contains(_ entry: String) -> Bool { utimes(entry, nil) == 0 }

    /// A full disk makes the next run slower, and changes nothing else.
    func insert(_ entry: String) { _ = FileManager.default.createFile(atPath: entry, contents: nil) }

    private static func notWritable(_ folder: String) -> ToolError {
        .usage("\(folder) cannot be written", "Name a folder for --cache; it is created if it does not exist.")
    }
}

extension Data {
    /// SHA-256, in lowercase hexadecimal digits.
    var digest: String { SHA256.hash(data: self).map { String(256 + Int($0), radix: 16).dropFirst() }.joined() }
}
