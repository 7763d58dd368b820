public import TravelDocument

extension EncodedImage {
    /// Decodes the image.
    ///
    /// Its size is known, and compared with the limit, before the pixels have memory.  JPEG 2000 takes some 30 bytes a pixel
    /// while it is decoded; an image made to harm takes up to 70.
    ///
    /// Gray becomes equal parts of red, green and blue; depths other than 8 bits are scaled; transparency is ignored, as are
    /// ICC profiles.
    ///
    /// - Parameter maximumPixels: the most pixels that are decoded, width times height.
    /// - Throws: ``ImageError``.
    public func decoded(maximumPixels: Int = 4_000_000) throws(ImageError) -> RGBImage {
        switch format {
        case .jpeg: try JPEGDecoder.decode(bytes, maximumPixels: maximumPixels)
        case .jp2:
            try JPEG2000Decoder.decode(JP2File(parsing: bytes), maximumPixels: maximumPixels)
        case .jpeg2000Codestream:
            try JPEG2000Decoder.decode(JP2File(codestream: bytes[...]), maximumPixels: maximumPixels)
        case nil: throw .unknownFormat
        }
    }
}
