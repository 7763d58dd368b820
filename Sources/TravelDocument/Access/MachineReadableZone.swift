/// A machine readable zone: the two or three lines printed on a travel document (ICAO 9303-3, 4.2).
///
/// Every check digit holds: a zone that was misread is not one.  The zone is personal data; it prints masked.
public struct MachineReadableZone: Hashable, Sendable {
    /// The layouts of ICAO 9303-5, 9303-6 and 9303-4, by the size of the document.
    public enum Format: String, Hashable, Sendable, CaseIterable {
        /// A card: three lines of 30 characters.
        case td1 = "TD1"
        /// A larger card: two lines of 36.
        case td2 = "TD2"
        /// A passport: two lines of 44.
        case td3 = "TD3"

        var lineCount: Int { self == .td1 ? 3 : 2 }
        var lineLength: Int {
            switch self {
            case .td1: 30
            case .td2: 36
            case .td3: 44
            }
        }
    }

    public let format: Format
    /// All characters, without line ends: `A` to `Z`, `0` to `9` and the filler `<`.
    let text: String
    /// The document number, without fillers.
    let documentNumber: String
    /// Year, month and day, two characters each; `<<` for a part that is unknown.
    let dateOfBirth: String
    let dateOfExpiry: String

    /// Parses the lines of a zone.
    ///
    /// - Parameter lines: with line ends, or one after the other as a chip stores them.  Blanks at either end of a line
    ///   are dropped.
    /// - Throws: ``MachineReadableZoneError``, which names the field, and never contains what was read.
    public init(_ lines: some StringProtocol) throws(MachineReadableZoneError) {
        let text = String(lines.filter { !$0.isWhitespace })
        guard let format = Format.allCases.first(where: { $0.lineCount * $0.lineLength == text.utf8.count }) else {
            throw .length(text.utf8.count)
        }
        guard let characters = CheckedCharacters(text) else { throw .character }
        self.format = format
        self.text = text
        let layout = Layout.of(format)

        let birth = try characters.field(layout.dateOfBirth, .dateOfBirth)
        let expiry = try characters.field(layout.dateOfExpiry, .dateOfExpiry)
        (documentNumber, _) = try characters.documentNumber(layout)
        (dateOfBirth, dateOfExpiry) = (birth, expiry)
        if let personalNumber = layout.personalNumber {
            // A number that is absent may have a filler for its digit (ICAO 9303-4, 4.2.2.2).
            let isAbsent = characters[personalNumber].allSatisfy { $0 == "<" }
            guard characters.checkDigitHolds(after: personalNumber) || isAbsent && characters.hasFiller(personalNumber)
            else { throw .checkDigit(.personalNumber) }
        }
        let composite = layout.composite.map { characters[$0] }.joined()
        guard CheckDigit.of(composite) == characters[layout.compositeDigit..<layout.compositeDigit + 1].first else {
            throw .checkDigit(.composite)
        }
    }
}

/// A zone that cannot be parsed.
public enum MachineReadableZoneError: Error, Hashable, Sendable {
    /// A field that has a check digit.
    public enum Field: String, Hashable, Sendable {
        case documentNumber = "document number"
        case dateOfBirth = "date of birth"
        case dateOfExpiry = "date of expiry"
        case personalNumber = "personal number"
        /// The last check digit, over all these fields.
        case composite = "composite"
    }

    /// The number of characters is that of no format: 90, 72 or 88.
    case length(Int)
    /// A character that is neither a letter from A to Z, nor a digit, nor the filler.
    case character
    case checkDigit(Field)
}

extension MachineReadableZoneError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .length(let count):
            "a machine readable zone has 90, 72 or 88 characters, and this one \(count). Type all of its lines."
        case .character: "a machine readable zone contains A to Z, 0 to 9 and <, and nothing else"
        case .checkDigit(let field):
            "the check digit of the \(field.rawValue) is wrong: one of its characters was misread"
        }
    }
}

extension MachineReadableZone: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The format alone.
    public var description: String { "machine readable zone, \(format.rawValue)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}

/// The check digit of a zone (ICAO 9303-3, 4.9).
enum CheckDigit {
    /// Returns the check digit: the sum of the values, weighted 7, 3, 1 in turn, modulo 10.
    ///
    /// - Returns: nil for a character that a zone cannot contain.
    static func of(_ characters: some StringProtocol) -> Character? {
        var sum = 0
        for (index, character) in characters.utf8.enumerated() {
            guard let value = value(of: character) else { return nil }
            sum += value * [7, 3, 1][index % 3]
        }
        return Character("\(sum % 10)")
    }

    /// A digit is itself, A to Z are 10 to 35, and the filler is 0.
    static func value(of character: UInt8) -> Int? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(character - UInt8(ascii: "0"))
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): Int(character - UInt8(ascii: "A")) + 10
        case UInt8(ascii: "<"): 0
        default: nil
        }
    }
}

/// The places of the fields, counted over all lines.  The check digit of a field is the character after it.
private struct Layout {
    let documentNumber: Range<Int>
    let dateOfBirth: Range<Int>
    let dateOfExpiry: Range<Int>
    var personalNumber: Range<Int>?
    /// The end of a document number with more than nine characters (ICAO 9303-5, 4.2.4; 9303-6, 4.2.4).
    var documentNumberEnd: Range<Int>?
    /// The parts that the composite check digit is over.
    let composite: [Range<Int>]
    let compositeDigit: Int

    static func of(_ format: MachineReadableZone.Format) -> Layout {
        switch format {
        case .td1:
            Layout(
                documentNumber: 5..<14, dateOfBirth: 30..<36, dateOfExpiry: 38..<44, documentNumberEnd: 15..<30,
                composite: [5..<30, 30..<37, 38..<45, 48..<59], compositeDigit: 59)
        case .td2:
            Layout(
                documentNumber: 36..<45, dateOfBirth: 49..<55, dateOfExpiry: 57..<63, documentNumberEnd: 64..<71,
                composite: [36..<46, 49..<56, 57..<71], compositeDigit: 71)
        case .td3:
            Layout(
                documentNumber: 44..<53, dateOfBirth: 57..<63, dateOfExpiry: 65..<71, personalNumber: 72..<86,
                composite: [44..<54, 57..<64, 65..<87], compositeDigit: 87)
        }
    }
}

/// Characters of which each may stand in a zone.
private struct CheckedCharacters {
    private let bytes: [UInt8]

    init?(_ text: String) {
        bytes = Array(text.utf8)
        guard bytes.allSatisfy({ CheckDigit.value(of: $0) != nil }) else { return nil }
    }

    subscript(range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }

    func hasFiller(_ range: Range<Int>) -> Bool { bytes[range.upperBound] == UInt8(ascii: "<") }

    func checkDigitHolds(after range: Range<Int>) -> Bool {
        CheckDigit.of(self[range]) == Character(Unicode.Scalar(bytes[range.upperBound]))
    }

    func field(
        _ range: Range<Int>, _ field: MachineReadableZoneError.Field
    ) throws(MachineReadableZoneError) -> String {
        guard checkDigitHolds(after: range) else { throw .checkDigit(field) }
        return self[range]
    }

    /// Returns the number without fillers, and its check digit.
    ///
    /// A number of more than nine characters has a filler for its digit.  It continues in the optional data: the rest of
    /// the number, its check digit, and a filler.
    func documentNumber(_ layout: Layout) throws(MachineReadableZoneError) -> (number: String, digit: Character) {
        let first = self[layout.documentNumber]
        guard hasFiller(layout.documentNumber), let end = layout.documentNumberEnd else {
            guard checkDigitHolds(after: layout.documentNumber), let digit = CheckDigit.of(first) else {
                throw .checkDigit(.documentNumber)
            }
            return (String(first.prefix { $0 != "<" }), digit)
        }
        let rest = self[end].prefix { $0 != "<" }
        let number = first + rest.dropLast()
        guard let digit = rest.last, CheckDigit.of(number) == digit else { throw .checkDigit(.documentNumber) }
        return (number, digit)
    }
}
