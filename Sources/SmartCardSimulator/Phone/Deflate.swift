import CZlib

/// The compression of RFC 1950, by zlib.
enum Deflate {
    /// Compresses as small as zlib can.
    ///
    /// - Returns: nil if zlib has no memory.
    static func compress(_ bytes: [UInt8]) -> [UInt8]? {
        var count = compressBound(uLong(bytes.count))
        var out = [UInt8](repeating: 0, count: Int(count))
        guard compress2(&out, &count, bytes, uLong(bytes.count), Z_BEST_COMPRESSION) == Z_OK else { return nil }
        return Array(out.prefix(Int(count)))
    }
}
