import SmartCard
import SmartCardTrace
import TestSupport
import Testing

/// Blocks by hand from draft-ietf-opsawg-pcapng and draft-ietf-opsawg-pcap.
@Suite("Captures", .computing)
struct CaptureTests {
    /// In the order of the machine that writes.
    struct Writer {
        var isBig: Bool

        func number(_ value: some FixedWidthInteger) -> [UInt8] {
            withUnsafeBytes(of: isBig ? value.bigEndian : value.littleEndian) { Array($0) }
        }

        func block(_ type: UInt32, _ body: [UInt8]) -> [UInt8] {
            let padded = body + repeatElement(0, count: (4 - body.count % 4) % 4)
            let count = number(UInt32(padded.count + 12))
            return number(type) + count + padded + count
        }

        var section: [UInt8] {
            block(0x0A0D_0D0A, number(UInt32(0x1A2B_3C4D)) + number(UInt16(1)) + number(UInt16(0)) + number(Int64(-1)))
        }

        func interface(_ link: UInt16, resolution: UInt8? = nil) -> [UInt8] {
            let options = resolution.map { number(UInt16(9)) + number(UInt16(1)) + [$0, 0, 0, 0] + number(UInt32(0)) }
            return block(1, number(link) + number(UInt16(0)) + number(UInt32(0)) + (options ?? []))
        }

        func packet(_ interface: UInt32, _ time: UInt64, _ data: [UInt8], comment: String? = nil) -> [UInt8] {
            let count = number(UInt32(data.count))
            let padded = data + repeatElement(0, count: (4 - data.count % 4) % 4)
            let text = Array((comment ?? "").utf8)
            let option =
                comment == nil
                ? []
                : number(UInt16(1)) + number(UInt16(text.count)) + text
                    + repeatElement(0, count: (4 - text.count % 4) % 4)
            return block(
                6,
                number(interface) + number(UInt32(time >> 32)) + number(UInt32(time & 0xFFFF_FFFF)) + count + count
                    + padded + option)
        }
    }

    static let wupa: [UInt8] = [0x00, 0xFE, 0x00, 0x01, 0x52]
    static let atqa: [UInt8] = [0x00, 0xFF, 0x00, 0x02, 0x04, 0x03]

    @Test("pcap in both orders, with times in micro- and nanoseconds", arguments: [true, false], [true, false])
    func pcap(isBig: Bool, isNano: Bool) throws {
        let writer = Writer(isBig: isBig)
        func record(_ fraction: UInt32, _ data: [UInt8]) -> [UInt8] {
            let count = writer.number(UInt32(data.count))
            return writer.number(UInt32(1_000_000_000)) + writer.number(fraction) + count + count + data
        }
        let bytes =
            writer.number(UInt32(isNano ? 0xA1B2_3C4D : 0xA1B2_C3D4)) + writer.number(UInt16(2))
            + writer.number(UInt16(4)) + writer.number(UInt64(0)) + writer.number(UInt32(65_535))
            + writer.number(UInt32(264)) + record(5, Self.wupa) + record(7, Self.atqa)
        let trace = try Trace(reading: TraceImport(bytes: bytes))
        #expect(
            trace.events == [
                TraceEvent(at: .zero, .sent(.rf, [0x52])),
                TraceEvent(at: isNano ? .nanoseconds(2) : .microseconds(2), .received(.rf, [0x04, 0x03])),
            ])
    }

    /// Rows: if_tsresol, and what a unit then is.
    @Test(
        "pcapng in both orders, with resolutions of time in powers of ten and two, comments, unknown blocks, and packets without time",
        arguments: [true, false],
        [(nil, Duration.microseconds(1)), (9, .nanoseconds(1)), (3, .milliseconds(1)), (0x8A, .seconds(1) / 1024)])
    func pcapng(isBig: Bool, resolution: (UInt8?, Duration)) throws {
        let writer = Writer(isBig: isBig)
        let bytes =
            writer.section + writer.interface(264, resolution: resolution.0)
            + writer.block(0x0BAD, [1, 2, 3]) + writer.packet(0, 1 << 33, Self.wupa)
            + writer.packet(0, 1 << 33 + 4, Self.atqa, comment: "hello")
            + writer.block(3, writer.number(UInt32(5)) + Self.wupa)
        let trace = try Trace(reading: TraceImport(bytes: bytes))
        let later = resolution.1 * 4
        #expect(
            trace.events.map(\.what) == [
                .sent(.rf, [0x52]), .received(.rf, [0x04, 0x03]), .note("hello"), .sent(.rf, [0x52]),
            ])
        for (event, time) in zip(trace.events, [.zero, later, later, later]) {
            #expect(abs((event.time - time) / .nanoseconds(1)) <= 1)
        }
    }

    @Test("each interface of each section is a slot, one of which is read")
    func slots() throws {
        let (little, big) = (Writer(isBig: false), Writer(isBig: true))
        let bytes =
            little.section + little.interface(1) + little.interface(264) + little.interface(264)
            + little.packet(1, 0, Self.wupa) + little.packet(2, 0, Self.atqa) + little.packet(0, 0, [0])
            + big.section + big.interface(264) + big.packet(0, 0, Self.atqa)
        for (slot, what) in [
            (0, TraceEvent.What.sent(.rf, [0x52])), (1, .received(.rf, [0x04, 0x03])),
            (2, .received(.rf, [0x04, 0x03])),
        ] {
            var file = try TraceImport(slot: slot, bytes: bytes)
            #expect(try file.next()?.what == what)
            #expect(try file.next() == nil)
            #expect(
                file.omissions.counts.map { "\($0.what): \($0.count)" }.sorted() == [
                    "events of other slots: 2", "packets other than of GSMTAP: 1",
                ])
        }
    }

    /// A packet of usbmon with 48 bytes of header.
    private static func urb(
        _ writer: Writer, _ type: Character, _ endpoint: UInt8, _ device: UInt8, _ data: [UInt8],
        transfer: UInt8 = 3, status: Int32 = 0
    ) -> [UInt8] {
        var bytes = writer.number(UInt64(1)) + [type.asciiValue ?? 0, transfer, endpoint, device]
        bytes += writer.number(UInt16(1)) + [0x2D, data.isEmpty ? 0x3C : 0] + writer.number(UInt64(0))
        bytes += writer.number(UInt32(0)) + writer.number(status) + writer.number(UInt32(data.count))
        bytes += writer.number(UInt32(data.count)) + [UInt8](repeating: 0, count: 8)
        return writer.packet(0, 0, bytes + data)
    }

    /// usbmon of a machine with 48 bytes of header (linktype 189): a message in two transfers each way, another device,
    /// a transfer that timed out.  Linux, Documentation/usb/usbmon.rst.
    @Test("messages in several transfers are put together, and other devices passed over")
    func usbmon() throws {
        let writer = Writer(isBig: true)
        func urb(
            _ type: Character, _ endpoint: UInt8, _ device: UInt8, _ data: [UInt8], transfer: UInt8 = 3,
            status: Int32 = 0
        ) -> [UInt8] { Self.urb(writer, type, endpoint, device, data, transfer: transfer, status: status) }
        let command: [UInt8] = [0x6F, 0x05, 0, 0, 0, 0, 1, 0, 0, 0, 0x00, 0xA4, 0x04, 0x00, 0x00]
        let answer: [UInt8] = [0x80, 0x04, 0, 0, 0, 0, 1, 0, 0, 0, 0x62, 0x00, 0x90, 0x00]
        let status: [UInt8] = [0x65, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        let bytes = [
            writer.section, writer.interface(189),
            urb("S", 0x02, 5, status), urb("C", 0x02, 5, []),
            urb("S", 0x01, 9, Array("USBC0123456789".utf8)),
            urb("S", 0x02, 5, Array(command[..<12])), urb("S", 0x02, 5, Array(command[12...])),
            urb("S", 0x82, 5, []), urb("C", 0x82, 5, Array(answer[..<10])), urb("C", 0x82, 5, Array(answer[10...])),
            urb("C", 0x81, 5, [0x50, 0x02], transfer: 1), urb("C", 0x82, 5, [], status: -108),
        ].flatMap { $0 }
        var file = try TraceImport(bytes: bytes)
        var events: [TraceEvent.What] = []
        while let event = try file.next() { events.append(event.what) }
        #expect(
            events == [
                .sent(.ccid, status), .sent(.ccid, command), .received(.ccid, answer), .received(.ccid, [0x50, 0x02]),
                .failed(.exchange(.ccid), .init(.readerGone, "URB status -108")),
            ])
        #expect(file.omissions.counts.map(\.what) == ["transfers that are not of CCID"])
    }

    /// Rows: bytes, and what is said of them.
    static let malformed: [(bytes: [UInt8], error: String)] = {
        let writer = Writer(isBig: false)
        let start = writer.section + writer.interface(264)
        let record = [UInt8](repeating: 0, count: 8) + writer.number(UInt32(262_145)) + writer.number(UInt32(262_145))
        return [
            ([0xD4, 0xC3, 0xB2, 0xA1, 0, 0], "byte 0: 24 bytes of the pcap header were due"),
            (
                [0xD4, 0xC3, 0xB2, 0xA1] + [UInt8](repeating: 0, count: 20) + record,
                "byte 32: a packet of 262145 bytes"
            ),
            ([0x0A, 0x0D, 0x0D, 0x0A, 0, 0, 0, 0, 0, 0, 0, 0], "byte 8: the byte-order magic of a section was due"),
            (
                start + writer.number(UInt32(6)) + writer.number(UInt32.max) + [0, 0, 0, 0],
                "byte 52: a block of 4294967295 bytes"
            ),
            (
                start + writer.number(UInt32(6)) + writer.number(UInt32(0xFFFF_FFFC)) + [0, 0, 0, 0],
                "byte 52: a block of 4294967292 bytes"
            ),
            (start + writer.packet(1, 0, wupa), "byte 56: a packet of no interface"),
            (writer.section + writer.interface(264, resolution: 20), "byte 36: times of an unknown resolution"),
            (
                start + writer.block(6, [UInt8](repeating: 0, count: 12) + writer.number(UInt32(99)) + [0, 0, 0, 0]),
                "byte 68: a packet of 99 bytes in a block of 20"
            ),
        ]
    }()

    @Test("what is no capture is an error with its offset", arguments: malformed.indices)
    func malformedFiles(_ index: Int) throws {
        let (bytes, error) = Self.malformed[index]
        #expect {
            _ = try Trace(reading: TraceImport(ForeignFormat(named: "pcap"), bytes: bytes))
        } throws: {
            "\($0)" == error
        }
    }

    @Test("a capture cut off anywhere gives the packets that are whole")
    func cutOff() throws {
        let bytes = try export(WiresharkTests.trace, "iso14443")
        let whole = try Trace(reading: TraceImport(bytes: bytes)).events
        for end in stride(from: 60, to: bytes.count, by: 7) {
            var file = try TraceImport(bytes: bytes[..<end])
            var events: [TraceEvent] = []
            while let event = try file.next() { events.append(event) }
            #expect(events == Array(whole.prefix(events.count)))
        }
    }

    @Test("however the bytes come in, the events are the same", arguments: [1, 7, 100])
    func chunks(_ count: Int) throws {
        let bytes = try export(WiresharkTests.trace, "usbmon")
        var rest = bytes[...]
        let trace = try Trace(
            reading: TraceImport {
                defer { rest = rest.dropFirst(count) }
                return Array(rest.prefix(count))
            })
        #expect(try trace == Trace(reading: TraceImport(bytes: bytes)))
        #expect(!trace.events.isEmpty)
    }

    @Test(
        "files changed anywhere give events or an error, never a trap", arguments: ["iso14443", "usbmon", "proxmark"])
    func hostile(format: String) throws {
        var random = SplitMix(state: 14_443)
        let bytes = format == "proxmark" ? ProxmarkTraceTests.bytes : try export(WiresharkTests.trace, format)
        let reading = ForeignFormat(named: format == "proxmark" ? format : "pcap")
        for _ in 0..<Tier.rounds(50, thorough: 500) {
            var changed = bytes
            for _ in 0..<3 {
                changed[Int.random(in: changed.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            if Bool.random(using: &random) { changed.removeLast(Int.random(in: 0..<changed.count, using: &random)) }
            guard let trace = try? Trace(reading: TraceImport(reading, bytes: changed)) else { continue }
            // What was read can be raised and written.
            _ = trace.raised()
            _ = try export(trace, "iso14443")
            _ = try export(trace, "usbmon")
        }
    }

    @Test("a block has a bounded number of comments")
    func comments() throws {
        let writer = Writer(isBig: false)
        func file(_ count: Int) -> [UInt8] {
            let option = writer.number(UInt16(1)) + writer.number(UInt16(1)) + [0x78, 0, 0, 0]
            let header = writer.number(UInt32(0)) + writer.number(UInt64(0)) + writer.number(UInt64(0))
            let options = [[UInt8]](repeating: option, count: count).flatMap { $0 }
            return writer.section + writer.interface(264) + writer.block(6, header + options)
        }
        #expect(
            try Trace(reading: TraceImport(bytes: file(1_024))).events
                == Array(repeating: TraceEvent(at: .zero, .note("x")), count: 1_024))
        #expect(throws: TraceError.self) { try Trace(reading: TraceImport(bytes: file(1_025))) }
    }

    @Test(
        "notes without end are written as far as there is room, whole characters, and the rest counted",
        arguments: ["iso14443", "usbmon"])
    func longNotes(_ format: String) throws {
        let frames: [TraceEvent.What] =
            format == "usbmon"
            ? [.sent(.ccid, [0x65, 0, 0, 0, 0, 0, 0, 0, 0, 0])] : [.sent(.rf, [0x52])]
        let notes: [TraceEvent.What] =
            [.note("x" + String(repeating: "ä", count: 100_000)), .note("second")]
        let trace = Trace((notes + frames + [.note("third")] + frames).map { TraceEvent(at: .zero, $0) })
        var bytes: [UInt8] = []
        var file = try TraceExport(#require(ForeignFormat(named: format))) { bytes += $0 }
        for event in trace.events { try file.write(event) }
        try file.finish()
        #expect(file.omissions.counts.map { "\($0.what): \($0.count)" } == ["notes that do not fit: 2"])
        let read = try Trace(reading: TraceImport(bytes: bytes))
        let texts = read.events.compactMap { if case .note(let text) = $0.what { text } else { nil } }
        #expect(texts.count == 2 && texts.last == "third")
        #expect(texts[0].hasPrefix("xää") && !texts[0].contains("\u{FFFD}") && texts[0].utf8.count > 59_000)
    }

    /// draft-ietf-opsawg-pcapng, appendix A: the number of the interface and a count of lost packets have two bytes each.
    @Test("the obsolete packet block is read", arguments: [true, false])
    func packetBlock(isBig: Bool) throws {
        let writer = Writer(isBig: isBig)
        let count = writer.number(UInt32(Self.wupa.count))
        let body = writer.number(UInt16(1)) + writer.number(UInt16(7)) + writer.number(UInt64(0)) + count + count
        let bytes = writer.section + writer.interface(1) + writer.interface(264) + writer.block(2, body + Self.wupa)
        #expect(try Trace(reading: TraceImport(bytes: bytes)).events.map(\.what) == [.sent(.rf, [0x52])])
    }

    @Test("what the end of a capture leaves unfinished, and a command that no reader took, is told")
    func unfinished() throws {
        let writer = Writer(isBig: false)
        // A command of SIMtrace without data and status word (gsmtap.h: sub-type 4).
        var message: [UInt8] = [2, 4, 4] + [UInt8](repeating: 0, count: 13) + [0xA0, 0xA4, 0x00, 0x00, 0x02]
        message[12] = 0x04
        let ports: [UInt8] = [0x12, 0x79, 0x12, 0x79]
        let udp = ports + [0, UInt8(message.count + 8), 0, 0] + message
        let header: [UInt8] = [0x45, 0, 0, UInt8(udp.count + 20), 0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]
        let sim = writer.section + writer.interface(101) + writer.packet(0, 0, header + udp)
        var file = try TraceImport(bytes: sim)
        #expect(try file.next() == nil)
        #expect(file.omissions.counts.map { "\($0.what): \($0.count)" } == ["exchanges without a status word: 1"])

        let status: [UInt8] = [0x65, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        let part: [UInt8] = [0x6F, 0x05, 0, 0, 0, 0, 1, 0, 0, 0, 0x00, 0xA4]
        let usb = [
            writer.section, writer.interface(189), Self.urb(writer, "S", 0x02, 5, status),
            // EPIPE.
            Self.urb(writer, "C", 0x02, 5, [], status: -32), Self.urb(writer, "S", 0x02, 5, part),
        ].flatMap { $0 }
        file = try TraceImport(bytes: usb)
        #expect(try file.next()?.what == .sent(.ccid, status))
        #expect(try file.next()?.what == .failed(.exchange(.ccid), .init(.notTransacted, "URB status -32")))
        #expect(try file.next() == nil)
        #expect(try file.next() == nil)
        #expect(file.omissions.counts.map { "\($0.what): \($0.count)" } == ["messages without their end: 1"])
    }
}
