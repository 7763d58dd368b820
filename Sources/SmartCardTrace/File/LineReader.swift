import Glibc

/// Gives the next bytes of a file, as many as it likes; none at the end.
public typealias TraceSource = () throws -> [UInt8]

/// Takes the next bytes of a file.
public typealias TraceSink = ([UInt8]) throws -> Void

/// Cuts a stream of bytes into lines, of which it holds one at a time.
struct LineReader {
    private let source: TraceSource
    private let maximumLength: Int
    private var buffer: [UInt8] = []
    /// The position in the buffer where the next line begins.
    private var position = 0
    /// The number of the line that ``next()`` gave last, from one.
    private(set) var lineNumber = 0
    /// The bytes after the last line feed; valid after ``next()`` has returned nil.
    private(set) var remainder: ArraySlice<UInt8> = []
    /// True if no line feed ends the last line from ``nextOrRemainder()``.
    private(set) var isWithinLine = false

    init(maximumLength: Int, source: @escaping TraceSource) {
        self.source = source
        self.maximumLength = maximumLength
    }

    /// Returns the next line that ends with a line feed, without the line feed and a carriage return before it; nil at
    /// the end.
    ///
    /// - Throws: ``TraceError`` for a line that is too long, before the whole line is read; errors of the source.
    mutating func next() throws -> ArraySlice<UInt8>? {
        var searched = position
        while true {
            if let end = lineFeed(from: searched) {
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

    /// The next line, the last one also if no line feed ends it; nil at the end.
    mutating func nextOrRemainder() throws -> ArraySlice<UInt8>? {
        if let line = try next() { return line }
        guard !remainder.isEmpty else { return nil }
        defer {
            position = buffer.endIndex
            remainder = []
            lineNumber += 1
            isWithinLine = true
        }
        return remainder
    }

    private func lineFeed(from start: Int) -> Int? {
        buffer.withUnsafeBytes { bytes in
            guard start < bytes.count, let base = bytes.baseAddress,
                let found = memchr(base + start, 0x0A, bytes.count - start)
            else { return nil }
            return UnsafeRawPointer(found) - base
        }
    }

    private var tooLong: TraceError { TraceError(.lineTooLong, at: .line(lineNumber + 1)) }
}
