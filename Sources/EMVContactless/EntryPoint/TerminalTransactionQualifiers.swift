/// The Terminal Transaction Qualifiers (TTQ), tag 9F66, 4 bytes: the reader's abilities and requirements (EMV
/// Contactless Book A, table 5-4; Book C-3, Annex A).
public struct TerminalTransactionQualifiers: OptionSet, Hashable, Sendable {
    /// The four bytes, most significant first.
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Byte 1 bit 8: the reader supports mag-stripe mode (MSD).
    public static let magStripeMode = Self(rawValue: 0x8000_0000)
    /// Byte 1 bit 6: the reader supports EMV mode.
    public static let emvMode = Self(rawValue: 0x2000_0000)
    /// Byte 1 bit 5: the terminal accepts contact chip cards.
    public static let emvContactChip = Self(rawValue: 0x1000_0000)
    /// Byte 1 bit 4: the reader never goes online.
    public static let offlineOnlyReader = Self(rawValue: 0x0800_0000)
    /// Byte 1 bit 3: a PIN can be verified online (Book C-3, 5.7).
    public static let onlinePIN = Self(rawValue: 0x0400_0000)
    /// Byte 1 bit 2: a signature can be obtained (Book C-3, 5.7).
    public static let signature = Self(rawValue: 0x0200_0000)
    /// Byte 1 bit 1: the reader requires offline data authentication also for transactions that go online (Book C-3,
    /// 5.6.1.1).
    public static let offlineDataAuthenticationForOnline = Self(rawValue: 0x0100_0000)
    /// Byte 2 bit 8: the transaction must go online (Book B, 3.1.1.2 and 3.1.1.9 to 3.1.1.11).
    public static let onlineCryptogramRequired = Self(rawValue: 0x0080_0000)
    /// Byte 2 bit 7: the cardholder must be verified (Book B, 3.1.1.2 and 3.1.1.12).
    public static let cvmRequired = Self(rawValue: 0x0040_0000)
    /// Byte 2 bit 6: a contact chip card can verify a PIN.
    public static let contactChipOfflinePIN = Self(rawValue: 0x0020_0000)
    /// Byte 3 bit 8: the card may be presented again to receive the issuer's data (Book C-3, 5.8.1.2 and 6).
    public static let issuerUpdateProcessing = Self(rawValue: 0x0000_8000)
    /// Byte 3 bit 7: the reader relies on a consumer device that verifies the cardholder (Book C-3, 5.7).
    public static let consumerDeviceCVM = Self(rawValue: 0x0000_4000)

    /// Parses the TTQ.
    ///
    /// - Returns: nil unless there are 4 bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 4 else { return nil }
        rawValue = bytes.reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// The four bytes of tag 9F66.
    public var bytes: [UInt8] { [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: rawValue >> $0) } }
}
