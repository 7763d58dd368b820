/// The Card Transaction Qualifiers (CTQ), tag 9F6C, 2 bytes: the card's requirements for the reader (EMV Contactless
/// Book C-3, Annex A).
public struct CardTransactionQualifiers: OptionSet, Hashable, Sendable {
    /// The two bytes, most significant first.
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// Byte 1 bit 8: online PIN verification is required (Book C-3, 5.7.1.2).
    public static let onlinePINRequired = Self(rawValue: 0x8000)
    /// Byte 1 bit 7: a signature is required (Book C-3, 5.7.1.2).
    public static let signatureRequired = Self(rawValue: 0x4000)
    /// Byte 1 bit 6: for a reader that can go online (Book C-3, 5.6).
    public static let goOnlineIfOfflineDataAuthenticationFails = Self(rawValue: 0x2000)
    /// Byte 1 bit 5: for a reader that has a contact interface (Book C-3, 5.6).
    public static let switchInterfaceIfOfflineDataAuthenticationFails = Self(rawValue: 0x1000)
    /// Byte 1 bit 4: for a reader that can go online (Book C-3, 5.5.1.1).
    public static let goOnlineIfApplicationExpired = Self(rawValue: 0x0800)
    /// Byte 1 bit 3: for a card that does not permit contactless cash (Book C-3, 5.5.1.3).
    public static let switchInterfaceForCash = Self(rawValue: 0x0400)
    /// Byte 1 bit 2: for a card that does not permit contactless cashback (Book C-3, 5.5.1.4).
    public static let switchInterfaceForCashback = Self(rawValue: 0x0200)
    /// Byte 1 bit 1: contactless use at an ATM is not permitted (Book C-3, 5.5.1.5).
    public static let notValidForContactlessATM = Self(rawValue: 0x0100)
    /// Byte 2 bit 8: the device has verified the cardholder (Book C-3, 5.7.1.2).
    public static let consumerDeviceCVMPerformed = Self(rawValue: 0x0080)
    /// Byte 2 bit 7: the card accepts the issuer's data (Book C-3, 5.8.1.2 and 6).
    public static let issuerUpdateProcessingSupported = Self(rawValue: 0x0040)

    /// Parses the CTQ.
    ///
    /// - Returns: nil unless there are 2 bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 2 else { return nil }
        rawValue = bytes.reduce(0) { $0 << 8 | UInt16($1) }
    }

    /// The two bytes of tag 9F6C.
    public var bytes: [UInt8] { [UInt8(truncatingIfNeeded: rawValue >> 8), UInt8(truncatingIfNeeded: rawValue)] }
}
