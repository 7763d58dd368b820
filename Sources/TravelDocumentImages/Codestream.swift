/// The size and the divisions of a JPEG 2000 codestream, from its markers (ISO/IEC 15444-1, annex A).
///
/// Parsed to the end before a decoder sees it: the codestream is complete then, and asks for a bounded amount of memory.
struct Codestream {
    /// A component, as SIZ has it (A.5.1).
    struct Component {
        /// Bits of a sample.
        let depth: Int
        let isSigned: Bool
        /// The samples' distances on the reference grid.
        let dx, dy: Int
        /// The samples that there are, in units of the distances.
        let columns, rows: Range<Int>
    }

    /// From SOC to EOC.
    private(set) var bytes: ArraySlice<UInt8>
    /// The image's area on the reference grid.
    private(set) var columns = 0..<0
    private(set) var rows = 0..<0
    private(set) var components: [Component] = []

    private var tileWidth = 0
    private var tileHeight = 0
    private var tileCount = 0
    // The most of all COD and COC.
    private var layers = 1
    private var packetsOfLayer = 0.0

    /// - Throws: ``ImageError``; ``ImageError/tooLarge(width:height:maximumPixels:)`` before anything else is parsed.
    init(parsing bytes: ArraySlice<UInt8>, maximumPixels: Int) throws(ImageError) {
        self.bytes = bytes
        var reader = ByteReader(bytes)
        guard try reader.number(4) == 0xFF4F_FF51 else { throw .malformed(offset: bytes.startIndex) }
        try takeSize(&reader, maximumPixels: maximumPixels)
        try takeTileParts(&reader)
        self.bytes = bytes[..<reader.offset]
    }

    /// The most tiles; a face has one.  A decoder has memory for each, though no byte of the image stands for it.
    private static let maximumTiles = 1 << 12
    /// The most packets, and the most code-blocks; a face has some hundred.
    private static let maximumParts = Double(1 << 18)

    /// SIZ: Lsiz, Rsiz, Xsiz, Ysiz, XOsiz, YOsiz, XTsiz, YTsiz, XTOsiz, YTOsiz, Csiz; Ssiz, XRsiz and YRsiz of each component.
    private mutating func takeSize(_ reader: inout ByteReader, maximumPixels: Int) throws(ImageError) {
        let start = reader.offset
        let length = try reader.number(2)
        _ = try reader.number(2)
        let (right, bottom) = (try reader.number(4), try reader.number(4))
        let (left, top) = (try reader.number(4), try reader.number(4))
        (tileWidth, tileHeight) = (try reader.number(4), try reader.number(4))
        let (tileLeft, tileTop) = (try reader.number(4), try reader.number(4))
        let count = try reader.number(2)
        guard left < right, top < bottom, tileLeft <= left, left < tileLeft + tileWidth, tileTop <= top,
            top < tileTop + tileHeight, count > 0, length == 38 + 3 * count
        else { throw .malformed(offset: start) }
        (columns, rows) = (left..<right, top..<bottom)
        guard columns.count <= maximumPixels / rows.count else {
            throw .tooLarge(width: columns.count, height: rows.count, maximumPixels: maximumPixels)
        }
        guard count <= 4 else { throw .unsupported(.components) }
        let across = (right - tileLeft).dividedUp(by: tileWidth)
        let down = (bottom - tileTop).dividedUp(by: tileHeight)
        guard across <= Self.maximumTiles / down else { throw .unsupported(.divisions) }
        tileCount = across * down
        for _ in 0..<count {
            let precision = try reader.number(1)
            let (dx, dy) = (try reader.number(1), try reader.number(1))
            guard dx > 0, dy > 0 else { throw .malformed(offset: reader.offset) }
            let component = Component(
                depth: precision & 0x7F + 1, isSigned: precision & 0x80 != 0, dx: dx, dy: dy,
                columns: left.dividedUp(by: dx)..<right.dividedUp(by: dx),
                rows: top.dividedUp(by: dy)..<bottom.dividedUp(by: dy))
            guard !component.columns.isEmpty, !component.rows.isEmpty else { throw .malformed(offset: reader.offset) }
            guard component.depth <= 16 else { throw .unsupported(.depth) }
            components.append(component)
        }
    }

    /// The rest of the main header, and the tile-parts, up to EOC.
    private mutating func takeTileParts(_ reader: inout ByteReader) throws(ImageError) {
        /// The end of the tile-part that the markers are of; nil: it is that of the codestream.
        var end: Int?
        while true {
            let start = reader.offset
            switch Marker(rawValue: try reader.number(2)) {
            case .endOfCodestream: return
            case .startOfTilePart:
                // Lsot, Isot, Psot, TPsot, TNsot.
                _ = try reader.take(4)
                let length = try reader.number(4)
                _ = try reader.take(2)
                end = length == 0 ? nil : start + length
            case .startOfData:
                guard let end else {
                    // The last tile-part, whose length nobody knew when it was begun (A.4.2).
                    guard reader.rest.suffix(2) == [0xFF, 0xD9] else { throw .truncated }
                    _ = try reader.take(reader.rest.count)
                    return
                }
                guard end >= reader.offset else { throw .malformed(offset: start) }
                _ = try reader.take(end - reader.offset)
            case .codingStyle:
                var segment = try Self.segment(&reader)
                // Scod, and SGcod: progression order, layers, transformation of components.
                let style = try segment.number(1)
                _ = try segment.number(1)
                layers = max(layers, try segment.number(2))
                _ = try segment.number(1)
                try takeParameters(&segment, style)
            case .componentCodingStyle:
                var segment = try Self.segment(&reader)
                // Ccoc, Scoc.
                let style = try segment.number(2) & 0xFF
                try takeParameters(&segment, style)
            case .capabilities, .tilePartLengths, .packetLengths, .packetLengthsOfTilePart, .quantization,
                .componentQuantization, .regionOfInterest, .progressionOrderChange, .packedHeaders,
                .packedHeadersOfTilePart, .componentRegistration, .comment:
                _ = try Self.segment(&reader)
            case nil: throw .malformed(offset: start)
            }
        }
    }

    /// The bytes between a marker's length and the next marker.
    private static func segment(_ reader: inout ByteReader) throws(ImageError) -> ByteReader {
        let start = reader.offset
        let length = try reader.number(2)
        guard length >= 2 else { throw .malformed(offset: start) }
        return ByteReader(try reader.take(length - 2), shortage: .malformed(offset: start))
    }

    /// SPcod or SPcoc (table A.15): decomposition levels, the exponents of a code-block's sides less 2, its style, the
    /// transformation, and with bit 0 of the style the exponents of a precinct's sides for each resolution level.
    private mutating func takeParameters(_ segment: inout ByteReader, _ style: Int) throws(ImageError) {
        let levels = try segment.number(1)
        let (blockWidth, blockHeight) = (try segment.number(1) & 0x0F + 2, try segment.number(1) & 0x0F + 2)
        _ = try segment.take(2)
        // The smallest level first.  Precincts of 2^15 samples a side, where nothing is said.
        let exponents =
            style & 1 != 0 ? try segment.take(levels + 1).map(Int.init) : Array(repeating: 0xFF, count: levels + 1)
        let precincts = exponents.enumerated().map { level, exponents in
            parts(exponents & 0x0F + levels - level, exponents >> 4 + levels - level)
        }.reduce(0, +)
        packetsOfLayer = max(packetsOfLayer, precincts)
        guard max(packetsOfLayer * Double(layers), parts(blockWidth, blockHeight)) <= Self.maximumParts else {
            throw .unsupported(.divisions)
        }
    }

    /// An upper bound of the parts of all components and tiles, each with 2^exponent samples a side.
    private func parts(_ widthExponent: Int, _ heightExponent: Int) -> Double {
        Double(min(tileWidth, columns.count) >> widthExponent + 2)
            * Double(min(tileHeight, rows.count) >> heightExponent + 2)
            * Double(tileCount * components.count)
    }
}

/// The markers of a codestream (tables A.1 and A.2), but for SOC, SIZ and those among packets.  A decoder that skips others
/// would look for the next one wherever it likes.
private enum Marker: Int {
    case capabilities = 0xFF50
    case codingStyle = 0xFF52
    case componentCodingStyle = 0xFF53
    case tilePartLengths = 0xFF55
    case packetLengths = 0xFF57
    case packetLengthsOfTilePart = 0xFF58
    case quantization = 0xFF5C
    case componentQuantization = 0xFF5D
    case regionOfInterest = 0xFF5E
    case progressionOrderChange = 0xFF5F
    case packedHeaders = 0xFF60
    case packedHeadersOfTilePart = 0xFF61
    case componentRegistration = 0xFF63
    case comment = 0xFF64
    case startOfTilePart = 0xFF90
    case startOfData = 0xFF93
    case endOfCodestream = 0xFFD9
}

extension Int {
    /// The quotient of two positive numbers, rounded up.
    func dividedUp(by divisor: Int) -> Int { (self + divisor - 1) / divisor }
}
