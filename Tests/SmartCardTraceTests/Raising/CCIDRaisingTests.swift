import SmartCard
import SmartCardTrace
import Testing

/// CCID frames of real readers, as issues of libnfc, nfcpy and pyscard quote them, unless a comment says otherwise.
@Suite("CCID messages raised to APDUs")
struct CCIDRaisingTests {
    /// Rows: `>` or `<` and the bytes of a message, each on a line; and the events that come of them.
    static let rows: [(name: String, frames: String, events: [TraceEvent.What])] = [
        (
            "firmware version, which goes through XfrBlock (nfcpy#154)",
            """
            > 6F 05000000 00 00 00 0000  FF 00 48 00 00
            < 80 0A000000 00 00 02 81 00 41 43 52 31 32 32 55 32 31 36
            """,
            [.sent(.escape, [0xFF, 0x00, 0x48, 0x00, 0x00]), .received(.escape, Array("ACR122U216".utf8))]
        ),
        (
            "no card on an ACR122U (nfcpy#154)",
            """
            > 62 00000000 00 00 00 0000
            < 80 02000000 00 00 00 81 00 3B 00
            """,
            [.failed(.connect, .init(.cardAbsent))]
        ),
        (
            "an escape; a command to the chip that is for no card stays one (libnfc, acr122_usb.c)",
            """
            > 6B 07000000 00 0A 00 0000  FF 00 00 00 02 D4 02
            < 83 08000000 00 0A 02 81 00 D5 03 32 01 04 07 90 00
            """,
            [
                .sent(.escape, [0xFF, 0x00, 0x00, 0x00, 0x02, 0xD4, 0x02]),
                .received(.escape, [0xD5, 0x03, 0x32, 0x01, 0x04, 0x07, 0x90, 0x00]),
            ]
        ),
        (
            "a card that is silent: success, and no bytes (libnfc#263)",
            """
            > 6F 13000000 00 00 00 0000  FF 00 00 00 0E D4 40 01 00 A4 04 00 06 F7 52 46 54 41 01
            < 80 00000000 00 00 00 FE 00
            """,
            [
                .sent(.apdu, [0x00, 0xA4, 0x04, 0x00, 0x06, 0xF7, 0x52, 0x46, 0x54, 0x41, 0x01]),
                .failed(.exchange(.apdu), .init(.noAnswer)),
            ]
        ),
        (
            "an answer that comes twice is passed over (nfcpy#167, with the sequence counted)",
            """
            > 6F 05000000 00 01 00 0000  FF 00 48 00 00
            < 80 0A000000 00 01 02 81 00 41 43 52 31 32 32 55 32 31 36
            > 62 00000000 00 02 00 0000
            < 80 0A000000 00 01 02 81 00 41 43 52 31 32 32 55 32 31 36
            < 80 06000000 00 02 00 81 00 3B 81 80 01 80 80
            """,
            [
                .sent(.escape, [0xFF, 0x00, 0x48, 0x00, 0x00]), .received(.escape, Array("ACR122U216".utf8)),
                .connected(ATR([0x3B, 0x81, 0x80, 0x01, 0x80, 0x80]), .t1),
            ]
        ),
        (
            // By hand from USB CCID 1.10, 6.3.1, 6.1.1, 6.1.2 and 6.2.1.
            "a card comes, is powered, answers after asking for time, is powered off and goes",
            """
            < 50 03
            > 62 00000000 00 01 00 0000
            < 80 06000000 00 01 00 00 00 3B 81 80 01 80 80
            > 6F 05000000 00 02 00 0000 00 A4 04 00 00
            < 80 00000000 00 02 80 02 00
            < 80 02000000 00 02 00 00 00 6A 82
            > 63 00000000 00 03 00 0000
            < 81 00000000 00 03 01 00 01
            < 50 02
            """,
            [
                .slot(.card(ATR([0x3B, 0x81, 0x80, 0x01, 0x80, 0x80]), exclusivelyHeld: false)),
                .connected(ATR([0x3B, 0x81, 0x80, 0x01, 0x80, 0x80]), .t1),
                .sent(.apdu, [0x00, 0xA4, 0x04, 0x00, 0x00]), .received(.apdu, [0x6A, 0x82]),
                .disconnected(.powerOff), .slot(.empty),
            ]
        ),
        (
            // By hand from USB CCID 1.10, 6.1.4 and 6.2.1: wLevelParameter 1, 3, 2, then 10 asks for more.
            "an APDU in three parts each way",
            """
            > 6F 04000000 00 01 00 0100 00 D6 00 00
            < 80 00000000 00 01 00 00 10
            > 6F 02000000 00 02 00 0300 02 AA
            < 80 00000000 00 02 00 00 10
            > 6F 01000000 00 03 00 0200 BB
            < 80 01000000 00 03 00 00 01 01
            > 6F 00000000 00 04 00 1000
            < 80 01000000 00 04 00 00 03 02
            > 6F 00000000 00 05 00 1000
            < 80 02000000 00 05 00 00 02 90 00
            """,
            [.sent(.apdu, [0x00, 0xD6, 0x00, 0x00, 0x02, 0xAA, 0xBB]), .received(.apdu, [0x01, 0x02, 0x90, 0x00])]
        ),
        (
            // bError FE and F6 (6.2.6).
            "cards that are mute, and commands that fail",
            """
            > 62 00000000 00 01 00 0000
            < 80 00000000 00 01 41 FE 00
            > 6F 05000000 00 02 00 0000 00 A4 04 00 00
            < 80 00000000 00 02 40 F6 00
            """,
            [
                .failed(.connect, .init(.cardMute, "CCID bError FE")),
                .sent(.apdu, [0x00, 0xA4, 0x04, 0x00, 0x00]),
                .failed(.exchange(.apdu), .init(.protocolMismatch, "CCID bError F6")),
            ]
        ),
        (
            // A T=1 session of ISO/IEC 7816-3, 11.6.2: IFS request and response, an I-block in two parts, R-block,
            // S(WTX), the answer sent again after R(parity).  LRC computed by hand.
            "blocks of T=1",
            """
            > 62 00000000 00 01 00 0000
            < 80 05000000 00 01 00 00 00 3B 80 81 01 00
            > 6F 05000000 00 02 00 0000 00 C1 01 FE 3E
            < 80 05000000 00 02 00 00 00 00 E1 01 FE 1E
            > 6F 07000000 00 03 00 0000 00 20 03 00 A4 04 83
            < 80 04000000 00 03 00 00 00 00 90 00 90
            > 6F 06000000 00 04 00 0000 00 40 02 00 00 42
            < 80 05000000 00 04 00 00 00 00 C3 01 01 C3
            > 6F 05000000 00 05 00 0000 00 E3 01 01 E3
            < 80 06000000 00 05 00 00 00 00 00 02 6A 82 EA
            > 6F 04000000 00 06 00 0000 00 81 00 81
            < 80 06000000 00 06 00 00 00 00 00 02 6A 82 EA
            """,
            [
                .connected(ATR([0x3B, 0x80, 0x81, 0x01, 0x00]), .t1),
                .sent(.apdu, [0x00, 0xA4, 0x04, 0x00, 0x00]), .received(.apdu, [0x6A, 0x82]),
            ]
        ),
        (
            "a command without an answer is one that the program gave up",
            """
            > 6F 05000000 00 01 00 0000 00 A4 04 00 00
            > 6F 05000000 00 02 00 0000 00 CA 00 00 00
            < 80 02000000 00 02 00 00 00 90 00
            """,
            [
                .sent(.apdu, [0x00, 0xA4, 0x04, 0x00, 0x00]), .failed(.exchange(.apdu), .init(nil)),
                .sent(.apdu, [0x00, 0xCA, 0x00, 0x00, 0x00]), .received(.apdu, [0x90, 0x00]),
            ]
        ),
    ]

    @Test("each message has its place above", arguments: rows.indices)
    func raises(_ index: Int) throws {
        let row = Self.rows[index]
        let raised = try frames(row.frames, on: .ccid).raised().trace
        #expect(raised.events.map(\.what) == row.events, "\(row.name)")
    }

    @Test("what has no place above is counted")
    func omissions() throws {
        let omissions = try frames(
            """
            > 65 00000000 00 01 00 0000
            < 81 00000000 00 01 02 00 00
            < 81 00000000 00 01 02 00 00
            > 6F FFFFFF7F 00 02 00 0000 00
            < 50
            """, on: .ccid
        ).raised().omissions
        #expect(
            omissions.counts.map { "\($0.what): \($0.count)" } == [
                "CCID messages that are neither of a card nor vendor commands: 1", "answers to no command: 1",
                "CCID messages that are none: 1", "changes of other slots: 1",
            ])
    }
}

/// A trace of the bytes that stand in `lines`, each behind `>` or `<`, a millisecond apart.
func frames(_ lines: String, on layer: TraceEvent.Layer) throws -> Trace {
    Trace(
        try lines.split(separator: "\n").enumerated().map { index, line in
            let bytes = try [UInt8](hex: line.dropFirst().filter { $0 != " " })
            return TraceEvent(
                at: .milliseconds(index), line.first == ">" ? .sent(layer, bytes) : .received(layer, bytes))
        })
}
