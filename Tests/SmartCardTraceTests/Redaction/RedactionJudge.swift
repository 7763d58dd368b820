import Foundation
import Glibc

/// Looks for a number or a name in the text of a trace, and knows nothing of how redaction looks: what passed in each
/// direction is put together with every number of bytes left out at the beginning and the end of each frame.
enum RedactionJudge {
    /// Hexadecimal digits, or text.
    private typealias Letters = [UInt8]

    /// Where `number` is, in words; nothing where it is not.
    static func findings(of number: String, in text: String) -> [String] {
        var findings: [String] = []
        for sign in [">", "<"] {
            let frames = frames(sign, in: text)
            for first in 0...24 {
                for last in 0...4 {
                    var joined: Letters = []
                    for frame in frames where frame.count > 2 * (first + last) {
                        joined += frame[2 * first..<frame.count - 2 * last]
                    }
                    findings += forms(of: number, in: joined).map { "\(sign) \($0) without \(first) and \(last) bytes" }
                }
            }
            findings += halves(of: number, in: frames).map { "\(sign) \($0)" }
        }
        let words = text.split(separator: "\n").filter { !$0.contains(" > ") && !$0.contains(" < ") }
            .joined(separator: "\n")
        let bare = Letters(words.filter { !" -.:".contains($0) }.uppercased().utf8)
        let ascii = hex(number)
        findings += [number, ascii, hex(ascii)].filter { has(bare, $0) }.map { "words \($0)" }
        return findings + encoded(number, in: words)
    }

    /// How `number` stands in `digits`, which are hexadecimal.
    private static func forms(of number: String, in digits: Letters) -> [String] {
        var forms: [String] = []
        if has(digits, number) { forms.append("packed") }
        if has(digits, hex(number)) { forms.append("text") }
        if has(digits, hex(hex(number))) { forms.append("hexadecimal text") }
        if has(swapped(digits), number) { forms.append("swapped") }
        return forms
    }

    /// A number of which one frame ends with the first half, but for a few bytes, and a later one begins with the second.
    private static func halves(of number: String, in frames: [Letters]) -> [String] {
        var found: [String] = []
        // Shorter halves stand anywhere by chance.
        guard number.count >= 8 else { return [] }
        for (index, frame) in frames.enumerated() {
            for count in 4...number.count - 4 {
                let (first, second) = (String(number.prefix(count)), String(number.dropFirst(count)))
                for (form, first, second) in [("packed", first, second), ("text", hex(first), hex(second))]
                where has(Letters(frame.suffix(first.utf8.count + 12)), first) {
                    for other in frames[(index + 1)...].prefix(8)
                    where has(Letters(other.prefix(second.utf8.count + 48)), second) {
                        found.append("\(form) in two frames, \(count) digits in the first")
                    }
                }
            }
        }
        return found
    }

    /// In base64, from any character on (RFC 4648).
    private static func encoded(_ number: String, in words: String) -> [String] {
        let alphabet = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")
        var found: [String] = []
        for word in words.split(whereSeparator: { !alphabet.contains($0) }) {
            for start in 0..<4 {
                let part = word.dropFirst(start).map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }
                // What does not fill four characters is filled up.
                let rest = part.count % 4
                let whole = String(rest == 1 ? part.dropLast() : part[...])
                let padded = whole + String(repeating: "=", count: rest < 2 ? 0 : 4 - rest)
                guard let data = Data(base64Encoded: padded) else { continue }
                let digits = data.flatMap { hex(UInt8($0)).utf8 }
                found += forms(of: number, in: digits).map { "\($0) in base64" }
            }
        }
        return found
    }

    /// Where the two words of a name stand in either order, as they are, in small letters or as hexadecimal text.
    static func findings(ofName surname: String, _ given: String, in text: String) -> [String] {
        let bare = Letters(text.uppercased().filter { !" -.:/,".contains($0) }.utf8)
        return [(surname, given), (given, surname)].flatMap { first, second -> [String] in
            var found = has(bare, first + second) ? [first + second] : []
            // A sign or two may stand between.
            for joint in ["2F", "20", "2C20", "2E"] {
                for digits in [
                    hex(first) + joint + hex(second), hex(first.lowercased()) + joint + hex(second.lowercased()),
                ] where has(bare, digits) { found.append(digits) }
            }
            return found
        }
    }

    private static func frames(_ sign: String, in text: String) -> [Letters] {
        text.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ")
            return words.count == 4 && words[1] == sign ? Letters(words[3].utf8) : nil
        }
    }

    private static func has(_ letters: Letters, _ wanted: String) -> Bool {
        let wanted = Letters(wanted.utf8)
        return letters.withUnsafeBytes { letters in
            wanted.withUnsafeBytes { wanted in
                guard let all = letters.baseAddress, let first = wanted.baseAddress else { return false }
                var place = 0
                while place + wanted.count <= letters.count {
                    guard let next = memchr(all + place, Int32(wanted[0]), letters.count - place) else { return false }
                    place = UnsafeRawPointer(next) - all
                    guard place + wanted.count <= letters.count else { return false }
                    if memcmp(next, first, wanted.count) == 0 { return true }
                    place += 1
                }
                return false
            }
        }
    }

    private static func hex(_ text: String) -> String { text.utf8.map(hex).joined() }

    private static func hex(_ byte: UInt8) -> String { (byte < 16 ? "0" : "") + String(byte, radix: 16).uppercased() }

    private static func swapped(_ digits: Letters) -> Letters {
        var swapped = digits
        for place in stride(from: 0, to: digits.count - 1, by: 2) { swapped.swapAt(place, place + 1) }
        return swapped
    }
}
