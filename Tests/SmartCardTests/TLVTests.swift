import SmartCard
import TestSupport
import Testing

@Suite struct TLVTests {
    /// The FCI of a PPSE as EMV Contactless Book B, 3.3.2 lays it out; the bytes are a made-up card's.
    static let ppse = bytes(
        "6F 23 84 0E 32 50 41 59 2E 53 59 53 2E 44 44 46 30 31 "  // 2PAY.SYS.DDF01
            + "A5 11 BF 0C 0E 61 0C 4F 07 A0 00 00 00 03 10 10 87 01 01")

    @Test func constructedObjectsAreReadThrough() throws {
        let list = try TLVList(Self.ppse)
        #expect(list.map(\.tag) == [0x6F])
        let fci = try #require(list[0x6F])
        #expect(fci.children.map(\.tag) == [0x84, 0xA5])
        let entry = try #require(fci.children[0xA5]?.children[0xBF0C]?.children[0x61])
        #expect(entry.children[0x4F]?.value.hex == "A0000000031010")
        #expect(entry.encoded.hex == "610C4F07A0000000031010870101")
        #expect(entry.offset == 23)
        #expect(list.firstAnywhere(0x87)?.value.hex == "01")
        #expect(list.flattened.map(\.tag) == [0x6F, 0x84, 0xA5, 0xBF0C, 0x61, 0x4F, 0x87])
    }

    @Test func objectsAreWalkedWithoutAList() throws {
        // A record with an account number's first bytes and a CDOL1 of one byte, and filling between them.
        let record = bytes("70 08 5A 02 47 61 00 8C 01 9A")
        var walked: [String] = []
        try TLVList.walk(record) { tag, value, depth in walked.append("\(depth) \(tag) \(record[value].hex)") }
        #expect(walked == ["0 70 5A024761008C019A", "1 5A 4761", "1 8C 9A"])
        #expect(throws: TLVError(reason: .truncatedValue(claimed: 2, available: 1), offset: 1)) {
            try TLVList.walk([0x5A, 0x02, 0x47]) { _, _, _ in }
        }
    }

    @Test func tagsOfOneToFourBytes() throws {
        let list = try TLVList(bytes("5A 01 11 9F 02 01 22 DF 81 1B 01 33 DF 81 82 03 01 44"))
        #expect(list.map(\.tag) == [0x5A, 0x9F02, 0xDF811B, 0xDF81_8203])
        #expect(list.map(\.tag.length) == [1, 2, 3, 4])
        #expect(list.map { $0.tag.bytes.hex } == ["5A", "9F02", "DF811B", "DF818203"])
        #expect(list.map { $0.value.hex } == ["11", "22", "33", "44"])
    }

    /// `81 08` occurs in real M/Chip cards; the original bytes count in a hash.
    @Test func lengthsInMoreBytesThanNeededKeepTheirBytes() throws {
        let list = try TLVList(bytes("5A 81 02 12 34 5A 82 00 01 12 5A 84 00 00 00 01 12"))
        #expect(list.map { $0.value.hex } == ["1234", "12", "12"])
        #expect(list.map { $0.encoded.hex } == ["5A81021234", "5A82000112", "5A840000000112"])
    }

    /// EMV Book 3, Annex B1: 00 and FF before, between and after objects.
    @Test func paddingIsSkippedBetweenObjectsOnly() throws {
        let list = try TLVList(bytes("00 00 FF 5A 02 00 FF 00 70 06 00 57 01 FF 00 FF FF 00"))
        #expect(list.map(\.tag) == [0x5A, 0x70])
        #expect(list[0x5A]?.value.hex == "00FF")
        #expect(list[0x70]?.value.hex == "005701FF00FF")
        #expect(list[0x70]?.children.map(\.tag) == [0x57])
    }

    /// EMV Contactless Book C-2, Annex A: FF8105 is the data record.
    @Test func tagsThatBeginWithPaddingNeedOtherRules() throws {
        let record = bytes("FF 81 05 03 9F 27 00")
        #expect(try TLVList(record, padding: .zeros).map(\.tag) == [0xFF8105])
        #expect((try? TLVList(record).map(\.tag)) != [0xFF8105])
        #expect(throws: TLVError(reason: .truncatedTag, offset: 1)) { try TLVList([0xFF], padding: .zeros) }
    }

    @Test(arguments: [
        ("9F", TLVError(reason: .truncatedTag, offset: 1)),
        ("5A", TLVError(reason: .truncatedLength, offset: 1)),
        ("5A 82 01", TLVError(reason: .truncatedLength, offset: 3)),
        ("5A 80 12 00 00", TLVError(reason: .indefiniteLength, offset: 1)),
        ("5A 85 00 00 00 00 01 12", TLVError(reason: .lengthTooLong, offset: 1)),
        ("DF 81 82 83 04 01 12", TLVError(reason: .tagTooLong, offset: 0)),
        ("5A 03 12 34", TLVError(reason: .truncatedValue(claimed: 3, available: 2), offset: 1)),
        ("5A 84 FF FF FF FF 12", TLVError(reason: .truncatedValue(claimed: 0xFFFF_FFFF, available: 1), offset: 1)),
        ("70 04 5A 03 12 34", TLVError(reason: .truncatedValue(claimed: 3, available: 2), offset: 3)),
        ("70 02 5A 03 12 34 56", TLVError(reason: .truncatedValue(claimed: 3, available: 0), offset: 3)),
        ("70 01 9F 36 00", TLVError(reason: .truncatedTag, offset: 3)),
    ])
    func brokenBytesSayWhere(_ hex: String, _ error: TLVError) {
        #expect(throws: error) { try TLVList(bytes(hex)) }
    }

    @Test func depthAndCountAreBounded() {
        let nested = (0..<17).reduce([UInt8]()) { inner, _ in TLVTag(0x70).encode(inner) }
        #expect(throws: TLVError(reason: .tooDeep, offset: 32)) { try TLVList(nested) }
        #expect((try? TLVList(TLVTag(0x70).encode(objects: []))) != nil)
        let many = [UInt8](repeating: 0, count: 2 * 16_385).indices.map { $0 % 2 == 0 ? UInt8(0x5A) : 0 }
        #expect(throws: TLVError(reason: .tooMany, offset: 2 * 16_384)) { try TLVList(many) }
    }

    @Test func emptyIsAnEmptyList() throws {
        #expect(try TLVList([]).isEmpty)
        #expect(try TLVList(bytes("00 FF 00")).isEmpty)
    }

    /// The shortest length fields of ISO/IEC 7816-4, table 8.
    @Test(arguments: [
        (0, "00"), (127, "7F"), (128, "8180"), (255, "81FF"), (256, "820100"), (65_535, "82FFFF"), (65_536, "83010000"),
    ])
    func encoderChoosesTheShortestLength(_ count: Int, _ length: String) {
        let encoded = TLVTag(0x9F10).encode([UInt8](repeating: 7, count: count))
        #expect(encoded.prefix(2 + length.count / 2).hex == "9F10" + length)
        #expect(encoded.count == 2 + length.count / 2 + count)
    }

    @Test func encoderGivesBackWhatWasRead() {
        let encoded = TLVTag(0x6F).encode(
            objects: TLVTag(0x84).encode(Array("2PAY.SYS.DDF01".utf8)),
            TLVTag(0xA5).encode(
                objects: TLVTag(0xBF0C).encode(
                    objects: TLVTag(0x61).encode(
                        objects: TLVTag(0x4F).encode(bytes("A0 00 00 00 03 10 10")), TLVTag(0x87).encode([1])))))
        #expect(encoded == Self.ppse)
    }

    /// Ten thousand mutilated card answers: an error or a list, never a trap, and offsets inside the bytes.
    @Test func noInputTraps() {
        var random = SplitMix(state: 2_200)
        for _ in 0..<10_000 {
            var input = Self.ppse
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                input[Int.random(in: input.indices, using: &random)] = .random(in: 0...255, using: &random)
            }
            input = Array(input.prefix(Int.random(in: 0...input.count, using: &random)))
            do {
                for object in try TLVList(input).flattened {
                    #expect(input[object.offset...].starts(with: object.encoded))
                }
            } catch {
                #expect((0...input.count).contains(error.offset))
            }
        }
    }
}
