/// The two status bytes SW1 SW2 that end a response APDU (ISO/IEC 7816-4, 5.1.3).
///
/// Any value is possible.  Families match as patterns:
///
///     switch response.status {
///     case .success: …
///     case .moreData: …                    // 61xx
///     case .counter: …                     // 63Cx
///     case 0x6A82: …
///     default: …
///     }
public struct StatusWord: RawRepresentable, Hashable, Sendable, ExpressibleByIntegerLiteral {
    /// SW1 in the high byte, SW2 in the low.
    public var rawValue: UInt16

    public init(rawValue: UInt16) { self.rawValue = rawValue }
    public init(integerLiteral value: UInt16) { rawValue = value }
    public init(_ sw1: UInt8, _ sw2: UInt8) { rawValue = UInt16(sw1) << 8 | UInt16(sw2) }

    public var sw1: UInt8 { UInt8(truncatingIfNeeded: rawValue >> 8) }
    public var sw2: UInt8 { UInt8(truncatingIfNeeded: rawValue) }

    /// 9000.
    public static let success: StatusWord = 0x9000
    public static let fileNotFound: StatusWord = 0x6A82
    public static let recordNotFound: StatusWord = 0x6A83
    public static let conditionsNotSatisfied: StatusWord = 0x6985

    /// A family of status words: those that match `value` in the bits of `mask`.
    public struct Family: Hashable, Sendable {
        public let value: UInt16
        public let mask: UInt16

        public init(_ value: UInt16, mask: UInt16) {
            self.value = value
            self.mask = mask
        }

        public func contains(_ status: StatusWord) -> Bool { status.rawValue & mask == value & mask }

        public static func ~= (family: Family, status: StatusWord) -> Bool { family.contains(status) }
    }

    /// The status's name in ISO/IEC 7816-4, tables 5 and 6; nil if the standard does not name it.
    public var name: String? {
        Self.names[rawValue] ?? Self.families.first { $0.family.contains(self) }?.name(self)
    }
}

extension StatusWord.Family {
    /// 61xx: SW2 response bytes wait for GET RESPONSE; 00 stands for 256 or more.
    public static let moreData = Self(0x6100, mask: 0xFF00)
    /// 62xx: a warning, non-volatile memory unchanged.
    public static let warning = Self(0x6200, mask: 0xFF00)
    /// 63xx: a warning, non-volatile memory may have changed.
    public static let warningChanged = Self(0x6300, mask: 0xFF00)
    /// 63Cx: a counter, `x` from 0 to 15, often tries left.
    public static let counter = Self(0x63C0, mask: 0xFFF0)
    /// 64xx: an execution error, non-volatile memory unchanged.
    public static let executionError = Self(0x6400, mask: 0xFF00)
    /// 65xx: an execution error, non-volatile memory may have changed.
    public static let executionErrorChanged = Self(0x6500, mask: 0xFF00)
    /// 6Cxx: Le was wrong; the right one is SW2, 00 standing for 256.
    public static let wrongLe = Self(0x6C00, mask: 0xFF00)
}

extension StatusWord: CustomStringConvertible {
    /// Four digits, and the standard's name if there is one: `6A82 file or application not found`.
    public var description: String {
        [sw1, sw2].hex + (name.map { " " + $0 } ?? "")
    }
}

extension StatusWord {
    private static let families: [(family: Family, name: @Sendable (StatusWord) -> String)] = [
        (.moreData, { "\($0.sw2 == 0 ? "256 or more" : "\($0.sw2)") response bytes available" }),
        (.counter, { "counter \($0.sw2 & 0x0F)" }),
        (.warning, { _ in "warning, memory unchanged" }),
        (.warningChanged, { _ in "warning, memory changed" }),
        (.executionError, { _ in "execution error, memory unchanged" }),
        (.executionErrorChanged, { _ in "execution error, memory changed" }),
        (Family(0x6600, mask: 0xFF00), { _ in "security-related issue" }),
        (.wrongLe, { "wrong Le, \($0.sw2 == 0 ? 256 : Int($0.sw2)) bytes available" }),
        (Family(0x6800, mask: 0xFF00), { _ in "function in CLA not supported" }),
        (Family(0x6900, mask: 0xFF00), { _ in "command not allowed" }),
        (Family(0x6A00, mask: 0xFF00), { _ in "wrong parameters P1-P2" }),
    ]

    /// ISO/IEC 7816-4:2020, tables 5 and 6.
    private static let names: [UInt16: String] = [
        0x9000: "normal processing",
        0x6281: "part of returned data may be corrupted",
        0x6282: "end of file or record reached before reading Ne bytes, or unsuccessful search",
        0x6283: "selected file deactivated",
        0x6284: "file or data control information not formatted",
        0x6285: "selected file in termination state",
        0x6286: "no input data available from a sensor",
        0x6287: "at least one referenced record is deactivated",
        0x6300: "no information given, memory changed",
        0x6340: "unsuccessful comparison",
        0x6381: "file filled up by the last write",
        0x6400: "execution error",
        0x6401: "immediate response required by the card",
        0x6500: "no information given, memory changed",
        0x6581: "memory failure",
        0x6700: "wrong length",
        0x6701: "command APDU format not compliant with this standard",
        0x6702: "the value of Lc is not the one expected",
        0x6800: "function in CLA not supported",
        0x6881: "logical channel not supported",
        0x6882: "secure messaging not supported",
        0x6883: "last command of the chain expected",
        0x6884: "command chaining not supported",
        0x6900: "command not allowed",
        0x6981: "command incompatible with file structure",
        0x6982: "security status not satisfied",
        0x6983: "authentication method blocked",
        0x6984: "reference data not usable",
        0x6985: "conditions of use not satisfied",
        0x6986: "command not allowed, no current EF",
        0x6987: "expected secure messaging data objects missing",
        0x6988: "incorrect secure messaging data objects",
        0x6A00: "wrong parameters P1-P2",
        0x6A80: "incorrect parameters in the command data field",
        0x6A81: "function not supported",
        0x6A82: "file or application not found",
        0x6A83: "record not found",
        0x6A84: "not enough memory space in the file",
        0x6A85: "Nc inconsistent with TLV structure",
        0x6A86: "incorrect parameters P1-P2",
        0x6A87: "Nc inconsistent with parameters P1-P2",
        0x6A88: "referenced data or reference data not found",
        0x6A89: "file already exists",
        0x6A8A: "DF name already exists",
        0x6B00: "wrong parameters P1-P2",
        0x6D00: "instruction code not supported or invalid",
        0x6E00: "class not supported",
        0x6F00: "no precise diagnosis",
    ]
}
