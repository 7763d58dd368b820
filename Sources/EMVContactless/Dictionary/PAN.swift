import SmartCard

/// A primary account number (ISO/IEC 7812-1): 8 to 19 digits.
///
/// It prints as ``masked`` only, also in a debugger, a dump or a failed expectation.  Whoever
/// needs the whole number asks for ``digits``.
public struct PAN: Hashable, Sendable {
    /// In ASCII.  A short string would be kept in place, and left behind on the stack; an array is wiped where the heap is.
    package let ascii: [UInt8]

    /// The number in the clear.
    public var digits: String { String(decoding: ascii, as: UTF8.self) }

    /// - Returns: nil unless there are 8 to 19 decimal digits and nothing else.
    public init?(digits: some StringProtocol) { self.init(ascii: digits.utf8) }

    init?(ascii digits: some Collection<UInt8>) {
        guard (8...19).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        ascii = Array(digits)
    }

    /// Reads format cn, as in tag 5A: two digits a byte, filled with trailing `F`.
    public init?(packed bytes: some Collection<UInt8>) {
        let hex = bytes.hex.utf8
        let end = hex.firstIndex(of: UInt8(ascii: "F")) ?? hex.endIndex
        guard hex[end...].allSatisfy({ $0 == UInt8(ascii: "F") }) else { return nil }
        self.init(ascii: hex[..<end])
    }

    /// Whether the last digit is the check digit of the others (ISO/IEC 7812-1, Annex B).
    public var isLuhnValid: Bool { SensitiveData.checks(ascii.map { $0 - 0x30 }) }

    /// The first six and last four digits with `*` between: `476173******0010`; the last four where there are less than 13
    /// digits: `********0101`.
    public var masked: String { SensitiveData.truncated(ascii) }
}

extension PAN: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { masked }
    public var debugDescription: String { masked }
    public var customMirror: Mirror { Mirror(self, children: ["masked": masked]) }
}
