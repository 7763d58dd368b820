import Foundation
import SmartCardTrace
import Testing

/// Ways to write a number into a trace, made apart from redaction: a layout is drawn once, and any digits are put into it.
/// What redaction leaves must be the layout with the digits of the replacement.
enum NumberCarrier: String, CaseIterable, CustomTestStringConvertible {
    // In bytes.
    case packed, packedFromHalfAByte, swapped, unpacked, zoned, ascii, utf16, utf16BigEndian, utf32, hexText,
        hexTextOfHexText
    case everyFewBytes
    // In text.
    case plain, byComma, bySlash, bySpaces, byNoBreakSpace, byPercent, byTab, byWords, byThinSpace, byEntity
    case hexPairs, hexList, hexListOfCharacters, hexEscapes, hexDump, percentEncoded, unicodeEscapes, fullWidth, arabic
    case persian, zonedHexText, unpackedHexText, groupedHexText, utf16Text

    var testDescription: String { rawValue }

    /// True for what stands in a note, false for what stands in data objects.
    var isText: Bool {
        switch self {
        case .packed, .packedFromHalfAByte, .swapped, .unpacked, .zoned, .ascii, .utf16, .utf16BigEndian, .utf32,
            .hexText,
            .hexTextOfHexText, .everyFewBytes:
            false
        default: true
        }
    }

    /// Puts digits into a layout.
    typealias Layout = (_ digits: [Int]) -> [UInt8]

    /// A layout for `count` digits.
    func layout(_ count: Int, _ dice: inout some RandomNumberGenerator) -> Layout {
        let isOdd = count % 2 == 1
        /// Digits that are no neighbors' and letters that are no hexadecimal digits.
        func letters() -> [UInt8] {
            let all = Array("ghklmnqrtvwy".utf8)
            return (0..<Int.random(in: 0...9, using: &dice)).map { _ in all[Int.random(in: 0..<all.count, using: &dice)]
            }
        }
        let (before, behind) = isText ? (letters() + [0x3C], [0x3E] + letters()) : ([0xEE], [0xEE])
        func each(_ separator: [UInt8] = [], _ code: @escaping (Int) -> [UInt8]) -> Layout {
            { digits in
                before + digits.enumerated().flatMap { ($0.offset > 0 ? separator : []) + code($0.element) } + behind
            }
        }
        /// In groups as on a card or of any length, the separator not always there.
        func grouped(_ separators: [String], _ code: @escaping (Int) -> [UInt8] = { [0x30 + UInt8($0)] }) -> Layout {
            let size = Int.random(in: 3...6, using: &dice)
            let chosen = (0..<count).map { place in
                place > 0 && place % size == 0 ? Array((separators.randomElement(using: &dice) ?? "").utf8) : []
            }
            return { digits in before + zip(chosen, digits).flatMap { $0 + code($1) } + behind }
        }
        /// Two digits at a time, filled up with F.
        func pairs(_ digits: [Int]) -> [(Int, Int)] {
            let filled = isOdd ? digits + [15] : digits
            return stride(from: 0, to: filled.count, by: 2).map { (filled[$0], filled[$0 + 1]) }
        }
        func hex(_ bytes: some Sequence<UInt8>) -> [UInt8] { bytes.flatMap { Array(String(format: "%02X", $0).utf8) } }
        func character(_ digit: Int) -> UInt8 { 0x30 + UInt8(digit) }
        switch self {
        case .packed: return { before + pairs($0).map { UInt8($0 << 4 | $1) } + behind }
        case .packedFromHalfAByte:
            return { digits in
                let all = [10] + digits + (isOdd ? [] : [10])
                return before + stride(from: 0, to: all.count, by: 2).map { UInt8(all[$0] << 4 | all[$0 + 1]) } + behind
            }
        case .swapped: return { before + pairs($0).map { UInt8($1 << 4 | $0) } + behind }
        case .unpacked: return each { [UInt8($0)] }
        case .zoned: return each { [0xF0 | UInt8($0)] }
        case .ascii, .plain: return each { [character($0)] }
        case .utf16: return each { [character($0), 0] }
        case .utf16BigEndian: return each { [0, character($0)] }
        case .utf32: return each { [character($0), 0, 0, 0] }
        case .hexText: return each { hex([character($0)]) }
        case .hexTextOfHexText: return each { hex(hex([character($0)])) }
        case .everyFewBytes:
            let filling = [UInt8](repeating: 0xEE, count: Int.random(in: 1...5, using: &dice))
            return each { filling + [UInt8($0)] }
        case .byComma: return grouped([",", ", "])
        case .bySlash: return grouped(["/", " / "])
        case .bySpaces: return grouped(["  ", " ", "   "])
        case .byNoBreakSpace: return grouped(["\u{A0}", "\u{202F}"])
        case .byPercent: return grouped(["%20", "%2D", "+"])
        case .byTab: return grouped(["\t", "\n", "\r\n", "_"])
        case .byWords: return grouped([" then ", " and ", "; ", "..."])
        case .byThinSpace: return grouped(["\u{2009}", "\u{3000}", "\u{2003}"])
        case .byEntity: return grouped(["&nbsp;", "&#160;", "&#x20;", "\\u00A0"])
        case .hexPairs:
            let separator = Array([" ", "-", ":", ".", ", ", "  "].randomElement(using: &dice)?.utf8 ?? " ".utf8)
            return { before + pairs($0).flatMap { separator + hex([UInt8($0 << 4 | $1)]) } + behind }
        case .hexList:
            let prefixes = ["0x", ", 0x", ",0x", "; 0X", "\\x", " x"]
            let prefix = Array(prefixes.randomElement(using: &dice)?.utf8 ?? "0x".utf8)
            return { before + pairs($0).flatMap { prefix + hex([UInt8($0 << 4 | $1)]) } + behind }
        case .hexListOfCharacters: return each(Array(", ".utf8)) { Array("0x".utf8) + hex([character($0)]) }
        case .hexEscapes: return each { Array("\\x".utf8) + hex([character($0)]) }
        case .hexDump: return grouped([" ", "  ", " - "]) { hex([character($0)]) }
        case .percentEncoded: return each { Array("%".utf8) + hex([character($0)]) }
        case .unicodeEscapes: return each { Array("\\u00".utf8) + hex([character($0)]) }
        case .fullWidth:
            return grouped(["", " ", "\u{3000}"]) { Array(String(UnicodeScalar(0xFF10 + $0) ?? "x").utf8) }
        case .arabic: return each { Array(String(UnicodeScalar(0x660 + $0) ?? "x").utf8) }
        case .persian: return each { Array(String(UnicodeScalar(0x6F0 + $0) ?? "x").utf8) }
        case .zonedHexText:
            return each(Array([" ", ""].randomElement(using: &dice)?.utf8 ?? "".utf8)) { hex([0xF0 | UInt8($0)]) }
        case .unpackedHexText:
            return each(Array([" ", "", ", 0x"].randomElement(using: &dice)?.utf8 ?? "".utf8)) { hex([UInt8($0)]) }
        case .groupedHexText:
            let size = Int.random(in: 3...6, using: &dice)
            return { digits in
                before
                    + digits.enumerated().flatMap { place, digit in
                        (place > 0 && place % size == 0 ? hex([0x2D]) : []) + hex([character(digit)])
                    } + behind
            }
        case .utf16Text: return each { [0, character($0)] }
        }
    }

    /// A number of 12 to 19 digits of a random issuer with the check digit of ISO/IEC 7812-1, Annex B.
    static func number(_ dice: inout some RandomNumberGenerator) -> [Int] {
        var digits = [Int.random(in: 2...6, using: &dice)]
        let count = Int.random(in: 12...19, using: &dice)
        while digits.count < count - 1 { digits.append(Int.random(in: 0...9, using: &dice)) }
        var sum = 0
        for (place, digit) in digits.reversed().enumerated() {
            let doubled = place % 2 == 0 ? 2 * digit : digit
            sum += doubled > 9 ? doubled - 9 : doubled
        }
        return digits + [(10 - sum % 10) % 10]
    }
}
