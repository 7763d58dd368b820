/// Names in the characters of a machine readable zone (ICAO 9303-3, 4.6 and 6).
///
/// It knows the Latin and Cyrillic letters of the standard's tables, A to Z, and punctuation.
public enum Transliteration {
    /// A language that has characters of its own for some Cyrillic letters.
    public enum Language: Hashable, Sendable {
        case belarusian, bulgarian, macedonian, serbian, ukrainian
    }

    /// Returns an identifier of a name as a zone has it: `MUELLER<LUEDENSCHEIDT` for `Müller-Lüdenscheidt`.
    ///
    /// For a letter with several recommended forms this is the first.  Blanks, hyphens and commas become fillers; other
    /// punctuation is left out.
    ///
    /// - Parameters:
    ///   - identifier: the primary or the secondary identifier.
    ///   - language: nil for the form that the tables have for no language in particular.
    /// - Returns: nil if a letter is in no table, and for digits, which a name in a zone does not have.
    public static func machineReadable(_ identifier: String, language: Language? = nil) -> String? {
        var words: [String] = []
        for word in Self.words(identifier) {
            guard let forms = forms(word, language) else { return nil }
            words.append(forms.compactMap(\.first).joined())
        }
        return words.joined(separator: "<")
    }

    /// The parts of an identifier that a zone has as components.
    static func words(_ identifier: String) -> [Substring] {
        identifier.split { $0.isWhitespace || separators.contains($0) }.filter { word in
            word.contains { !isOmitted($0) }
        }
    }

    /// The characters that a filler stands for, and the filler.
    private static let separators: Set<Character> = ["<", ",", "-", "\u{2010}", "\u{2011}"]

    /// Punctuation other than separators, which a zone is without.
    private static func isOmitted(_ character: Character) -> Bool {
        character.isPunctuation || character == "`" || character == "\u{02BC}"
    }

    /// Returns the forms of each letter of a word in `language`, the recommended one first.
    ///
    /// - Returns: nil if a letter has none.
    private static func forms(_ word: Substring, _ language: Language?) -> [[String]]? {
        forms(word) { row, exceptions in
            exceptions.filter { $0.language == language }.map(\.characters) + row.characters
        }
    }

    /// Returns the forms of each letter of a word in any language; nil if a letter has none.
    static func allForms(_ word: Substring) -> [[String]]? {
        forms(word) { row, exceptions in row.characters + exceptions.map(\.characters) }
    }

    private static func forms(_ word: Substring, of letter: (Row, [Exception]) -> [String]) -> [[String]]? {
        var forms: [[String]] = []
        for character in word where !isOmitted(character) {
            // The capital of one letter may be two: that of ß is SS.
            for capital in character.uppercased() {
                if let ascii = capital.asciiValue {
                    guard (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(ascii) else { return nil }
                    forms.append([String(capital)])
                } else {
                    guard let row = rows[capital] else { return nil }
                    forms.append(letter(row, row.exceptions.filter { forms.isEmpty || !$0.isInitial }))
                }
            }
        }
        return forms
    }

    private static let rows: [Character: Row] = Dictionary(
        (latin + cyrillic).map { ($0.letter, $0) }, uniquingKeysWith: { first, _ in first })
}
