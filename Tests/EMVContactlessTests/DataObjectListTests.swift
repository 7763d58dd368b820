import EMVContactless
import SmartCard
import TestSupport
import Testing

@Suite("Data object lists")
struct DataObjectListTests {
    /// The PDOL of a Visa card as seen in many published transcripts.
    static let pdol: [UInt8] = [
        0x9F, 0x66, 0x04,  // Terminal Transaction Qualifiers
        0x9F, 0x02, 0x06,  // Amount, Authorised
        0x9F, 0x03, 0x06,  // Amount, Other
        0x9F, 0x1A, 0x02,  // Terminal Country Code
        0x95, 0x05,  // Terminal Verification Results
        0x5F, 0x2A, 0x02,  // Transaction Currency Code
        0x9A, 0x03,  // Transaction Date
        0x9C, 0x01,  // Transaction Type
        0x9F, 0x37, 0x04,  // Unpredictable Number
    ]

    @Test("A PDOL is read, and its data built as a terminal sends them")
    func build() throws {
        let list = try DataObjectList(Self.pdol)
        expectEqual(list.entries.map(\.length), [4, 6, 6, 2, 5, 2, 3, 1, 4])
        expectEqual(list.length, 0x21)
        #expect(list.contains(0x9F66))
        let terminal: [TLVTag: [UInt8]] = [
            0x9F66: [0x36, 0x00, 0x40, 0x00], 0x9F02: [0x12, 0x34], 0x9F1A: [0x08, 0x40], 0x5F2A: [0x08, 0x40],
            0x9A: [0x25, 0x12, 0x31], 0x9C: [0x00], 0x9F37: [0x01, 0x02, 0x03, 0x04],
        ]
        expectEqual(
            list.value { terminal[$0] }.hex(separator: " "),
            "36 00 40 00 00 00 00 00 12 34 00 00 00 00 00 00 08 40 00 00 00 00 00 08 40 25 12 31 00 01 02 03 04")
    }

    /// EMV Book 3, 5.4: each row of the rules for lengths that differ.
    @Test("Values are cut and filled as their format demands")
    func fit() throws {
        func value(_ dol: [UInt8], _ value: [UInt8], _ scope: DataElement.Scope = .common) throws -> String {
            try DataObjectList(dol).value(scope: scope) { _ in value }.hex
        }
        // n: leading zeros, leading bytes cut.
        try expectEqual(value([0x9F, 0x02, 0x08], [0, 0, 0, 0, 0x12, 0x34]), "0000000000001234")
        try expectEqual(value([0x9F, 0x02, 0x03], [0, 0, 0, 0x01, 0x12, 0x34]), "011234")
        // cn: trailing FF, trailing bytes cut.
        try expectEqual(value([0x5A, 0x0A], [0x47, 0x61, 0x73, 0x90, 0x01, 0x01, 0x00, 0x10]), "4761739001010010FFFF")
        try expectEqual(value([0x5A, 0x03], [0x47, 0x61, 0x73, 0x90]), "476173")
        // All others: trailing zeros, trailing bytes cut.
        try expectEqual(value([0x9F, 0x37, 0x06], [1, 2, 3, 4]), "010203040000")
        try expectEqual(value([0x9F, 0x4E, 0x03], [0x53, 0x48, 0x4F, 0x50]), "53484F")
        // A tag that the terminal has and the dictionary has not counts as binary.
        try expectEqual(value([0xDF, 0x7F, 0x03], [0xAA]), "AA0000")
        // 9F7A is numeric to UnionPay and binary to Visa.
        try expectEqual(value([0x9F, 0x7A, 0x02], [0x01], .unionPay), "0001")
        try expectEqual(value([0x9F, 0x7A, 0x02], [0x01], .visa), "0100")
    }

    @Test("What the terminal does not have, and any template, is zeros")
    func zeros() throws {
        try expectEqual(DataObjectList([0xDF, 0x7F, 0x02, 0x95, 0x05]).value { _ in nil }.hex, "00000000000000")
        var asked: [TLVTag] = []
        let built = try DataObjectList([0x70, 0x03, 0x9C, 0x01]).value {
            asked.append($0)
            return [0xFF]
        }
        expectEqual(built.hex, "000000FF")
        expectEqual(asked, [0x9C])
    }

    @Test("Long lengths are lengths, not the beginning of a longer length field")
    func longLength() throws {
        try expectEqual(DataObjectList([0x9F, 0x4E, 0x81]).entries, [.init(tag: 0x9F4E, length: 0x81)])
        try expectEqual(DataObjectList([0x9F, 0x4E, 0xFC]).length, 252)
        #expect(try DataObjectList([UInt8]()).entries.isEmpty)
        try expectEqual(DataObjectList([0xDF, 0x81, 0x29, 0x08]).entries, [.init(tag: 0xDF8129, length: 8)])
    }

    @Test(
        "What is no list is refused where it stops being one",
        arguments: [
            ([0x9F], DataObjectListError.Reason.truncatedTag, 1),
            ([0x9F, 0x02], .truncatedLength, 2),
            ([0x95, 0x05, 0x9A], .truncatedLength, 3),
            ([0x9F, 0x81, 0x81, 0x81, 0x01, 0x01], .tagTooLong, 0),
            ([0x9F, 0x4E, 0xFD], .tooLong, 0),
            ([0x9F, 0x4E, 0x80, 0x9F, 0x02, 0x7D], .tooLong, 3),
        ] as [([UInt8], DataObjectListError.Reason, Int)])
    func refused(_ bytes: [UInt8], _ reason: DataObjectListError.Reason, _ offset: Int) {
        let error = #expect(throws: DataObjectListError.self) { try DataObjectList(bytes) }
        expectEqual(error?.reason, reason)
        expectEqual(error?.offset, offset)
    }

    @Test("A list of tags")
    func tags() throws {
        try expectEqual(DataObjectList.tags([0x82]), [0x82])
        try expectEqual(DataObjectList.tags([0x9F, 0x6E, 0xDF, 0x81, 0x29, 0x57]), [0x9F6E, 0xDF8129, 0x57])
        #expect(throws: DataObjectListError.self) { try DataObjectList.tags([0x9F]) }
    }
}
