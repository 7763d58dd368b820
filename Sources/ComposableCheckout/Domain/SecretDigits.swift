import CardEncryption

/// Digits that a customer typed and nobody else may keep, such as an account number: on a page of their own, which is wiped
/// when they are cleared, replaced or released.
struct SecretDigits: ~Copyable {
    /// The maximum number of digits that are kept; more make the value invalid.
    static let maximumCount = 32

    private let storage = WipedStorage(count: Self.maximumCount)
    private(set) var count = 0
    /// True if something else than digits and separators was typed, or too many digits.
    private(set) var isMalformed = false

    /// The change that ``set(_:)`` made.
    enum Change {
        case none
        /// Digits were added at the end.
        case grown
        case replaced
    }

    /// Takes over the digits of a text, in any script, without separators.  The text itself is the caller's.
    mutating func set(_ text: String) -> Change {
        let bytes = storage.bytes
        var (new, isSame, isMalformed) = (0, true, false)
        for scalar in text.unicodeScalars {
            if let digit = scalar.decimalDigit {
                guard new < Self.maximumCount else {
                    isMalformed = true
                    break
                }
                let character = UInt8(ascii: "0") + digit
                if new < count, bytes[new] != character { isSame = false }
                bytes[new] = character
                new += 1
            } else if !scalar.isDigitSeparator {
                isMalformed = true
            }
        }
        for index in new..<max(new, count) { bytes[index] = 0 }
        defer { (count, self.isMalformed) = (new, isMalformed) }
        guard isSame, new >= count else { return .replaced }
        return new == count && isMalformed == self.isMalformed ? .none : .grown
    }

    /// Overwrites the digits.
    mutating func wipe() {
        for index in storage.bytes.indices { storage.bytes[index] = 0 }
        (count, isMalformed) = (0, false)
    }

    /// Lends the digits as ASCII characters; they must not be kept.
    borrowing func withDigits<Result, Failure: Error>(
        _ body: (Slice<UnsafeRawBufferPointer>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(storage.readOnly.prefix(count))
    }

    var isEmpty: Bool { count == 0 && !isMalformed }
}

extension Unicode.Scalar {
    /// The value of a decimal digit in any script, as Arabic-Indic and full-width ones.
    var decimalDigit: UInt8? {
        if isASCII { return ("0"..."9").contains(self) ? UInt8(value - 0x30) : nil }
        guard properties.numericType == .decimal, let value = properties.numericValue else { return nil }
        return UInt8(value)
    }

    /// True for characters that people and clipboards put between groups of digits: spaces, hyphens and dashes, and the
    /// invisible marks of bidirectional text.
    var isDigitSeparator: Bool {
        switch properties.generalCategory {
        case .spaceSeparator, .dashPunctuation, .format: true
        default: self == "\t" || self == "\n" || self == "\r" || self == "\u{2212}"
        }
    }
}
