/// What the card wants of the reader: tag 9F6C, 2 bytes (EMV Contactless Book C-3, Annex A).
public struct CardTransactionQualifiers: OptionSet, Hashable, Sendable {
    /// The two bytes, the first one most significant.
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    public static let onlinePINRequired = Self(rawValue: 0x8000)
    public static let signatureRequired = Self(rawValue: 0x4000)
    public static let goOnlineIfOfflineDataAuthenticationFails = Self(rawValue: 0x2000)
    public static let switchInterfaceIfOfflineDataAuthenticationFails = Self(rawValue: 0x1000)
    public static let goOnlineIfApplicationExpired = Self(rawValue: 0x0800)
    public static let switchInterfaceForCash = Self(rawValue: 0x0400)
    public static let switchInterfaceForCashback = Self(rawValue: 0x0200)
    public static let notValidForContactlessATM = Self(rawValue: 0x0100)
    public static let consumerDeviceCVMPerformed = Self(rawValue: 0x0080)
    public static let issuerUpdateProcessingSupported = Self(rawValue: 0x0040)

    /// - Returns: nil unless there are 2 bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 2 else { return nil }
        rawValue = bytes.reduce(0) { $0 << 8 | UInt16($1) }
    }

    public var bytes: [UInt8] { [UInt8(truncatingIfNeeded: rawValue >> 8), UInt8(truncatingIfNeeded: rawValue)] }
}
