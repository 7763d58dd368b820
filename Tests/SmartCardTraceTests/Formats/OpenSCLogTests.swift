import SmartCardTrace
import Testing

@Suite("A debug log of OpenSC")
struct OpenSCLogTests {
    /// opensc-tool 0.23 of Debian 12 with a virtual card, made shorter.
    static let sample = """
        P:8805; T:0x140577073072192 20:58:11.983 [opensc-tool] reader-pcsc.c:889:pcsc_init: PC/SC options: connect_exclusive=0 disconnect_action=1 transaction_end_action=0
        P:8805; T:0x140577073072192 20:58:12.037 [opensc-tool] reader-pcsc.c:362:refresh_attributes: Virtual PCD 00 00 check
        P:8805; T:0x140577073072192 20:58:12.043 [opensc-tool] reader-pcsc.c:641:pcsc_connect: Initial protocol: T=1
        P:8805; T:0x140577073072192 20:58:12.043 [opensc-tool] card.c:1234:match_atr_table: ATR     : 3b:80:80:01:01
        P:8805; T:0x140577073072192 20:58:12.043 [opensc-tool] reader-pcsc.c:655:pcsc_connect: Final protocol: T=1
        P:8805; T:0x140577073072192 20:58:12.047 [opensc-tool] reader-pcsc.c:325:pcsc_transmit: reader 'Virtual PCD 00 00'
        P:8805; T:0x140577073072192 20:58:12.047 [opensc-tool] reader-pcsc.c:326:pcsc_transmit:\u{20}
        Outgoing APDU (5 bytes):
        00 B0 00 00 12 .....

        P:8805; T:0x140577073072192 20:58:12.091 [opensc-tool] reader-pcsc.c:335:pcsc_transmit:\u{20}
        Incoming APDU (20 bytes):
        00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F ................
        10 11 90 00 ....

        P:8805; T:0x140577073072192 20:58:12.403 [opensc-tool] reader-pcsc.c:673:pcsc_disconnect: Virtual PCD 00 00:SCardDisconnect returned: 0x00000000

        """

    @Test("has APDUs in rows, readers, connections and times of day")
    func reads() throws {
        #expect(
            try imported(Self.sample, as: "opensc").lines == [
                #"0.000000000 reader pcsc "Virtual PCD 00 00""#,
                "0.006000000 connect T=1 3B80800101",
                "0.010000000 > apdu 00B0000012",
                "0.054000000 < apdu 000102030405060708090A0B0C0D0E0F10119000",
                "0.366000000 disconnect reset",
            ])
    }

    /// https://github.com/OpenSC/OpenSC/issues/528, with a failure in the words of reader-pcsc.c.
    @Test("of older versions")
    func older() throws {
        let text = """
            2015-08-21 21:05:07.600 [cardmod] reader-pcsc.c:254:pcsc_transmit: reader 'R'
            Outgoing APDU data [    7 bytes] =====================================
            80 58 00 00 00 00 00 .X.....
            ======================================================================
            2015-08-21 21:05:07.656 [cardmod] reader-pcsc.c:184:pcsc_internal_transmit: called
            2015-08-21 21:05:07.711\u{20}
            Incoming APDU data [   48 bytes] =====================================
            2F 02 2F 03 C4 01 CE 01 C4 02 CE 02 CD 00 C9 00 /./.............
            C4 03 CE 03 C4 04 CE 04 C4 05 CE 05 C4 06 CE 06 ................
            CC 00 CC 01 CC 02 CC 03 CC 04 CC 05 CC 06 90 00 ................
            ======================================================================
            Outgoing APDU data [    4 bytes] =====================================
            00 20 00 80 . ..
            ======================================================================
            2015-08-21 21:05:08.000 [cardmod] reader-pcsc.c:213:pcsc_internal_transmit: R:SCardTransmit/Control failed: 0x80100069

            """
        #expect(
            try imported(text, as: "opensc").lines.map { $0.dropFirst(12) } == [
                #"reader pcsc "R""#, "> apdu 80580000000000",
                "< apdu 2F022F03C401CE01C402CE02CD00C900C403CE03C404CE04C405CE05C406CE06CC00CC01CC02CC03CC04CC05CC069000",
                "> apdu 00200080", #"! apdu cardRemoved "SCARD_W_REMOVED_CARD 0x80100069""#,
            ])
    }

    @Test("of two threads, whose lines come between the rows of an APDU")
    func interleaved() throws {
        let rows = "00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F ................\n"
        let lines = [
            "P:8805; T:0x140577073072192 20:58:12.091 [opensc-tool] card.c:1: other: said",
            "2015-08-21 20:58:12.092 [cardmod] reader-pcsc.c:184:pcsc_internal_transmit: called",
        ]
        let between = lines.map { Self.sample.replacing(rows, with: rows + $0 + "\n") }
        for text in between {
            #expect(
                try imported(text, as: "opensc").lines.map { $0.dropFirst(12) }
                    == imported(Self.sample, as: "opensc").lines.map { $0.dropFirst(12) })
        }
    }

    @Test("with a row that is too short, or a length that no APDU has, is an error with its line")
    func malformed() {
        #expect(throws: TraceError(.malformed("5 bytes of an APDU were due"), at: .line(2))) {
            try imported("Outgoing APDU (5 bytes):\n00 B0 00\n", as: "opensc")
        }
        #expect(throws: TraceError(.malformed("the length of an APDU was due"), at: .line(1))) {
            try imported("Outgoing APDU (99999999 bytes):\n00 B0 00\n", as: "opensc")
        }
    }
}
