/// What the reader can do and wants of the card: tag 9F66, 4 bytes (EMV Contactless Book A, table 5-4; Book C-3,
/// Annex A).
public struct TerminalTransactionQualifiers: OptionSet, Hashable, Sendable {
    /// The four bytes, the first one most significant.
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    public static let magStripeMode = Self(rawValue: 0x8000_0000)
    public static let emvMode = Self(rawValue: 0x2000_0000)
    public static let emvContactChip = Self(rawValue: 0x1000_0000)
    public static let offlineOnlyReader = Self(rawValue: 0x0800_0000)
    public static let onlinePIN = Self(rawValue: 0x0400_0000)
    public static let signature = Self(rawValue: 0x0200_0000)
    public static let offlineDataAuthenticationForOnline = Self(rawValue: 0x0100_0000)
    public static let onlineCryptogramRequired = Self(rawValue: 0x0080_0000)
    public static let cvmRequired = Self(rawValue: 0x0040_0000)
    public static let contactChipOfflinePIN = Self(rawValue: 0x0020_0000)
    public static let issuerUpdateProcessing = Self(rawValue: 0x0000_8000)
    public static let consumerDeviceCVM = Self(rawValue: 0x0000_4000)

    /// - Returns: nil unless there are 4 bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 4 else { return nil }
        rawValue = bytes.reduce(0) { $0 << 8 | UInt32($1) }
    }

    public var bytes: [UInt8] { [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: rawValue >> $0) } }
}
