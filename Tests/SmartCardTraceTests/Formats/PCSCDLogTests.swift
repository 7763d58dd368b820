import SmartCard
import SmartCardTrace
import Testing

/// Samples: pcscd 1.9.9 of Debian 12 with two virtual cards of vsmartcard-vpcd, used by scriptor; made shorter.
@Suite("The log of pcscd --apdu")
struct PCSCDLogTests {
    static let sample = """
        00000000 debuglog.c:390:DebugLogSetLevel() debug level=debug
        02093739 ifd-vpcd.c:236:IFDHGetCapabilities() Got ATR (5 bytes)
        00000002 eventhandler.c:423:EHStatusHandlerThread() Card inserted into Virtual PCD 00 00
        00000005 Card ATR: 3B 80 80 01 01\u{20}
        00000002 eventhandler.c:423:EHStatusHandlerThread() Card inserted into Virtual PCD 00 01
        00000005 Card ATR: 3B 65 00 00 20 63 CB 68 00\u{20}
        00000029 winscard_svc.c:361:ContextThread() Received command: CONNECT from client 12
        00000002 winscard.c:258:SCardConnect() Attempting Connect to Virtual PCD 00 00 using protocol: 3
        00000017 winscard.c:332:SCardConnect() power up complete.
        00000004 Card ATR: 3B 80 80 01 01\u{20}
        00000002 winscard.c:430:SCardConnect() Active Protocol: T=1
        00000004 winscard_svc.c:523:ContextThread() CONNECT for client 12, rv=SCARD_S_SUCCESS
        00000088 winscard_svc.c:361:ContextThread() Received command: RECONNECT from client 12
        00000027 winscard.c:609:SCardReconnect() Reset complete.
        00000005 Card ATR: 3B 80 80 01 01\u{20}
        00000001 winscard.c:731:SCardReconnect() Active Protocol: T=1
        00000061 winscard_svc.c:361:ContextThread() Received command: TRANSMIT from client 12
        00000004 APDU: 00 EE 00 00\u{20}
        00047099 SW:\u{20}
        00000028 winscard.c:1649:SCardTransmit() UnrefReader() count was: 2
        00000201 winscard_svc.c:361:ContextThread() Received command: TRANSMIT from client 12
        00000004 APDU: 00 A4 00 00\u{20}
        00000004 ifd-vpcd.c:397:IFDHTransmitToICC() could not send apdu or receive rapdu
        00000001 SW:\u{20}
        00000002 ifdwrapper.c:543:IFDTransmit() Card not transacted: 612
        00000003 winscard.c:1621:SCardTransmit() Card not transacted: rv=SCARD_E_NOT_TRANSACTED
        00000003 winscard.c:883:SCardDisconnect() dwDisposition: 0
        00000032 eventhandler.c:358:EHStatusHandlerThread() Card Removed From Virtual PCD 00 00

        """

    @Test("tells with --debug of readers, cards, connections, resets and failures")
    func debug() throws {
        let (lines, omissions) = try imported(Self.sample, as: "pcscd")
        #expect(
            lines == [
                #"0.000000000 reader pcsc "Virtual PCD 00 00""#,
                "0.000005000 slot card 3B80800101",
                "0.000064000 connect T=1 3B80800101",
                "0.000185000 reset",
                "0.000256000 > apdu 00EE0000",
                "0.047355000 < apdu -",
                "0.047588000 > apdu 00A40000",
                #"0.047595000 ! apdu notTransacted "SCARD_E_NOT_TRANSACTED 0x80100016""#,
                "0.047601000 disconnect leave",
                "0.047633000 slot empty",
            ])
        #expect(omissions["events of other slots"] == 2)
        #expect(omissions["lines of pcscd that are about something else"] == 10)
        let other = try imported(Self.sample, as: "pcscd", slot: 1)
        #expect(other.lines.last == "0.000005000 slot card 3B6500002063CB6800")
    }

    @Test(
        "is recognized and read, with and without color, and as syslog and the journal write it",
        arguments: [
            """
            \u{1B}[36m00000012\u{1B}[0m [140233] \u{1B}[34mAPDU: 00 A4 04 00 00 \u{1B}[0m
            \u{1B}[36m00001000\u{1B}[0m [140233] \u{1B}[34mSW: 6A 82 \u{1B}[0m

            """,
            "00000012 APDU: 00 A4 04 00 00 \n00001000 SW: 6A 82 ",
            "00000012 APDU: 00 A4 04 00 00 \r\n00001000 SW: 6A 82 \r\n",
            """
            May 14 23:59:59.9995 host pcscd[336623]: APDU: 00 A4 04 00 00\u{20}
            May 15 00:00:00.0005 host pcscd[336623]: SW: 6A 82\u{20}

            """,
            """
            May 14 18:41:50 host pcscd[336623]: 00000005 APDU: 00 A4 04 00 00\u{20}
            May 14 18:41:52 host pcscd[336623]: 00001000 SW: 6A 82\u{20}

            """,
        ])
    func reads(text: String) throws {
        let (lines, omissions) = try imported(text, as: "pcscd")
        #expect(lines == ["0.000000000 > apdu 00A4040000", "0.001000000 < apdu 6A82"])
        #expect(omissions.isEmpty)
    }

    @Test("of two readers at the same time gives each command its own answer, by thread or by client")
    func interleaved() throws {
        let threads = """
            00000002 [7] winscard.c:258:SCardConnect() Attempting Connect to A using protocol: 3
            00000002 [8] winscard.c:258:SCardConnect() Attempting Connect to B using protocol: 3
            00000004 [7] APDU: 00 01 00 00\u{20}
            00000004 [8] APDU: 00 02 00 00\u{20}
            00000004 [8] SW: 90 02\u{20}
            00000004 [7] SW: 90 01\u{20}

            """
        let clients = """
            00000002 winscard_svc.c:361:ContextThread() Received command: CONNECT from client 1
            00000002 winscard.c:258:SCardConnect() Attempting Connect to A using protocol: 3
            00000002 winscard_svc.c:361:ContextThread() Received command: CONNECT from client 2
            00000002 winscard.c:258:SCardConnect() Attempting Connect to B using protocol: 3
            00000002 winscard_svc.c:361:ContextThread() Received command: TRANSMIT from client 1
            00000004 APDU: 00 01 00 00\u{20}
            00000004 SW: 90 01\u{20}
            00000002 winscard_svc.c:361:ContextThread() Received command: TRANSMIT from client 2
            00000004 APDU: 00 02 00 00\u{20}
            00000004 SW: 90 02\u{20}

            """
        for text in [threads, clients] {
            for (slot, name, digit) in [(0, "A", "1"), (1, "B", "2")] {
                let lines = try imported(text, as: "pcscd", slot: slot).lines.map { $0.dropFirst(12) }
                #expect(
                    lines == ["reader pcsc \"\(name)\"", "> apdu 000\(digit)0000", "< apdu 900\(digit)"])
            }
        }
    }

    @Test("with half a byte is an error with its line, unless the log ends there")
    func malformed() throws {
        #expect(throws: TraceError(.malformed("bytes of two hexadecimal digits each were due"), at: .line(2))) {
            try imported("00000012 APDU: 00 A4 \n00001000 SW: 6A 8\n", as: "pcscd")
        }
        let (lines, omissions) = try imported("00000012 APDU: 00 A4 \n00001000 SW: 6A 8", as: "pcscd")
        #expect(lines == ["0.000000000 > apdu 00A4"])
        #expect(omissions == ["last lines that are cut off": 1])
    }

    @Test("that is written is read as the same trace; what it cannot hold is counted")
    func roundTrip() throws {
        let lines = [
            #"0.000000000 reader pcsc "Virtual PCD 00 00""#,
            "0.000000000 slot card 3B80800101",
            "0.000001000 connect T=1 3B80800101",
            "0.000002000 > apdu 00A40000",
            "0.000003000 < apdu 6A82",
            "0.000004000 reset",
            "0.000005000 > apdu 00A40000",
            #"0.000006000 ! apdu notTransacted "SCARD_E_NOT_TRANSACTED 0x80100016""#,
            "0.000007000 disconnect power-off",
            "0.000008000 slot empty",
        ]
        let (text, omissions) = try exported(lines, to: "pcscd")
        #expect(omissions.isEmpty)
        #expect(text.contains("00000001 APDU: 00 A4 00 00 \n00000001 SW: 6A 82 \n"))
        #expect(try imported(text, as: "pcscd").lines == lines)
        let others = ["0.000000000 note \"x\"", "0.000000000 > ccid 62", "200.000000000 > apdu 00"]
        #expect(
            try exported(others, to: "pcscd").omissions == ["events other than APDUs, ATRs, connections and resets": 2])
        let lost = [
            #"0.000000000 reader pcsc "Reader" vendor "ACS" serial "1""#, "0.000000000 > apdu 00",
            #"0.000000000 ! apdu notTransacted "removed while it was asked""#,
        ]
        #expect(
            try exported(lost, to: "pcscd").omissions == [
                "vendors and serial numbers of readers": 1, "reasons why exchanges failed": 1, "names of readers": 1,
            ])
        #expect(
            try exported(["0.000000000 > apdu 00", "200.000000000 < apdu 9000"], to: "pcscd").omissions
                == ["times of more than 99.999999 seconds between lines": 1])
    }

    @Test("of more clients than are held, no connection is lost")
    func manyClients() throws {
        let lines = (0..<1_100).map { "00000001 [\(1_000 + $0)] Card ATR: 3B 80 80 01 01 \n" }
        #expect(try imported(lines.joined(), as: "pcscd").lines.filter { $0.contains(" connect ") }.count == 1_100)
    }
}
