/// Reads a binary file piece by piece, holding little more than the piece.
struct ByteReader {
    private let source: TraceSource
    private var buffer: [UInt8] = []
    private var position = 0
    private var isAtEnd = false
    /// The offset of the next byte in the file.
    private(set) var offset = 0

    init(_ source: @escaping TraceSource) { self.source = source }

    /// Returns the next bytes without consuming them; nil if the file ends before.
    ///
    /// The caller ensures that `count` is within bounds, regardless of the file's content.
    mutating func peek(_ count: Int) throws -> ArraySlice<UInt8>? {
        while buffer.count - position < count {
            guard !isAtEnd else { return nil }
            let more = try source()
            isAtEnd = more.isEmpty
            buffer.removeSubrange(..<position)
            position = 0
            buffer += more
        }
        return buffer[position..<position + count]
    }

    /// The next bytes; nil where the file ends before, and then they stay.
    mutating func next(_ count: Int) throws -> ArraySlice<UInt8>? {
        guard let bytes = try peek(count) else { return nil }
        position += count
        offset += count
        return bytes
    }

    /// Passes over bytes, however many, without holding them; false where the file ends before.
    mutating func skip(_ count: Int) throws -> Bool {
        var rest = count
        while rest > 0 {
            let piece = min(rest, 4096)
            guard try next(piece) != nil else { return false }
            rest -= piece
        }
        return true
    }

    /// True if bytes are left that do not form a whole piece.
    var hasRemainder: Bool { position < buffer.count }
}

/// The order in which the bytes of a number stand.
enum ByteOrder {
    case littleEndian, bigEndian

    /// The number that begins `at` bytes after the first of `bytes`, which must be that many.
    @inline(__always)
    func integer<Number: FixedWidthInteger>(_ bytes: ArraySlice<UInt8>, at index: Int) -> Number {
        let number = bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: index, as: Number.self) }
        return self == .littleEndian ? Number(littleEndian: number) : Number(bigEndian: number)
    }

    func bytes(_ number: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: self == .littleEndian ? number.littleEndian : number.bigEndian) { Array($0) }
    }
}
