/// Draws an image in place of a person's: of the same format, width, height and length in bytes.
///
/// It shows the outline of a head and shoulders in gray.  Drawing in place of a drawn image gives the same image again.
enum DrawnImage {
    /// The width and height of an image, in pixels.
    struct Size: Equatable {
        let width, height: Int
        /// A portrait has some 10⁵ pixels; an image that claims to be larger is not drawn.
        static let largestSide = 16_384

        init?(_ width: Int, _ height: Int) {
            guard (1...Self.largestSide).contains(width), (1...Self.largestSide).contains(height) else { return nil }
            (self.width, self.height) = (width, height)
        }

        /// Returns true if the figure covers the middle of a square.
        func isFigure(_ column: Int, _ row: Int, side: Int) -> Bool {
            let x = (Double(column * side) + Double(side) / 2) / Double(width)
            let y = (Double(row * side) + Double(side) / 2) / Double(height)
            func isInside(_ centerY: Double, _ radiusX: Double, _ radiusY: Double) -> Bool {
                let (dx, dy) = ((x - 0.5) / radiusX, (y - centerY) / radiusY)
                return dx * dx + dy * dy <= 1
            }
            return isInside(0.4, 0.2, 0.25) || isInside(1.05, 0.42, 0.35)
        }
    }

    /// Returns an image in place of `image`; nil if that is of no known format, states no size, or has too few bytes.
    static func replacement(for image: ArraySlice<UInt8>) -> [UInt8]? {
        if image.starts(with: JPEGDrawing.beginning) { return JPEGDrawing.draw(for: Array(image)) }
        if image.starts(with: JPEG2000Drawing.beginning) { return JPEG2000Drawing.draw(for: Array(image)) }
        guard image.starts(with: JPEG2000Drawing.fileBeginning) else { return nil }
        return JPEG2000Drawing.drawFile(for: Array(image))
    }
}

extension ArraySlice<UInt8> {
    /// The number in the first bytes, most significant byte first; nil if there are fewer.
    func number(_ count: Int) -> Int? { self.count >= count ? prefix(count).reduce(0) { $0 << 8 | Int($1) } : nil }
}

extension Int {
    /// The low bytes of a number, most significant byte first.
    func bytes(_ count: Int) -> [UInt8] {
        (0..<count).reversed().map { UInt8(truncatingIfNeeded: self >> (8 * $0)) }
    }
}

/// Baseline JPEG of one component (ITU-T T.81).
private enum JPEGDrawing {
    static let beginning: [UInt8] = [0xFF, 0xD8, 0xFF]

    /// Behind the padding: quantization by 64 of a block's mean; one component of 8 bits.  Means have the
    /// Huffman codes 0 (no change) and 10 (a change of four bits), all else the code 0 (end of block).
    private static func header(_ size: DrawnImage.Size) -> [UInt8] {
        [0xFF, 0xDB, 0x00, 0x43, 0x00, 0x40] + [UInt8](repeating: 0x01, count: 63)
            + [0xFF, 0xC0, 0x00, 0x0B, 0x08] + size.height.bytes(2) + size.width.bytes(2) + [0x01, 0x01, 0x11, 0x00]
            + [0xFF, 0xC4, 0x00, 0x15, 0x00, 0x01, 0x01] + [UInt8](repeating: 0x00, count: 14) + [0x00, 0x04]
            + [0xFF, 0xC4, 0x00, 0x14, 0x10, 0x01] + [UInt8](repeating: 0x00, count: 15) + [0x00]
            + [0xFF, 0xDA, 0x00, 0x08, 0x01, 0x01, 0x00, 0x00, 0x3F, 0x00]
    }

    static func draw(for image: [UInt8]) -> [UInt8]? {
        guard let size = size(of: image[...]) else { return nil }
        // Two bits a block, at least.
        guard (size.width + 7) / 8 * ((size.height + 7) / 8) / 4 <= image.count else { return nil }
        let drawing = header(size) + scan(size) + [0xFF, 0xD9]
        let room = image.count - 2 - drawing.count
        guard room >= 0 else { return nil }
        return [0xFF, 0xD8] + padding(room) + drawing
    }

    /// The size in the frame header (B.2.2).
    private static func size(of image: ArraySlice<UInt8>) -> DrawnImage.Size? {
        var rest = image.dropFirst(2)
        while rest.popFirst() == 0xFF {
            rest = rest.drop { $0 == 0xFF }
            guard let marker = rest.popFirst(), let length = rest.number(2), length >= 2 else { return nil }
            if (0xC0...0xCF).contains(marker), ![0xC4, 0xC8, 0xCC].contains(marker) {
                guard let height = rest.dropFirst(3).number(2), let width = rest.dropFirst(5).number(2) else {
                    return nil
                }
                return DrawnImage.Size(width, height)
            }
            rest = rest.dropFirst(length)
        }
        return nil
    }

    /// Comments (B.2.4.5), and fill bytes before a marker where there is no room for one (B.1.1.2).
    private static func padding(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        while count - bytes.count >= 4 {
            let length = min(count - bytes.count - 2, 0xFFFF)
            bytes += [0xFF, 0xFE] + length.bytes(2) + [UInt8](repeating: 0, count: length - 2)
        }
        return bytes + [UInt8](repeating: 0xFF, count: count - bytes.count)
    }

    /// The blocks of 8 by 8: their mean is middle gray, and 8 steps less in the figure.
    private static func scan(_ size: DrawnImage.Size) -> [UInt8] {
        var bytes: [UInt8] = []
        var (current, count, wasFigure) = (0, 0, false)
        func put(_ bits: Int, _ length: Int) {
            for place in (0..<length).reversed() {
                current = current << 1 | bits >> place & 1
                count += 1
                guard count == 8 else { continue }
                bytes.append(UInt8(current))
                // F.1.2.3: a byte FF of the scan is followed by 00.
                if current == 0xFF { bytes.append(0x00) }
                (current, count) = (0, 0)
            }
        }
        for row in 0..<(size.height + 7) / 8 {
            for column in 0..<(size.width + 7) / 8 {
                let isFigure = size.isFigure(column, row, side: 8)
                if isFigure == wasFigure {
                    put(0b00, 2)
                } else {
                    // The code, the change (F.1.2.1: -8 as 0111, 8 as 1000), the end of the block.
                    put(isFigure ? 0b10_0111_0 : 0b10_1000_0, 7)
                }
                wasFigure = isFigure
            }
        }
        if count > 0 { put(0xFF, 8 - count) }
        return bytes
    }
}

/// JPEG 2000 (ITU-T T.800), a codestream or a file.
private enum JPEG2000Drawing {
    static let beginning: [UInt8] = [0xFF, 0x4F, 0xFF, 0x51]
    /// The signature box (I.5.1).
    static let fileBeginning: [UInt8] = [
        0x00, 0x00, 0x00, 0x0C, 0x6A, 0x50, 0x20, 0x20, 0x0D, 0x0A, 0x87, 0x0A,
    ]

    /// A tile whose samples are all 64, by its side, as OpenJPEG 2.5.0 encodes it with these parameters.
    private static let darkTiles: [(side: Int, packet: [UInt8])] = [
        (16, [0xCF, 0xB4, 0x1C, 0x11, 0x50, 0x54, 0xAF, 0xF4, 0xC8, 0x7F]),
        (32, [0xCF, 0xB4, 0x20, 0x11, 0x50, 0x54, 0xAF, 0xFF, 0x6F, 0x8F, 0x8B]),
        (64, [0xCF, 0xB4, 0x28, 0x11, 0x50, 0x54, 0xAF, 0xFF, 0x7F, 0xE9, 0x89, 0x60, 0x7F]),
    ]
    /// A packet in which no code-block is included (B.10.3): the samples are all 128.
    private static let emptyPacket: [UInt8] = [0x00]

    static func draw(for image: [UInt8]) -> [UInt8]? {
        size(of: image[...]).flatMap { codestream($0, count: image.count) }
    }

    static func drawFile(for image: [UInt8]) -> [UInt8]? {
        guard let start = codestreamStart(in: image), let size = size(of: image[start...]) else { return nil }
        let boxes =
            fileBeginning + box("ftyp", Array("jp2 ".utf8) + 0.bytes(4) + Array("jp2 ".utf8))
            + box(
                "jp2h",
                // One component of 8 bits, of gray (I.5.3.1, I.5.3.3).
                box("ihdr", size.height.bytes(4) + size.width.bytes(4) + [0x00, 0x01, 0x07, 0x07, 0x00, 0x00])
                    + box("colr", [0x01, 0x00, 0x00] + 17.bytes(4)))
        let room = image.count - boxes.count - 8
        guard room > 0, let stream = codestream(size, count: room) else { return nil }
        return boxes + box("jp2c", stream)
    }

    private static func box(_ type: String, _ contents: [UInt8]) -> [UInt8] {
        (8 + contents.count).bytes(4) + Array(type.utf8) + contents
    }

    /// The place of the codestream in its box.
    private static func codestreamStart(in image: [UInt8]) -> Int? {
        var rest = image[...]
        while let length = rest.number(4), rest.count >= 8 {
            if rest.dropFirst(4).starts(with: "jp2c".utf8) {
                // 1: a length of 8 bytes follows (I.4).
                let start = rest.startIndex + (length == 1 ? 16 : 8)
                return start <= image.count ? start : nil
            }
            guard length >= 8 else { return nil }
            rest = rest.dropFirst(length)
        }
        return nil
    }

    /// The size in the first marker segment (A.5.1).
    private static func size(of stream: ArraySlice<UInt8>) -> DrawnImage.Size? {
        guard stream.starts(with: beginning) else { return nil }
        let fields = (0..<4).map { stream.dropFirst(8 + 4 * $0).number(4) }
        guard let right = fields[0], let bottom = fields[1], let left = fields[2], let top = fields[3] else {
            return nil
        }
        return DrawnImage.Size(right - left, bottom - top)
    }

    /// Returns a codestream of `count` bytes, with the smallest tiles for which there is room.
    private static func codestream(_ size: DrawnImage.Size, count: Int) -> [UInt8]? {
        for (side, packet) in darkTiles {
            // 15 bytes a tile, at least.
            let tiles = ((size.width + side - 1) / side) * ((size.height + side - 1) / side)
            guard tiles <= 0xFFFF, tiles * 15 <= count else { continue }
            if let stream = codestream(size, side, packet, count: count) { return stream }
        }
        // One tile of gray.
        return codestream(size, max(size.width, size.height), nil, count: count)
    }

    /// - Parameter dark: the packet of a tile inside the figure; nil for none.
    private static func codestream(_ size: DrawnImage.Size, _ side: Int, _ dark: [UInt8]?, count: Int) -> [UInt8]? {
        // SIZ: one component of 8 bits, no offsets.
        var header: [UInt8] = [0xFF, 0x4F, 0xFF, 0x51, 0x00, 0x29, 0x00, 0x00]
        header += size.width.bytes(4) + size.height.bytes(4) + 0.bytes(8)
        header += side.bytes(4) + side.bytes(4) + 0.bytes(8) + [0x00, 0x01, 0x07, 0x01, 0x01]
        // COD: one layer, no wavelet level, code-blocks of 64 by 64, reversible.  QCD: no quantization, two guard bits.
        header += [0xFF, 0x52, 0x00, 0x0C, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x04, 0x04, 0x00, 0x01]
        header += [0xFF, 0x5C, 0x00, 0x04, 0x40, 0x40]
        var tiles: [UInt8] = []
        let columns = (size.width + side - 1) / side
        for number in 0..<columns * ((size.height + side - 1) / side) {
            let (column, row) = (number % columns, number / columns)
            // Encoded for a whole tile alone.
            let isWhole = (column + 1) * side <= size.width && (row + 1) * side <= size.height
            let isDark = isWhole && size.isFigure(column, row, side: side)
            let packet = (isDark ? dark : nil) ?? emptyPacket
            tiles +=
                [0xFF, 0x90, 0x00, 0x0A] + number.bytes(2) + (14 + packet.count).bytes(4) + [0x00, 0x01, 0xFF, 0x93]
            tiles += packet
        }
        guard let comment = comments(count - header.count - tiles.count - 2) else { return nil }
        return header + comment + tiles + [0xFF, 0xD9]
    }

    /// Comments of bytes (A.9.2), which take six bytes at least; nil if there is no room.
    private static func comments(_ count: Int) -> [UInt8]? {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let rest = count - bytes.count
            guard rest >= 6 else { return nil }
            // What is left for the next one suffices for it.
            let length = rest - 2 <= 0xFFFF ? rest - 2 : min(0xFFFF, rest - 2 - 6)
            bytes += [0xFF, 0x64] + length.bytes(2) + [0x00, 0x00] + [UInt8](repeating: 0, count: length - 4)
        }
        return count >= 0 ? bytes : nil
    }
}
