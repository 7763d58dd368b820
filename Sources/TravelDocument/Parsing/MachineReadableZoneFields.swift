import SmartCard

extension MachineReadableZone {
    /// The sex as the zone has it (ICAO 9303-4, 4.1.1.1).
    public enum Sex: Character, Hashable, Sendable {
        case female = "F"
        case male = "M"
        /// The issuer does not tell it.
        case unspecified = "<"
    }

    /// Parses DG1: `61 { 5F1F characters }` (ICAO 9303-10, 4.7.1).
    ///
    /// - Parameter bytes: the file; its zone has 90, 72 or 88 characters in ASCII, without line ends.
    /// - Throws: ``TravelDocumentFormatError``.  A wrong check digit is not an error; see ``checkDigits``.
    public init(parsing bytes: [UInt8]) throws(TravelDocumentFormatError) {
        var content = try Template(bytes, of: .dataGroup(1))
        let zone = try content.take(0x5F1F)
        try content.finish()
        if let wrong = zone.value.firstIndex(where: { CheckDigit.value(of: $0) == nil }) {
            throw content.error(.element(.zoneCharacter), at: wrong)
        }
        // Only the length can be wrong now.
        do { try self.init(characters: String(decoding: zone.value, as: UTF8.self)) } catch {
            throw content.error(.length(72...90), at: zone.value.startIndex)
        }
    }

    /// All lines, each without its end.
    public var lines: [String] {
        let characters = Array(text.utf8)
        return (0..<format.lineCount).map { line in
            String(
                decoding: characters[line * format.lineLength..<(line + 1) * format.lineLength], as: UTF8.self)
        }
    }

    /// One or two letters, without fillers: `P` and a second letter on passports; `A`, `C` or `I` first on cards.
    public var documentCode: String { field(Layout.documentCode) }

    /// The code of the issuing state or organization (ICAO 9303-3, 5), without fillers: `UTO`, `D`.
    public var issuingState: String { field(Layout.issuingState) }

    /// The code of the holder's nationality (ICAO 9303-3, 5), without fillers.
    public var nationality: String { field(Layout.of(format).nationality) }

    public var name: DocumentName { DocumentName(String(text[range(Layout.of(format).name)]), isWholeField: true) }

    /// The holder's sex; nil for a character that stands for none.
    public var sex: Sex? {
        let sex = Layout.of(format).sex
        return text[range(sex..<sex + 1)].first.flatMap(Sex.init)
    }

    /// A field without fillers at its end.
    private func field(_ field: Range<Int>) -> String {
        var field = text[range(field)]
        while field.last == "<" { field.removeLast() }
        return String(field)
    }

    private func range(_ field: Range<Int>) -> Range<String.Index> {
        let start = text.utf8.index(text.startIndex, offsetBy: field.lowerBound)
        return start..<text.utf8.index(start, offsetBy: field.count)
    }
}
