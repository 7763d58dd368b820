/// The application usage control, tag 9F07, 2 bytes: the permitted uses of a card, and where (EMV Book 3, Annex C2).
public struct ApplicationUsageControl: OptionSet, Hashable, Sendable {
    /// The two bytes, most significant first.
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// Byte 1 bit 8: cash in the issuer's country.
    public static let domesticCash = Self(rawValue: 0x8000)
    /// Byte 1 bit 7: cash abroad.
    public static let internationalCash = Self(rawValue: 0x4000)
    /// Byte 1 bit 6: goods in the issuer's country.
    public static let domesticGoods = Self(rawValue: 0x2000)
    /// Byte 1 bit 5: goods abroad.
    public static let internationalGoods = Self(rawValue: 0x1000)
    /// Byte 1 bit 4: services in the issuer's country.
    public static let domesticServices = Self(rawValue: 0x0800)
    /// Byte 1 bit 3: services abroad.
    public static let internationalServices = Self(rawValue: 0x0400)
    /// Byte 1 bit 2.
    public static let atms = Self(rawValue: 0x0200)
    /// Byte 1 bit 1.
    public static let terminalsOtherThanATMs = Self(rawValue: 0x0100)
    /// Byte 2 bit 8: cashback in the issuer's country.
    public static let domesticCashback = Self(rawValue: 0x0080)
    /// Byte 2 bit 7: cashback abroad.
    public static let internationalCashback = Self(rawValue: 0x0040)

    /// Parses the application usage control.
    ///
    /// - Returns: nil unless there are 2 bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 2 else { return nil }
        rawValue = bytes.reduce(0) { $0 << 8 | UInt16($1) }
    }

    /// The two bytes of tag 9F07.
    public var bytes: [UInt8] { [UInt8(truncatingIfNeeded: rawValue >> 8), UInt8(truncatingIfNeeded: rawValue)] }
}

/// EMV Book 3, 10.4.2, table 36.
extension ApplicationUsageControl {
    func allowsCash(isDomestic: Bool) -> Bool { contains(isDomestic ? .domesticCash : .internationalCash) }

    func allowsCashback(isDomestic: Bool) -> Bool { contains(isDomestic ? .domesticCashback : .internationalCashback) }

    /// Returns true for goods or services: the transaction type does not distinguish them.
    func allowsPurchases(isDomestic: Bool) -> Bool {
        !isDisjoint(
            with: isDomestic ? [.domesticGoods, .domesticServices] : [.internationalGoods, .internationalServices])
    }
}
