/// The machine readable zone of a travel document, with other data of the same form in it (ICAO 9303-4, 4.2; 9303-5,
/// 4.2; 9303-6, 4.2).
struct DocumentZone {
    /// The characters of all lines, without line feeds.
    let characters: [UInt8]
    private let format: Format

    /// The places of one format, from zero.
    private struct Format {
        let lines: Int
        let names: Range<Int>
        let number: Range<Int>
        let birth: Range<Int>
        let sex: Int
        let expiry: Range<Int>
        let nationality: Range<Int>
        let optional: [Range<Int>]
        /// The place of the check digit of the first optional data, if they have one.
        var optionalCheck: Int?
        /// The characters that the last check digit is over, and its place.
        let composite: [Range<Int>]
        let compositeCheck: Int

        /// The place of the check digit behind the number.
        var numberCheck: Int { number.upperBound }
    }

    private static let formats: [Int: Format] = [
        90: Format(  // TD1
            lines: 3, names: 60..<90, number: 5..<14, birth: 30..<36, sex: 37, expiry: 38..<44, nationality: 45..<48,
            optional: [15..<30, 48..<59], composite: [5..<30, 30..<37, 38..<45, 48..<59], compositeCheck: 59),
        72: Format(  // TD2
            lines: 2, names: 5..<36, number: 36..<45, birth: 49..<55, sex: 56, expiry: 57..<63, nationality: 46..<49,
            optional: [64..<71], composite: [36..<46, 49..<56, 57..<71], compositeCheck: 71),
        88: Format(  // TD3
            lines: 2, names: 5..<44, number: 44..<53, birth: 57..<63, sex: 64, expiry: 65..<71, nationality: 54..<57,
            optional: [72..<86], optionalCheck: 86, composite: [44..<54, 57..<64, 65..<87], compositeCheck: 87),
    ]

    private static let filler = UInt8(ascii: "<")

    /// - Returns: nil if the characters are no zone of any format.
    init?(_ characters: some Collection<UInt8>) {
        guard let format = Self.formats[characters.count],
            characters.allSatisfy({ $0 == Self.filler || Self.value(of: $0) > 0 || $0 == UInt8(ascii: "0") })
        else { return nil }
        (self.characters, self.format) = (Array(characters), format)
    }

    /// The zone of nobody: letters are `X`, digits 0, dates and nationality always the same, check digits right.  The kind
    /// of the document and its issuer stay.
    var masked: [UInt8] {
        var zone = characters
        for place in [format.names, format.number] + format.optional {
            for index in place { zone[index] = DocumentText.masked(zone[index]) }
        }
        zone.replaceSubrange(format.birth, with: "700101".utf8)
        zone.replaceSubrange(format.expiry, with: "300101".utf8)
        zone.replaceSubrange(format.nationality, with: "XXX".utf8)
        zone[format.sex] = Self.filler
        for place in [format.birth, format.expiry] { zone[place.upperBound] = Self.checkDigit(zone[place]) }
        let number = numberPlaces
        zone[number.check] = Self.checkDigit(number.places.flatMap { zone[$0] })
        if let check = format.optionalCheck, zone[check] != Self.filler {
            zone[check] = Self.checkDigit(zone[format.optional[0]])
        }
        zone[format.compositeCheck] = Self.checkDigit(format.composite.flatMap { zone[$0] })
        return zone
    }

    /// The places of the document's number, and that of its check digit.
    ///
    /// A number of more than nine characters goes on in the optional data, with its check digit behind it, and a filler
    /// stands in the place of that (ICAO 9303-5, 4.2.2.1).
    private var numberPlaces: (places: [Range<Int>], check: Int) {
        let first = format.optional[0]
        let end = characters[first].firstIndex(of: Self.filler) ?? first.upperBound
        guard characters[format.numberCheck] == Self.filler, format.optionalCheck == nil, end > first.lowerBound else {
            return ([format.number], format.numberCheck)
        }
        return ([format.number, first.lowerBound..<end - 1], end - 1)
    }

    /// The holder's name as payment cards have it: surname, `/`, given names.
    var name: [UInt8] { DocumentText.name(characters[format.names]) }

    /// The values that tell of the holder or the document, as ``DocumentValues`` looks for them: each with its check digit
    /// and without; the lines.
    var values: [[UInt8]] {
        let (places, check) = numberPlaces
        let number = places.flatMap { characters[$0] }
        let checkedNumber = number + [characters[check]]
        let checkedDates = [format.birth, format.expiry].map { Array(characters[$0.lowerBound...$0.upperBound]) }
        let count = characters.count / format.lines
        let lines = stride(from: 0, to: characters.count, by: count).map { Array(characters[$0..<$0 + count]) }
        let optional = format.optional.map { Array(characters[$0]) }
        let dates = [format.birth, format.expiry].flatMap { DocumentText.dates(characters[$0]) }
        // What a key is made from (ICAO 9303-11, 4.3.2).
        let information = checkedNumber + checkedDates.flatMap(\.self)
        return [number, checkedNumber, information] + lines + optional + dates + checkedDates
    }

    /// A check digit: weights 7, 3 and 1 in turn (ICAO 9303-3, 4.9).
    private static func checkDigit(_ characters: some Sequence<UInt8>) -> UInt8 {
        let sum = characters.enumerated().reduce(0) { $0 + value(of: $1.element) * [7, 3, 1][$1.offset % 3] }
        return UInt8(ascii: "0") + UInt8(sum % 10)
    }

    /// 0 to 9, A to Z from 10; everything else 0.
    private static func value(of character: UInt8) -> Int {
        switch character {
        case 0x30...0x39: Int(character) - 0x30
        case 0x41...0x5A: Int(character) - 0x41 + 10
        default: 0
        }
    }
}

/// The text of a travel document.
enum DocumentText {
    /// Returns `X` for a letter, of any alphabet in UTF-8, 0 for a digit, other characters as they are.
    static func masked(_ character: UInt8) -> UInt8 {
        switch character {
        case 0x30...0x39: UInt8(ascii: "0")
        case 0x41...0x5A, 0x61...0x7A, 0x80...0xFF: UInt8(ascii: "X")
        default: character
        }
    }

    /// Returns a name as ``CardholderNames`` learns it: `ERIKSSON<<ANNA<MARIA` is `ERIKSSON/ANNA MARIA`.
    static func name(_ characters: some Collection<UInt8>) -> [UInt8] {
        let words = characters.split(separator: UInt8(ascii: "<"), omittingEmptySubsequences: false)
        let surname = words.prefix { !$0.isEmpty }
        let given = words.dropFirst(surname.count).filter { !$0.isEmpty }
        let parts = [Array(surname), Array(given)].map { Array($0.joined(separator: " ".utf8)) }
        return Array(parts.joined(separator: "/".utf8))
    }

    /// Returns the ways in which a date of six digits, year first, is written: year or day first, with two or four digits
    /// of the year.
    static func dates(_ digits: some Collection<UInt8>) -> [[UInt8]] {
        let digits = Array(digits)
        guard digits.count == 6 else { return [] }
        let (year, month, day) = (digits[0..<2], digits[2..<4], digits[4..<6])
        let dayFirst = Array(day + month)
        return [digits, dayFirst + year] + ["19", "20"].map { century in dayFirst + Array(century.utf8) + year }
    }
}
