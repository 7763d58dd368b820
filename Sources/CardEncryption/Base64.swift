/// Strict Base64 (RFC 4648): only the alphabet, padding as the variant requires, no leftover bits.
enum Base64 {
    /// Section 4, with padding.
    case standard
    /// Section 5, without padding, as in RFC 7515, section 2.
    case url

    /// The position of an error in the text, in bytes from its start.
    struct Fault: Error, Hashable {
        let offset: Int
    }

    private static let standardAlphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let urlAlphabet = Array(standardAlphabet.prefix(62) + "-_".utf8)

    private var alphabet: [UInt8] { self == .url ? Self.urlAlphabet : Self.standardAlphabet }

    func encode(_ bytes: some Collection<UInt8>) -> String {
        let alphabet = alphabet
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        var (buffer, bits) = (0, 0)
        for byte in bytes {
            buffer = (buffer << 8 | Int(byte)) & 0xFFFF
            bits += 8
            while bits >= 6 {
                bits -= 6
                text.append(alphabet[buffer >> bits & 0x3F])
            }
        }
        if bits > 0 { text.append(alphabet[buffer << (6 - bits) & 0x3F]) }
        while self == .standard, !text.count.isMultiple(of: 4) { text.append(UInt8(ascii: "=")) }
        return String(decoding: text, as: UTF8.self)
    }

    func decode(_ text: some Collection<UInt8>) throws(Fault) -> [UInt8] {
        var values = [UInt8](repeating: 0xFF, count: 256)
        for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
        var text = Array(text)
        if self == .standard {
            guard text.count.isMultiple(of: 4) else { throw Fault(offset: text.count) }
            for _ in 0..<2 where text.last == UInt8(ascii: "=") { text.removeLast() }
        }
        guard text.count % 4 != 1 else { throw Fault(offset: text.count) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count * 3 / 4)
        var (buffer, bits) = (0, 0)
        for (offset, character) in text.enumerated() {
            let value = values[Int(character)]
            guard value != 0xFF else { throw Fault(offset: offset) }
            buffer = (buffer << 6 | Int(value)) & 0xFFFF
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: buffer >> bits))
            }
        }
        // Unused bits are zero, so that no two texts decode to the same bytes.
        guard buffer & (1 << bits - 1) == 0 else { throw Fault(offset: text.count - 1) }
        return bytes
    }
}
