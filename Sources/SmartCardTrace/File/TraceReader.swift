/// Reads a trace event by event, holding one line of it at a time.
///
///     var reader = try TraceReader(path: "payment.apdu")
///     while let event = try reader.next() { … }
public struct TraceReader {
    private var lines: LineReader
    private var lastTime = Duration.zero
    private var isBegun = false

    /// The line number of the last event, from one.
    public var lineNumber: Int { lines.lineNumber }
    /// True if the trace ends within a line, as after a crash of the program that wrote it.  Such a line is not read.
    /// Valid after ``next()`` has returned nil.
    public private(set) var isCutOff = false

    /// - Parameter source: gives the next bytes of the trace, as many as it likes; none at the end.
    public init(_ source: @escaping () throws -> [UInt8]) {
        lines = LineReader(maximumLength: TraceFormat.maximumLineLength, source: source)
    }

    /// Reads the file at `path`; `-` is standard input.
    public init(path: String) throws(TraceError) {
        let file = try TraceFile(reading: path)
        self.init { try file.read() }
    }

    /// Reads `text`.
    public init(text: some StringProtocol) {
        var bytes: [UInt8]? = Array(text.utf8)
        self.init {
            defer { bytes = nil }
            return bytes ?? []
        }
    }

    /// Returns the next event; nil at the end.
    ///
    /// - Throws: ``TraceError`` with the line; errors of the source.
    public mutating func next() throws -> TraceEvent? {
        while let line = try lines.next() {
            guard isBegun else {
                try Self.readHeader(line)
                isBegun = true
                continue
            }
            guard let first = line.first, first != UInt8(ascii: "#") else { continue }
            let event: TraceEvent
            do {
                event = try TraceEvent(line: line)
            } catch {
                throw TraceError(error.reason, at: .line(lines.lineNumber))
            }
            guard event.time >= lastTime else { throw TraceError(.timeGoesBack, at: .line(lines.lineNumber)) }
            lastTime = event.time
            return event
        }
        guard isBegun else { throw TraceError(.notATrace, at: .line(1)) }
        isCutOff = !lines.remainder.isEmpty
        return nil
    }

    private static func readHeader(_ line: ArraySlice<UInt8>) throws(TraceError) {
        guard !line.elementsEqual(TraceFormat.header.utf8) else { return }
        let prefix = Array("apdu-trace ".utf8)
        let version = line.dropFirst(prefix.count)
        guard line.starts(with: prefix), (1...9).contains(version.count),
            version.allSatisfy({ (0x30...0x39).contains($0) })
        else { throw TraceError(.notATrace, at: .line(1)) }
        throw TraceError(.unknownVersion(String(decoding: version, as: UTF8.self)), at: .line(1))
    }
}

extension Trace {
    /// Reads all of a trace.
    ///
    /// - Throws: ``TraceError`` with the line.
    public init(reading reader: consuming TraceReader) throws {
        var reader = reader
        self.init()
        while let event = try reader.next() { events.append(event) }
    }

    /// Reads the file at `path`, all of it.
    public init(path: String) throws { try self.init(reading: TraceReader(path: path)) }

    /// Reads `text`, all of it.
    public init(text: some StringProtocol) throws { try self.init(reading: TraceReader(text: text)) }
}
