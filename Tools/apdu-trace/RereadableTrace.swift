import ArgumentParser
import Foundation
import SmartCardTrace
import ToolSupport

struct TraceArgument: ParsableArguments {
    @Argument(
        help: .init("The trace; - for standard input. See ENVIRONMENT, TMPDIR, in apdu-trace(1).", valueName: "file"))
    var file: String

    func trace() throws -> Trace { try Trace(named: file) }
}

/// A trace that is read more than once, from its beginning each time, in little memory.  What can be read only once, as
/// standard input and pipes, is put into a file without a name first.
final class RereadableTrace {
    /// The name as it was given.
    let name: String
    private let path: String
    private let spool: FileHandle?
    /// The number of events, once they have been counted.
    private var eventCount = Int.max

    /// More account numbers and names than this are no trace's, and would fill the memory.
    private static let maximumNumbers = 100_000

    init(_ path: String) throws {
        name = path
        var status = stat()
        let isFile = path != "-" && (stat(path, &status) != 0 || status.st_mode & S_IFMT == S_IFREG)
        guard path == "-" || status.st_mode & S_IFMT != S_IFDIR else {
            throw UnreadableTrace(path: path, error: TraceError(.file("Is a directory")))
        }
        guard !isFile else {
            (self.path, spool) = (path, nil)
            return
        }
        let spool = try Self.spool(path)
        (self.path, self.spool) = ("/proc/self/fd/\(spool.fileDescriptor)", spool)
    }

    /// - Parameter spool: the file that holds the trace, from its beginning.
    init(_ name: String, spool: FileHandle) {
        (self.name, self.spool) = (name, spool)
        path = "/proc/self/fd/\(spool.fileDescriptor)"
    }

    /// A new file that only this program can open, and that is gone with it.
    static func unnamedFile() throws -> FileHandle {
        var template = Array("\(NSTemporaryDirectory())/apdu-trace.XXXXXX".utf8CString)
        let descriptor = mkstemp(&template)
        guard descriptor >= 0 else {
            throw ToolError.usage("no temporary file can be made", "Check TMPDIR and the room on its disk.")
        }
        unlink(template)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    private static func spool(_ path: String) throws -> FileHandle {
        let spool = try unnamedFile()
        let source = path == "-" ? FileHandle.standardInput : FileHandle(forReadingAtPath: path)
        guard let source else {
            throw ToolError.usage("\(path) cannot be read", "Check that the file exists and is readable.")
        }
        do {
            while let bytes = try source.read(upToCount: 65_536), !bytes.isEmpty { try spool.write(contentsOf: bytes) }
        } catch {
            throw ToolError.usage("\(path) cannot be copied", "Check TMPDIR and the room on its disk.")
        }
        return spool
    }

    /// Passes the trace's pieces to `body` from the beginning.  Events that a program has added since the first time
    /// are skipped.
    ///
    /// - Parameter holdingTransactions: true if no payment may begin in one piece and end in another.
    @discardableResult
    func forEachPiece(
        holdingTransactions: Bool = false, _ body: (TracePieces.Piece) async throws -> Void
    ) async throws -> TracePieces {
        var pieces = try naming {
            TracePieces(try TraceReader(path: path), limit: eventCount, holdingTransactions: holdingTransactions)
        }
        while let piece = try naming({ try pieces.next() }) { try await body(piece) }
        eventCount = pieces.eventCount
        return pieces
    }

    /// As ``forEachPiece(holdingTransactions:_:)``; blocks.
    func eachPiece(holdingTransactions: Bool = false, _ body: (TracePieces.Piece) throws -> Void) throws {
        var pieces = try naming {
            TracePieces(try TraceReader(path: path), limit: eventCount, holdingTransactions: holdingTransactions)
        }
        while let piece = try naming({ try pieces.next() }) { try body(piece) }
        eventCount = pieces.eventCount
    }

    /// The number of its events.
    func count() throws -> Int {
        if eventCount == .max { try eachPiece { _ in } }
        return eventCount
    }

    /// The trace's events, one after the other.
    func reader() throws -> TraceReader { try naming { try TraceReader(path: path) } }

    /// Runs `body`, and gives the trace's name to errors of reading.
    private func naming<Result>(_ body: () throws -> Result) throws -> Result {
        try UnreadableTrace.naming(name, body)
    }

    /// Returns the facts that are needed before any of it is shown or redacted, from the same pieces.
    func secrets(holdingTransactions: Bool = false) async throws -> TraceSecrets {
        var secrets = TraceSecrets()
        try await forEachPiece(holdingTransactions: holdingTransactions) { piece in
            secrets.learn(from: piece)
            try check(secrets)
        }
        return secrets
    }

    /// - Throws: ``ToolError`` if there is more to remember than in any plausible trace.
    func check(_ secrets: TraceSecrets) throws {
        guard secrets.size <= Self.maximumNumbers else {
            throw ToolError.usage(
                "more than \(Self.maximumNumbers) account numbers and names", "Cut the trace into several.")
        }
    }
}
