import SmartCardTrace
import Testing

/// Samples: libpcscspy 1.9.9 of Debian 12, with scriptor and a virtual card; made shorter.
@Suite("What libpcscspy writes")
struct PCSCSpyLogTests {
    static let sample = """
        7F9A716FFB80@>|1795294760|159964|SCardEstablishContext
        7F9A716FFB80@0x00000002
        7F9A716FFB80@0x44338535
        7F9A716FFB80@<|1795294760|163209|SCardEstablishContext|Command successful.|0x00000000
        7F9A716FFB80@>|1795294760|163361|SCardConnect
        7F9A716FFB80@0x44338535
        7F9A716FFB80@Virtual PCD 00 00
        7F9A716FFB80@0x00000002
        7F9A716FFB80@0x00000003
        7F9A716FFB80@0x00000000
        7F9A716FFB80@0x00000000
        7F9A716FFB80@0x5C500038
        7F9A716FFB80@0x00000002
        7F9A716FFB80@<|1795294760|163418|SCardConnect|Command successful.|0x00000000
        7F9A716FFB80@>|1795294760|163420|SCardStatus
        7F9A716FFB80@0x5C500038
        7F9A716FFB80@0x00000012
        7F9A716FFB80@0x00000021
        7F9A716FFB80@0x00000012
        7F9A716FFB80@Virtual PCD 00 00
        7F9A716FFB80@0x00010034
        7F9A716FFB80@0x00000002
        7F9A716FFB80@0x00000005
        7F9A716FFB80@3B 80 80 01 01\u{20}
        7F9A716FFB80@<|1795294760|163430|SCardStatus|Command successful.|0x00000000
        7F9A716FFB80@>|1795294760|163507|SCardTransmit
        7F9A716FFB80@0x5C500038
        7F9A716FFB80@0x00000002
        7F9A716FFB80@0x00000010
        7F9A716FFB80@0x00000005
        7F9A716FFB80@00 B0 00 00 02\u{20}
        7F9A716FFB80@0x00000001
        7F9A716FFB80@0x00000010
        7F9A716FFB80@0x00000004
        7F9A716FFB80@00 01 90 00\u{20}
        7F9A716FFB80@<|1795294760|212706|SCardTransmit|Command successful.|0x00000000
        7F9A716FFB80@>|1795294760|212800|SCardReconnect
        7F9A716FFB80@0x5C500038
        7F9A716FFB80@0x00000002
        7F9A716FFB80@0x00000003
        7F9A716FFB80@0x00000001
        7F9A716FFB80@0x00000002
        7F9A716FFB80@<|1795294760|212850|SCardReconnect|Command successful.|0x00000000
        7F9A716FFB80@>|1795294760|212862|SCardTransmit
        7F9A716FFB80@0x5C500038
        7F9A716FFB80@0x00000002
        7F9A716FFB80@0x00000010
        7F9A716FFB80@0x00000004
        7F9A716FFB80@00 A4 00 00\u{20}
        7F9A716FFB80@0x00000002
        7F9A716FFB80@0x00000010
        7F9A716FFB80@0x00000000
        7F9A716FFB80@
        7F9A716FFB80@<|1795294760|213005|SCardTransmit|Transaction failed.|0x80100016
        7F9A716FFB80@>|1795294760|213077|SCardDisconnect
        7F9A716FFB80@0x5C500038
        7F9A716FFB80@0x00000002
        7F9A716FFB80@<|1795294760|215120|SCardDisconnect|Command successful.|0x00000000

        """

    @Test("is calls with their times, cards, results and errors")
    func reads() throws {
        let (lines, omissions) = try imported(Self.sample, as: "pcsc-spy")
        #expect(
            lines == [
                #"0.000000000 reader pcsc "Virtual PCD 00 00""#,
                "0.000057000 connect T=1 3B80800101",
                "0.000146000 > apdu 00B0000002",
                "0.049345000 < apdu 00019000",
                "0.049489000 reset",
                "0.049501000 > apdu 00A40000",
                #"0.049644000 ! apdu notTransacted "SCARD_E_NOT_TRANSACTED 0x80100016""#,
                "0.051759000 disconnect power-off",
            ])
        #expect(omissions == ["calls that a trace does not know": 1])
    }

    /// A transmit call of `thread`, up to the command and from the answer on.
    private func call(_ thread: String, _ command: String, _ answer: String) -> (begin: String, end: String) {
        func lines(_ texts: String...) -> String { texts.map { "\(thread)@\($0)\n" }.joined() }
        let begin = lines(">|1|0|SCardTransmit", "0x1", "0x2", "0x10", "0x00000004", command)
        let end = lines(
            "0xFFFFFFFFFFFFFFFF", "0xFFFFFFFFFFFFFFFF", "0x00000002", answer, "<|1|9|SCardTransmit|0x00000000")
        return (begin, end)
    }

    @Test("of threads that take turns gives each command its own answer")
    func interleaved() throws {
        let (a, b) = (call("A1", "00 01 00 00 ", "90 01 "), call("B2", "00 02 00 00 ", "90 02 "))
        let (lines, omissions) = try imported(a.begin + a.end + b.begin + b.end, as: "pcsc-spy")
        #expect(
            lines.map { String($0.dropFirst(12)) } == [
                "> apdu 00010000", "< apdu 9001", "> apdu 00020000", "< apdu 9002",
            ])
        #expect(omissions.isEmpty)
        // Half of each call at a time: the parts are those of the right thread.
        let halves = try imported(a.begin + b.begin + a.end + b.end, as: "pcsc-spy").lines
        #expect(
            halves.map { String($0.dropFirst(12)) } == [
                "> apdu 00010000", "> apdu 00020000", "< apdu 9001", "< apdu 9002",
            ])
    }

    @Test("may lie about lengths, which is counted, and ends anywhere")
    func lies() throws {
        let lie = call("A1", "00 01 00 00 00 00 ", "90 00 ")
        #expect(
            try imported(lie.begin + lie.end, as: "pcsc-spy").omissions == ["lengths that their buffers do not have": 1]
        )
        let next = call("A1", "00 02 00 00 ", "90 00 ")
        #expect(
            try imported(lie.begin + next.begin + next.end, as: "pcsc-spy").lines.map { $0.dropFirst(12) } == [
                "> apdu 000100000000", #"! apdu cancelled "the call does not return""#, "> apdu 00020000",
                "< apdu 9000",
            ])
        let many = (0..<2000).map { "\(String($0, radix: 16))@>|1|0|SCardTransmit\n" }.joined()
        #expect(throws: TraceError(.malformed("no more than 1024 calls at a time were due"), at: .line(1025))) {
            try imported(many, as: "pcsc-spy")
        }
    }
}
