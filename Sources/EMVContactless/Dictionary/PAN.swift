import SmartCard

/// A primary account number (ISO/IEC 7812-1): 8 to 19 digits.
///
/// It prints as ``masked`` only, even in a debugger, a dump or a failed expectation.  ``digits`` returns the full
/// number.
public struct PAN: Hashable, Sendable {
    /// The digits in ASCII.  A short string would be stored inline, and leave copies on the stack; an array is wiped
    /// with the heap.
    package let ascii: [UInt8]

    /// The number in the clear.
    public var digits: String { String(decoding: ascii, as: UTF8.self) }

    /// Creates a number from digits.
    ///
    /// - Returns: nil unless there are 8 to 19 decimal digits and nothing else.
    public init?(digits: some StringProtocol) { self.init(ascii: digits.utf8) }

    init?(ascii digits: some Collection<UInt8>) {
        guard (8...19).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        ascii = Array(digits)
    }

    /// Parses format cn, as in tag 5A: two digits per byte, padded with trailing `F`.
    public init?(packed bytes: some Collection<UInt8>) {
        let hex = bytes.hex.utf8
        let end = hex.firstIndex(of: UInt8(ascii: "F")) ?? hex.endIndex
        guard hex[end...].allSatisfy({ $0 == UInt8(ascii: "F") }) else { return nil }
        self.init(ascii: hex[..<end])
    }

    /// True if the last digit is the check digit of the others (ISO/IEC 7812-1, Annex B).
    public var isLuhnValid: Bool { SensitiveData.checks(ascii.map { $0 - 0x30 }) }

    /// The number with the first six and last four digits, and `*` between: `476173******0010`.  With fewer than 13
    /// digits, the last four alone: `********0101`.
    public var masked: String { SensitiveData.truncated(ascii) }
}

extension PAN: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { masked }
    public var debugDescription: String { masked }
    public var customMirror: Mirror { Mirror(self, children: ["masked": masked]) }
}
