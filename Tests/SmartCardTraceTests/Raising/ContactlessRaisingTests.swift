import SmartCard
import SmartCardTrace
import TestSupport
import Testing

@Suite("Frames of contactless cards raised to APDUs", .computing)
struct ContactlessRaisingTests {
    /// DESFire's ATS as ACS prints it (API v2.04, 3.1.2), and the ATR that a PC/SC reader makes of it.
    static let ats: [UInt8] = [0x06, 0x75, 0x77, 0x81, 0x02, 0x80]
    static let atr = ATR([0x3B, 0x81, 0x80, 0x01, 0x80, 0x80])

    static let rows: [(name: String, layer: TraceEvent.Layer, frames: String, events: [TraceEvent.What])] = [
        (
            // InListPassiveTarget, InDataExchange and InRelease of the PN532 user manual, 7.3.5, 7.3.8 and 7.3.11.
            "through the ACR122U: a card is listed, exchanges, in parts, and is let go",
            .escape,
            """
            > FF 00 00 00 04 D4 4A 01 00
            < D5 4B 01 01 03 44 20 07 04 01 02 03 04 05 06 06 75 77 81 02 80 90 00
            > FF 00 00 00 05 D4 40 01 90 60
            < D5 41 40 AF 90 00
            > FF 00 00 00 03 D4 40 01
            < D5 41 00 91 00 90 00
            > FF 00 00 00 05 D4 40 41 90 5A
            < D5 41 00 90 00
            > FF 00 00 00 05 D4 40 01 00 00
            < D5 41 01 90 00
            > FF 00 00 00 03 D4 52 01
            < D5 53 00 90 00
            """,
            [
                .sent(.escape, [0xFF, 0x00, 0x00, 0x00, 0x04, 0xD4, 0x4A, 0x01, 0x00]),
                .received(
                    .escape,
                    [
                        0xD5, 0x4B, 0x01, 0x01, 0x03, 0x44, 0x20, 0x07, 0x04, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x06,
                        0x75, 0x77, 0x81, 0x02, 0x80, 0x90, 0x00,
                    ]),
                .connected(atr, .t1),
                .sent(.apdu, [0x90, 0x60]), .received(.apdu, [0xAF, 0x91, 0x00]),
                .sent(.apdu, [0x90, 0x5A, 0x00, 0x00]),
                .failed(.exchange(.apdu), .init(.noAnswer, "PN532 error 01")),
                .sent(.escape, [0xFF, 0x00, 0x00, 0x00, 0x03, 0xD4, 0x52, 0x01]),
                .received(.escape, [0xD5, 0x53, 0x00, 0x90, 0x00]), .disconnected(.powerOff),
            ]
        ),
        (
            // MIFARE Classic 1K (libnfc#476): commands of the card are no APDUs.
            "a storage card's commands stay commands to the reader",
            .escape,
            """
            > FF 00 00 00 04 D4 4A 01 00
            < D5 4B 01 01 04 00 08 04 82 AC B9 5D 90 00
            > FF 00 00 00 05 D4 40 01 30 04
            < D5 41 14 90 00
            """,
            [
                .sent(.escape, [0xFF, 0x00, 0x00, 0x00, 0x04, 0xD4, 0x4A, 0x01, 0x00]),
                .received(
                    .escape, [0xD5, 0x4B, 0x01, 0x01, 0x04, 0x00, 0x08, 0x04, 0x82, 0xAC, 0xB9, 0x5D, 0x90, 0x00]),
                .sent(.escape, [0xFF, 0x00, 0x00, 0x00, 0x05, 0xD4, 0x40, 0x01, 0x30, 0x04]),
                .received(.escape, [0xD5, 0x41, 0x14, 0x90, 0x00]),
            ]
        ),
        (
            // Frames of the chip itself, PN532 user manual, 6.2.1; checksums by hand.
            "frames of a PN532, with acknowledgments",
            .pn532,
            """
            > 00 00 FF 08 F8 D4 40 01 00 A4 04 00 00 43 00
            < 00 00 FF 00 FF 00
            < 00 00 FF 05 FB D5 41 00 6A 82 FE 00
            """,
            [.sent(.apdu, [0x00, 0xA4, 0x04, 0x00, 0x00]), .received(.apdu, [0x6A, 0x82])]
        ),
        (
            // RATS and its checksum 31 73, REQA, HLTA with 57 CD and the ATS with 02 F0: as the Proxmark's
            // documentation shows DESFire.  The blocks by hand from ISO/IEC 14443-4, 7.1, annex B.
            "on the air, type A: selection, chains both ways, more time, a block that is lost, release",
            .rf,
            """
            > 26
            < 44 03
            > E0 80 31 73
            < 06 75 77 81 02 80 02 F0
            \(rf(">", "12 00 A4 04 00"))
            \(rf("<", "A2"))
            \(rf(">", "03 00"))
            \(rf("<", "F2 01"))
            \(rf(">", "F2 01"))
            \(rf("<", "13 6F"))
            \(rf(">", "B2"))
            \(rf("<", "13 6F"))
            \(rf(">", "A2"))
            \(rf("<", "02 00 90 00"))
            \(rf(">", "0A 01 00 CA 00 00 00"))
            \(rf("<", "0A 01 6A 88"))
            \(rf(">", "C2"))
            \(rf("<", "C2"))
            > 50 00 57 CD
            """,
            [
                .connected(atr, .t1),
                .sent(.apdu, [0x00, 0xA4, 0x04, 0x00, 0x00]), .received(.apdu, [0x6F, 0x00, 0x90, 0x00]),
                .sent(.apdu, [0x00, 0xCA, 0x00, 0x00, 0x00]), .received(.apdu, [0x6A, 0x88]),
                .disconnected(.powerOff),
            ]
        ),
        (
            // The ATQB that ACS prints (API v2.04, 3.1.2); the ATR is that of PC/SC part 3 for it.
            "type B, without checksums",
            .rfPayload,
            """
            > 05 00 08
            < 50 12 23 45 56 12 53 54 4E 33 81 C3
            > 1D 12 23 45 56 00 08 01 00
            < 00
            > 02 00 A4 04 00 00
            < 02 6A 82
            """,
            [
                .connected(ATR([0x3B, 0x88, 0x80, 0x01, 0x12, 0x53, 0x54, 0x4E, 0x33, 0x81, 0xC3, 0x00, 0x23]), .t1),
                .sent(.apdu, [0x00, 0xA4, 0x04, 0x00, 0x00]), .received(.apdu, [0x6A, 0x82]),
            ]
        ),
    ]

    @Test("each frame has its place above", arguments: rows.indices)
    func raises(_ index: Int) throws {
        let row = Self.rows[index]
        let raised = try frames(row.frames, on: row.layer).raised().trace
        #expect(raised.events.map(\.what) == row.events, "\(row.name)")
    }

    @Test("a command in parts has the time of its first part")
    func times() throws {
        let raised = try frames("> 12 00 A4 04\n< A2\n> 03 00 00\n< 03 90 00", on: .rfPayload).raised().trace
        #expect(raised.events.map(\.time) == [.zero, .milliseconds(3)])
    }

    @Test("what cannot be raised is counted, and a chain is no longer than an APDU")
    func omissions() throws {
        let block = [UInt8](repeating: 0x12, count: 60_000)
        var other = block
        other[0] = 0x13
        let trace = Trace(
            [block, other, [0x30, 0x04]].map { TraceEvent(at: .zero, .sent(.rfPayload, $0)) })
        let (raised, omissions) = trace.raised()
        #expect(raised.events.isEmpty)
        #expect(omissions.counts.map(\.what) == ["commands without end", "frames that carry no APDU"])
    }

    @Test("frames changed anywhere are raised or counted, never a trap")
    func hostile() throws {
        var random = SplitMix(state: 6)
        var traces = try Self.rows.map { try frames($0.frames, on: $0.layer) }
        traces += try CCIDRaisingTests.rows.map { try frames($0.frames, on: .ccid) }
        for trace in traces {
            for _ in 0..<Tier.rounds(20, thorough: 200) {
                var changed = trace
                for _ in 0..<4 { Self.change(&changed.events, using: &random) }
                let raised = changed.raised().trace
                // Answers never outnumber commands.
                #expect(raised.exchanges(on: [.apdu]).count { $0.answer != nil } <= raised.events.count)
            }
        }
    }

    private static func change(_ events: inout [TraceEvent], using random: inout SplitMix) {
        let index = Int.random(in: events.indices, using: &random)
        switch events[index].what {
        case .sent(let layer, let bytes): events[index].what = .sent(layer, change(bytes, using: &random))
        case .received(let layer, let bytes): events[index].what = .received(layer, change(bytes, using: &random))
        default: break
        }
    }

    private static func change(_ bytes: [UInt8], using random: inout SplitMix) -> [UInt8] {
        guard !bytes.isEmpty else { return [UInt8.random(in: 0...255, using: &random)] }
        var bytes = bytes
        let index = Int.random(in: bytes.indices, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
        case 1: bytes.remove(at: index)
        default: bytes.removeLast(bytes.count - index)
        }
        return bytes
    }
}

/// A line of a frame of type A with its checksum, computed as ISO/IEC 14443-3, annex B prints it in C.
private func rf(_ direction: String, _ payload: String) -> String {
    let bytes = (try? [UInt8](hex: payload.filter { $0 != " " })) ?? []
    var crc: UInt16 = 0x6363
    for byte in bytes {
        var b = byte ^ UInt8(crc & 0xFF)
        b ^= b << 4
        crc = (crc >> 8) ^ (UInt16(b) << 8) ^ (UInt16(b) << 3) ^ (UInt16(b) >> 4)
    }
    return "\(direction) \((bytes + [UInt8(crc & 0xFF), UInt8(crc >> 8)]).hex)"
}
