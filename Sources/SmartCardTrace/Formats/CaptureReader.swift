/// Reads the packets of a capture: pcap (draft-ietf-opsawg-pcap) or pcapng (draft-ietf-opsawg-pcapng).
struct CaptureReader {
    /// The longest packet, libpcap's MAXIMUM_SNAPLEN.
    static let maximumPacketCount = 262_144
    /// A block with such a packet, and room for its options.
    private static let maximumBlockCount = maximumPacketCount + 65_536
    private static let maximumInterfaceCount = 1024

    struct Packet {
        /// LINKTYPE_…
        var link: Int
        /// The number of the interface, counted over all sections of the file.
        var interface: Int
        var time: Duration
        var data: ArraySlice<UInt8>
        /// The byte order of the machine that wrote the capture.
        var order: ByteOrder
        /// True if the capture contains only a part of it.
        var isPart: Bool
    }

    enum Item {
        case packet(Packet)
        case comment(String, at: Duration)
        /// The file ends within a packet.
        case cutOff
    }

    private struct Interface {
        var link: Int
        var snapLength: Int
        var unitsPerSecond: UInt64 = 1_000_000
        var startSeconds: Int64 = 0

        func time(_ units: UInt64) -> Duration {
            let (seconds, rest) = units.quotientAndRemainder(dividingBy: unitsPerSecond)
            let (attoseconds, _) = unitsPerSecond.dividingFullWidth(
                rest.multipliedFullWidth(by: 1_000_000_000_000_000_000))
            return Duration(
                secondsComponent: Int64(min(seconds, 1 << 60)), attosecondsComponent: Int64(clamping: attoseconds))
                + .seconds(min(max(startSeconds, -1 << 60), 1 << 60))
        }
    }

    private enum Container { case unknown, pcap, pcapng }

    private var bytes: ByteReader
    private var container = Container.unknown
    private var order = ByteOrder.littleEndian
    /// The interfaces of the section, and the number of those before it.
    private var interfaces: [Interface] = []
    private var interfacesBefore = 0
    private var last = Duration.zero
    /// The comments of the last block, and the number of those already returned.
    private var comments: [String] = []
    private var givenComments = 0

    init(_ source: @escaping TraceSource) { bytes = ByteReader(source) }

    static func recognizes(_ start: [UInt8]) -> Bool {
        let magics: [[UInt8]] = [
            [0x0A, 0x0D, 0x0D, 0x0A], [0xA1, 0xB2, 0xC3, 0xD4], [0xD4, 0xC3, 0xB2, 0xA1], [0xA1, 0xB2, 0x3C, 0x4D],
            [0x4D, 0x3C, 0xB2, 0xA1],
        ]
        return magics.contains { start.starts(with: $0) }
    }

    /// The next packet or comment; nil at the end.
    mutating func next() throws -> Item? {
        while true {
            if givenComments < comments.count {
                defer { givenComments += 1 }
                return .comment(comments[givenComments], at: last)
            }
            (comments, givenComments) = ([], 0)
            switch container {
            case .unknown: try readStart()
            case .pcap: return try nextRecord()
            case .pcapng:
                switch try nextBlock() {
                case .item(let item): return item
                case .end: return nil
                case .nothing: break
                }
            }
        }
    }

    private func malformed(_ due: String, at offset: Int? = nil) -> TraceError {
        TraceError(.malformed(due), at: .offset(offset ?? bytes.offset))
    }

    private mutating func readStart() throws {
        guard let magic = try bytes.peek(4) else { throw malformed("the header of a capture was due") }
        guard Self.recognizes(Array(magic)) else { throw malformed("neither pcap nor pcapng") }
        guard magic.first != 0x0A else {
            container = .pcapng
            return
        }
        let isNanoseconds = magic.contains(0x3C)
        order = magic.first == 0xA1 ? .bigEndian : .littleEndian
        guard let header = try bytes.next(24) else { throw malformed("24 bytes of the pcap header were due") }
        let link: UInt32 = order.integer(header, at: 20)
        var interface = Interface(link: Int(link & 0xFFFF), snapLength: Self.maximumPacketCount)
        if isNanoseconds { interface.unitsPerSecond = 1_000_000_000 }
        interfaces = [interface]
        container = .pcap
    }

    // MARK: pcap

    private mutating func nextRecord() throws -> Item? {
        let start = bytes.offset
        guard let header = try bytes.next(16) else { return cutOff() }
        let seconds: UInt32 = order.integer(header, at: 0)
        let fraction: UInt32 = order.integer(header, at: 4)
        let count: UInt32 = order.integer(header, at: 8)
        let originalCount: UInt32 = order.integer(header, at: 12)
        guard count <= Self.maximumPacketCount else { throw malformed("a packet of \(count) bytes", at: start + 8) }
        guard let data = try bytes.next(Int(count)) else { return cutOff() }
        let units = interfaces[0].unitsPerSecond
        last = interfaces[0].time(UInt64(seconds) * units + UInt64(fraction))
        return .packet(
            Packet(
                link: interfaces[0].link, interface: 0, time: last, data: data, order: order,
                isPart: count < originalCount))
    }

    private mutating func cutOff() -> Item? {
        defer { bytes = ByteReader { [] } }
        return bytes.hasRemainder ? .cutOff : nil
    }

    // MARK: pcapng

    private enum BlockType {
        static let sectionHeader: UInt32 = 0x0A0D_0D0A
        static let interfaceDescription: UInt32 = 1
        /// Obsolete, and still met (draft-ietf-opsawg-pcapng, appendix A).
        static let packet: UInt32 = 2
        static let simplePacket: UInt32 = 3
        static let enhancedPacket: UInt32 = 6
    }

    private enum Step {
        case item(Item)
        case nothing
        case end
    }

    private mutating func nextBlock() throws -> Step {
        let start = bytes.offset
        guard let header = try bytes.peek(12) else { return cutOff().map { .item($0) } ?? .end }
        let type: UInt32 = order.integer(header, at: 0)
        if type == BlockType.sectionHeader {
            switch ByteOrder.bigEndian.integer(header, at: 8) as UInt32 {
            case 0x1A2B_3C4D: order = .bigEndian
            case 0x4D3C_2B1A: order = .littleEndian
            default: throw malformed("the byte-order magic of a section was due", at: start + 8)
            }
        }
        let count: UInt32 = order.integer(header, at: 4)
        guard count >= 12, count % 4 == 0 else { throw malformed("a block of \(count) bytes", at: start + 4) }
        let known = [
            BlockType.sectionHeader, BlockType.interfaceDescription, BlockType.packet, BlockType.simplePacket,
            BlockType.enhancedPacket,
        ]
        guard known.contains(type) else {
            guard try !bytes.skip(Int(count)) else { return .nothing }
            // What is left is within the block.
            bytes = ByteReader { [] }
            return .item(.cutOff)
        }
        guard count <= Self.maximumBlockCount else { throw malformed("a block of \(count) bytes", at: start + 4) }
        guard let block = try bytes.next(Int(count)) else { return cutOff().map { .item($0) } ?? .end }
        guard order.integer(block, at: Int(count) - 4) == count else {
            throw malformed("the length of the block was due again", at: start + Int(count) - 4)
        }
        let body = block.dropFirst(8).dropLast(4)
        switch type {
        case BlockType.sectionHeader:
            guard body.count >= 16 else { throw malformed("a section header of \(body.count) bytes", at: start) }
            guard order.integer(body, at: 4) as UInt16 == 1 else {
                throw malformed("version 1 of pcapng was due", at: start + 12)
            }
            interfacesBefore += interfaces.count
            interfaces = []
            try readOptions(body.dropFirst(16), at: start + 24) { _, _ in }
        case BlockType.interfaceDescription: try readInterface(body, at: start + 8)
        case BlockType.enhancedPacket, BlockType.packet:
            return .item(.packet(try packet(body, isObsolete: type == BlockType.packet, at: start + 8)))
        default: return .item(.packet(try simplePacket(body, at: start + 8)))
        }
        return .nothing
    }

    private mutating func readInterface(_ body: ArraySlice<UInt8>, at offset: Int) throws {
        guard body.count >= 8 else { throw malformed("an interface of \(body.count) bytes", at: offset) }
        guard interfacesBefore + interfaces.count < Self.maximumInterfaceCount else {
            throw malformed("more than \(Self.maximumInterfaceCount) interfaces", at: offset)
        }
        let link: UInt16 = order.integer(body, at: 0)
        let snapLength: UInt32 = order.integer(body, at: 4)
        var interface = Interface(
            link: Int(link), snapLength: snapLength == 0 ? Self.maximumPacketCount : Int(snapLength))
        let order = order
        var isResolutionKnown = true
        try readOptions(body.dropFirst(8), at: offset + 8) { code, value in
            switch (code, value.first) {
            // if_tsresol: a power of ten, or, with the high bit, of two.
            case (9, let resolution?):
                let exponent = Int(resolution & 0x7F)
                if resolution & 0x80 != 0 {
                    isResolutionKnown = exponent <= 63
                    if isResolutionKnown { interface.unitsPerSecond = 1 << UInt64(exponent) }
                } else {
                    isResolutionKnown = exponent <= 19
                    if isResolutionKnown {
                        interface.unitsPerSecond = repeatElement(10, count: exponent).reduce(1, *)
                    }
                }
            // if_tsoffset.
            case (14, _) where value.count == 8: interface.startSeconds = order.integer(value, at: 0)
            default: break
            }
        }
        guard isResolutionKnown else { throw malformed("times of an unknown resolution", at: offset) }
        interfaces.append(interface)
    }

    /// - Parameter isObsolete: true if the number of the interface has two bytes, and the other two count lost packets.
    private mutating func packet(
        _ body: ArraySlice<UInt8>, isObsolete: Bool, at offset: Int
    ) throws -> Packet {
        guard body.count >= 20 else { throw malformed("a packet of \(body.count) bytes", at: offset) }
        let number = isObsolete ? UInt32(order.integer(body, at: 0) as UInt16) : order.integer(body, at: 0)
        guard number < interfaces.count else { throw malformed("a packet of no interface", at: offset) }
        let interface = interfaces[Int(number)]
        let high: UInt32 = order.integer(body, at: 4)
        let low: UInt32 = order.integer(body, at: 8)
        let count: UInt32 = order.integer(body, at: 12)
        let originalCount: UInt32 = order.integer(body, at: 16)
        let data = body.dropFirst(20)
        let padded = (Int(count) + 3) & ~3
        guard count <= Self.maximumPacketCount, padded <= data.count else {
            throw malformed("a packet of \(count) bytes in a block of \(body.count)", at: offset + 12)
        }
        last = interface.time(UInt64(high) << 32 | UInt64(low))
        if data.count > padded { try readOptions(data.dropFirst(padded), at: offset + 20 + padded) { _, _ in } }
        return Packet(
            link: interface.link, interface: interfacesBefore + Int(number), time: last,
            data: data.prefix(Int(count)), order: order, isPart: count < originalCount)
    }

    /// A packet without a time, of the first interface.
    private mutating func simplePacket(_ body: ArraySlice<UInt8>, at offset: Int) throws -> Packet {
        guard body.count >= 4, let interface = interfaces.first else {
            throw malformed("a packet of no interface", at: offset)
        }
        let originalCount: UInt32 = order.integer(body, at: 0)
        let count = min(Int(originalCount), interface.snapLength)
        let data = body.dropFirst(4)
        guard count <= Self.maximumPacketCount, count <= data.count else {
            throw malformed("a packet of \(count) bytes in a block of \(body.count)", at: offset)
        }
        return Packet(
            link: interface.link, interface: interfacesBefore, time: last, data: data.prefix(count), order: order,
            isPart: count < originalCount)
    }

    /// Reads options to their end, and keeps the comments.
    private mutating func readOptions(
        _ options: ArraySlice<UInt8>, at offset: Int, _ body: (_ code: UInt16, _ value: ArraySlice<UInt8>) -> Void
    ) throws {
        var rest = options
        while rest.count >= 4 {
            let code: UInt16 = order.integer(rest, at: 0)
            let count: UInt16 = order.integer(rest, at: 2)
            guard code != 0 else { return }
            let padded = (Int(count) + 3) & ~3
            guard rest.count >= 4 + padded else {
                throw malformed("an option of \(count) bytes", at: offset + rest.startIndex - options.startIndex)
            }
            let value = rest.dropFirst(4).prefix(Int(count))
            if code == 1 {
                guard comments.count < CaptureComments.maximumCount else {
                    throw malformed("more than \(CaptureComments.maximumCount) comments", at: offset)
                }
                comments.append(String(decoding: value, as: UTF8.self))
            } else {
                body(code, value)
            }
            rest = rest.dropFirst(4 + padded)
        }
    }
}

/// The notes for the next packet, as many as fit its block.
struct CaptureComments {
    /// The most read of a block.
    static let maximumCount = 1_024
    private static let maximumBytes = 60_000

    private(set) var texts: [String] = []
    private var byteCount = 0

    /// Adds as much of `text` as fits.
    ///
    /// - Returns: true if all of it fits.
    mutating func add(_ text: String) -> Bool {
        // The option's header and padding.
        let room = Self.maximumBytes - byteCount - 8
        guard texts.count < Self.maximumCount, room > 0 else { return false }
        var kept = String.UnicodeScalarView()
        var count = 0
        for scalar in text.unicodeScalars {
            let next = count + UTF8.width(scalar)
            guard next <= room else { break }
            (count, _) = (next, kept.append(scalar))
        }
        byteCount += count + 8
        texts.append(String(kept))
        return count == text.utf8.count
    }

    mutating func take() -> [String] {
        defer { self = CaptureComments() }
        return texts
    }
}

/// Writes a capture in pcapng, little-endian, with times in nanoseconds.
struct CaptureWriter {
    private let sink: TraceSink
    private let link: UInt16
    private var isBegun = false

    init(link: UInt16, _ sink: @escaping TraceSink) {
        self.link = link
        self.sink = sink
    }

    /// Writes the section header and the interface, once.
    mutating func begin() throws {
        guard !isBegun else { return }
        isBegun = true
        try write(0x0A0D_0D0A, [0x4D, 0x3C, 0x2B, 0x1A, 1, 0, 0, 0] + [UInt8](repeating: 0xFF, count: 8))
        let order = ByteOrder.littleEndian
        try write(
            1,
            order.bytes(link) + [0, 0] + order.bytes(UInt32(CaptureReader.maximumPacketCount)) + option(9, [9])
                + option(0, []))
    }

    mutating func packet(_ data: [UInt8], at time: Duration, comments: [String] = []) throws {
        try begin()
        let (seconds, attoseconds) = min(max(time, .zero), TraceFormat.maximumTime).components
        let units = UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds / 1_000_000_000)
        let order = ByteOrder.littleEndian
        let count = order.bytes(UInt32(clamping: data.count))
        var body = [0, 0, 0, 0] + order.bytes(UInt32(units >> 32)) + order.bytes(UInt32(units & 0xFFFF_FFFF))
        body += count + count + padded(data)
        for comment in comments { body += option(1, Array(comment.utf8)) }
        if !comments.isEmpty { body += option(0, []) }
        try write(6, body)
    }

    private func write(_ type: UInt32, _ body: [UInt8]) throws {
        let order = ByteOrder.littleEndian
        let count = order.bytes(UInt32(clamping: body.count + 12))
        try sink(order.bytes(type) + count + body + count)
    }

    private func option(_ code: UInt16, _ value: [UInt8]) -> [UInt8] {
        let order = ByteOrder.littleEndian
        return order.bytes(code) + order.bytes(UInt16(clamping: value.count)) + padded(value)
    }

    private func padded(_ bytes: [UInt8]) -> [UInt8] {
        bytes + repeatElement(0, count: (4 - bytes.count % 4) % 4)
    }
}
