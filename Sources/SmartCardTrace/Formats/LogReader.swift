/// Gives an importer the lines of a log.
struct LogReader {
    private var lines: LineReader

    init(_ source: @escaping TraceSource) {
        lines = LineReader(maximumLength: TraceFormat.maximumLineLength, source: source)
    }

    /// Returns the next line without color codes; nil at the end.
    ///
    /// - Throws: ``TraceError`` with the line; errors of the source.
    mutating func next() throws -> TextLine? { try lines.nextOrRemainder().map { TextLine($0).withoutColor } }

    /// The bytes whose digits `text` is, a part of the line that ``next()`` gave last; nil, and an omission, if it is not
    /// and the log ends within that line.
    ///
    /// - Throws: ``TraceError`` with the line.
    func bytes(_ text: TextLine, _ events: inout ImportedEvents) throws -> [UInt8]? {
        if let bytes = text.hex { return bytes }
        guard lines.isWithinLine else { throw malformed("bytes of two hexadecimal digits each were due") }
        events.omit("last lines that are cut off")
        return nil
    }

    /// The error that something else was due on the line that ``next()`` gave last.
    func malformed(_ due: String) -> TraceError { TraceError(.malformed(due), at: .line(lines.lineNumber)) }

    /// Returns the whole lines at the start of a file, without color codes.
    static func lines(_ start: [UInt8]) -> some Sequence<TextLine> {
        start.split(separator: 0x0A).lazy.map { line in
            TextLine(line.last == 0x0D ? line.dropLast() : line).withoutColor
        }
    }
}
