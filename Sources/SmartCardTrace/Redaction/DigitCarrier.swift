/// Bytes that may hold a number, in the one form to which every way of writing digits is brought: half bytes in a row, each
/// with its place in the original.
///
/// A digit is half a byte in nearly every code.  It is the lower half of an ASCII character, of an unpacked or zoned digit,
/// of the last byte of a full-width digit, and of the last character of `\u0034`, `%34` and `34`.  Packed digits are both
/// halves.  So a number is found by its half bytes alone, and its replacement changes nothing else.
struct DigitCarrier {
    /// Digits that follow each other, and the half byte of each: twice the number of its byte, one more for the lower half.
    struct Run {
        fileprivate(set) var digits: [UInt8] = []
        fileprivate(set) var halves: [Int] = []

        fileprivate mutating func append(_ digit: UInt8, _ half: Int) {
            digits.append(digit)
            halves.append(half)
        }
    }

    /// The value in the place of a half byte that is no digit.
    static let none: UInt8 = 0xFF

    /// The bytes themselves, or those that hexadecimal text in them describes.
    let bytes: [UInt8]
    /// The values of the half bytes that may be digits, the higher half of each byte first.
    let halves: [UInt8]
    /// The character in the original that each half byte is; nil if the bytes are the original.
    private let characters: [Int]?
    /// True if half bytes are digits only in characters that are.
    private let isText: Bool

    /// - Parameter isText: true if only characters are digits, as the bytes remain text.
    init(_ bytes: [UInt8], isText: Bool) { self.init(bytes, characters: nil, isText: isText) }

    private init(_ bytes: [UInt8], characters: [Int]?, isText: Bool) {
        (self.bytes, self.characters, self.isText) = (bytes, characters, isText)
        var halves = [UInt8](repeating: Self.none, count: 2 * bytes.count)
        for (index, byte) in bytes.enumerated() {
            let isDigit = (0x30...0x39).contains(byte)
            if byte < 0xA0, !isText { halves[2 * index] = byte >> 4 }
            if byte & 0x0F < 10, !isText || isDigit { halves[2 * index + 1] = byte & 0x0F }
        }
        self.halves = halves
    }

    /// The byte of the original that a half byte is in, or is.
    func byte(ofHalf half: Int) -> Int { characters.map { $0[half] } ?? half / 2 }

    /// Writes a digit in the place of a half byte.
    func put(_ digit: UInt8, atHalf half: Int, in original: inout [UInt8]) {
        if let characters { original[characters[half]] = 0x30 + digit } else { original.putHalf(digit, at: half) }
    }

    /// Writes a byte whose code has no letters in the place of one of these.
    func put(byte: UInt8, at index: Int, in original: inout [UInt8]) {
        put(byte >> 4, atHalf: 2 * index, in: &original)
        put(byte & 0x0F, atHalf: 2 * index + 1, in: &original)
    }

    // MARK: Ways to write digits

    /// Two digits a byte; a number may begin in the middle of one.
    var packed: [Run] { isText ? [] : runs(halves.indices.lazy.map { (halves[$0], $0) }) }

    /// A digit a byte in the zone F (EBCDIC).
    var zoned: [Run] {
        isText
            ? []
            : runs(bytes.indices.lazy.map { (bytes[$0] >= 0xF0 ? halves[2 * $0 + 1] : Self.none, 2 * $0 + 1) })
    }

    private func runs(_ halves: some Sequence<(UInt8, Int)>) -> [Run] {
        var runs: [Run] = []
        var run = Run()
        for (digit, half) in halves {
            if digit < 10 {
                run.append(digit, half)
            } else if !run.digits.isEmpty {
                if run.digits.count >= AccountNumbers.Search.lengths.lowerBound { runs.append(run) }
                run = Run()
            }
        }
        if run.digits.count >= AccountNumbers.Search.lengths.lowerBound { runs.append(run) }
        return runs
    }

    /// The distance that digits of text may have.
    enum Grouping {
        /// No distance: the digits are adjacent.
        case none
        /// As people write numbers: by a space, a hyphen, a period or a colon between any two, or by nothing longer than
        /// three characters that are no letters behind each four digits.
        case usual
        /// By anything of a few characters.
        case any
    }

    /// The digits of the text in the bytes, however it is coded: as characters of ASCII, full width, Arabic or Persian, as
    /// `%34` or as `\u0034`.
    func text(_ grouping: Grouping) -> [Run] {
        var runs: [Run] = []
        var run = Run()
        var sinceGap = 0
        var gap = 0
        var gapHasLetters = false
        func isClosed() -> Bool {
            switch grouping {
            case .none: gap > 0
            case .usual: gap > 0 && gapHasLetters || gap > 3 || gap > 1 && sinceGap < 4
            case .any: gap > Self.widestGap
            }
        }
        func end() {
            if run.digits.count >= AccountNumbers.Search.lengths.lowerBound { runs.append(run) }
            run = Run()
        }
        var index = 0
        while index < bytes.count {
            let sign = sign(at: index)
            if let digit = sign.digit {
                if isClosed() { end() }
                if gap > 0 { sinceGap = 0 }
                sinceGap += 1
                (gap, gapHasLetters) = (0, false)
                run.append(digit, 2 * (index + sign.count) - 1)
            } else if !run.digits.isEmpty {
                // A code in the text is one character, and parts digits like the wider ones.
                let parts = Self.separators.contains(bytes[index])
                gap += parts ? 1 : 2
                gapHasLetters = gapHasLetters || !parts && !sign.isGap
                if gap > Self.widestGap { end() }
            }
            index += sign.count
        }
        end()
        return runs
    }

    /// The separators of any two digits: space, hyphen, period, colon, NUL of UTF-16.
    private static let separators: Set<UInt8> = [0x20, 0x2D, 0x2E, 0x3A, 0x00]
    /// Further separators of groups: tab, line ends, comma, slash, underscore, NBSP of Latin-1.
    private static let wideSeparators: Set<UInt8> = [0x09, 0x0A, 0x0D, 0x2C, 0x2F, 0x5F, 0xA0]
    /// Between two digits of a known number, counted twice for what does not part digits usually.
    private static let widestGap = 48

    private typealias Sign = (count: Int, digit: UInt8?, isGap: Bool)

    /// The character at `index`, in whatever code.
    private func sign(at index: Int) -> Sign {
        let byte = bytes[index]
        switch byte {
        case UInt8(ascii: "0") where follows("x", index) || follows("X", index): return (2, nil, true)
        case 0x30...0x39: return (1, byte & 0x0F, false)
        case UInt8(ascii: "%"): return code(index, 1, 2)
        case UInt8(ascii: "\\") where follows("u", index): return code(index, 2, 4)
        case UInt8(ascii: "\\") where follows("x", index): return (2, nil, true)
        case UInt8(ascii: "&"):
            guard let end = bytes[index...].prefix(9).firstIndex(of: UInt8(ascii: ";")) else { return (1, nil, false) }
            return (end + 1 - index, nil, true)
        // U+FF10, U+0660, U+06F0 and the nine after each; U+00A0, U+2000 to U+200F, U+202F, U+3000.
        case 0xEF where at(index + 1) == 0xBC && (0x90...0x99).contains(at(index + 2)):
            return (3, at(index + 2) & 0x0F, false)
        case 0xD9 where (0xA0...0xA9).contains(at(index + 1)): return (2, at(index + 1) & 0x0F, false)
        case 0xDB where (0xB0...0xB9).contains(at(index + 1)): return (2, at(index + 1) & 0x0F, false)
        case 0xC2 where at(index + 1) == 0xA0: return (2, nil, true)
        case 0xE2 where at(index + 1) == 0x80: return (min(3, bytes.count - index), nil, true)
        case 0xE3 where at(index + 1) == 0x80 && at(index + 2) == 0x80: return (3, nil, true)
        default: return (1, nil, Self.separators.contains(byte) || Self.wideSeparators.contains(byte))
        }
    }

    private func at(_ index: Int) -> UInt8 { index < bytes.count ? bytes[index] : 0 }

    private func follows(_ character: Unicode.Scalar, _ index: Int) -> Bool { at(index + 1) == UInt8(ascii: character) }

    /// The character whose code is `count` hexadecimal digits after `start` characters; none for a letter, as `%B4` of a
    /// track has it.
    private func code(_ index: Int, _ start: Int, _ count: Int) -> Sign {
        let digits = bytes[min(index + start, bytes.count)...].prefix(count)
        let value = digits.reduce(0 as Int?) { value, next in
            guard let value, let digit = Self.hexDigit(next) else { return nil }
            return value << 4 | Int(digit)
        }
        guard digits.count == count, let value else { return (1, nil, false) }
        switch value {
        case 0x30...0x39: return (start + count, UInt8(value & 0x0F), false)
        case 0x00...0x2F, 0x3A...0x40, 0x5F, 0xA0, 0xC2, 0x2000...0x202F, 0x3000: return (start + count, nil, true)
        default: return (1, nil, false)
        }
    }

    // MARK: Tracks

    /// The parts of a track behind a number (ISO/IEC 7813).
    struct Track {
        /// The characters between two `^`, the second one included: their numbers among the bytes.
        fileprivate(set) var name: [Int] = []
        /// The half bytes of the digits after it, or after `=` or D: four of the expiry, three of the service code, and
        /// more.
        fileprivate(set) var digits: [Int] = []
    }

    /// Returns what follows a number.
    ///
    /// - Parameters:
    ///   - half: the half byte of the last digit.
    ///   - isFree: returns false for a half byte that belongs to another number.
    func track(behind half: Int, isPacked: Bool, _ isFree: (Int) -> Bool) -> Track {
        var track = Track()
        guard !isPacked else {
            guard half + 1 < halves.count, bytes[(half + 1) / 2] >> (half % 2 == 0 ? 0 : 4) & 0x0F == 0x0D else {
                return track
            }
            track.digits = Array((half + 2..<max(half + 2, halves.count)).prefix { halves[$0] < 10 && isFree($0) })
            return track
        }
        func next(_ index: Int) -> Int? {
            let next = index + 1 < bytes.count && Self.separators.contains(bytes[index + 1]) ? index + 2 : index + 1
            return next < bytes.count ? next : nil
        }
        guard var last = next(half / 2) else { return track }
        switch bytes[last] {
        case UInt8(ascii: "="), UInt8(ascii: "D"), UInt8(ascii: "d"): break
        case UInt8(ascii: "^"):
            while let index = next(last), (0x20...0x7E).contains(bytes[index]), isFree(2 * index + 1) {
                last = index
                track.name.append(index)
                if bytes[index] == UInt8(ascii: "^") { break }
            }
        default: return track
        }
        while let index = next(last), (0x30...0x39).contains(bytes[index]), isFree(2 * index + 1) {
            last = index
            track.digits.append(2 * index + 1)
        }
        return track
    }

    // MARK: Hexadecimal text

    /// The bytes that hexadecimal text describes, in pairs from the first or from the second digit of each group on.
    var decoded: [DigitCarrier] {
        guard bytes.count >= 2 * AccountNumbers.Search.lengths.lowerBound,
            bytes.count(where: { Self.hexDigit($0) != nil }) >= 2 * AccountNumbers.Search.lengths.lowerBound
        else { return [] }
        return [0, 1].flatMap { decoded(from: $0) }
    }

    private func decoded(from first: Int) -> [DigitCarrier] {
        var carriers: [DigitCarrier] = []
        var values: [UInt8] = []
        var characters: [Int] = []
        func end() {
            if values.count >= AccountNumbers.Search.lengths.lowerBound {
                carriers.append(DigitCarrier(values, characters: characters, isText: false))
            }
            (values, characters) = ([], [])
        }
        var (index, last) = (0, 0)
        while index < bytes.count {
            guard Self.hexDigit(bytes[index]) != nil, !isPrefix(index) else {
                index += 1
                continue
            }
            if index - last > Self.widestGap / 2 { end() }
            let group = bytes[index...].prefix { Self.hexDigit($0) != nil }
            // A digit without a partner is no part of what is on both sides of it.
            let isWhole = first == 0 && group.count % 2 == 0
            if !isWhole { end() }
            for place in stride(from: index + first, to: group.endIndex - 1, by: 2) {
                guard let high = Self.hexDigit(bytes[place]), let low = Self.hexDigit(bytes[place + 1]) else { break }
                values.append(high << 4 | low)
                characters += [original(place), original(place + 1)]
            }
            if !isWhole { end() }
            index = group.endIndex
            last = index
        }
        end()
        return carriers
    }

    /// True for the 0 of `0x`.
    private func isPrefix(_ index: Int) -> Bool {
        bytes[index] == 0x30 && (follows("x", index) || follows("X", index))
    }

    /// The number in the original of the byte that character `index` is, or its lower half is.
    private func original(_ index: Int) -> Int { byte(ofHalf: 2 * index + 1) }

    private static func hexDigit(_ character: UInt8) -> UInt8? {
        switch character {
        case 0x30...0x39: character - 0x30
        case 0x41...0x46: character - 0x37
        case 0x61...0x66: character - 0x57
        default: nil
        }
    }
}

extension [UInt8] {
    /// Writes half a byte: of the byte `place / 2` the lower half if `place` is odd.
    mutating func putHalf(_ value: UInt8, at place: Int) {
        let byte = self[place / 2]
        self[place / 2] = place % 2 == 0 ? byte & 0x0F | value << 4 : byte & 0xF0 | value
    }
}
