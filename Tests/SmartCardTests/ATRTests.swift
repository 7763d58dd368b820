import Foundation
import SmartCard
import Testing

/// Expected values are those that pcsc-tools' ATR_analysis prints for the same bytes.
@Suite struct ATRTests {
    @Test func interfaceBytesOfTwoProtocols() {
        let atr = ATR(bytes("3B 92 18 C0 0A 31 FE 45 11 22 F9"))
        #expect(atr.convention == .direct)
        #expect(
            atr.interfaceGroups == [
                .init(t: nil, ta: 0x18, tb: nil, tc: nil),
                .init(t: 0, ta: nil, tb: nil, tc: 0x0A),
                .init(t: 1, ta: 0xFE, tb: 0x45, tc: nil),
            ])
        #expect(atr.protocols == [0, 1])
        #expect(atr.historicalBytes.hex == "1122")
        #expect(atr.tck == 0xF9)
        #expect(atr.defects.isEmpty)
    }

    @Test func onlyT0HasNoCheckByte() {
        let direct = ATR(bytes("3B 65 00 00 20 63 CB 68 00"))
        #expect(direct.interfaceGroups == [.init(t: nil, ta: nil, tb: 0, tc: 0)])
        #expect(direct.protocols == [0])
        #expect(direct.historicalBytes.hex == "2063CB6800")
        #expect(direct.tck == nil && direct.defects.isEmpty)

        let inverse = ATR(bytes("3F 65 25 00 52 09 6A 90 00"))
        #expect(inverse.convention == .inverse)
        #expect(inverse.historicalBytes.hex == "52096A9000")
        #expect(inverse.defects.isEmpty)
    }

    @Test(arguments: [
        ("", [ATR.Defect.empty]),
        ("3B", [.truncated(offset: 1)]),
        ("3B 88 80 01 12 53 54", [.truncated(offset: 7)]),
        ("3B 9F 95 81 31 FE 9F 00 66 46 53 05 10 00 31 71 DF 00 00 00 00 00 02", [.wrongTCK(expected: 0x22, found: 2)]),
        ("3B FF 18 00 00 81 31 FE 45 00 6B 11 05 11 00 01 21 11 00 11 00 FF 08", [.truncated(offset: 23)]),
        ("3B 80 80 01", [.missingTCK]),
        ("3B 00 00", [.trailingBytes(offset: 2)]),
        ("3C 00", [.unknownConvention(0x3C)]),
    ])
    func defectsAreNamed(_ hex: String, _ defects: [ATR.Defect]) {
        #expect(ATR(bytes(hex)).defects == defects)
    }

    @Test func thirtyThreeBytesOfFF() {
        let atr = ATR([UInt8](repeating: 0xFF, count: 33))
        #expect(atr.bytes.count == 33)
        #expect(atr.defects == [.unknownConvention(0xFF), .truncated(offset: 33)])
        #expect(atr.contactless == nil)
    }

    /// T=15 groups are global interface bytes, not a protocol (ISO/IEC 7816-3, 8.2.3); they make TCK due all the same.
    @Test func globalInterfaceBytesAreNoProtocol() {
        let atr = ATR(bytes("3B 80 80 1F 47 58"))
        #expect(atr.interfaceGroups.last == .init(t: 15, ta: 0x47, tb: nil, tc: nil))
        #expect(atr.protocols == [0])
        #expect(atr.defects.isEmpty)
    }
}

@Suite struct ContactlessATRTests {
    /// The bytes of pcsc-tools' card list, as real readers reported them; what they are is PC/SC part 3, 3.1.3.2.3.
    @Test(arguments: [
        ("3B 8F 80 01 80 4F 0C A0 00 00 03 06 03 00 01 00 00 00 00 6A", "ISO 14443 A, part 3", "MIFARE Classic 1K"),
        ("3B 8F 80 01 80 4F 0C A0 00 00 03 06 03 FF 40 00 00 00 00 D4", "ISO 14443 A, part 3", "card with SAK 40"),
        ("3B 8F 80 01 80 4F 0C A0 00 00 03 06 11 00 3B 00 00 00 00 42", "FeliCa", "FeliCa"),
        ("3B 8F 80 01 80 4F 0C A0 00 00 03 06 03 F0 11 00 00 00 00 8A", "ISO 14443 A, part 3", "FeliCa 212 kbit/s"),
    ])
    func storageCards(_ hex: String, _ standard: String, _ name: String) {
        let atr = ATR(bytes(hex))
        #expect(atr.defects.isEmpty)
        guard case .storageCard(let foundStandard, let foundName) = atr.contactless else {
            Issue.record("not a storage card: \(atr)")
            return
        }
        #expect(foundStandard.description == standard)
        #expect(foundName.description == name)
    }

    /// Reader, then what it made of a DESFire EV1: ATS 06 75 77 81 02 80.
    @Test(arguments: ["3B 81 80 01 80 80", "3B 86 80 01 06 75 77 81 02 80 00"])
    func typeAIsTheSameFromEveryReader(_ hex: String) {
        let atr = ATR(bytes(hex))
        #expect(atr.defects.isEmpty)
        guard case .typeA(let historicalBytes, let ats) = atr.contactless else {
            Issue.record("not type A: \(atr)")
            return
        }
        #expect(historicalBytes == [0x80])
        #expect(ats?.bytes.hex == (hex.hasPrefix("3B 86") ? "067577810280" : nil))
    }

    /// ACS API v2.04, 3.1.2, and the same card as PC/SC has it.
    @Test(arguments: [
        ("3B 8C 80 01 50 12 23 45 56 12 53 54 4E 33 81 C3 55", "12234556"),
        ("3B 88 80 01 12 53 54 4E 33 81 C3 00 23", nil),
    ])
    func typeBIsTheSameFromEveryReader(_ hex: String, _ pupi: String?) {
        let atr = ATR(bytes(hex))
        #expect(atr.defects.isEmpty)
        #expect(
            atr.contactless
                == .typeB(
                    applicationData: bytes("12 53 54 4E"), protocolInfo: bytes("33 81 C3"), pupi: pupi.map(bytes)))
    }

    @Test func nokia6212AndPassportOnAnACR122U() throws {
        let phone = ATR(bytes("3B 8D 80 01 0D 78 80 84 02 00 73 C8 40 13 00 90 FF F8")).contactless
        guard case .typeA(let historicalBytes, let ats?) = phone else {
            Issue.record("no ATS: \(String(describing: phone))")
            return
        }
        // T0 = 78: TA, TB, TC present, FSCI 8.
        #expect((ats.ta, ats.tb, ats.tc) == (0x80, 0x84, 0x02))
        #expect(ats.maximumFrameSize == 256)
        #expect(historicalBytes.hex == "0073C840130090FF")
    }

    /// An ATR has room for fifteen historical bytes; the ACR122U cuts a longer ATS off there.
    @Test func aLongATSIsCutOff() {
        let atr = ATR(bytes("3B 8F 80 01 13 78 80 72 02 80 31 80 66 B0 84 12 01 6E 01 00"))
        guard case .typeA(let historicalBytes, let ats?) = atr.contactless else {
            Issue.record("no ATS")
            return
        }
        #expect(ats.bytes.first == 0x13)
        #expect(historicalBytes.hex == "80318066B08412016E01")
    }

    /// ISO/IEC 14443-4, 5.2.1: where the ATR of a card with no historical bytes leads.
    @Test func noHistoricalBytes() {
        #expect(ATR(bytes("3B 80 80 01 01")).contactless == .typeA(historicalBytes: [], ats: nil))
        #expect(ATR(bytes("3B 00")).contactless == .noCard)
        #expect(ATR(bytes("3B 65 00 00 20 63 CB 68 00")).contactless == nil)
    }

    @Test(
        .enabled(if: CardList.isInstalled, "pcsc-tools is not installed: no list of real ATRs to compare with"))
    func namesAgreeWithTheCardListOfPCSCTools() throws {
        func plain(_ text: some StringProtocol) -> String { text.lowercased().filter { $0.isLetter || $0.isNumber } }
        var compared = 0
        let lines = try String(contentsOfFile: CardList.path, encoding: .utf8).split(separator: "\n")
        for (line, next) in zip(lines, lines.dropFirst())
        where line.hasPrefix("3B 8F 80 01 80 4F 0C A0 00 00 03 06 .. 00 ") && next.hasSuffix("(as per PCSC std part3)")
        {
            let name = try #require(
                bytes(String(line.dropFirst(39).prefix(5))).first.map { _ in line.dropFirst(39).prefix(5) })
            let number = bytes(String(name))
            let ours = ATR.StorageCardName(rawValue: UInt16(number[0]) << 8 | UInt16(number[1])).description
            let theirs = plain(next.dropLast("(as per PCSC std part3)".count)).filter { $0 != "_" }
            #expect(
                plain(ours).hasPrefix(theirs) || theirs.hasPrefix(plain(ours)), "\(number.hex): \(ours), not \(next)")
            compared += 1
        }
        #expect(compared > 50)
    }

    /// Some four thousand ATRs of real cards: of those that spell out TCK, next to all must check.
    @Test(
        .enabled(if: CardList.isInstalled, "pcsc-tools is not installed: no list of real ATRs to compare with"))
    func realATRsAreDecodedWithoutDefects() throws {
        let atrs = try String(contentsOfFile: CardList.path, encoding: .utf8).split(separator: "\n")
            .filter { ($0.hasPrefix("3B ") || $0.hasPrefix("3F ")) && !$0.contains(".") && !$0.contains("[") }
            .compactMap { try? [UInt8](hex: $0) }.map { ATR($0) }
        #expect(atrs.count > 2_000)
        let broken = atrs.filter { !$0.defects.isEmpty }
        #expect(broken.count * 100 < atrs.count * 4, "\(broken.count) of \(atrs.count) have defects")
    }
}

private enum CardList {
    static let path = "/usr/share/pcsc/smartcard_list.txt"
    static var isInstalled: Bool { FileManager.default.isReadableFile(atPath: path) }
}

/// ISO/IEC 14443-4, 5.2.
@Suite struct ATSTests {
    @Test func everyField() throws {
        let ats = try #require(ATS(bytes("06 75 77 81 02 80")))
        #expect(ats.formatByte == 0x75)
        #expect((ats.ta, ats.tb, ats.tc) == (0x77, 0x81, 0x02))
        #expect(ats.historicalBytes == [0x80])
        #expect(ats.maximumFrameSize == 64)
        // FWI 8: 256 x 16 / fc x 2^8
        #expect(abs(ats.frameWaitingTimeMicroseconds - 77_330) < 10)
    }

    @Test func theLengthByteAlone() throws {
        let ats = try #require(ATS([0x01]))
        #expect(ats.formatByte == nil && ats.historicalBytes.isEmpty)
        #expect(ats.maximumFrameSize == 32)
        #expect(abs(ats.frameWaitingTimeMicroseconds - 4_833) < 1)
    }

    @Test(arguments: ["", "00", "05 75 77 81 02 80", "07 75 77 81 02 80", "03 75 77", "02 70"])
    func bytesThatAreNoATS(_ hex: String) {
        #expect(ATS(bytes(hex)) == nil)
    }
}
