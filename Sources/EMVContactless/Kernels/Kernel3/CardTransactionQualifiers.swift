/// What the card wants of the reader: tag 9F6C, 2 bytes (EMV Contactless Book C-3, Annex A).
public struct CardTransactionQualifiers: OptionSet, Hashable, Sendable {
    /// The two bytes, the first one most significant.
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// Byte 1 bit 8: the PIN is to be verified online (Book C-3, 5.7.1.2).
    public static let onlinePINRequired = Self(rawValue: 0x8000)
    /// Byte 1 bit 7: a signature is to be obtained (Book C-3, 5.7.1.2).
    public static let signatureRequired = Self(rawValue: 0x4000)
    /// Byte 1 bit 6: for a reader that can go online (Book C-3, 5.6).
    public static let goOnlineIfOfflineDataAuthenticationFails = Self(rawValue: 0x2000)
    /// Byte 1 bit 5: for a reader that has contacts (Book C-3, 5.6).
    public static let switchInterfaceIfOfflineDataAuthenticationFails = Self(rawValue: 0x1000)
    /// Byte 1 bit 4: for a reader that can go online (Book C-3, 5.5.1.1).
    public static let goOnlineIfApplicationExpired = Self(rawValue: 0x0800)
    /// Byte 1 bit 3: where the card may not be used for cash contactless (Book C-3, 5.5.1.3).
    public static let switchInterfaceForCash = Self(rawValue: 0x0400)
    /// Byte 1 bit 2: where the card may not be used for cashback contactless (Book C-3, 5.5.1.4).
    public static let switchInterfaceForCashback = Self(rawValue: 0x0200)
    /// Byte 1 bit 1: not at an ATM contactless (Book C-3, 5.5.1.5).
    public static let notValidForContactlessATM = Self(rawValue: 0x0100)
    /// Byte 2 bit 8: the device has verified the cardholder (Book C-3, 5.7.1.2).
    public static let consumerDeviceCVMPerformed = Self(rawValue: 0x0080)
    /// Byte 2 bit 7: the card takes what the issuer sends it (Book C-3, 5.8.1.2 and 6).
    public static let issuerUpdateProcessingSupported = Self(rawValue: 0x0040)

    /// - Returns: nil unless there are 2 bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 2 else { return nil }
        rawValue = bytes.reduce(0) { $0 << 8 | UInt16($1) }
    }

    /// The two bytes, as tag 9F6C has them.
    public var bytes: [UInt8] { [UInt8(truncatingIfNeeded: rawValue >> 8), UInt8(truncatingIfNeeded: rawValue)] }
}
