/// A stretch of text in base64 (RFC 4648, 4 and 5), as it may have been cut out of a longer one: at its first four
/// characters a byte may begin.
struct Base64Text {
    /// Shorter ones hold no account number: of 13 digits, 7 bytes.
    private static let minimumCount = 10

    private let characters: Range<Int>
    private var sextets: [UInt8]
    private let isForURLs: Bool

    /// All those in `bytes`.
    static func all(in bytes: [UInt8]) -> [Base64Text] {
        var all: [Base64Text] = []
        var start = 0
        while let first = bytes[start...].firstIndex(where: { sextet($0) != nil }) {
            let end = bytes[first...].firstIndex { sextet($0) == nil } ?? bytes.endIndex
            start = end
            guard end - first >= minimumCount else { continue }
            for first in first..<first + 4 { all.append(Base64Text(bytes, first..<end)) }
        }
        return all
    }

    private init(_ bytes: [UInt8], _ characters: Range<Int>) {
        self.characters = characters
        sextets = bytes[characters].map { Self.sextet($0) ?? 0 }
        isForURLs = bytes[characters].contains { $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") }
    }

    /// The decoded bytes.  Bits that do not fill a byte are left.
    var decoded: [UInt8] {
        get {
            (0..<sextets.count * 6 / 8).map { index in
                let (first, shift) = (index * 8 / 6, UInt8(index % 3 * 2))
                return sextets[first] << (2 + shift) | sextets[first + 1] >> (4 - shift)
            }
        }
        set {
            for (index, byte) in newValue.enumerated() {
                let (first, shift) = (index * 8 / 6, UInt8(index % 3 * 2))
                sextets[first] = sextets[first] & ~(0x3F >> shift) | byte >> (2 + shift)
                sextets[first + 1] =
                    sextets[first + 1] & (0x0F >> shift) | (byte << (4 - shift)) & 0x3F & ~(0x0F >> shift)
            }
        }
    }

    /// Reads the text from `bytes`, in which only characters of base64 have changed.
    mutating func read(_ bytes: [UInt8]) { sextets = bytes[characters].map { Self.sextet($0) ?? 0 } }

    func put(into bytes: inout [UInt8]) {
        for (place, sextet) in zip(characters, sextets) { bytes[place] = character(sextet) }
    }

    private static func sextet(_ character: UInt8) -> UInt8? {
        switch character {
        case 0x41...0x5A: character - 0x41
        case 0x61...0x7A: character - 0x61 + 26
        case 0x30...0x39: character - 0x30 + 52
        case UInt8(ascii: "+"), UInt8(ascii: "-"): 62
        case UInt8(ascii: "/"), UInt8(ascii: "_"): 63
        default: nil
        }
    }

    private func character(_ sextet: UInt8) -> UInt8 {
        switch sextet {
        case 0..<26: 0x41 + sextet
        case 26..<52: 0x61 + sextet - 26
        case 52..<62: 0x30 + sextet - 52
        case 62: UInt8(ascii: isForURLs ? "-" : "+")
        default: UInt8(ascii: isForURLs ? "_" : "/")
        }
    }
}
