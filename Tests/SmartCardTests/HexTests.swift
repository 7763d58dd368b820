import SmartCard
import Testing

@Suite struct HexTests {
    @Test func writing() {
        #expect([UInt8]([0x00, 0xA4, 0xFF]).hex == "00A4FF")
        #expect([UInt8]().hex(separator: " ") == "")
    }

    @Test(arguments: [("00a4 FF", "00A4FF"), ("00:A4-ff\n", "00A4FF"), ("", "")])
    func reading(_ text: String, _ hex: String) throws { #expect(try [UInt8](hex: text).hex == hex) }

    @Test(arguments: [("0", 1), ("0G", 1), ("0 0", 1), ("00A", 3), ("4é", 1)])
    func notHexadecimal(_ text: String, _ offset: Int) {
        #expect { try [UInt8](hex: text) } throws: { ($0 as? HexError)?.offset == offset }
    }
}

@Suite struct AIDTests {
    @Test func lengthAndParts() throws {
        #expect(AID(bytes("A0 00 00 00")) == nil)
        #expect(AID([UInt8](repeating: 0xA0, count: 17)) == nil)
        let visa = try #require(AID(bytes("A0 00 00 00 03 10 10")))
        #expect(visa.rid.hex == "A000000003" && visa.pix.hex == "1010")
        let longer = try #require(AID(bytes("A0 00 00 00 03 10 10 01")))
        #expect(longer.matches(prefix: visa) && !visa.matches(prefix: longer))
    }
}
