import SmartCard
import TestSupport
import Testing

@testable import EMVContactless

@Suite("Data elements")
struct DataElementTests {
    @Test("Every row of every table is read")
    func rows() {
        for table in DataElement.tables {
            for row in table.rows.split(separator: "\n") {
                #expect(table.element(String(row)) != nil, "\(table.document): \(row)")
            }
        }
    }

    @Test("There are at least 500 elements, and a tag means one thing in one scope")
    func unique() {
        #expect(DataElement.all.count >= 500)
        let keys = Dictionary(grouping: DataElement.all) { "\($0.tag) \($0.scope)" }
        for (key, elements) in keys where elements.count > 1 { Issue.record("\(key): \(elements)") }
        #expect(Set(DataElement.all.map { "\($0.tag) \($0.name)" }).count >= 500)
    }

    @Test("A tag is constructed if and only if its bit 6 says so")
    func constructed() {
        for element in DataElement.all {
            expectEqual(element.format == .constructed, element.tag.isConstructed, "\(element)")
        }
    }

    /// From EMV 4.4 Book 3, Annex A, and the data dictionaries of Contactless Books C-2 version 2.10 and C-8 version 1.1.
    static let specified: [(TLVTag, DataElement.Scope, keyword: String, DataElement.Format, ClosedRange<Int>)] = [
        (0x42, .common, "Issuer Identification Number", .numeric, 3...3),
        (0x4F, .common, "ADF", .binary, 5...16),
        (0x50, .common, "Application Label", .alphanumericSpecial, 1...16),
        (0x57, .common, "Track 2 Equivalent", .binary, 0...19),
        (0x5A, .common, "PAN", .compressedNumeric, 0...10),
        (0x5F20, .common, "Cardholder Name", .alphanumericSpecial, 2...26),
        (0x5F24, .common, "Expiration", .numeric, 3...3),
        (0x5F2A, .common, "Transaction Currency Code", .numeric, 2...2),
        (0x5F2D, .common, "Language", .alphanumeric, 2...8),
        (0x5F34, .common, "Sequence Number", .numeric, 1...1),
        (0x5F56, .common, "alpha3", .alphabetic, 3...3),
        (0x82, .common, "Interchange Profile", .binary, 2...2),
        (0x8A, .common, "Response Code", .alphanumeric, 2...2),
        (0x8E, .common, "CVM", .binary, 10...252),
        (0x91, .common, "Issuer Authentication Data", .binary, 8...16),
        (0x95, .common, "Verification Results", .binary, 5...5),
        (0x98, .common, "Hash", .binary, 20...20),
        (0x9A, .common, "Transaction Date", .numeric, 3...3),
        (0x9C, .common, "Transaction Type", .numeric, 1...1),
        (0x9F01, .common, "Acquirer", .numeric, 6...6),
        (0x9F02, .common, "Authorised (Numeric)", .numeric, 6...6),
        (0x9F07, .common, "Usage Control", .binary, 2...2),
        (0x9F0B, .common, "Name Extended", .alphanumericSpecial, 27...45),
        (0x9F10, .common, "Issuer Application Data", .binary, 0...32),
        (0x9F16, .common, "Merchant Identifier", .alphanumericSpecial, 15...15),
        (0x9F1C, .common, "Terminal Identification", .alphanumeric, 8...8),
        (0x9F1D, .common, "Risk Management", .binary, 1...8),
        (0x9F20, .common, "Track 2 Discretionary", .compressedNumeric, 0...255),
        (0x9F24, .common, "Payment Account Reference", .alphanumeric, 29...29),
        (0x9F30, .common, "Biometric Terminal Capabilities", .binary, 3...3),
        (0x9F37, .common, "Unpredictable Number", .binary, 4...4),
        (0x9F40, .common, "Additional Terminal Capabilities", .binary, 5...5),
        (0x9F41, .common, "Sequence Counter", .numeric, 2...4),
        (0x9F4C, .common, "Dynamic Number", .binary, 2...8),
        (0xBF0C, .common, "FCI", .constructed, 0...222),
        (0x9F66, .common, "Terminal Transaction Qualifiers", .binary, 4...4),
        (0x9F5F, .mastercard, "Slot Availability", .binary, 1...1),
        (0x9F66, .mastercard, "PUNATC (Track2)", .binary, 2...2),
        (0x9F6A, .mastercard, "Unpredictable Number (Numeric)", .numeric, 4...4),
        (0x9F7C, .mastercard, "Merchant Custom Data", .binary, 20...20),
        (0xDF8115, .mastercard, "Error Indication", .binary, 6...6),
        (0xDF8116, .mastercard, "User Interface Request", .binary, 22...22),
        (0xDF8129, .mastercard, "Outcome Parameter Set", .binary, 8...8),
        (0xDF812D, .mastercard, "Message Hold Time", .numeric, 3...3),
        (0x9F2B, .kernel8, "Kernel Qualifier", .binary, 8...8),
        (0x9F2C, .kernel8, "Card Qualifier", .binary, 7...7),
        (0x9F8103, .kernel8, "Card Key Data", .binary, 64...132),
        (0x9F8205, .kernel8, "User Interface Request Data 1", .binary, 13...13),
        (0x9F8211, .kernel8, "Message Hold Time", .numeric, 3...3),
    ]

    @Test("Names, formats and lengths are those of the specifications", arguments: specified.indices)
    func specification(_ index: Int) throws {
        let (tag, scope, keyword, format, length) = Self.specified[index]
        let element = try #require(DataElement[tag, scope])
        #expect(element.name.contains(keyword))
        expectEqual(element.format, format)
        expectEqual(element.length, length)
    }

    /// Every tag of EMV 4.4 Book 3, Annex A2.
    static let bookTags = """
        42 4F 50 57 5A 5F20 5F24 5F25 5F28 5F2A 5F2D 5F30 5F34 5F36 5F50 5F53 5F54 5F55 5F56 5F57 61 6F 70 71 72 73 77
        7F60 80 81 82 83 84 86 87 88 89 8A 8C 8D 8E 8F 90 91 92 93 94 95 97 98 99 9A 9B 9C 9D 9F01 9F02 9F03 9F04 9F05
        9F06 9F07 9F08 9F09 9F0A 9F0B 9F0C 9F0D 9F0E 9F0F 9F10 9F11 9F12 9F13 9F14 9F15 9F16 9F17 9F18 9F19 9F1A 9F1B
        9F1C 9F1D 9F1E 9F1F 9F20 9F21 9F22 9F23 9F24 9F25 9F26 9F27 9F2D 9F2E 9F2F 9F30 9F31 9F32 9F33 9F34 9F35 9F36
        9F37 9F38 9F39 9F3A 9F3B 9F3C 9F3D 9F40 9F41 9F42 9F43 9F44 9F45 9F46 9F47 9F48 9F49 9F4A 9F4B 9F4C 9F4D 9F4E
        9F4F A5 BF0C BF4A BF4B BF4C BF4D BF4E
        """

    @Test("No tag of EMV Book 3 is missing")
    func complete() {
        for text in Self.bookTags.split(whereSeparator: \.isWhitespace) {
            let tag = TLVTag(rawValue: UInt32(text, radix: 16) ?? 0)
            expectEqual(DataElement[tag]?.scope, .common, "\(text)")
        }
    }

    @Test("A tag means what its scheme says")
    func scopes() {
        expectEqual(DataElement[0x9F6E, .visa]?.name, "Form Factor Indicator (FFI)")
        expectEqual(DataElement[0x9F6E, .mastercard]?.name, "Third Party Data")
        expectEqual(DataElement[0x9F6E, .americanExpress]?.name, "Enhanced Contactless Reader Capabilities")
        expectEqual(DataElement[0x9F6E, .jcb]?.name, "Device Information")
        expectEqual(DataElement[0x9F6E], nil)
        expectEqual(DataElement[0x9F5D, .visa]?.name, "Available Offline Spending Amount (AOSA)")
        expectEqual(DataElement[0x9F5D, .mastercard]?.name, "Application Capabilities Information")
        expectEqual(DataElement[0x9F5D, .globalPlatform], nil)
        // Only Kernel 2 has this tag, so no scheme need be named; but it means nothing to Visa.
        expectEqual(DataElement[0xDF8129]?.name, "Outcome Parameter Set")
        expectEqual(DataElement[0xDF8129, .visa], nil)
        // What a scheme does not redefine is common.
        expectEqual(DataElement[0x9F02, .interac]?.name, "Amount, Authorised (Numeric)")
        #expect(Set(DataElement.meanings(of: 0x9F7C).map(\.scope)).isSuperset(of: [.visa, .mastercard, .jcb]))
    }

    @Test("A tag means what its template says")
    func templates() {
        expectEqual(DataElement[0x82]?.name, "Application Interchange Profile")
        expectEqual(DataElement[0x82, in: 0x62]?.name, "File descriptor")
        expectEqual(DataElement[0x82, in: 0xA1]?.name, "Biometric Subtype")
        expectEqual(DataElement[0x84, in: 0x6F]?.name, "Dedicated File (DF) Name")
        expectEqual(DataElement[0xDF51, in: 0xBF4C]?.name, "Finger Try Counter")
        expectEqual(DataElement[0xDF51, in: 0xBF4E]?.name, "Enciphered Biometric Data")
        expectEqual(DataElement[0xDF51], nil)
    }

    @Test("The scheme follows from the AID or the kernel")
    func scopeOfApplication() throws {
        try expectEqual(DataElement.Scope(aid: #require(AID([0xA0, 0, 0, 0, 3, 0x10, 0x10]))), .visa)
        try expectEqual(DataElement.Scope(aid: #require(AID([0xA0, 0, 0, 0, 4, 0x10, 0x10]))), .mastercard)
        try expectEqual(DataElement.Scope(aid: #require(AID([0xA0, 0, 0, 6, 0x58, 0x10, 0x10]))), .common)
        expectEqual(DataElement.Scope(kernel: 7), .unionPay)
        expectEqual(DataElement.Scope(kernel: 0x81), .common)
    }
}
