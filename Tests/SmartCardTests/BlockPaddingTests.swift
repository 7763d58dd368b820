import SmartCard
import Testing

@Suite struct BlockPaddingTests {
    /// ICAO 9303-11, D.4: the header of SELECT and the file identifier; a whole block gets another one (ISO/IEC 9797-1, 6.3.3).
    @Test(arguments: [
        ("0CA4020C", "0CA4020C80000000"), ("011E", "011E800000000000"), ("", "8000000000000000"),
        ("0011223344556677", "00112233445566778000000000000000"), ("00112233445566", "0011223344556680"),
    ])
    func padding(_ message: String, _ blocks: String) throws {
        #expect(BlockPadding.padded(try [UInt8](hex: message), blockLength: 8).hex == blocks)
        #expect(BlockPadding.unpadded(try [UInt8](hex: blocks), blockLength: 8)?.hex == message)
    }

    @Test(
        "Blocks without padding, or with more than a block of it, are refused",
        arguments: [
            "", "0000000000000000", "0011223344556677", "00112233445566778100000000000000",
            "80000000000000000000000000000000",
        ])
    func none(_ blocks: String) throws {
        #expect(BlockPadding.unpadded(try [UInt8](hex: blocks), blockLength: 8) == nil)
    }
}
