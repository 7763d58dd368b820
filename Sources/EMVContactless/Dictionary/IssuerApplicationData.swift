/// The Issuer Application Data, tag 9F10: the application's data for its issuer, sent with a cryptogram.
///
/// Only public layouts are parsed: Common Core Definitions (EMV Book 3, Annex C9), Visa's formats 0 to 4 and M/Chip.
/// All others are ``Layout/unknown``.
public struct IssuerApplicationData: Hashable, Sendable {
    public enum Layout: String, Hashable, Sendable, CaseIterable {
        case commonCore = "CCD"
        /// Visa formats 0, 1 and 3: cryptogram versions such as 10 (`0A`), 17 (`11`) and 18 (`12`).
        case visaShort = "Visa format 0/1/3"
        /// Visa formats 2 and 4: cryptogram versions such as `22` and `43`.
        case visaLong = "Visa format 2/4"
        case mchip4 = "M/Chip 4"
        case mchipAdvance = "M/Chip Advance"
        case unknown
    }

    public let bytes: [UInt8]
    public let layout: Layout

    /// Parses Issuer Application Data.
    ///
    /// - Parameters:
    ///   - bytes: the value of tag 9F10.
    ///   - scope: the scheme of the application; for ``DataElement/Scope/common`` the bytes alone determine the layout.
    public init(_ bytes: some Collection<UInt8>, scope: DataElement.Scope = .common) {
        self.bytes = Array(bytes)
        layout = Self.layout(self.bytes, scope)
    }

    private static func layout(_ bytes: [UInt8], _ scope: DataElement.Scope) -> Layout {
        guard let first = bytes.first else { return .unknown }
        if bytes.count == 32, first == 0x0F, bytes[16] == 0x0F, bytes[1] & 0xF0 == 0xA0 { return .commonCore }
        if scope == .visa || scope == .common {
            if bytes.count >= 7, first == 0x06, bytes[3] == 0x03, [0x0, 0x1, 0x3].contains(bytes[2] >> 4) {
                return .visaShort
            }
            if bytes.count == 32, first == 0x1F, [0x2, 0x4].contains(bytes[1] >> 4) { return .visaLong }
        }
        if scope == .mastercard || scope == .common, bytes.count > 1, bytes[1] & 0xF0 == 0x10 {
            switch bytes.count {
            case 18: return .mchip4
            case 20, 26, 28: return .mchipAdvance
            default: break
            }
        }
        return .unknown
    }

    /// The cryptogram version; nil in an unknown layout.
    public var cryptogramVersion: UInt8? {
        switch layout {
        case .commonCore, .visaLong, .mchip4, .mchipAdvance: bytes[1]
        case .visaShort: bytes[2]
        case .unknown: nil
        }
    }

    /// The derivation key index, which selects the issuer's key; nil in an unknown layout.
    public var derivationKeyIndex: UInt8? {
        switch layout {
        case .commonCore, .visaLong: bytes[2]
        case .visaShort: bytes[1]
        case .mchip4, .mchipAdvance: bytes[0]
        case .unknown: nil
        }
    }

    /// The card verification results; empty in an unknown layout.
    public var cardVerificationResults: ArraySlice<UInt8> {
        switch layout {
        case .commonCore, .visaLong: bytes[3..<8]
        case .visaShort: bytes[4..<7]
        case .mchip4, .mchipAdvance: bytes[2..<8]
        case .unknown: []
        }
    }

    var bitMeanings: [BitMeaning] {
        let table: BitTable
        switch layout {
        case .commonCore: table = .iadCommonCore
        case .visaShort: table = .iadVisaShort
        case .visaLong: table = .iadVisaLong
        case .mchip4, .mchipAdvance: table = .iadMChip
        case .unknown:
            return bytes.count > 32 ? [BitMeaning("\(bytes.count) bytes instead of 0 to 32", kind: .malformed)] : []
        }
        return [BitMeaning("layout: \(layout.rawValue)")] + table.decode(bytes)
    }
}
