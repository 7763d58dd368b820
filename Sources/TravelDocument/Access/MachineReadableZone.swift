/// A machine readable zone: the two or three lines printed on a travel document (ICAO 9303-3, 4.2).
///
/// A zone that was typed or scanned has no wrong check digit: one that was misread is not a zone.  A zone that a chip
/// contains may have some, as its issuer made it (``checkDigits``).  The zone is personal data; it prints masked.
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
    /// The document number with all of its characters, without fillers at its end.
    ///
    /// A number of more than nine characters continues in the optional data (ICAO 9303-5, 4.2.2, note j).  A filler within
    /// the number stands for a blank or a special character.
    public let documentNumber: String
    public let dateOfBirth: TwoDigitDate
    public let dateOfExpiry: TwoDigitDate
    /// The optional data, without fillers at the end: one field, and two in ``Format/td1``.  A field that continues the
    /// document number is without that part.
    public let optionalData: [String]
    /// The check digits: number, birth, expiry, personal number (only in ``Format/td3``), composite.
    public let checkDigits: [PrintedCheckDigit]

    /// Parses the lines of a zone.
    ///
    /// - Parameter lines: with line ends, or one after the other as a chip stores them.  Blanks at either end of a line
    ///   are dropped.
    /// - Throws: ``MachineReadableZoneError``, which names the field, and never contains what was read.
    public init(_ lines: some StringProtocol) throws(MachineReadableZoneError) {
        try self.init(characters: String(lines.filter { !$0.isWhitespace }))
        if let wrong = checkDigits.first(where: { !$0.isRight }) { throw .checkDigit(wrong.field) }
    }

    /// Makes a zone of all of its characters, whether its check digits are right or wrong.
    init(characters text: String) throws(MachineReadableZoneError) {
        guard let format = Format.allCases.first(where: { $0.lineCount * $0.lineLength == text.utf8.count }) else {
            throw .length(text.utf8.count)
        }
        guard let characters = CheckedCharacters(text) else { throw .character }
        let layout = Layout.of(format)
        let number = characters.documentNumber(layout)
        self.format = format
        self.text = text
        documentNumber = number.number
        dateOfBirth = TwoDigitDate(characters[layout.dateOfBirth])
        dateOfExpiry = TwoDigitDate(characters[layout.dateOfExpiry])
        optionalData = [number.optionalData] + [layout.secondOptionalData].compactMap(\.self).map(characters.trimmed)
        var checkDigits = [
            PrintedCheckDigit(.documentNumber, over: number.checked, printed: number.digit),
            characters.checkDigit(.dateOfBirth, after: layout.dateOfBirth),
            characters.checkDigit(.dateOfExpiry, after: layout.dateOfExpiry),
        ]
        if let personalNumber = layout.personalNumber {
            checkDigits.append(characters.checkDigit(.personalNumber, after: personalNumber))
        }
        checkDigits.append(
            PrintedCheckDigit(
                .composite, over: layout.composite.map { characters[$0] }.joined(),
                printed: characters[layout.compositeDigit]))
        self.checkDigits = checkDigits
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

    /// The number of characters matches no format: 90, 72 or 88.
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

extension MachineReadableZone: PersonalData {
    /// The format alone.
    public var description: String { "machine readable zone, \(format.rawValue)" }
}
