/// A trace that cannot be read or written.
public struct TraceError: Error, Hashable, Sendable {
    public enum Reason: Hashable, Sendable {
        /// The first line is not that of a trace.
        case notATrace
        /// A trace of a version that this library does not know.
        case unknownVersion(String)
        /// A line longer than ``TraceFormat/maximumLineLength`` bytes.
        case lineTooLong
        /// A line that the grammar does not admit; the words say what was due.
        case malformed(String)
        /// A time before that of the event before.
        case timeGoesBack
        /// The file could not be opened, read or written; the words are the system's.
        case file(String)
    }

    public let reason: Reason
    /// The line, counted from one; nil where the fault is not in a line.
    public let line: Int?

    public init(_ reason: Reason, line: Int? = nil) {
        self.reason = reason
        self.line = line
    }
}

extension TraceError: CustomStringConvertible {
    /// `line 12: a time before that of the event before`
    public var description: String {
        let what =
            switch reason {
            case .notATrace: "not a trace: the first line of one is \"\(TraceFormat.header)\""
            case .unknownVersion(let version): "a trace of version \(version), which is not known here"
            case .lineTooLong: "more than \(TraceFormat.maximumLineLength) bytes"
            case .malformed(let due): due
            case .timeGoesBack: "a time before that of the event before"
            case .file(let text): text
            }
        return (line.map { "line \($0): " } ?? "") + what
    }
}
