/// A picture of nobody in place of an image: with its format, width, height and length.
///
/// What it is depends on these alone, so that it is its own replacement.
enum DrawnImage {
    struct Size {
        let width: Int
        let height: Int
    }

    /// Returns the picture in place of `image`; nil if that does not tell its size, or is too short for one.
    static func instead(of image: [UInt8]) -> [UInt8]? {
        if image.starts(with: [0xFF, 0xD8, 0xFF]) {
            size(ofJPEG: image).flatMap { jpeg($0, image.count) }
        } else if image.starts(with: [0xFF, 0x4F, 0xFF, 0x51]) {
            size(ofCodestreamAt: 0, in: image).flatMap { codestream($0, image.count) }
        } else if image.starts(with: signature) {
            codestreamPlace(in: image).flatMap { size(ofCodestreamAt: $0, in: image) }.flatMap {
                jp2($0, image.count)
            }
        } else {
            nil
        }
    }

    /// Returns the number of `count` bytes at `start`; nil if they are not there whole.
    private static func number(_ bytes: [UInt8], at start: Int, _ count: Int) -> Int? {
        guard start >= 0, start <= bytes.count - count else { return nil }
        return bytes[start..<start + count].reduce(0) { $0 << 8 | Int($1) }
    }

    /// Returns `value` in `count` bytes.
    private static func bytes(_ value: Int, _ count: Int) -> [UInt8] {
        (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    // MARK: JPEG

    /// Markers of frames: SOF0 to SOF15 without DHT, JPG and DAC (ISO/IEC 10918-1, table B.1).
    private static let frames = Set(0xC0...0xCF).subtracting([0xC4, 0xC8, 0xCC])
    /// Markers without a length: TEM, RST0 to RST7, SOI, EOI; and SOS, before which the frame has to be.
    private static let ends = Set(0xD0...0xDA).union([0x00, 0x01])

    /// The size in the frame's header: `FF C0, length, precision, height, width` (B.2.2).
    private static func size(ofJPEG image: [UInt8]) -> Size? {
        var next = 2
        while let marker = number(image, at: next, 2), marker >> 8 == 0xFF, !ends.contains(marker & 0xFF) {
            // Any number of FF may stand before a marker (B.1.1.2).
            guard marker != 0xFFFF else {
                next += 1
                continue
            }
            if frames.contains(marker & 0xFF) {
                guard let height = number(image, at: next + 5, 2), let width = number(image, at: next + 7, 2),
                    height > 0, width > 0
                else { return nil }
                return Size(width: width, height: height)
            }
            guard let length = number(image, at: next + 2, 2), length >= 2 else { return nil }
            next += 2 + length
        }
        return nil
    }

    /// Half the difference between the background and the figure, which are as far from the middle gray.
    private static let contrast = 64
    /// Of the differences of two blocks: the code of their number of bits, and its length.
    private static let codes: [Int: (code: Int, length: Int)] = [0: (0b0, 1), 8: (0b10, 2), 7: (0b110, 3)]

    /// Head and shoulders in gray, by blocks of 8 by 8 pixels of one shade: a baseline image of one component (F.1).
    private static func jpeg(_ size: Size, _ count: Int) -> [UInt8]? {
        let (columns, rows) = ((size.width + 7) / 8, (size.height + 7) / 8)
        // A block has two bits or more.
        guard columns * rows <= 4 * count else { return nil }
        var result: [UInt8] = [0xFF, 0xD8]
        // JFIF 1.01, one pixel as wide as high, no thumbnail.
        result += [0xFF, 0xE0, 0x00, 0x10, 0x4A, 0x46, 0x49, 0x46, 0x00, 0x01, 0x01, 0, 0, 1, 0, 1, 0, 0]
        // DQT: with 8 a block's first coefficient is its shade, from the middle gray on (A.3.3).
        result += [0xFF, 0xDB, 0x00, 0x43, 0x00] + [UInt8](repeating: 8, count: 64)
        // SOF0: 8 bits, height, width, one component.
        result += [0xFF, 0xC0, 0x00, 0x0B, 0x08] + bytes(size.height, 2) + bytes(size.width, 2)
        result += [0x01, 0x01, 0x11, 0x00]
        // DHT: differences of 0, 8 and 7 bits have codes of 1, 2 and 3; the end of the block has one of 1.
        result += [0xFF, 0xC4, 0x00, 0x16, 0x00, 1, 1, 1] + [UInt8](repeating: 0, count: 13) + [0, 8, 7]
        result += [0xFF, 0xC4, 0x00, 0x14, 0x10, 1] + [UInt8](repeating: 0, count: 15) + [0x00]
        // SOS, the scan and EOI.
        var end: [UInt8] = [0xFF, 0xDA, 0x00, 0x08, 0x01, 0x01, 0x00, 0x00, 0x3F, 0x00]
        end += scan(columns, rows)
        end += [0xFF, 0xD9]
        var rest = count - result.count - end.count
        guard rest >= 0 else { return nil }
        while rest >= 4 {
            // COM.
            let length = min(rest - 2, 0xFFFF)
            result += [0xFF, 0xFE] + bytes(length, 2) + [UInt8](repeating: 0, count: length - 2)
            rest -= length + 2
        }
        return result + [UInt8](repeating: 0xFF, count: rest) + end
    }

    /// The codes of the blocks, filled up with 1; behind FF stands 00 (F.1.2.3).
    private static func scan(_ columns: Int, _ rows: Int) -> [UInt8] {
        var result: [UInt8] = []
        var (bits, length, shade) = (0, 0, 0)
        func put(_ code: Int, _ count: Int) {
            (bits, length) = (bits << count | code, length + count)
            while length >= 8 {
                length -= 8
                result.append(UInt8(truncatingIfNeeded: bits >> length))
                if result.last == 0xFF { result.append(0x00) }
            }
            bits &= 0xFF
        }
        for row in 0..<rows {
            for column in 0..<columns {
                let new = isFigure((2 * column + 1, 2 * columns), (2 * row + 1, 2 * rows)) ? -contrast : contrast
                let difference = new - shade
                let count = Int.bitWidth - difference.magnitude.leadingZeroBitCount
                let code = codes[count] ?? (0, 1)
                put(code.code, code.length)
                // Of a negative one, the low bits of the number before it.
                put((difference < 0 ? difference - 1 : difference) & (1 << count - 1), count)
                put(0b0, 1)
                shade = new
            }
        }
        if length > 0 { put(1 << (8 - length) - 1, 8 - length) }
        return result
    }

    /// An ellipse, in thousandths of the image's width and height.
    private typealias Ellipse = (x: Int, y: Int, width: Int, height: Int)
    private static let head: Ellipse = (500, 400, 210, 250)
    private static let shoulders: Ellipse = (500, 1000, 420, 300)

    /// True for a place in the head or in the shoulders, as fractions of the image's width and height.
    private static func isFigure(_ x: (Int, Int), _ y: (Int, Int)) -> Bool {
        [head, shoulders].contains { ellipse in
            let across = (1000 * x.0 / x.1 - ellipse.x) * 1000 / ellipse.width
            let down = (1000 * y.0 / y.1 - ellipse.y) * 1000 / ellipse.height
            return across * across + down * down <= 1_000_000
        }
    }

    // MARK: JPEG 2000

    /// The first box of a JP2 file (ISO/IEC 15444-1, I.5.1).
    private static let signature: [UInt8] = [
        0x00, 0x00, 0x00, 0x0C, 0x6A, 0x50, 0x20, 0x20, 0x0D, 0x0A, 0x87, 0x0A,
    ]

    /// Returns the place of the codestream, in the first box `jp2c` (I.4).
    private static func codestreamPlace(in image: [UInt8]) -> Int? {
        var next = 0
        while let length = number(image, at: next, 4), let type = number(image, at: next + 4, 4) {
            // With the length 1 another one of 64 bits follows.
            let header = length == 1 ? 16 : 8
            if type == 0x6A70_3263 { return next + header }
            guard let length = length == 1 ? number(image, at: next + 12, 4) : length, length >= header else {
                return nil
            }
            next += length
        }
        return nil
    }

    /// The size in SIZ: `FF4F FF51, Lsiz, Rsiz, Xsiz, Ysiz, XOsiz, YOsiz` (A.5.1).
    private static func size(ofCodestreamAt start: Int, in image: [UInt8]) -> Size? {
        guard number(image, at: start, 4) == 0xFF4F_FF51, let right = number(image, at: start + 8, 4),
            let bottom = number(image, at: start + 12, 4), let left = number(image, at: start + 16, 4),
            let top = number(image, at: start + 20, 4)
        else { return nil }
        // A precinct has at most 2^15 samples a side (table A.21).
        let sides = 1...0x8000
        guard sides.contains(right - left), sides.contains(bottom - top) else { return nil }
        return Size(width: right - left, height: bottom - top)
    }

    /// Middle gray: a codestream whose packets are empty (B.10.3).
    private static func codestream(_ size: Size, _ count: Int) -> [UInt8]? {
        // SOC; SIZ: one tile, one component of 8 bits.
        var result: [UInt8] = [0xFF, 0x4F, 0xFF, 0x51, 0x00, 0x29, 0x00, 0x00]
        result += bytes(size.width, 4) + bytes(size.height, 4) + bytes(0, 8)
        result += bytes(size.width, 4) + bytes(size.height, 4) + bytes(0, 8)
        result += [0x00, 0x01, 0x07, 0x01, 0x01]
        // COD, QCD, SOT, SOD, one packet, EOC.
        let smallest = result.count + 14 + 6 + 12 + 2 + 1 + 2
        guard count >= smallest else { return nil }
        // COM has 7 bytes or more.  Fewer are left to further layers, of one packet each.
        var rest = count - smallest
        var comments: [UInt8] = []
        while rest >= 7 {
            let length = min(rest - 2, 0xFFFF)
            comments += [0xFF, 0x64] + bytes(length, 2) + [UInt8](repeating: 0, count: length - 2)
            rest -= length + 2
        }
        let layers = 1 + rest
        // COD: progression by layers; no decomposition; code-blocks of 64 by 64; the reversible transformation.
        result += [0xFF, 0x52, 0x00, 0x0C, 0x00, 0x00] + bytes(layers, 2) + [0x00, 0x00, 0x04, 0x04, 0x00, 0x01]
        // QCD: no quantization, two guard bits; the exponent is the depth.
        result += [0xFF, 0x5C, 0x00, 0x04, 0x40, 0x40]
        result += comments
        // SOT: the only part of tile 0; SOD; an empty packet is a bit 0.
        result += [0xFF, 0x90, 0x00, 0x0A, 0x00, 0x00] + bytes(14 + layers, 4) + [0x00, 0x01]
        return result + [0xFF, 0x93] + [UInt8](repeating: 0, count: layers) + [0xFF, 0xD9]
    }

    /// The codestream in the boxes that a file has to have (I.4, I.5).
    private static func jp2(_ size: Size, _ count: Int) -> [UInt8]? {
        // ftyp: JP2, version 0, compatible with JP2.
        var result = signature + bytes(20, 4) + Array("ftypjp2 ".utf8) + bytes(0, 4) + Array("jp2 ".utf8)
        // jp2h with ihdr: one component of 8 bits, compression 7; and colr: gray by number.
        result += bytes(45, 4) + Array("jp2h".utf8)
        result += bytes(22, 4) + Array("ihdr".utf8) + bytes(size.height, 4) + bytes(size.width, 4)
        result += [0x00, 0x01, 0x07, 0x07, 0x00, 0x00]
        result += bytes(15, 4) + Array("colr".utf8) + [0x01, 0x00, 0x00] + bytes(17, 4)
        let length = count - result.count
        guard let codestream = codestream(size, length - 8) else { return nil }
        return result + bytes(length, 4) + Array("jp2c".utf8) + codestream
    }
}
