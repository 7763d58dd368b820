import SmartCardTrace
import Testing

@Suite("Logs of Ledger's libraries")
struct LedgerLogTests {
    /// https://github.com/spesmilo/electrum/issues/2209
    static let sample = """
        => f026000000
        <= 6d00
        => e0c4000000
        <= 012001000101109000

        """

    @Test("have APDUs behind arrows; a command whose answer is missing has failed")
    func reads() throws {
        #expect(
            try imported(Self.sample, as: "ledger").lines.map { $0.dropFirst(12) }
                == ["> apdu F026000000", "< apdu 6D00", "> apdu E0C4000000", "< apdu 012001000101109000"])
        #expect(
            try imported("HID => f026000000\nHID => e0c4000000\nHID <= 0120  9000\n", as: "ledger").lines.map {
                $0.dropFirst(12)
            } == [
                "> apdu F026000000", #"! apdu noAnswer "the file has no answer""#, "> apdu E0C4000000",
                "< apdu 01209000",
            ])
    }

    /// The form in which Ledger Live saves its logs: type, message, timestamp.
    @Test("in JSON have times")
    func json() throws {
        let text = """
            {"type":"apdu","message":"=> b001000000","timestamp":"2021-03-24T10:00:01.500Z"}
            {"type":"apdu","message":"<= 9000","timestamp":"2021-03-24T10:00:01.625Z"}

            """
        #expect(
            try imported(text, as: "ledger").lines == ["0.000000000 > apdu B001000000", "0.125000000 < apdu 9000"])
    }
}
