extension Collection where Element == UInt8 {
    /// The bytes as upper-case hexadecimal digits without separators: `00A40400`.
    public var hex: String { hex(separator: "") }

    /// The bytes as upper-case hexadecimal digits with `separator` between bytes: `00 A4 04 00`.
    public func hex(separator: String) -> String {
        // Iterating a collection of unknown type would allocate for each element.
        withContiguousStorageIfAvailable { hexText($0, separator) }
            ?? Array(self).withUnsafeBufferPointer { hexText($0, separator) }
    }
}

private func hexText(_ bytes: UnsafeBufferPointer<UInt8>, _ separator: String) -> String {
    String(unsafeUninitializedCapacity: bytes.count * (2 + separator.utf8.count)) { text in
        var end = 0
        for byte in bytes {
            if end > 0 {
                for character in separator.utf8 {
                    text[end] = character
                    end += 1
                }
            }
            text[end] = hexDigit(byte >> 4)
            text[end + 1] = hexDigit(byte & 0x0F)
            end += 2
        }
        return end
    }
}

private func hexDigit(_ nibble: UInt8) -> UInt8 { nibble < 10 ? 0x30 + nibble : 0x37 + nibble }

/// Text that is not hexadecimal.
public struct HexError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The position in the text, in UTF-8 bytes from zero.
    public let offset: Int
    /// The fault at that position.
    public let description: String
}

extension Array where Element == UInt8 {
    /// Parses hexadecimal digits of either case.  White space, `:` and `-` may separate bytes, but not the digits of a
    /// byte.
    ///
    /// - Throws: ``HexError`` with the offset of the first character that does not fit.
    public init(hex text: some StringProtocol) throws(HexError) {
        self.init()
        reserveCapacity(text.utf8.count / 2)
        var high: UInt8?
        var offset = 0
        for character in text.utf8 {
            let digit: UInt8
            switch character {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = character - UInt8(ascii: "0")
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = character - UInt8(ascii: "A") + 10
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = character - UInt8(ascii: "a") + 10
            case 0x20, 0x09, 0x0A, 0x0D, UInt8(ascii: ":"), UInt8(ascii: "-"):
                guard high == nil else {
                    throw HexError(offset: offset, description: "half a byte at offset \(offset - 1)")
                }
                offset += 1
                continue
            default:
                throw HexError(offset: offset, description: "not a hexadecimal digit at offset \(offset)")
            }
            if let first = high {
                append(first << 4 | digit)
                high = nil
            } else {
                high = digit
            }
            offset += 1
        }
        guard high == nil else {
            throw HexError(offset: offset, description: "an odd number of hexadecimal digits")
        }
    }
}
