import SmartCard
import SmartCardSimulator
import Testing

@Suite struct CardEMVTests {
    /// Sends commands in hexadecimal, all of them to the same card.
    private struct Session {
        let card: any VirtualCard

        init(_ name: String) throws { card = try #require(VirtualCards.named(name)) }

        func callAsFunction(_ command: String) throws -> String {
            try #require(card.exchange([UInt8](hex: command))).hex
        }
    }

    /// The cryptogram was computed with PyEMV 1.5.0, `cvn.VisaCVN18(…).generate_ac`, from the values of this command.
    @Test func visaOnline() throws {
        let send = try Session("visa")
        #expect(
            try send("00 A4 04 00 0E 32 50 41 59 2E 53 59 53 2E 44 44 46 30 31 00")
                == "6F34840E325041592E5359532E4444463031A522BF0C1F611D4F07A0000000031010500B56495341204352454449548701019F2A01039000"
        )
        #expect(try send("00 A4 04 00 07 A0 00 00 00 03 10 10 00").hasSuffix("9000"))
        #expect(
            try send("80A8000023 8321 36800000 000000001234 000000000000 0276 0000000000 0978 261121 00 11223344 00")
                == "774B820220009404080101005711476173900101001 0D31122011143804489 5F340101 9F1007 06011203A00000 9F2608 C949206DD053E07E 9F270180 9F36020042 9F6C020000 9F6E0420700000 9000"
                .split(separator: " ").joined())
    }
}
