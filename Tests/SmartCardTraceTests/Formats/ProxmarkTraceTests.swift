import SmartCard
import SmartCardTrace
import Testing

@Suite("Traces of a Proxmark")
struct ProxmarkTraceTests {
    /// WUPA and ATQA of a recorded trace, then RATS and ATS of a DESFire; layout of tracelog_hdr_t, pm3_cmd.h.
    static let bytes: [UInt8] = [
        0x51, 0x1B, 0x00, 0x00, 0xE0, 0x03, 0x01, 0x00, 0x52, 0x00,
        0x85, 0x23, 0x00, 0x00, 0x80, 0x08, 0x02, 0x80, 0x04, 0x03, 0x00,
        0x00, 0x30, 0x00, 0x00, 0x00, 0x10, 0x04, 0x00, 0xE0, 0x80, 0x31, 0x73, 0x00,
        0x00, 0x50, 0x00, 0x00, 0x00, 0x10, 0x08, 0x80, 0x06, 0x75, 0x77, 0x81, 0x02, 0x80, 0x02, 0xF0, 0x00,
    ]

    @Test("are recognized and read, with times in periods of 13.56 MHz")
    func reads() throws {
        var file = try TraceImport(bytes: Self.bytes)
        #expect(file.format.name == "proxmark")
        var events: [TraceEvent] = []
        while let event = try file.next() { events.append(event) }
        #expect(
            events.map(\.what) == [
                .sent(.rf, [0x52]), .received(.rf, [0x04, 0x03]), .sent(.rf, [0xE0, 0x80, 0x31, 0x73]),
                .received(.rf, [0x06, 0x75, 0x77, 0x81, 0x02, 0x80, 0x02, 0xF0]),
            ])
        // 2385h - 1B51h = 2100 periods are 154.867 microseconds.
        #expect(abs((events[1].time - .nanoseconds(154_867)) / .nanoseconds(1)) <= 1)
        #expect(
            Trace(events).raised().trace.events.map(\.what) == [
                .connected(ATR([0x3B, 0x81, 0x80, 0x01, 0x80, 0x80]), .t1)
            ])
    }

    @Test("go on when the clock of 32 bits begins anew")
    func wraps() throws {
        let record: [UInt8] = [0x00, 0x00, 0x01, 0x00, 0x26, 0x00]
        let format = ForeignFormat(named: "proxmark")
        let trace = try Trace(
            reading: TraceImport(
                format, bytes: [0xFF, 0xFF, 0xFF, 0xFF] + record + [0x00, 0x00, 0x00, 0x00] + record))
        #expect(trace.events.last.map { $0.time < .microseconds(1) && $0.time > .zero } == true)
    }

    @Test("are read as far as they go")
    func cutOff() throws {
        for end in [0] + (10..<Self.bytes.count) {
            var file = try TraceImport(ForeignFormat(named: "proxmark"), bytes: Self.bytes[..<end])
            var count = 0
            while try file.next() != nil { count += 1 }
            #expect(count == [10, 21, 34, 51].count { $0 <= end })
        }
    }

    @Test("have one whole record at least")
    func noRecord() throws {
        for end in 1..<10 {
            #expect(
                throws: TraceError(
                    .malformed("a record of a Proxmark was due; the file ends within it"), at: .offset(0))
            ) {
                var file = try TraceImport(ForeignFormat(named: "proxmark"), bytes: Self.bytes[..<end])
                while try file.next() != nil {}
            }
        }
    }

    /// The client counts the bytes of parity of a record without data as `(0 - 1) / 8 + 1`, in C 1 (pm3_cmd.h).
    @Test("have a byte of parity in a record without data, too")
    func emptyRecord() throws {
        let empty: [UInt8] = [0x00, 0x20, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00]
        var file = try TraceImport(bytes: Self.bytes[..<10] + empty + [0x00, 0x24, 0, 0] + Self.bytes[14...])
        #expect(file.format.name == "proxmark")
        var count = 0
        while try file.next() != nil { count += 1 }
        #expect(count == 4)
        #expect(file.omissions.counts.contains { $0 == ("records without data", 1) })
        #expect(throws: TraceError(.unknownFormat)) { try TraceImport(bytes: [UInt8](repeating: 0, count: 90)) }
    }
}
