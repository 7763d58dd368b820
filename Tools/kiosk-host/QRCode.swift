import CQRCode

/// QR codes, made by libqrencode.
enum QRCode {
    /// Returns the smallest code of a text, with error correction M, which stands 15 % of it being dirty or dazzled.
    ///
    /// - Returns: true for each dark module, row by row, without the quiet zone; nil if the text is longer than any code holds.
    static func modules(of text: String) -> [[Bool]]? {
        let bytes = Array(text.utf8)
        guard let count = Int32(exactly: bytes.count), let code = QRcode_encodeData(count, bytes, 0, QR_ECLEVEL_M)
        else {
            return nil
        }
        defer { QRcode_free(code) }
        let width = Int(code.pointee.width)
        // The lowest bit is the color (qrencode.h, QRcode).
        let dark = UnsafeBufferPointer(start: code.pointee.data, count: width * width).map { $0 & 1 == 1 }
        return (0..<width).map { Array(dark[$0 * width..<($0 + 1) * width]) }
    }
}
