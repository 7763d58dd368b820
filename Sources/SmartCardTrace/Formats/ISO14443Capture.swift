import SmartCard

extension ForeignFormat {
    /// Frames as Wireshark's dissector of ISO 14443 takes them (LINKTYPE_ISO_14443).
    static let iso14443 = ForeignFormat(
        "iso14443", "a pcapng capture of ISO 14443, for Wireshark", fileExtension: "pcapng", isText: false,
        exporter: { ISO14443Exporter($0) })
}

/// LINKTYPE_ISO_14443 (kaiser.cx/pcap-iso14443.html): version 0, event, length of the frame in two bytes, most
/// significant first, the frame.
enum ISO14443Link {
    static let number = 264

    enum Event {
        static let fromReader: UInt8 = 0xFE
        static let fromCard: UInt8 = 0xFF
        /// The direction from the reader, without checksum.
        static let fromReaderWithoutCRC: UInt8 = 0xFA
        static let fromCardWithoutCRC: UInt8 = 0xFB
        static let fieldOn: UInt8 = 0xFC
        static let fieldOff: UInt8 = 0xFD
    }

    static func decode(_ packet: CaptureReader.Packet, into events: inout ImportedEvents) {
        let data = packet.data
        guard data.count >= 4, data.first == 0,
            ByteOrder.bigEndian.integer(data, at: 2) as UInt16 == data.count - 4
        else { return events.omit("packets that are not of ISO 14443") }
        let frame = Array(data.dropFirst(4))
        let what: TraceEvent.What
        switch data[data.startIndex + 1] {
        case Event.fromReader: what = .sent(.rf, frame)
        case Event.fromCard: what = .received(.rf, frame)
        case Event.fromReaderWithoutCRC: what = .sent(.rfPayload, frame)
        case Event.fromCardWithoutCRC: what = .received(.rfPayload, frame)
        case Event.fieldOn: what = .field(isOn: true)
        case Event.fieldOff: what = .field(isOn: false)
        default: return events.omit("packets that are not of ISO 14443")
        }
        events.add(what, at: packet.time, slot: "interface \(packet.interface)")
    }
}

/// Frames are written as they are.  Where a trace has APDUs, blocks are made for them that a card might have had: without
/// CID and NAD, of 256 bytes at the most; and a selection for the card, if it is of ISO/IEC 14443-4.
private struct ISO14443Exporter: FormatExporter {
    /// FSD and FSC of 256 bytes, less the PCB and the checksum.
    private static let maximumInformationCount = 253

    private enum Side { case reader, card }

    private var capture: CaptureWriter
    private(set) var omissions = Omissions()
    private var comments = CaptureComments()
    private var checksum = FrameChecksum.a
    private var hasFrames = false
    private var atr: ATR?
    /// The number of the next I-block.
    private var number: UInt8 = 0
    /// The time of the last packet: those that are made for one event follow each other.
    private var last = Duration.zero

    init(_ sink: @escaping TraceSink) { capture = CaptureWriter(link: UInt16(ISO14443Link.number), sink) }

    mutating func write(_ event: TraceEvent) throws {
        last = max(last, event.time)
        switch event.what {
        case .sent(.rf, let frame): try writeRecorded(ISO14443Link.Event.fromReader, frame)
        case .received(.rf, let frame): try writeRecorded(ISO14443Link.Event.fromCard, frame)
        case .sent(.rfPayload, let frame): try writeRecorded(ISO14443Link.Event.fromReaderWithoutCRC, frame)
        case .received(.rfPayload, let frame): try writeRecorded(ISO14443Link.Event.fromCardWithoutCRC, frame)
        case .field(let isOn): try write(isOn ? ISO14443Link.Event.fieldOn : ISO14443Link.Event.fieldOff, [])
        case .note(let text): if !comments.add(text) { omissions.add("notes that do not fit") }
        case .sent(.apdu, _), .received(.apdu, _), .connected, .reset, .disconnected:
            guard !hasFrames else { return omissions.add("what stands beside the frames that carry it") }
            try writeRaised(event.what)
        default: omissions.add("events that are neither frames nor APDUs")
        }
    }

    mutating func finish() throws {
        try capture.begin()
        if !comments.texts.isEmpty { omissions.add("notes behind the last frame", count: comments.texts.count) }
    }

    private mutating func writeRaised(_ what: TraceEvent.What) throws {
        switch what {
        case .sent(.apdu, let command):
            try writeBlocks(command, from: .reader)
        case .received(.apdu, let response):
            try writeBlocks(response, from: .card)
            number ^= 1
        case .connected(let atr, _):
            self.atr = atr
            try writeSelection()
        case .reset: try writeSelection()
        case .disconnected(.powerOff):
            try write([0xC2], from: .reader)
            try write([0xC2], from: .card)
        default: omissions.add("cards that were left as they were")
        }
    }

    /// I-blocks, each but the last acknowledged by the other side (ISO/IEC 14443-4, 7.5.3).  The reader's numbers toggle
    /// with each block; the card's are those of the block that they answer.
    private mutating func writeBlocks(_ bytes: [UInt8], from side: Side) throws {
        var rest = bytes[...]
        while rest.count > Self.maximumInformationCount {
            try write([0x12 | number] + rest.prefix(Self.maximumInformationCount), from: side)
            rest = rest.dropFirst(Self.maximumInformationCount)
            if side == .card { number ^= 1 }
            try write([0xA2 | number], from: side == .reader ? .card : .reader)
            if side == .reader { number ^= 1 }
        }
        try write([0x02 | number] + rest, from: side)
    }

    /// RATS and ATS, or REQB and ATTRIB with their answers.
    private mutating func writeSelection() throws {
        number = 0
        checksum = .a
        switch atr?.contactless {
        case .typeA(let historicalBytes, let ats):
            // FSDI 8: 256 bytes.
            try write([0xE0, 0x80], from: .reader)
            let whole = ats.flatMap { ATS($0.bytes) }
            // T0 with FSCI 8, and no interface bytes.
            try write(
                whole?.bytes ?? [UInt8(clamping: historicalBytes.count + 2), 0x08] + historicalBytes, from: .card)
        case .typeB(let applicationData, let protocolInfo, let pupi):
            checksum = .b
            let pupi = pupi ?? [0, 0, 0, 0]
            try write([0x05, 0x00, 0x08], from: .reader)
            try write([0x50] + pupi + applicationData + protocolInfo, from: .card)
            try write([0x1D] + pupi + [0x00, 0x08, 0x01, 0x00], from: .reader)
            try write([atr?.historicalBytes.count == 8 ? atr?.historicalBytes.last ?? 0 : 0], from: .card)
        default: omissions.add("ATRs of cards that are not of ISO/IEC 14443-4")
        }
    }

    /// Writes a frame that was made.  It gets its checksum: one of a single byte without it Wireshark takes for a short
    /// frame.
    private mutating func write(_ frame: [UInt8], from side: Side) throws {
        let event = side == .reader ? ISO14443Link.Event.fromReader : ISO14443Link.Event.fromCard
        try write(event, frame + checksum.bytes(of: frame))
    }

    private mutating func writeRecorded(_ event: UInt8, _ frame: [UInt8]) throws {
        hasFrames = true
        guard frame.count <= UInt16.max else { return omissions.add("frames of more than 65535 bytes") }
        try write(event, frame)
    }

    private mutating func write(_ event: UInt8, _ frame: [UInt8]) throws {
        let count = ByteOrder.bigEndian.bytes(UInt16(clamping: frame.count))
        try capture.packet([0x00, event] + count + frame, at: last, comments: comments.take())
    }
}
