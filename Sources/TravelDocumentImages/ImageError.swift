/// An image that is not decoded: the reason, without anything of the picture.
public enum ImageError: Error, Hashable, Sendable {
    /// A part of a standard that no document needs.
    public enum Feature: String, Hashable, Sendable {
        case cmyk = "CMYK colors"
        case palette = "colors from a palette"
        case colorSpace = "a color space other than gray, sRGB and sYCC"
        case components = "more than 4 components"
        case depth = "samples of more than 16 bits"
        case divisions = "too many tiles, precincts, code-blocks or layers"
    }

    /// The first bytes are of none of the formats.
    case unknownFormat
    /// The image has more pixels than the caller allows.  Nothing was decoded.
    case tooLarge(width: Int, height: Int, maximumPixels: Int)
    case unsupported(Feature)
    /// The image's end is missing.
    case truncated
    /// The parts of the image contradict each other, as at this byte, from zero.
    case malformed(offset: Int)
    /// The decoder refused the image, with this message of its own.
    case damaged(String)
}

extension ImageError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .unknownFormat: "the image is neither JPEG nor JPEG 2000"
        case .tooLarge(let width, let height, let maximum):
            "the image has \(width) × \(height) pixels, more than \(maximum)"
        case .unsupported(let feature): "the image has \(feature.rawValue)"
        case .truncated: "the image is cut off"
        case .malformed(let offset): "the image is malformed at byte \(offset)"
        case .damaged(let message): "the image is damaged: \(message)"
        }
    }

    /// A sentence that tells a person what to do next.
    public var hint: String {
        switch self {
        case .tooLarge: "Allow more pixels, if the document is to be trusted with the memory."
        case .truncated, .damaged: "Read the document again; if it stays so, the chip contains it so."
        case .unknownFormat, .unsupported, .malformed: "Write the image to a file, and try other programs."
        }
    }
}
