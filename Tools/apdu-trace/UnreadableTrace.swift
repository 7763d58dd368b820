import SmartCardTrace
import ToolSupport

/// The problem with the file at ``path``.
struct UnreadableTrace: Error {
    let path: String
    let error: TraceError

    /// Returns the result of `body`, which reads the file at `path`.
    static func naming<Result>(_ path: String, _ body: () throws -> Result) throws -> Result {
        do { return try body() } catch let error as TraceError { throw UnreadableTrace(path: path, error: error) }
    }

    /// The problem without the name, for callers that have printed it.
    var reason: String {
        guard case .file(let text) = error.reason else { return error.description }
        let system = text.split(separator: ": ").last.map(String.init) ?? text
        return system == "Is a directory" ? "is a directory" : system
    }

    var toolError: ToolError {
        let name = path == "-" ? "standard input" : path
        if reason == "is a directory" {
            return .usage("\(name) is a directory", "Name a file; apdu-trace replay takes folders, too.")
        }
        return .usage("\(name): \(reason)", error.hint)
    }
}

extension Trace {
    /// Reads the trace at `path`; errors name it.
    init(named path: String) throws {
        self = try UnreadableTrace.naming(path) { try Trace(path: path) }
    }
}

extension TraceError {
    var hint: String {
        switch (reason, place) {
        case (.notATrace, _):
            "apdu-trace record makes a trace; apdu-trace convert FILE -o trace.apdu makes one of another program's log."
        case (.unknownFormat, _): "Name its format with --from; apdu-trace convert --help lists them."
        case (.unknownVersion, _): "Use the apdu-trace that wrote it, or a newer one."
        case (.file, _): "Check that the file exists and is readable, or that its folder is writable."
        case (_, .offset):
            "The file is damaged or in another format: name it with --from; apdu-trace convert --help lists them."
        case (.lineTooLong, _), (.malformed, _), (.timeGoesBack, _): "Correct or remove that line."
        }
    }
}
