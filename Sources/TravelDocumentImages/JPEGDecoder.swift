import CTurboJPEG

/// JPEG (ISO/IEC 10918-1), through libjpeg-turbo.  Only this file calls it.
enum JPEGDecoder {
    /// An instance of the library's decompressor.
    private struct Decompressor: ~Copyable {
        private let handle: tjhandle

        init() throws(ImageError) {
            guard let handle = tjInitDecompress() else { throw .damaged("no memory for a decompressor") }
            self.handle = handle
        }

        deinit { tjDestroy(handle) }

        /// Reads the bytes up to the first scan.
        borrowing func header(_ bytes: [UInt8]) throws(ImageError) -> (width: Int, height: Int, space: TJCS) {
            var (width, height, subsampling, space) = (Int32(0), Int32(0), Int32(0), Int32(0))
            guard tjDecompressHeader3(handle, bytes, UInt(bytes.count), &width, &height, &subsampling, &space) == 0
            else {
                throw error
            }
            return (Int(width), Int(height), TJCS(UInt32(bitPattern: space)))
        }

        /// Decodes the image; a fault that the library would bear is an error, too.
        borrowing func pixels(_ bytes: [UInt8], width: Int, height: Int) throws(ImageError) -> [UInt8] {
            var pixels = [UInt8](repeating: 0, count: 3 * width * height)
            let flags = TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS
            guard
                tjDecompress2(
                    handle, bytes, UInt(bytes.count), &pixels, Int32(width), Int32(3 * width), Int32(height),
                    Int32(TJPF_RGB.rawValue), flags) == 0
            else { throw error }
            return pixels
        }

        private var error: ImageError {
            let message = String(cString: tjGetErrorStr2(handle))
            return message.hasPrefix("Premature end of JPEG") ? .truncated : .damaged(message)
        }
    }

    static func decode(_ bytes: [UInt8], maximumPixels: Int) throws(ImageError) -> RGBImage {
        let decompressor = try Decompressor()
        let (width, height, space) = try decompressor.header(bytes)
        // Each side has 16 bits.
        guard width * height <= maximumPixels else {
            throw .tooLarge(width: width, height: height, maximumPixels: maximumPixels)
        }
        guard space != TJCS_CMYK, space != TJCS_YCCK else { throw .unsupported(.cmyk) }
        return RGBImage(checked: width, height, try decompressor.pixels(bytes, width: width, height: height))
    }
}
