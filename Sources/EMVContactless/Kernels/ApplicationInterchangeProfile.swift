/// The Application Interchange Profile, tag 82: what the card's application supports (EMV Book 3, Annex C1; EMV
/// Contactless Book C-2, A.1.16; Book C-3, Annex A).
struct ApplicationInterchangeProfile: OptionSet, Hashable, Sendable {
    let rawValue: UInt16

    /// Static data authentication; for Kernel 3 only of transactions that go online.
    static let sda = Self(rawValue: 0x4000)
    static let dda = Self(rawValue: 0x2000)
    static let cardholderVerification = Self(rawValue: 0x1000)
    static let onDeviceVerification = Self(rawValue: 0x0200)
    static let cda = Self(rawValue: 0x0100)
    /// EMV mode for Kernel 2; mag-stripe mode (MSD) for Kernel 3.
    static let contactlessMode = Self(rawValue: 0x0080)
    static let relayResistance = Self(rawValue: 0x0001)

    init(rawValue: UInt16) { self.rawValue = rawValue }

    /// Reads two bytes; absent ones count as 00.
    init(_ bytes: [UInt8]) { rawValue = UInt16(bytes.first ?? 0) << 8 | UInt16(bytes.dropFirst().first ?? 0) }
}
