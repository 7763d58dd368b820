/// The bytes of an image, taken one after the other.
struct ByteReader {
    private(set) var rest: ArraySlice<UInt8>
    private let shortage: ImageError

    /// - Parameter shortage: the error where more bytes are due than there are.
    init(_ bytes: ArraySlice<UInt8>, shortage: ImageError = .truncated) { (rest, self.shortage) = (bytes, shortage) }

    /// The position in the image.
    var offset: Int { rest.startIndex }

    mutating func take(_ count: Int) throws(ImageError) -> ArraySlice<UInt8> {
        guard count <= rest.count else { throw shortage }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    /// Takes a number of 1 to 7 bytes, the most significant first.
    mutating func number(_ count: Int) throws(ImageError) -> Int { try take(count).reduce(0) { $0 << 8 | Int($1) } }
}
