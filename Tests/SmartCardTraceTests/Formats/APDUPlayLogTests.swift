import SmartCardTrace
import Testing

@Suite("winscard_log.txt of APDUPlay")
struct APDUPlayLogTests {
    /// README.md of APDUPlay (github.com/crocs-muni/APDUPlay).
    static let sample = """
        [begin]
        SCardTransmit (handle 0x00000000)#
        apduCounter:0#
        totalBytesINCounter:1#
        transmitted:00 a4 04 00 05 a0 00 00 00 03 00
        responseTime:12#
        SCardTransmit result:0x0#
        received:6f 10 84 08 a0 00 00 00 03 00 00 00 a5 04 9f 65 01 ff 90 00

        SCardTransmit (handle 0x00000000)#
        apduCounter:1#
        totalBytesINCounter:12#
        transmitted:00 a4 04 00 05 a0 00 00 00 04 00
        responseTime:9#
        SCardTransmit result:0x80100069#
        received:

        """

    @Test("has exchanges, how long they took, and results")
    func reads() throws {
        let (lines, omissions) = try imported(Self.sample, as: "apduplay")
        #expect(
            lines == [
                "0.000000000 > apdu 00A4040005A000000003" + "00",
                "0.012000000 < apdu 6F108408A000000003000000A5049F6501FF9000",
                "0.012000000 > apdu 00A4040005A000000004" + "00",
                #"0.021000000 ! apdu cardRemoved "SCARD_W_REMOVED_CARD 0x80100069""#,
            ])
        #expect(omissions.isEmpty)
    }

    @Test("has times without end, which end where those of a trace do")
    func endlessTimes() throws {
        let end = Self.sample.replacing("responseTime:9#", with: "responseTime:999999999999999999#")
        let times = String(repeating: "responseTime:999999999999999999#\n", count: 11_000)
        let (lines, _) = try imported(Self.sample + times + end, as: "apduplay")
        #expect(lines.last?.hasPrefix("9999999999.999999999 ! apdu ") == true)
        _ = try Trace(text: "apdu-trace 1\n" + lines.map { "\($0)\n" }.joined())
        var file = try TraceImport(bytes: (Self.sample + times + end).utf8)
        while let event = try file.next() { #expect(event.time < .seconds(10_000_000_000)) }
    }
}
