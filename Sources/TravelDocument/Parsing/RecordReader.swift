/// The bytes of a record without tags, taken one after the other.
struct RecordReader {
    private let file: ElementaryFile
    private var rest: ArraySlice<UInt8>

    /// - Parameter bytes: a part of the file, whose indices are offsets in it.
    init(_ bytes: ArraySlice<UInt8>, in file: ElementaryFile) { (rest, self.file) = (bytes, file) }

    /// The position in the file.
    var offset: Int { rest.startIndex }
    /// The number of bytes left.
    var count: Int { rest.count }

    func error(_ due: TravelDocumentFormatError.Due, at offset: Int? = nil) -> TravelDocumentFormatError {
        TravelDocumentFormatError(file: file, offset: offset ?? self.offset, due: due)
    }

    mutating func take(_ count: Int) throws(TravelDocumentFormatError) -> [UInt8] {
        guard count <= rest.count else { throw error(.bytes(count - rest.count), at: rest.endIndex) }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    mutating func byte() throws(TravelDocumentFormatError) -> UInt8 { try take(1)[0] }

    /// Takes a number of 1 to 4 bytes, the most significant first.
    mutating func number(_ count: Int) throws(TravelDocumentFormatError) -> Int {
        try take(count).reduce(0) { $0 << 8 | Int($1) }
    }
}
