import CTurboJPEG

extension RGBImage {
    /// Returns the picture as baseline JPEG (ISO/IEC 10918-1), for programs that know no JPEG 2000.
    ///
    /// - Parameter quality: 1 to 100.
    /// - Returns: nil if the library has no memory for it.
    package func jpeg(quality: Int = 90) -> [UInt8]? {
        guard let compressor = tjInitCompress() else { return nil }
        defer { tjDestroy(compressor) }
        var buffer: UnsafeMutablePointer<UInt8>?
        var length: UInt = 0
        defer { tjFree(buffer) }
        let status = pixels.withUnsafeBufferPointer {
            tjCompress2(
                compressor, $0.baseAddress, Int32(width), 0, Int32(height), Int32(TJPF_RGB.rawValue), &buffer, &length,
                Int32(TJSAMP_420.rawValue), Int32(min(max(quality, 1), 100)), 0)
        }
        guard status == 0, let buffer else { return nil }
        return Array(UnsafeBufferPointer(start: buffer, count: Int(length)))
    }
}
