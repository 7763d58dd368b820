import ArgumentParser
import Foundation
import SmartCardTrace
import Synchronization
import ToolSupport

/// The file that `record` and `pay` write.
struct RecordingOutput: ParsableArguments {
    @OptionGroup var file: OutputFile

    @Flag(help: "Keep card data in the file, which says so: account numbers, tracks, names, PINs, keys.")
    var clear = false

    func recorded() -> RecordedFile { recorded(to: file.output) }

    func recorded(to path: String) -> RecordedFile { RecordedFile(file, path, isClear: clear) }
}

/// The file of a recording.
///
/// With card data it has every event up to the last.  Otherwise what is recorded waits in a file without a name, which
/// nobody else can open and which is gone with the program; ``finish()`` redacts it.
final class RecordedFile: Sendable {
    private let output: OutputFile
    private let path: String
    private let isClear: Bool
    private let spool = Mutex<SpooledTrace?>(nil)

    /// The files that are not finished.
    private static let unfinished = Mutex<[RecordedFile]>([])

    fileprivate init(_ output: OutputFile, _ path: String, isClear: Bool) {
        (self.output, self.path, self.isClear) = (output, path, isClear)
    }

    /// - Throws: ``ToolError``.
    func writer() throws -> sending TraceWriter {
        guard !isClear else {
            var writer = try output.writer(to: path)
            try writer.write(TraceEvent(at: .zero, .meta(key: CardDataMark.key, value: CardDataMark.clear)))
            Terminal.remark("\(path) will hold card data in the clear: apdu-trace redact takes it out")
            return writer
        }
        try NewFile.check(path, replacing: output.force)
        let spool = try SpooledTrace(path)
        self.spool.withLock { $0 = spool }
        Self.unfinished.withLock { $0.append(self) }
        ProgramExit.wait(seconds: 600)
        return try TraceWriter { try spool.write($0) }
    }

    /// Writes the redacted trace, unless there is nothing in it but the reader and the transaction; the file that is there
    /// then stays.
    ///
    /// - Throws: ``ToolError``.
    func finish() throws {
        Self.unfinished.withLock { $0.removeAll { $0 === self } }
        guard let spool = spool.withLock({ $0.take() }) else { return }
        var redaction = FileRedaction(TraceRedaction())
        let redacted = try redaction.redacted(spool.trace)
        var writer = try output.writer(to: path)
        try redacted.eachPiece { try $0.trace.write(to: &writer) }
    }

    /// Finishes all files when the program ends.
    static func finishAll() {
        for file in unfinished.withLock({ $0 }) {
            do { try file.finish() } catch { Terminal.remark("\(file.path) cannot be written") }
        }
    }
}

/// A trace in a file without a name.
final class SpooledTrace: Sendable {
    private let name: String
    private let file: FileHandle

    /// - Parameter name: the trace's name in errors.
    init(_ name: String) throws {
        self.name = name
        file = try RereadableTrace.unnamedFile()
    }

    /// - Parameter name: the trace's name in errors.
    convenience init(_ name: String, _ body: (inout TraceWriter) throws -> Void) throws {
        try self.init(name)
        var lines: [UInt8] = []
        var writer = try TraceWriter { line in
            lines += line
            guard lines.count > 1 << 16 else { return }
            try self.write(lines)
            lines = []
        }
        try body(&writer)
        try write(lines)
    }

    func write(_ bytes: [UInt8]) throws {
        do { try file.write(contentsOf: Data(bytes)) } catch {
            throw ToolError.usage("\(name) cannot be kept", "Check TMPDIR and the room on its disk.")
        }
    }

    var trace: RereadableTrace { RereadableTrace(name, spool: file) }
}

/// The redaction of a trace in a file: pass by pass (``TraceRedaction``), each into a file without a name.
struct FileRedaction {
    let redaction: TraceRedaction
    var holdsTransactions = false
    /// The items taken out.
    private(set) var items: Set<TraceEvent.RedactedItem> = []
    /// The lines of the trace behind which something belongs together that is too long to be looked at whole: the first.
    private(set) var cuts: [Int] = []

    init(_ redaction: TraceRedaction) { self.redaction = redaction }

    /// Returns `source` redacted; blocks.
    mutating func redacted(_ source: RereadableTrace) throws -> RereadableTrace {
        var trace = source
        var secrets = TraceSecrets()
        var pass = 0
        repeat {
            pass += 1
            secrets.beginPass()
            try trace.eachPiece(holdingTransactions: holdsTransactions) { piece in
                secrets.learn(from: piece)
                try trace.check(secrets)
            }
            var isFirst = true
            let next = try SpooledTrace(source.name) { writer in
                try trace.eachPiece(holdingTransactions: holdsTransactions) { piece in
                    try redaction.redacted(piece, knowing: &secrets, isFirst: isFirst).write(to: &writer)
                    isFirst = false
                    if pass == 1, piece.isCut, let line = piece.lines.last, cuts.count < 10 { cuts.append(line) }
                }
                if isFirst { try Trace().noting([]).write(to: &writer) }
            }
            trace = next.trace
        } while !secrets.isClean
        items = secrets.items
        return trace
    }
}
