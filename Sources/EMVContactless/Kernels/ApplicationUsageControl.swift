/// What a card may be used for, and where: tag 9F07, 2 bytes (EMV Book 3, Annex C2).
public struct ApplicationUsageControl: OptionSet, Hashable, Sendable {
    /// The two bytes, the first one most significant.
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    public static let domesticCash = Self(rawValue: 0x8000)
    public static let internationalCash = Self(rawValue: 0x4000)
    public static let domesticGoods = Self(rawValue: 0x2000)
    public static let internationalGoods = Self(rawValue: 0x1000)
    public static let domesticServices = Self(rawValue: 0x0800)
    public static let internationalServices = Self(rawValue: 0x0400)
    public static let atms = Self(rawValue: 0x0200)
    public static let terminalsOtherThanATMs = Self(rawValue: 0x0100)
    public static let domesticCashback = Self(rawValue: 0x0080)
    public static let internationalCashback = Self(rawValue: 0x0040)

    /// - Returns: nil unless there are 2 bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 2 else { return nil }
        rawValue = bytes.reduce(0) { $0 << 8 | UInt16($1) }
    }
}
