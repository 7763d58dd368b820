import SmartCard

/// Values that tell of a travel document or its holder, or of a pass, and their repetitions: numbers, dates, lines of the
/// machine readable zone; names in text, each word for itself.
struct DocumentValues: Sendable {
    /// The letters and digits of each value, in capitals.
    private var values: Set<ArraySlice<UInt8>> = []
    /// Their lengths, by the first ``shortest`` characters.
    private var lengths: [ArraySlice<UInt8>: Set<Int>] = [:]
    private var words: Set<[UInt8]> = []

    var count: Int { words.count + values.count }

    /// Shorter values stand anywhere by chance …
    private static let shortest = 6
    /// … and no more is looked for of longer ones.
    private static let longest = 64
    /// Shorter words may be anything.
    private static let shortestWord = 4
    /// So many signs may stand between two characters of a value, and any number of fillers.
    private static let widestGap = 3

    /// Learns the values in a file of a travel document.
    mutating func learn(_ file: DocumentFile, _ bytes: [UInt8]) -> [[UInt8]] {
        var names: [[UInt8]] = []
        for object in file.objects where file.replacement(of: object) != Array(bytes[object.place]) {
            let value = bytes[object.place]
            switch (object.file, object.tag) {
            case (0x61, 0x5F1F):
                guard let zone = DocumentZone(value) else { continue }
                zone.values.forEach { learn(value: $0) }
                names.append(zone.name)
            // Name of the holder, other names, name of a person to notify (ICAO 9303-10, 4.7.11 and 4.7.16).
            case (0x6B, 0x5F0E), (0x6B, 0x5F0F), (0x70, 0x5F51): names.append(DocumentText.name(value))
            // Personal number, telephone number, numbers of other documents.
            case (0x6B, 0x5F10), (0x6B, 0x5F12), (0x6B, 0x5F17): learn(value: Array(value))
            default: break
            }
        }
        for name in names {
            for word in name.split(whereSeparator: { !Self.isLetter($0) }) where word.count >= Self.shortestWord {
                words.insert(word.map(Self.capital))
            }
        }
        return names
    }

    /// Learns a value by its letters and digits, if it has enough of them.
    mutating func learn(value: [UInt8]) {
        let characters = value.map(Self.capital).filter(Self.isCharacter).prefix(Self.longest)
        guard characters.count >= Self.shortest, characters.contains(where: { DocumentText.masked($0) != $0 }) else {
            return
        }
        values.insert(characters)
        lengths[characters.prefix(Self.shortest), default: []].insert(characters.count)
    }

    /// Returns the characters of all values in `bytes`, as characters or as hexadecimal text; of names only in text.
    func characters(in bytes: [UInt8], isText: Bool) -> [CardholderNames.Letter] {
        guard count > 0 else { return [] }
        let plain = places(in: bytes, isText: isText).map { CardholderNames.Letter(first: $0, second: nil) }
        let hex = CardholderNames.hexTexts(in: bytes).flatMap { text in
            places(in: text.map(\.value), isText: isText).map {
                CardholderNames.Letter(
                    first: text[$0].first, second: text[$0].second, isDigit: Self.isDigit(text[$0].value))
            }
        }
        return plain + hex
    }

    /// Returns the places of the characters of all values.
    private func places(in bytes: [UInt8], isText: Bool) -> Set<Int> {
        var places: Set<Int> = []
        for run in Self.runs(in: bytes) where run.count >= Self.shortest {
            let characters = run.map { Self.capital(bytes[$0]) }
            for start in 0...characters.count - Self.shortest {
                for length in lengths[characters[start..<start + Self.shortest]] ?? []
                where length <= characters.count - start && values.contains(characters[start..<start + length]) {
                    places.formUnion(run[start..<start + length])
                }
            }
        }
        guard isText else { return places }
        for word in bytes.indices.split(whereSeparator: { !Self.isLetter(bytes[$0]) })
        where words.contains(word.map { Self.capital(bytes[$0]) }) { places.formUnion(word) }
        return places
    }

    /// Returns the places of letters and digits, as far as not more stands between them than in a value.
    private static func runs(in bytes: [UInt8]) -> [[Int]] {
        var runs: [[Int]] = []
        var run: [Int] = []
        var gap = 0
        for (index, byte) in bytes.enumerated() {
            if isCharacter(byte) {
                run.append(index)
                gap = 0
            } else if !run.isEmpty, byte != UInt8(ascii: "<") {
                gap += 1
                guard gap > widestGap else { continue }
                runs.append(run)
                (run, gap) = ([], 0)
            }
        }
        return runs + [run]
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    /// Letters of other alphabets are taken as they are coded.
    private static func isLetter(_ byte: UInt8) -> Bool { (0x41...0x5A).contains(capital(byte)) || byte >= 0x80 }

    /// A letter of ASCII or a digit.
    private static func isCharacter(_ byte: UInt8) -> Bool { (0x41...0x5A).contains(capital(byte)) || isDigit(byte) }

    private static func capital(_ byte: UInt8) -> UInt8 { (0x61...0x7A).contains(byte) ? byte - 0x20 : byte }
}
