import CZlib

/// zlib's format (RFC 1950), inflated: the only file that talks to zlib.
enum Inflater {
    enum Fault: Error, Hashable {
        /// Torn, changed, or no zlib at all; also one that needs a dictionary, or bytes after its end.
        case malformed
        /// More bytes than are taken.
        case tooLong
    }

    /// Inflates all of `bytes`.
    ///
    /// - Parameter limit: the most bytes that come out; memory is bounded by it, whatever the input claims.
    static func inflate(_ bytes: [UInt8], limit: Int) throws(Fault) -> [UInt8] {
        var input = bytes
        var output = [UInt8](repeating: 0, count: limit + 1)
        var stream = z_stream()
        // The default window, and zlib's header alone.
        guard inflateInit2_(&stream, 15, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
            throw .malformed
        }
        defer {
            inflateEnd(&stream)
            output.wipe()
        }
        let (code, left, room) = input.withUnsafeMutableBufferPointer { input in
            output.withUnsafeMutableBufferPointer { output in
                stream.next_in = input.baseAddress
                stream.avail_in = UInt32(input.count)
                stream.next_out = output.baseAddress
                stream.avail_out = UInt32(output.count)
                return (CZlib.inflate(&stream, Z_FINISH), Int(stream.avail_in), Int(stream.avail_out))
            }
        }
        if room == 0 { throw .tooLong }
        guard code == Z_STREAM_END, left == 0 else { throw .malformed }
        return Array(output.prefix(output.count - room))
    }
}
