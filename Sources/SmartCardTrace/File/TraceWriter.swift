/// Writes a trace event by event.
///
/// Each event is given to the sink as one whole line, so that a file holds every event up to the last, however the
/// program ends.
public struct TraceWriter {
    private let sink: (_ line: [UInt8]) throws -> Void
    private var line: [UInt8] = []
    private var lastTime = Duration.zero

    /// Writes the first line.
    ///
    /// - Parameter sink: takes each line, line feed included.
    public init(_ sink: @escaping (_ line: [UInt8]) throws -> Void) throws {
        self.sink = sink
        try sink(Array(TraceFormat.header.utf8) + [0x0A])
    }

    /// Writes to a new file at `path`, which only its owner can read; `-` is standard output.
    ///
    /// - Parameters:
    ///   - path: the path of the file, or `-`.
    ///   - replacing: true to permit the replacement of an existing file.
    public init(path: String, replacing: Bool = false) throws {
        let file = try TraceFile(writing: path, replacing: replacing)
        try self.init { try file.write($0) }
    }

    /// Writes `event`.  A time before that of the last event is written as the last event's time.
    ///
    /// - Throws: ``TraceError`` of reason `lineTooLong`, or `malformed` for an invalid key, with nothing written;
    ///   errors of the
    ///   sink.
    public mutating func write(_ event: TraceEvent) throws {
        if case .meta(let key, _) = event.what, !TraceFormat.isKey(key) {
            throw TraceError(.malformed("a key of small letters, digits, dots and hyphens was due"))
        }
        var event = event
        event.time = max(event.time, lastTime)
        line.removeAll(keepingCapacity: true)
        event.append(to: &line)
        guard line.count - 1 <= TraceFormat.maximumLineLength else { throw TraceError(.lineTooLong) }
        try sink(line)
        lastTime = event.time
    }
}

extension Trace {
    /// Writes all of this trace.
    public func write(to writer: inout TraceWriter) throws {
        for event in events { try writer.write(event) }
    }

    /// The trace as it is written to a file.
    ///
    /// - Throws: ``TraceError`` of reason `lineTooLong`.
    public func text() throws -> String {
        var bytes: [UInt8] = []
        var writer = try TraceWriter { bytes += $0 }
        try write(to: &writer)
        return String(decoding: bytes, as: UTF8.self)
    }
}
