import Glibc

/// A line of a log, for those that look for something in it.
struct TextLine {
    private(set) var bytes: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    var isEmpty: Bool { bytes.isEmpty }

    /// The text for a person; invalid UTF-8 is replaced.
    var text: String { String(decoding: bytes, as: UTF8.self) }

    /// The line without color sequences (ECMA-48, 8.3.117: `ESC [ … m`).
    var withoutColor: TextLine {
        guard index(of: 0x1B) != nil else { return self }
        var plain: [UInt8] = []
        plain.reserveCapacity(bytes.count)
        var rest = bytes
        while let byte = rest.popFirst() {
            guard byte == 0x1B, rest.first == UInt8(ascii: "[") else {
                plain.append(byte)
                continue
            }
            rest = rest.dropFirst().drop { $0 != UInt8(ascii: "m") }.dropFirst()
        }
        return TextLine(plain[...])
    }

    // MARK: Parts

    /// Returns the text after the first `text`; nil if there is none.
    func after(_ text: StaticString) -> TextLine? { range(of: text).map { TextLine(bytes[$0.upperBound...]) } }

    /// Returns the text before the first `text`; nil if there is none.
    func before(_ text: StaticString) -> TextLine? { range(of: text).map { TextLine(bytes[..<$0.lowerBound]) } }

    /// Returns the rest of a line that begins with `text`; nil for any other line.
    func dropping(_ text: StaticString) -> TextLine? {
        starts(with: text) ? TextLine(bytes.dropFirst(text.utf8CodeUnitCount)) : nil
    }

    /// Returns the text after the last `byte`; nil if there is none.
    func afterLast(_ byte: UInt8) -> TextLine? {
        bytes.lastIndex(of: byte).map { TextLine(bytes[($0 + 1)...]) }
    }

    /// The line up to the first space or tab, and the rest.
    var word: (word: TextLine, rest: TextLine) {
        let word = bytes.prefix { $0 != 0x20 && $0 != 0x09 }
        return (TextLine(word), TextLine(bytes[word.endIndex...].dropFirst()))
    }

    /// The line without spaces and tabulators at its ends.
    var trimmed: TextLine {
        var rest = bytes
        while let first = rest.first, first == 0x20 || first == 0x09 { rest.removeFirst() }
        while let last = rest.last, last == 0x20 || last == 0x09 { rest.removeLast() }
        return TextLine(rest)
    }

    /// The line up to the first character that is neither a hexadecimal digit nor a space.
    var hexPrefix: TextLine { TextLine(bytes.prefix { $0 == 0x20 || Self.digit($0) < 16 }) }

    func contains(_ text: StaticString) -> Bool { range(of: text) != nil }

    func starts(with text: StaticString) -> Bool {
        guard bytes.first == text.utf8Start.pointee, bytes.count >= text.utf8CodeUnitCount else { return false }
        return bytes.withUnsafeBytes { line in
            line.baseAddress.map { memcmp($0, text.utf8Start, text.utf8CodeUnitCount) == 0 } ?? false
        }
    }

    private func range(of text: StaticString) -> Range<Int>? {
        let length = text.utf8CodeUnitCount
        return bytes.withUnsafeBytes { line in
            guard let start = line.baseAddress, line.count >= length else { return nil }
            let end = start + line.count - length
            var position = start
            while position <= end, let first = memchr(position, CInt(text.utf8Start.pointee), end - position + 1) {
                if memcmp(first, text.utf8Start, length) == 0 {
                    let offset = bytes.startIndex + (UnsafeRawPointer(first) - start)
                    return offset..<offset + length
                }
                position = UnsafeRawPointer(first) + 1
            }
            return nil
        }
    }

    private func index(of byte: UInt8) -> Int? {
        bytes.withUnsafeBytes { line in
            guard let start = line.baseAddress, let found = memchr(start, CInt(byte), line.count) else { return nil }
            return bytes.startIndex + (UnsafeRawPointer(found) - start)
        }
    }

    // MARK: Values

    /// The bytes that the line consists of, two hexadecimal digits each, with or without spaces between them; nil if it
    /// has anything else.
    var hex: [UInt8]? {
        var isValid = true
        let result = bytes.withUnsafeBufferPointer { text in
            [UInt8](unsafeUninitializedCapacity: text.count / 2) { result, count in
                var position = 0
                while position < text.count {
                    let character = text[position]
                    if character == 0x20 || character == 0x09 {
                        position += 1
                        continue
                    }
                    let high = Self.digit(character)
                    let low = position + 1 < text.count ? Self.digit(text[position + 1]) : 0xFF
                    guard high < 16, low < 16 else {
                        isValid = false
                        return
                    }
                    result[count] = high << 4 | low
                    count += 1
                    position += 2
                }
            }
        }
        return isValid ? result : nil
    }

    /// The value of a hexadecimal digit; FF for anything else.
    private static func digit(_ character: UInt8) -> UInt8 {
        let decimal = character &- 0x30
        let letter = (character | 0x20) &- 0x61
        return decimal < 10 ? decimal : letter < 6 ? letter + 10 : 0xFF
    }

    /// The number that the line is, in decimal digits, up to eighteen of them; nil if it is anything else.
    var decimal: Int? {
        guard (1...18).contains(bytes.count) else { return nil }
        var number = 0
        for character in bytes {
            let digit = character &- 0x30
            guard digit < 10 else { return nil }
            number = number * 10 + Int(digit)
        }
        return number
    }

    /// The number that the line is, in hexadecimal digits, up to sixteen of them, with or without `0x`; nil if it is
    /// anything else.
    var hexNumber: UInt64? {
        let digits = starts(with: "0x") ? bytes.dropFirst(2) : bytes
        guard (1...16).contains(digits.count) else { return nil }
        var number: UInt64 = 0
        for character in digits {
            let digit = Self.digit(character)
            guard digit < 16 else { return nil }
            number = number << 4 | UInt64(digit)
        }
        return number
    }

    /// The first time of day in the line since midnight, `21:05:07` with or without decimals after a period or comma;
    /// nil if there is none.
    var timeOfDay: Duration? {
        var rest = self
        while let colon = rest.index(of: UInt8(ascii: ":")) {
            let text = bytes[max(bytes.startIndex, colon - 2)...]
            rest = TextLine(bytes[(colon + 1)...])
            let (first, second) = (text.startIndex + 2, text.startIndex + 5)
            guard text.count >= 8, text[first] == UInt8(ascii: ":"), text[second] == UInt8(ascii: ":"),
                let hours = TextLine(text.prefix(2)).decimal, hours < 24,
                let minutes = TextLine(text[(first + 1)..<second]).decimal, minutes < 60,
                let seconds = TextLine(text[(second + 1)..<(second + 3)]).decimal, seconds < 61
            else { continue }
            var time = Duration.seconds(hours * 3600 + minutes * 60 + seconds)
            let decimals = text.dropFirst(8)
            if decimals.first == UInt8(ascii: ".") || decimals.first == UInt8(ascii: ",") {
                let digits = decimals.dropFirst().prefix { (0x30...0x39).contains($0) }.prefix(9)
                if let fraction = TextLine(digits).decimal {
                    time += .nanoseconds((digits.count..<9).reduce(fraction) { number, _ in number * 10 })
                }
            }
            return time
        }
        return nil
    }
}

/// Times of day as times that do not end at midnight.
struct Midnights {
    private var days = 0
    private var last = Duration.zero

    /// - Parameter timeOfDay: more than twelve hours before the last one, it is of the next day.
    mutating func time(_ timeOfDay: Duration) -> Duration {
        if timeOfDay < last - .seconds(43_200) { days += 1 }
        last = timeOfDay
        return .seconds(86_400) * days + timeOfDay
    }
}
