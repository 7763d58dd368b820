import SmartCard
import Testing

/// ISO/IEC 7816-3:2006, 12.1.3, table 13: the shapes of a command APDU.
@Suite struct CommandAPDUTests {
    struct Example: Sendable {
        let hex: String
        let apduCase: CommandAPDU.Case
        let nc: Int
        let ne: Int?
        let coding: CommandAPDU.LengthCoding
    }

    static let examples: [Example] = [
        .init(hex: "00 A4 04 00", apduCase: .noData, nc: 0, ne: nil, coding: .short),  // case 1
        .init(hex: "00 B2 01 0C 00", apduCase: .dataExpected, nc: 0, ne: 256, coding: .short),  // case 2S
        .init(hex: "80 CA 9F 36 05", apduCase: .dataExpected, nc: 0, ne: 5, coding: .short),
        .init(hex: "00 B0 00 00 00 00 00", apduCase: .dataExpected, nc: 0, ne: 65_536, coding: .extended),  // 2E
        .init(hex: "00 B0 00 00 00 01 00", apduCase: .dataExpected, nc: 0, ne: 256, coding: .extended),
        .init(hex: "FF 00 00 00 02 D4 02", apduCase: .dataSent, nc: 2, ne: nil, coding: .short),  // case 3S
        .init(hex: "00 D6 00 00 00 00 02 AA BB", apduCase: .dataSent, nc: 2, ne: nil, coding: .extended),  // 3E
        .init(
            hex: "00 A4 04 00 0E 32 50 41 59 2E 53 59 53 2E 44 44 46 30 31 00",  // case 4S: SELECT 2PAY.SYS.DDF01
            apduCase: .dataSentAndExpected, nc: 14, ne: 256, coding: .short),
        .init(
            hex: "00 CB 3F FF 00 00 01 5C 01 F4",  // case 4E
            apduCase: .dataSentAndExpected, nc: 1, ne: 500, coding: .extended),
    ]

    @Test(arguments: examples) func everyCaseIsReadAndWrittenBack(_ example: Example) throws {
        let command = try CommandAPDU(bytes(example.hex))
        #expect(command.case == example.apduCase)
        #expect(command.data.count == example.nc)
        #expect(command.ne == example.ne)
        #expect(command.lengthCoding == example.coding)
        #expect(command.bytes.hex(separator: " ") == example.hex)
    }

    @Test func partsBecomeTheShortestCoding() throws {
        let short = try CommandAPDU(cla: 0, ins: 0xD6, p1: 0, p2: 0, data: Array(repeating: 0xAA, count: 255), ne: 256)
        #expect(short.bytes.prefix(5).hex == "00D60000FF")
        #expect(short.bytes.count == 4 + 1 + 255 + 1)
        let byData = try CommandAPDU(cla: 0, ins: 0xD6, p1: 0, p2: 0, data: Array(repeating: 0xAA, count: 256))
        #expect(byData.bytes.prefix(7).hex == "00D60000000100")
        let byNe = try CommandAPDU(cla: 0, ins: 0xB0, p1: 0, p2: 0, ne: 257)
        #expect(byNe.bytes.hex == "00B00000000101")
        let longest = try CommandAPDU(
            cla: 0, ins: 0xD6, p1: 0, p2: 0, data: Array(repeating: 1, count: 65_535), ne: 65_536)
        #expect(longest.bytes.count == 4 + 3 + 65_535 + 2)
        #expect(try CommandAPDU(longest.bytes) == longest)
    }

    @Test(arguments: [
        ("", APDUError.truncated(offset: 0)),
        ("00 A4 04", .truncated(offset: 3)),
        ("00 A4 04 00 02 3F", .truncated(offset: 6)),  // Lc 2, one byte
        ("00 A4 04 00 02 3F 00 00 00", .trailingBytes(offset: 8)),  // two bytes of Le after short Lc
        ("00 B0 00 00 00 01", .truncated(offset: 6)),  // half an extended Le
        ("00 D6 00 00 00 00 00 AA", .emptyExtendedData(offset: 5)),
        ("00 D6 00 00 00 00 02 AA", .truncated(offset: 8)),
        ("00 D6 00 00 00 00 01 AA 00", .truncated(offset: 9)),  // one byte where Le has two
        ("00 D6 00 00 00 00 01 AA 00 00 00", .trailingBytes(offset: 10)),
    ])
    func bytesThatAreNoCommand(_ hex: String, _ error: APDUError) {
        #expect(throws: error) { try CommandAPDU(bytes(hex)) }
    }

    @Test func partsOutOfRange() {
        #expect(throws: APDUError.dataTooLong(65_536)) {
            try CommandAPDU(cla: 0, ins: 0, p1: 0, p2: 0, data: Array(repeating: 0, count: 65_536))
        }
        #expect(throws: APDUError.neOutOfRange(0)) { try CommandAPDU(cla: 0, ins: 0, p1: 0, p2: 0, ne: 0) }
        #expect(throws: APDUError.neOutOfRange(65_537)) { try CommandAPDU(cla: 0, ins: 0, p1: 0, p2: 0, ne: 65_537) }
    }

    @Test func descriptionShowsNoData() throws {
        let verify = try CommandAPDU(bytes("00 20 00 80 08 24 12 34 FF FF FF FF FF"))
        #expect(verify.description == "00 20 00 80, 8 bytes")
    }

    /// EMV Book 1, 11.3.2; Book 3, 6.5.11.
    @Test func namedCommands() {
        #expect(CommandAPDU.select(bytes("A0 00 00 00 03")).bytes.hex == "00A4040005A00000000300")
        #expect(CommandAPDU.readRecord(3, sfi: 2).bytes.hex == "00B2031400")
        #expect(CommandAPDU.getResponse(cla: 0, ne: 256).bytes.hex == "00C0000000")
    }
}

@Suite struct ResponseAPDUTests {
    @Test func dataAndStatus() throws {
        let response = try ResponseAPDU(bytes("9F 36 02 00 1C 90 00"))
        #expect(response.data.hex == "9F3602001C")
        #expect(response.status == .success)
        #expect(response.bytes.hex == "9F3602001C9000")
    }

    @Test(arguments: [0, 1]) func tooShort(_ count: Int) {
        #expect(throws: APDUError.truncated(offset: count)) { try ResponseAPDU([UInt8](repeating: 0x90, count: count)) }
    }
}

/// ISO/IEC 7816-4:2020, tables 5 and 6.
@Suite struct StatusWordTests {
    @Test func familiesMatchAsPatterns() {
        func family(_ status: StatusWord) -> String {
            switch status {
            case .success: "success"
            case .moreData: "more data"
            case .counter: "counter"
            case .warning: "warning"
            case .warningChanged: "warning, changed"
            case .wrongLe: "wrong Le"
            case 0x6A82: "not found"
            default: "other"
            }
        }
        #expect(
            [0x9000, 0x6110, 0x63C2, 0x6283, 0x6300, 0x6C1A, 0x6A82, 0x6985].map(family) == [
                "success", "more data", "counter", "warning", "warning, changed", "wrong Le", "not found", "other",
            ])
    }

    @Test func names() {
        #expect(StatusWord(0x6A, 0x82).description == "6A82 file or application not found")
        #expect(StatusWord(0x61, 0x00).description == "6100 256 or more response bytes available")
        #expect(StatusWord(0x6C, 0x1A).description == "6C1A wrong Le, 26 bytes available")
        #expect(StatusWord(0x63, 0xC3).description == "63C3 counter 3")
        #expect(StatusWord(0x12, 0x34).description == "1234")
    }
}
