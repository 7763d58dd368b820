extension ATR {
    /// The facts about a contactless card in the ATR that the reader makes up (PC/SC part 3, 3.1.3.2.3).
    public enum Contactless: Hashable, Sendable {
        /// A storage card, by the standard it follows and its registered name.
        case storageCard(standard: StorageStandard, name: StorageCardName)
        /// An ISO/IEC 14443-4 type A card.  `historicalBytes` come from its ATS.  The whole ATS is known only if the
        /// reader passes it on, as the ACR122U does.
        case typeA(historicalBytes: [UInt8], ats: ATS?)
        /// An ISO/IEC 14443-4 type B card: four bytes of application data and three of protocol info from its ATQB, and
        /// the PUPI if the reader passes on the whole ATQB, as the ACR122U does.
        case typeB(applicationData: [UInt8], protocolInfo: [UInt8], pupi: [UInt8]?)
        /// The ACR122U's `3B 00`: no card at all.
        case noCard
    }

    /// The decoded facts; nil for a contact card's ATR, or one without information about the radio interface.
    public var contactless: Contactless? {
        if bytes == [0x3B, 0x00] { return .noCard }
        // PC/SC part 3: the only interface bytes are TD1 = 80 and TD2 = 01.
        guard bytes.count >= 4, bytes[0] == 0x3B, bytes[1] & 0xF0 == 0x80, bytes[2] == 0x80, bytes[3] == 0x01 else {
            return nil
        }
        let h = historicalBytes
        if let card = Self.storageCard(h) { return card }
        if let card = Self.typeB(h) { return card }
        if let ats = ATS(passedOnAsHistoricalBytes: h) {
            return .typeA(historicalBytes: ats.historicalBytes, ats: ats)
        }
        return .typeA(historicalBytes: h, ats: nil)
    }

    /// `80 4F 0C`, the PC/SC workgroup's RID, standard and name (PC/SC part 3, 3.1.3.2.3.2).
    private static func storageCard(_ h: [UInt8]) -> Contactless? {
        guard h.count >= 11, h[0] == 0x80, h[1] == 0x4F, h[3...7].elementsEqual([0xA0, 0x00, 0x00, 0x03, 0x06]) else {
            return nil
        }
        return .storageCard(
            standard: StorageStandard(rawValue: h[8]),
            name: StorageCardName(rawValue: UInt16(h[9]) << 8 | UInt16(h[10])))
    }

    /// Parses the eight bytes of PC/SC part 3, which end in the MBLI and four zero bits, or the ATQB of an ACR122U.
    private static func typeB(_ h: [UInt8]) -> Contactless? {
        if h.count == 12, h[0] == 0x50 {
            return .typeB(applicationData: Array(h[5..<9]), protocolInfo: Array(h[9..<12]), pupi: Array(h[1..<5]))
        }
        // Seven historical bytes and a type A card look alike.  Protocol info that is valid in an ATQB tells them
        // apart: the maximum frame size code is at most 8, and bit 4 of its byte is zero (ISO/IEC 14443-3, 7.9.4.4).
        if h.count == 8, h[7] & 0x0F == 0, h[5] >> 4 <= 8, h[5] & 0x08 == 0, h[5] & 0x01 != 0 {
            return .typeB(applicationData: Array(h[0..<4]), protocolInfo: Array(h[4..<7]), pupi: nil)
        }
        return nil
    }

    /// The standard byte SS of a storage card (PC/SC part 3 supplement, table 1).
    public struct StorageStandard: RawRepresentable, Hashable, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }
    }

    /// The name bytes NN of a storage card (PC/SC part 3 supplement, table 2).
    public struct StorageCardName: RawRepresentable, Hashable, Sendable {
        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }
    }
}

extension ATR.StorageStandard: CustomStringConvertible {
    public var description: String {
        let names: [UInt8: String] = [
            0x00: "no information",
            0x01: "ISO 14443 A, part 1", 0x02: "ISO 14443 A, part 2", 0x03: "ISO 14443 A, part 3",
            0x05: "ISO 14443 B, part 1", 0x06: "ISO 14443 B, part 2", 0x07: "ISO 14443 B, part 3",
            0x09: "ISO 15693, part 1", 0x0A: "ISO 15693, part 2", 0x0B: "ISO 15693, part 3", 0x0C: "ISO 15693, part 4",
            0x0D: "contact, I2C", 0x0E: "contact, extended I2C", 0x0F: "contact, 2WBP", 0x10: "contact, 3WBP",
            0x11: "FeliCa",
        ]
        return names[rawValue] ?? "standard \([rawValue].hex)"
    }
}

extension ATR.StorageCardName: CustomStringConvertible {
    public var description: String {
        if let name = Self.names[rawValue] { return name }
        return rawValue >> 8 == 0xFF ? "card with SAK \([UInt8(truncatingIfNeeded: rawValue)].hex)" : "card \(number)"
    }

    private var number: String {
        [UInt8(truncatingIfNeeded: rawValue >> 8), UInt8(truncatingIfNeeded: rawValue)].hex
    }

    /// PC/SC part 3 supplement; the F0xx names are the ACR122U's (ACS API v2.04, 3.1.1).
    private static let names: [UInt16: String] = [
        0x0000: "card name not given", 0x0001: "MIFARE Classic 1K", 0x0002: "MIFARE Classic 4K",
        0x0003: "MIFARE Ultralight or NTAG",
        0x0004: "SLE55R", 0x0006: "SR176", 0x0007: "SRI X4K", 0x0008: "AT88RF020",
        0x0009: "AT88SC0204CRF", 0x000A: "AT88SC0808CRF", 0x000B: "AT88SC1616CRF", 0x000C: "AT88SC3216CRF",
        0x000D: "AT88SC6416CRF", 0x000E: "SRF55V10P", 0x000F: "SRF55V02P", 0x0010: "SRF55V10S", 0x0011: "SRF55V02S",
        0x0012: "TAG_IT", 0x0013: "LRI512", 0x0014: "ICODE SLI", 0x0015: "TEMPSENS", 0x0016: "ICODE1",
        0x0017: "PicoPass 2K", 0x0018: "PicoPass 2KS", 0x0019: "PicoPass 16K", 0x001A: "PicoPass 16Ks",
        0x001B: "PicoPass 16K(8x2)", 0x001C: "PicoPass 16KS(8x2)", 0x001D: "PicoPass 32KS(16+16)",
        0x001E: "PicoPass 32KS(16+8x2)", 0x001F: "PicoPass 32KS(8x2+16)", 0x0020: "PicoPass 32KS(8x2+8x2)",
        0x0021: "LRI64", 0x0022: "ICODE UID", 0x0023: "ICODE EPC", 0x0024: "LRI12", 0x0025: "LRI128",
        0x0026: "MIFARE Mini", 0x0027: "my-d move (SLE 66R01P)", 0x0028: "my-d NFC (SLE 66RxxP)",
        0x0029: "my-d proximity 2 (SLE 66RxxS)", 0x002A: "my-d proximity enhanced (SLE 55RxxE)",
        0x002B: "my-d light (SRF 55V01P)", 0x002C: "PJM Stack Tag", 0x002D: "PJM Item Tag", 0x002E: "PJM Light",
        0x002F: "Jewel Tag", 0x0030: "Topaz NFC Tag", 0x0031: "AT88SC0104CRF", 0x0032: "AT88SC0404CRF",
        0x0033: "AT88RF01C", 0x0034: "AT88RF04C", 0x0035: "ICODE SL2",
        0x0036: "MIFARE Plus SL1 2K", 0x0037: "MIFARE Plus SL1 4K", 0x0038: "MIFARE Plus SL2 2K",
        0x0039: "MIFARE Plus SL2 4K", 0x003A: "MIFARE Ultralight C", 0x003B: "FeliCa",
        0x003C: "Melexis Sensor Tag (MLX90129)",
        0x003D: "MIFARE Ultralight EV1",
        0xF004: "Topaz or Jewel", 0xF011: "FeliCa 212 kbit/s", 0xF012: "FeliCa 424 kbit/s",
    ]
}

/// An answer to select (ISO/IEC 14443-4, 5.2).
public struct ATS: Hashable, Sendable {
    /// The bytes as received, beginning with the length byte TL.
    public let bytes: [UInt8]
    /// TA(1), the bit rates of both directions; nil if absent.
    public let ta: UInt8?
    /// TB(1), frame waiting time and start-up frame guard time; nil if absent.
    public let tb: UInt8?
    /// TC(1): support of NAD (bit 1) and CID (bit 2); nil if absent.
    public let tc: UInt8?
    public let historicalBytes: [UInt8]

    /// - Returns: nil if TL is not the number of bytes, or bytes that T0 announces are missing.
    public init?(_ bytes: some Collection<UInt8>) {
        let b = Array(bytes)
        guard let tl = b.first, Int(tl) == b.count else { return nil }
        self.bytes = b
        var rest = b.dropFirst()
        let t0 = rest.popFirst() ?? 0x00
        formatByte = b.count > 1 ? t0 : nil
        var complete = true
        func take(_ bit: UInt8) -> UInt8? {
            guard t0 & bit != 0 else { return nil }
            guard let byte = rest.popFirst() else {
                complete = false
                return nil
            }
            return byte
        }
        ta = take(0x10)
        tb = take(0x20)
        tc = take(0x40)
        historicalBytes = Array(rest)
        guard complete else { return nil }
    }

    /// T0; nil in an ATS that consists of the length byte alone.
    public let formatByte: UInt8?

    /// FSC, the longest frame that the card accepts, in bytes with the checksum; 32 if the ATS does not say (ISO/IEC
    /// 14443-4, 5.2.3).
    public var maximumFrameSize: Int {
        let sizes = [16, 24, 32, 40, 48, 64, 96, 128, 256, 512, 1024, 2048, 4096]
        return sizes[min(formatByte.map { Int($0 & 0x0F) } ?? 2, sizes.count - 1)]
    }

    /// FWT, the longest time until the card's answer begins, in microseconds (ISO/IEC 14443-4, 5.2.5 and 7.2).
    public var frameWaitingTimeMicroseconds: Double {
        // The value 15 is reserved; 4 replaces it, and is the default for an absent byte.
        let fwi = tb.map { $0 >> 4 }.flatMap { $0 == 15 ? nil : $0 } ?? 4
        return 256 * 16 / 13.56 * Double(1 << UInt32(fwi))
    }

    /// Parses an ATS that an ACR122U put in the place of the historical bytes of PC/SC.  TL then counts all bytes, or
    /// more if they exceed the 15 bytes that an ATR can carry.
    init?(passedOnAsHistoricalBytes h: [UInt8]) {
        guard h.count >= 2, let tl = h.first, Int(tl) == h.count || Int(tl) > 15 && h.count == 15 && tl <= 0x20 else {
            return nil
        }
        guard let ats = ATS([UInt8(h.count)] + h.dropFirst()) else { return nil }
        // T0 bit 8 is zero and FSCI at most 12.  Otherwise TL is a historical byte that happens to match.
        guard let t0 = ats.formatByte, t0 & 0x80 == 0, t0 & 0x0F <= 12 else { return nil }
        self.init(bytes: h, like: ats)
    }

    private init(bytes: [UInt8], like other: ATS) {
        self.bytes = bytes
        (formatByte, ta, tb, tc) = (other.formatByte, other.ta, other.tb, other.tc)
        historicalBytes = other.historicalBytes
    }
}
