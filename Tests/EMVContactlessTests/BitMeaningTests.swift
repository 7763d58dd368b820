import SmartCard
import TestSupport
import Testing

@testable import EMVContactless

/// The lines for `value`, as text.
private func lines(_ tag: TLVTag, _ value: String, _ scope: DataElement.Scope = .common) throws -> [String] {
    DataElement.bitMeanings(of: tag, value: try [UInt8](hex: value), scope: scope).map(\.description)
}

@Suite("Bits", .computing)
struct BitMeaningTests {
    @Test("Every row of every table is read")
    func rows() {
        let tables = BitTable.tables.values.flatMap(\.values)
        for table in tables {
            #expect(!table.rows.isEmpty)
            #expect(table.rows.allSatisfy { $0.bytes.lowerBound <= table.length.upperBound && !$0.meaning.isEmpty })
        }
        #expect(BitTable.row("1 40 SDA supported") != nil)
        for bad in ["1 40", "0 40 x", "1 4G x", "1 0F=F0 x", "1 40=40=40 x", "x 40 y", "2-1 .. x", "1 00 x"] {
            #expect(BitTable.row(Substring(bad)) == nil, "\(bad)")
        }
    }

    @Test("No line of a table is dropped as unreadable")
    func counts() {
        // Counted in the specifications' tables: C1, C2, C5, C6 of Book 3 and A2, A3 of Book 4.
        expectEqual(BitTable.applicationInterchangeProfile.rows.count, 12)
        expectEqual(BitTable.applicationUsageControl.rows.count, 10)
        expectEqual(BitTable.terminalVerificationResults.rows.count, 39)
        expectEqual(BitTable.transactionStatusInformation.rows.count, 6)
        expectEqual(BitTable.terminalCapabilities.rows.count, 15)
        expectEqual(BitTable.additionalTerminalCapabilities.rows.count, 27)
        expectEqual(BitTable.terminalType.rows.count, 15)
    }

    @Test("Application Interchange Profile")
    func aip() throws {
        try expectEqual(
            lines(0x82, "5C 00"),
            [
                "byte 1 bit 7: SDA supported",
                "byte 1 bit 5: Cardholder verification is supported",
                "byte 1 bit 4: Terminal risk management is to be performed",
                "byte 1 bit 3: Issuer authentication is supported",
            ])
        // M/Chip contactless.
        try expectEqual(lines(0x82, "19 80", .mastercard).last, "byte 2 bit 8: EMV mode is supported")
        // A phone with Visa.
        try expectEqual(lines(0x82, "00 40", .visa), ["byte 2 bit 7: Mobile phone"])
    }

    @Test("Terminal Verification Results")
    func tvr() throws {
        try expectEqual(
            lines(0x95, "00 40 00 80 00"),
            [
                "byte 2 bit 7: Expired application", "byte 4 bit 8: Transaction exceeds floor limit",
            ])
        // Byte 5, bits 4 to 1, means one thing in EMV 4.4 and another in Kernel 2.
        try expectEqual(lines(0x95, "00 00 00 00 04"), ["byte 5 bit 3: CA ECC key missing"])
        try expectEqual(
            lines(0x95, "00 00 00 00 06", .mastercard),
            [
                "byte 5 bit 3: Relay resistance time limits exceeded",
                "byte 5 bits 2-1: Relay resistance protocol performed",
            ])
    }

    @Test("Bits that no document explains are reported as reserved")
    func reserved() throws {
        try expectEqual(lines(0x9B, "E8 00").count, 4)
        let meanings = DataElement.bitMeanings(of: 0x9B, value: [0x03, 0x80])
        expectEqual(meanings.map(\.kind), [.reserved, .reserved])
        expectEqual(meanings.map(\.mask), [0x03, 0x80])
        expectEqual(DataElement.bitMeanings(of: 0x9F27, value: [0xC0]).map(\.kind), [.reserved])
    }

    @Test("A value of the wrong length is decoded as far as it goes, and said to be wrong")
    func wrongLength() throws {
        try expectEqual(lines(0x82, "40"), ["1 bytes instead of 2", "byte 1 bit 7: SDA supported"])
        try expectEqual(lines(0x82, "40 00 FF"), ["3 bytes instead of 2", "byte 1 bit 7: SDA supported"])
        try expectEqual(lines(0x95, ""), ["0 bytes instead of 5"])
    }

    @Test("Cryptogram Information Data", arguments: [(0x00, "AAC"), (0x40, "TC"), (0x80, "ARQC")])
    func cid(_ value: UInt8, _ type: String) {
        expectEqual(DataElement.bitMeanings(of: 0x9F27, value: [value]).map(\.meaning), [type])
    }

    @Test("Card and terminal transaction qualifiers, form factor: an Apple Pay tap as published")
    func phone() throws {
        try expectEqual(lines(0x9F6C, "00 80"), ["byte 2 bit 8: Consumer Device CVM Performed"])
        try expectEqual(
            lines(0x9F6E, "23 88 00 00", .visa),
            [
                "byte 1 bits 8-6: Version 1",
                "byte 1 bits 5-1: Consumer mobile phone",
                "byte 2 bit 8: Passcode capable",
                "byte 2 bit 4: Two-way messaging",
                "byte 4 bits 4-1: Proximity contactless interface using ISO 14443 (including NFC)",
            ])
        try expectEqual(
            lines(0x9F66, "36 C0 40 00"),
            [
                "byte 1 bit 6: EMV mode supported",
                "byte 1 bit 5: EMV contact chip supported",
                "byte 1 bit 3: Online PIN supported",
                "byte 1 bit 2: Signature supported",
                "byte 2 bit 8: Online cryptogram required",
                "byte 2 bit 7: CVM required",
                "byte 3 bit 7: Consumer Device CVM supported",
            ])
    }

    @Test("Terminal capabilities E0F8C8, type 22, CVM results 1E0300")
    func terminal() throws {
        try expectEqual(
            lines(0x9F33, "E0 F8 C8").map { $0.suffix(from: $0.firstIndex(of: ":") ?? $0.startIndex) },
            [
                ": Manual key entry", ": Magnetic stripe", ": IC with contacts",
                ": Plaintext PIN for ICC verification", ": Enciphered PIN for online verification", ": Signature",
                ": Enciphered PIN for offline verification", ": No CVM required",
                ": SDA", ": DDA", ": CDA",
            ])
        try expectEqual(lines(0x9F35, "22"), ["byte 1: Merchant, attended, offline with online capability"])
        try expectEqual(
            lines(0x9F34, "1E 03 00"),
            [
                "byte 1 bits 8-1: Signature (paper)", "byte 2: If terminal supports the CVM", "byte 3: Unknown",
            ])
    }

    @Test("Outcome Parameter Set, User Interface Request Data and Error Indication of Kernel 2")
    func kernel2() throws {
        try expectEqual(
            lines(0xDF8129, "30 F0 F0 20 A8 F0 FF 00", .mastercard).map { $0.drop { $0 != ":" }.dropFirst(2) },
            [
                "Status: online request", "Start: none", "Online response data: none", "CVM: online PIN",
                "UI request on outcome present", "Data record present", "Receipt",
                "Alternate interface preference: none", "Field off request: none",
                "Removal timeout in units of 100 ms: 00",
            ])
        try expectEqual(
            lines(
                0xDF8116, "1B 03 00 00 13 65 6E 00 00 00 00 00 00 10 00 00 00 00 10 00 09 78", .mastercard
            ).map { $0.drop { $0 != ":" }.dropFirst(2) },
            [
                "Message: authorising, please wait", "Status: processing", "Hold time in units of 100 ms: 000013",
                "Language preference: 656E000000000000", "Value qualifier: amount", "Value: 000000001000",
                "Currency code: 0978",
            ])
        try expectEqual(
            lines(0xDF8115, "00 03 00 69 85 07", .mastercard).map { $0.drop { $0 != ":" }.dropFirst(2) },
            [
                "L1: OK", "L2: status bytes", "L3: OK", "SW12: 6985", "Message on error: 07",
            ])
    }

    @Test("Service code 201")
    func serviceCode() throws {
        try expectEqual(
            lines(0x5F30, "02 01").map { $0.drop { $0 != ":" }.dropFirst(2) },
            [
                "International interchange, use the chip where feasible", "Normal authorization", "No restrictions",
            ])
    }

    @Test("CVM List: amounts, methods, conditions")
    func cvmList() throws {
        let list = try #require(CVMList([UInt8](hex: "00 00 13 88 00 00 00 00  42 01 1E 03 1F 06")))
        expectEqual(list.amountX, 5000)
        expectEqual(list.amountY, 0)
        expectEqual(
            list.rules.map(\.description),
            [
                "Enciphered PIN verified online; if unattended cash; otherwise next",
                "Signature (paper); if terminal supports the CVM; otherwise fail",
                "No CVM required; if transaction is in the application currency and is under X value; otherwise fail",
            ])
        expectEqual(CVMList([0, 0, 0, 0, 0, 0, 0]), nil)
        expectEqual(CVMList([0, 0, 0, 0, 0, 0, 0, 0, 0x1F]), nil)
        try expectEqual(lines(0x8E, "00"), ["not two amounts and pairs of bytes"])
        #expect(CVMList.Rule(code: 0x99, condition: 0x20).description.hasPrefix("reserved (99)"))
    }

    @Test("Application File Locator")
    func afl() throws {
        let afl = try ApplicationFileLocator([UInt8](hex: "08 01 01 00  10 01 03 02"))
        expectEqual(afl.entries.map(\.sfi), [1, 2])
        expectEqual(afl.entries.map(\.records), [1...1, 1...3])
        expectEqual(afl.entries.map(\.signedRecords), [0, 2])
        try expectEqual(lines(0x94, "10 01 03 02"), ["byte 1: SFI 2, records 1 to 3, 2 signed"])
        // The whole range that a byte can name neither overflows nor loops.
        try expectEqual(ApplicationFileLocator([0xF0, 0x01, 0xFF, 0xFF]).entries[0].records.count, 255)
    }

    @Test(
        "An Application File Locator that breaks a rule is refused where it does",
        arguments: [
            ("08 01 01", 3), ("00 01 01 00", 0), ("09 01 01 00", 0), ("F8 01 01 00", 0), ("08 00 01 00", 1),
            ("08 02 01 00", 1), ("08 01 01 02", 3), ("08 01 01 00 10 02 01 00", 5),
        ])
    func badAFL(_ hex: String, _ offset: Int) throws {
        let bytes = try [UInt8](hex: hex)
        let error = #expect(throws: ApplicationFileLocatorError.self) { try ApplicationFileLocator(bytes) }
        expectEqual(error?.offset, offset)
    }

    @Test("Issuer Application Data of Visa, format 0: cryptogram version 10")
    func visaIAD() throws {
        let iad = IssuerApplicationData(try [UInt8](hex: "06 01 0A 03 A0 20 00"), scope: .visa)
        expectEqual(iad.layout, .visaShort)
        expectEqual(iad.cryptogramVersion, 10)
        expectEqual(iad.derivationKeyIndex, 1)
        expectEqual(iad.cardVerificationResults, [0xA0, 0x20, 0x00])
        let text = iad.bitMeanings.map(\.description)
        #expect(text.contains("byte 5 bits 8-7: Second GENERATE AC not requested"))
        #expect(text.contains("byte 5 bits 6-5: GPO or first GENERATE AC returned ARQC"))
        #expect(text.contains("byte 6 bit 6: Exceeded velocity checking counters"))
        #expect(!text.contains { $0.contains("reserved") })
    }

    /// Values as their owners published them in the issue trackers of jPOS, emv-bertlv and proxmark3.
    @Test(
        "Issuer Application Data layouts are told apart by their bytes",
        arguments: [
            ("06010A03A40000", .visaShort, 0x0A, 0x01),
            ("06010A03A0A002", .visaShort, 0x0A, 0x01),
            ("1F43010020000000000000000007717300000000000000000000000000000000", .visaLong, 0x43, 0x01),
            ("1F4A6331A0000000001003027300000000400000000000000000000000000000", .visaLong, 0x4A, 0x63),
            ("0110A0400324C000000000000000000000FF", .mchip4, 0x10, 0x01),
            ("0110250000044000DAC10000000000000000", .mchip4, 0x10, 0x01),
            ("0FA506A231C0020000000000000000000F110601010000000000000000000000", .commonCore, 0xA5, 0x06),
            ("01828100310040180000000000000000", .unknown, nil, nil),  // ZKA
            ("0105000000000000000000", .unknown, nil, nil),  // D-PAS
            ("", .unknown, nil, nil),
        ] as [(String, IssuerApplicationData.Layout, UInt8?, UInt8?)])
    func iadLayouts(_ hex: String, _ layout: IssuerApplicationData.Layout, _ version: UInt8?, _ key: UInt8?) throws {
        let iad = IssuerApplicationData(try [UInt8](hex: hex))
        expectEqual(iad.layout, layout)
        expectEqual(iad.cryptogramVersion, version)
        expectEqual(iad.derivationKeyIndex, key)
        #expect(!iad.bitMeanings.contains { $0.kind == .malformed })
    }

    @Test("Visa card verification results of a phone: verified by the secure element, with a passcode")
    func visaPhone() throws {
        let text = try lines(0x9F10, "1F4A6331A0000000001003027300000000400000000000000000000000000000", .visa)
        #expect(text.contains("byte 4 bits 8-5: CDCVM verified by: co-residing application in the secure element"))
        #expect(text.contains("byte 4 bits 4-1: CDCVM: passcode"))
        #expect(text.contains("byte 5 bits 6-5: GPO or first GENERATE AC returned ARQC"))
    }

    @Test("M/Chip card verification results, decoded as published")
    func mchipCVR() throws {
        try expectEqual(
            lines(0x9F10, "0110250000044000DAC10000000000000000", .mastercard),
            [
                "layout: M/Chip 4",
                "byte 1: Derivation Key Index: 01",
                "byte 2 bits 8-5: Cryptogram Version Number of M/Chip",
                "byte 2 bits 3-2: Session key: Mastercard proprietary SKD",
                "byte 3 bits 8-7: Second GENERATE AC returned AAC",
                "byte 3 bits 6-5: First GENERATE AC returned ARQC",
                "byte 3 bit 3: Offline PIN verification performed",
                "byte 3 bit 1: Offline PIN verification successful",
                "byte 4 bits 2-1: Issuer discretionary: 0",
                "byte 5 bits 8-5: Script counter: 0",
                "byte 5 bits 4-1: PIN Try Counter: 0",
                "byte 6 bit 3: International transaction",
                "byte 7 bit 7: Upper consecutive offline limit, or counter 1 limit, exceeded",
                "byte 9: DAC or ICC Dynamic Number: DAC1",
                "byte 11: Counters: 0000000000000000",
            ])
    }

    @Test("Third Party Data, with and without a device type")
    func thirdPartyData() throws {
        try expectEqual(
            lines(0x9F6E, "08 26 00 00 30 37 01", .mastercard),
            [
                "byte 1: Country code: 0826", "byte 3: Unique identifier: 0000", "byte 5: Device type: 3037",
                "byte 7: Proprietary data: 01", "byte 5: Phone, fixed secure element of the network operator",
            ])
        try expectEqual(lines(0x9F6E, "08 26 80 00 30 37", .mastercard).last, "byte 5: Proprietary data: 3037")
        try expectEqual(lines(0x9F6E, "08", .mastercard).first, "1 bytes instead of 5 to 32")
    }

    @Test("Positions in the discretionary data of a mag-stripe mode track")
    func positions() throws {
        // PCVC3 (Track2) and PUNATC (Track2) as on many cards.
        try expectEqual(lines(0x9F65, "00 0E", .mastercard), ["positions from the end: 2, 3, 4"])
        try expectEqual(
            lines(0x9F66, "0E 70", .mastercard), ["positions from the end: 5, 6, 7, 10, 11, 12"])
        try expectEqual(lines(0x9F62, "00 0E", .mastercard), ["2 bytes instead of 6"])
    }

    @Test("No value traps, whatever its tag, scheme and length")
    func hostile() {
        var seed: UInt64 = 0x5EED
        func next() -> UInt8 {
            seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: seed >> 33)
        }
        for element in DataElement.all {
            for length in Tier.few([0, 1, 2, 3, 4, 5, 6, 7, 8, 17, 18, 32, 33, 255], 5) {
                let value = (0..<length).map { _ in next() }
                let annotation = Annotation(tag: element.tag, value: value, scope: element.scope)
                _ = annotation.bits.map(\.description)
                _ = annotation.text(reveal: true)
                _ = "\(annotation)"
            }
        }
    }
}
