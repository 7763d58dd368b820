/// Mastercard's Third Party Data, tag 9F6E (EMV Contactless Book C-2, A.1.171): country, unique identifier, device type,
/// proprietary data.
struct ThirdPartyData {
    let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Byte 3, the first of the unique identifier.
    private struct UniqueIdentifier: OptionSet {
        let rawValue: UInt8
        static let withoutDeviceType = Self(rawValue: 0x80)
    }

    /// Bytes 5 and 6; nil if the data has no device type.
    var deviceType: [UInt8]? {
        guard bytes.count >= 6, !UniqueIdentifier(rawValue: bytes[2]).contains(.withoutDeviceType) else { return nil }
        return Array(bytes[4..<6])
    }

    /// True for a device other than a card, which is type 00 in digits.
    var isDevice: Bool { deviceType.map { $0 != Array("00".utf8) } ?? false }
}
