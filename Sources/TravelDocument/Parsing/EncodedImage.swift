/// An image as a file contains it, not decoded.
public struct EncodedImage: Hashable, Sendable {
    /// A format that ICAO 9303-10 allows: ISO/IEC 10918-1 and ISO/IEC 15444-1.
    public enum Format: String, Hashable, Sendable, CaseIterable {
        case jpeg = "JPEG"
        /// JPEG 2000 in boxes, a JP2 file.
        case jp2 = "JP2"
        /// JPEG 2000 without boxes.
        case jpeg2000Codestream = "JPEG 2000 codestream"

        /// The bytes that an image in the format begins with: a marker SOI and the next one's first byte; a JP2 signature
        /// box; the markers SOC and SIZ.
        var beginning: [UInt8] {
            switch self {
            case .jpeg: [0xFF, 0xD8, 0xFF]
            case .jp2: [0x00, 0x00, 0x00, 0x0C, 0x6A, 0x50, 0x20, 0x20]
            case .jpeg2000Codestream: [0xFF, 0x4F, 0xFF, 0x51]
            }
        }
    }

    /// The format that the first bytes are of; nil if they are of none.
    public let format: Format?
    public let bytes: [UInt8]

    /// - Parameter bytes: the image alone, from the first byte of its format on.
    public init(_ bytes: [UInt8]) {
        self.bytes = bytes
        format = Format.allCases.first { bytes.starts(with: $0.beginning) }
    }
}

extension EncodedImage: PersonalData {
    /// The format and the number of bytes.
    public var description: String { "\(format?.rawValue ?? "unknown") image, \(bytes.count) bytes" }
}
