/// Cuts a stream of bytes into lines, of which it holds one at a time.
struct LineReader {
    /// Gives the next bytes, as many as it likes; none at the end.
    typealias Source = () throws -> [UInt8]

    private let source: Source
    private let maximumLength: Int
    private var buffer: [UInt8] = []
    /// Where in the buffer the next line begins.
    private var position = 0
    /// The number of the line that ``next()`` gave last, from one.
    private(set) var lineNumber = 0
    /// What stands after the last line feed; to be used when ``next()`` has given nil.
    private(set) var remainder: ArraySlice<UInt8> = []

    init(maximumLength: Int, source: @escaping Source) {
        self.source = source
        self.maximumLength = maximumLength
    }

    /// The next line that ends with a line feed, without it and without a carriage return before it; nil at the end.
    ///
    /// - Throws: ``TraceError`` for a line that is too long, before it is read whole; what the source throws.
    mutating func next() throws -> ArraySlice<UInt8>? {
        var searched = position
        while true {
            if let end = buffer[searched...].firstIndex(of: 0x0A) {
                guard end - position <= maximumLength else { throw tooLong }
                let line = buffer[position..<end]
                position = end + 1
                lineNumber += 1
                return line.last == 0x0D ? line.dropLast() : line
            }
            guard buffer.count - position <= maximumLength else { throw tooLong }
            let more = try source()
            guard !more.isEmpty else {
                remainder = buffer[position...]
                return nil
            }
            searched = buffer.count - position
            buffer.removeSubrange(..<position)
            position = 0
            buffer += more
        }
    }

    private var tooLong: TraceError { TraceError(.lineTooLong, line: lineNumber + 1) }
}
