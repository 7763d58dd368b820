/// Names of cardholders and their repetitions: in either order, in any case, as bytes or as hexadecimal digits.
struct CardholderNames: Sendable {
    /// The names to look for, in capitals: the first word, and the words after it.
    private var names: [[UInt8]: Set<[[UInt8]]>] = [:]
    /// True for a character that begins a name.
    private var isStart = [Bool](repeating: false, count: 256)

    var isEmpty: Bool { names.isEmpty }
    var count: Int { names.reduce(0) { $0 + $1.value.count } }

    /// Learns `name` as cards contain it: surname, `/`, given names, and perhaps `.` and a title (ISO/IEC 7813, 7.2),
    /// or in words.  Without `/`, a single word is not a name but the label of a product.
    mutating func learn(_ name: some Collection<UInt8>) {
        let parts = name.split(separator: UInt8(ascii: "/"), maxSplits: 1, omittingEmptySubsequences: false)
            .map { part in Self.words(in: Array(part.prefix { $0 != UInt8(ascii: ".") })) }
        let all = parts.flatMap(\.self)
        let letters = all.reduce(0) { $0 + $1.count }
        guard letters >= 4, all.count > 1 || parts.count > 1, name.allSatisfy({ $0 >= 0x20 }),
            all.contains(where: { $0.contains { $0 != UInt8(ascii: "X") } })
        else { return }
        if parts.count == 2 {
            let (surname, given) = (parts[0], parts[1])
            for given in [given, Array(given.prefix(1))] {
                add(surname + given)
                add(given + surname)
            }
        } else {
            add(all)
            if all.count == 2 { add(all.reversed()) }
        }
    }

    private mutating func add(_ words: [[UInt8]]) {
        guard let first = words.first else { return }
        names[first, default: []].insert(Array(words.dropFirst()))
        if let letter = first.first {
            isStart[Int(letter)] = true
            if letter < 0x80 { isStart[Int(letter) + 0x20] = true }
        }
    }

    /// Returns the letters of all names in `bytes`, as characters or as hexadecimal text.
    func letters(in bytes: [UInt8]) -> [Letter] {
        guard !isEmpty else { return [] }
        let plain = places(in: bytes).flatMap { place in
            place.filter { Self.isLetter(bytes[$0]) }.map { Letter(first: $0, second: nil) }
        }
        guard Self.mayHoldHexText(bytes) else { return plain }
        let hex = Self.hexTexts(in: bytes).flatMap { text in
            places(in: text.map(\.value)).flatMap { place in
                text[place].filter { Self.isLetter($0.value) }.map { Letter(first: $0.first, second: $0.second) }
            }
        }
        return plain + hex
    }

    /// The place of a letter: a byte, or two bytes for hexadecimal digits.
    struct Letter {
        let first: Int
        let second: Int?
        /// True if the two hexadecimal digits are those of a digit.
        var isDigit = false

        /// Makes it an X, or 0 of a digit.
        func cover(in bytes: inout [UInt8]) {
            guard let second else { return bytes[first] = DocumentText.masked(bytes[first]) }
            (bytes[first], bytes[second]) =
                isDigit
                ? (UInt8(ascii: "3"), UInt8(ascii: "0")) : (UInt8(ascii: "5"), UInt8(ascii: "8"))
        }
    }

    /// So much may stand between two words: `, ` or ` / `.
    private static let maximumGap = 4

    private func places(in bytes: [UInt8]) -> [Range<Int>] {
        var places: [Range<Int>] = []
        var index = 0
        while index < bytes.count {
            defer { index += 1 }
            guard isStart[Int(bytes[index])], index == 0 || !Self.isLetter(bytes[index - 1]),
                let word = Self.word(in: bytes, from: index), let others = names[Self.capitals(bytes[word])]
            else { continue }
            let ends = others.compactMap { Self.end(of: $0, in: bytes, behind: word.upperBound) }
            guard let end = ends.max() else { continue }
            places.append(index..<end)
            index = end
        }
        return places
    }

    /// Returns the end of `words` after `place`, with only signs between them; nil if they are not there.
    private static func end(of words: [[UInt8]], in bytes: [UInt8], behind place: Int) -> Int? {
        var end = place
        for expected in words {
            guard let word = word(in: bytes, from: end), (1...maximumGap).contains(word.lowerBound - end),
                word.count == expected.count, capitals(bytes[word]) == expected,
                !bytes[end..<word.lowerBound].contains(where: { (0x30...0x39).contains($0) })
            else { return nil }
            end = word.upperBound
        }
        return end
    }

    private static func words(in bytes: [UInt8]) -> [[UInt8]] {
        var words: [[UInt8]] = []
        var start = 0
        while let word = word(in: bytes, from: start) {
            words.append(capitals(bytes[word]))
            start = word.upperBound
        }
        return words
    }

    private static func word(in bytes: [UInt8], from start: Int) -> Range<Int>? {
        guard let first = bytes[start...].firstIndex(where: isLetter) else { return nil }
        return first..<(bytes[first...].firstIndex { !isLetter($0) } ?? bytes.endIndex)
    }

    /// Letters of other alphabets are taken as they are coded.
    private static func isLetter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x41...0x5A, 0x61...0x7A, 0x80...0xFF: true
        default: false
        }
    }

    private static func capitals(_ word: ArraySlice<UInt8>) -> [UInt8] {
        word.map { (0x61...0x7A).contains($0) ? $0 - 0x20 : $0 }
    }

    // MARK: Hexadecimal text

    /// Returns true if there are as many consecutive digits and letters as a name needs, apart from the signs between
    /// them.
    private static func mayHoldHexText(_ bytes: [UInt8]) -> Bool {
        var row = 0
        for byte in bytes {
            if byte >= 0x30, byte <= 0x66, digit(byte) != nil {
                row += 1
                if row == 8 { return true }
            } else if row > 0, byte != 0x20, byte != 0x2D, byte != 0x2E, byte != 0x3A {
                row = 0
            }
        }
        return false
    }

    typealias Pair = (value: UInt8, first: Int, second: Int)

    /// Returns the bytes of each run of four or more pairs of hexadecimal digits, from an even or an odd place on.  A
    /// space, a hyphen, a period or a colon may stand between two pairs.
    static func hexTexts(in bytes: [UInt8]) -> [[Pair]] {
        var texts: [[Pair]] = []
        var start = 0
        while let first = bytes[start...].firstIndex(where: { digit($0) != nil }) {
            let (even, end) = pairs(in: bytes, from: first)
            let (odd, _) = pairs(in: bytes, from: first + 1)
            texts += [even, odd].filter { $0.count >= 4 }
            start = max(end, first + 1)
        }
        return texts
    }

    private static func pairs(in bytes: [UInt8], from start: Int) -> (pairs: [Pair], end: Int) {
        var pairs: [Pair] = []
        var place = start
        while place + 1 < bytes.count, let high = digit(bytes[place]), let low = digit(bytes[place + 1]) {
            pairs.append((high << 4 | low, place, place + 1))
            place += 2
            if place + 1 < bytes.count, [0x20, 0x2D, 0x2E, 0x3A].contains(bytes[place]), digit(bytes[place + 1]) != nil
            {
                place += 1
            }
        }
        return (pairs, place)
    }

    private static func digit(_ character: UInt8) -> UInt8? {
        switch character {
        case 0x30...0x39: character - 0x30
        case 0x41...0x46: character - 0x37
        case 0x61...0x66: character - 0x57
        default: nil
        }
    }
}
