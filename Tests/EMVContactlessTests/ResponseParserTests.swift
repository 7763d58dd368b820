import SmartCard
import TestSupport
import Testing

@testable import EMVContactless

/// Responses in one template (EMV Book 3, 6.5.5.4 and 6.5.8.4).
@Suite struct ResponseParserTests {
    private func tags(
        _ response: String, _ format1: ResponseFormat1?, _ nested: NestedTemplates = .ignored
    ) throws -> [TLVTag] {
        try ResponseParser(format1: format1, nestedTemplates: nested)
            .objects(of: ResponseAPDU([UInt8](hex: response + " 90 00"))).map(\.tag)
    }

    @Test("templates inside a response count for Kernel 2, and not for Kernel 3")
    func nestedTemplates() throws {
        let response = "77 0F  82 02 20 00  70 06 94 04 08 01 01 00  9F 36 00"
        try expectEqual(tags(response, nil, .opened), [0x82, 0x94, 0x9F36])
        try expectEqual(tags(response, nil, .ignored), [0x82, 0x9F36])
    }

    @Test("template 80 has values of fixed lengths, and a last one that may be absent")
    func format1() throws {
        let start = "80 00 01  11 22 33 44 55 66 77 88"
        try expectEqual(tags("80 0B" + start, .applicationCryptogram), [0x9F27, 0x9F36, 0x9F26])
        try expectEqual(tags("80 0C" + start + "06", .applicationCryptogram), [0x9F27, 0x9F36, 0x9F26, 0x9F10])
        try expectEqual(tags("80 02 20 00", .processingOptions), [0x82])
        try expectEqual(tags("80 06 20 00 08 01 01 00", .processingOptionsWithLocator), [0x82, 0x94])
    }

    @Test(
        "anything else is malformed",
        arguments: [
            "", "77 00 77 00", "70 00", "80 01 20", "80 02 20 00", "80 05 20 00 08 01 01", "77 03 82 02 20",
        ])
    func malformed(_ response: String) {
        #expect(throws: MalformedCardData.self) { try tags(response, .processingOptionsWithLocator) }
        #expect(throws: MalformedCardData.self) { try tags("80 06 20 00 08 01 01 00", nil) }
    }
}
