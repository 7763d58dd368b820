/// A JP2 file's codestream, with what the boxes around it say of the colors (ISO/IEC 15444-1, annex I).
struct JP2File {
    /// EnumCS of a Colour Specification box (table I.10).
    enum ColorSpace: Int {
        case cmyk = 12
        case sRGB = 16
        case gray = 17
        case sYCC = 18
    }

    /// A channel, as a Channel Definition box has it (I.5.3.6).
    struct Channel {
        /// The component, from zero.
        let component: Int
        /// 0 for color; 1 and 2 for opacity.
        let type: Int
        /// The color, from one; 0 stands for the whole image.
        let color: Int
    }

    /// From the marker SOC on.
    let codestream: ArraySlice<UInt8>
    /// The color space; nil if no box names it by number.
    private(set) var colorSpace: ColorSpace?
    /// Empty: the components are the colors in their order.
    private(set) var channels: [Channel] = []

    init(codestream: ArraySlice<UInt8>) { self.codestream = codestream }

    /// Takes the boxes up to the first codestream; those that decoding does not need are skipped.
    init(parsing bytes: [UInt8]) throws(ImageError) {
        var boxes = BoxReader(bytes[...])
        var header: ArraySlice<UInt8> = []
        while true {
            let box = try boxes.take()
            switch box.type {
            case "jp2h": header = box.contents
            case "jp2c":
                codestream = box.contents
                try parse(header: header)
                return
            default: break
            }
        }
    }

    /// Parses the contents of a JP2 Header box (I.5.3).
    private mutating func parse(header: ArraySlice<UInt8>) throws(ImageError) {
        var boxes = BoxReader(header, shortage: .malformed(offset: header.startIndex))
        var hasColor = false
        while !boxes.isEmpty {
            let box = try boxes.take()
            var contents = ByteReader(box.contents, shortage: .malformed(offset: box.contents.startIndex))
            switch box.type {
            // Colour Specification: the first one counts (I.5.3.3).  METH, PREC, APPROX, and EnumCS if METH is 1.
            case "colr" where !hasColor:
                hasColor = true
                guard try contents.number(3) >> 16 == 1 else { break }
                guard let space = ColorSpace(rawValue: try contents.number(4)) else { throw .unsupported(.colorSpace) }
                colorSpace = space
            // Channel Definition: N, then Cn, Typ and Asoc of each channel.
            case "cdef":
                channels = []
                for _ in 0..<(try contents.number(2)) {
                    channels.append(
                        Channel(
                            component: try contents.number(2), type: try contents.number(2),
                            color: try contents.number(2)))
                }
            case "pclr": throw .unsupported(.palette)
            default: break
            }
        }
    }
}

/// Boxes that follow each other (ISO/IEC 15444-1, I.4): `LBox, TBox, XLBox if LBox is 1, contents`.
private struct BoxReader {
    private var reader: ByteReader

    init(_ bytes: ArraySlice<UInt8>, shortage: ImageError = .truncated) {
        reader = ByteReader(bytes, shortage: shortage)
    }

    var isEmpty: Bool { reader.rest.isEmpty }

    mutating func take() throws(ImageError) -> (type: String, contents: ArraySlice<UInt8>) {
        let start = reader.offset
        var length = try reader.number(4)
        let type = String(decoding: try reader.take(4), as: UTF8.self)
        switch length {
        // To the end.
        case 0: return (type, try reader.take(reader.rest.count))
        case 1:
            // XLBox has 64 bits.
            guard try reader.number(2) == 0 else { throw .malformed(offset: start) }
            length = try reader.number(6)
        default: break
        }
        let header = reader.offset - start
        guard length >= header else { throw .malformed(offset: start) }
        return (type, try reader.take(length - header))
    }
}
