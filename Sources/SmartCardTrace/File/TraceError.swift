/// A trace that cannot be read or written.
public struct TraceError: Error, Hashable, Sendable {
    public enum Reason: Hashable, Sendable {
        /// The first line is not the first line of a trace.
        case notATrace
        /// None of the formats that can be read (``ForeignFormat``) looks like this.
        case unknownFormat
        /// A trace of a version that this library does not know.
        case unknownVersion(String)
        /// A line longer than ``TraceFormat/maximumLineLength`` bytes.
        case lineTooLong
        /// A line that violates the grammar; the text names the expected form.
        case malformed(String)
        /// A time before that of the event before.
        case timeGoesBack
        /// The file could not be opened, read or written; the words are the system's.
        case file(String)
    }

    /// A place in a file.
    public enum Place: Hashable, Sendable {
        /// In this line, counted from one.
        case line(Int)
        /// At this byte, counted from zero.
        case offset(Int)
    }

    public let reason: Reason
    /// The place of the error; nil if it has no single place.
    public let place: Place?

    public init(_ reason: Reason, at place: Place? = nil) {
        self.reason = reason
        self.place = place
    }
}

extension TraceError: CustomStringConvertible {
    /// `line 12: a time earlier than the previous event's`, `byte 4711: …`
    public var description: String {
        let what =
            switch reason {
            case .notATrace: "not a trace: the first line of one is \"\(TraceFormat.header)\""
            case .unknownFormat: "neither a trace nor one of the formats that can be read"
            case .unknownVersion(let version): "a trace of version \(version), which is not known here"
            case .lineTooLong: "more than \(TraceFormat.maximumLineLength) bytes"
            case .malformed(let due): due
            case .timeGoesBack: "a time earlier than the previous event's"
            case .file(let text): text
            }
        return switch place {
        case .line(let line): "line \(line): \(what)"
        case .offset(let offset): "byte \(offset): \(what)"
        case nil: what
        }
    }
}
