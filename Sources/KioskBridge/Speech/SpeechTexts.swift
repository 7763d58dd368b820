import CardEncryption
import ComposableCheckout
import Foundation

/// The texts of a page, by which it names what is said: a row for each text, a column for each language.
///
/// A page never sends a text of its own.  It names a key, and values for the names in braces.
public struct SpeechTexts: Hashable, Sendable {
    /// A table that cannot be read: what was due, and the offset of its part in the file, in bytes.
    public struct Malformed: Error, Hashable, Sendable, CustomStringConvertible {
        public let offset: Int
        public let due: String

        /// The reason in English, with a hint.
        public var description: String {
            "the page's texts cannot be said: at byte \(offset), \(due) is due.  See the example page's strings.js."
        }
    }

    /// The languages of the columns, of two or three letters (ISO 639); the first stands in for others.
    public let languages: [String]
    private var rows: [String: [String]]

    private enum Limit {
        static let file = 1 << 20
        static let rows = 10_000
        /// Bytes of a text.
        static let text = 2000
    }

    /// A table.
    ///
    /// - Parameters:
    ///   - languages: those of the columns, of two or three letters.
    ///   - rows: the texts by their keys, one for each language.
    public init(languages: [String], rows: [String: [String]]) throws(Malformed) {
        let areLanguages = languages.allSatisfy { 2...3 ~= $0.utf8.count && Locale(bcp47: $0) != nil }
        guard areLanguages, 1...100 ~= languages.count else {
            throw Malformed(offset: 0, due: "languages of two or three letters")
        }
        guard rows.count <= Limit.rows, rows.values.allSatisfy({ $0.count == languages.count }) else {
            throw Malformed(offset: 0, due: "a text for each language")
        }
        guard rows.values.joined().allSatisfy({ $0.utf8.count <= Limit.text }) else {
            throw Malformed(offset: 0, due: "texts of at most \(Limit.text) bytes")
        }
        (self.languages, self.rows) = (languages, rows)
    }

    /// Reads the table of a page's module, in the form of the example page's `strings.js`: a line
    /// `export const languages = { en: "English", … };`, and an object `const rows = {` of keys and lists of texts, in
    /// JSON but for a comma after the last one.
    ///
    /// - Parameter module: the module's bytes.
    public init(module: some Collection<UInt8>) throws(Malformed) {
        guard module.count <= Limit.file else { throw Malformed(offset: Limit.file, due: "the end of the file") }
        let bytes = Array(module)
        let names = try Self.part(of: bytes, after: "const languages = {", before: "}")
        let languages = names.bytes.split(separator: UInt8(ascii: ",")).map { pair in
            let name = pair.prefix { $0 != UInt8(ascii: ":") }
            return String(decoding: name, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        }
        let part = try Self.part(of: bytes, after: "const rows = {", before: "\n};")
        let end = part.bytes.lastIndex { ![0x20, 0x0A, 0x0D, 0x09, UInt8(ascii: ",")].contains($0) }
        let members: [JSON.Text: JSON]
        do {
            members = try JSON.object(
                [UInt8(ascii: "{")] + part.bytes[..<(end.map { $0 + 1 } ?? 0)] + [UInt8(ascii: "}")])
        } catch { throw Malformed(offset: part.offset + error.offset - 1, due: error.due) }
        var rows: [String: [String]] = [:]
        for (key, row) in members {
            let texts = row.array?.compactMap(\.text?.string) ?? []
            guard texts.count == row.array?.count else {
                throw Malformed(offset: part.offset, due: "a list of texts for \(JSON.excerpt(key.string))")
            }
            rows[key.string] = texts
        }
        do { try self.init(languages: languages, rows: rows) } catch {
            throw Malformed(offset: part.offset, due: error.due)
        }
    }

    /// Returns the table with the texts of a checkout, under the keys that ``CheckoutCapability`` tells as `said`.
    public func withCheckout() -> SpeechTexts {
        var all = self
        all.rows.merge(InputLocalizable.rows(in: languages)) { own, _ in own }
        return all
    }

    private static func part(
        of bytes: [UInt8], after start: String, before end: String
    ) throws(Malformed) -> (offset: Int, bytes: [UInt8]) {
        guard let found = bytes.firstRange(of: Array(start.utf8)) else {
            throw Malformed(offset: bytes.count, due: start)
        }
        guard let last = bytes[found.upperBound...].firstRange(of: Array(end.utf8)) else {
            throw Malformed(offset: found.upperBound, due: end)
        }
        return (found.upperBound, Array(bytes[found.upperBound..<last.lowerBound]))
    }

    // MARK: Texts

    /// Returns a text with its values.
    ///
    /// - Parameters:
    ///   - key: names it.
    ///   - language: a language of the table.
    ///   - values: for the names in braces: no more and no fewer, each of the kind that its name has.
    func text(_ key: String, _ language: String, _ values: [String: String]) throws(BridgeErrorPayload) -> String {
        guard let row = rows[key], let column = languages.firstIndex(of: language) else {
            throw .init(.invalidRequest, "key: that of a text is due")
        }
        var said = ""
        var unused = Set(values.keys)
        for (index, part) in row[column].split(separator: "{", omittingEmptySubsequences: false).enumerated() {
            guard index > 0, let close = part.firstIndex(of: "}") else {
                said += (index > 0 ? "{" : "") + part
                continue
            }
            let name = String(part[..<close])
            guard let kind = SpokenValue.kinds[name], let value = values[name], kind.admits(value) else {
                throw .init(.invalidRequest, "values: what may be said for each name of the text is due")
            }
            unused.remove(name)
            said += value + part[part.index(after: close)...]
        }
        guard unused.isEmpty else { throw .init(.invalidRequest, "values: only names of the text are due") }
        return said
    }
}

/// A value in a text that is said: never one that tells who somebody is.
enum SpokenValue {
    /// An amount of money with its currency.
    case amount
    /// A number of at most four digits.
    case count

    /// The kinds by the names in braces; a text with another name is never said.
    static let kinds: [String: SpokenValue] = ["amount": .amount, "saved": .amount, "seconds": .count]

    func admits(_ value: String) -> Bool {
        switch self {
        case .count: 1...4 ~= value.utf8.count && value.utf8.allSatisfy { 0x30...0x39 ~= $0 }
        case .amount: Self.isAmount(value)
        }
    }

    /// The parts of Unicode CLDR's currency formats: digits and their separators, a minus sign, and the currency by its
    /// sign or by at most three letters.
    private static func isAmount(_ value: String) -> Bool {
        guard 1...40 ~= value.utf8.count else { return false }
        var (digits, letters, signs) = (0, 0, 0)
        // The currency comes before the number or after it, and not within.
        var isAfterNumber = false
        for scalar in value.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .decimalNumber where isAfterNumber: return false
            case .decimalNumber: digits += 1
            case .currencySymbol:
                signs += 1
                isAfterNumber = digits > 0
            case .uppercaseLetter, .lowercaseLetter, .otherLetter:
                letters += 1
                isAfterNumber = digits > 0
            case .spaceSeparator, .format: break
            case _ where ".,'’-−٫٬".unicodeScalars.contains(scalar): break
            default: return false
            }
        }
        return 1...12 ~= digits && letters <= 3 && signs <= 1 && letters + signs > 0
    }
}
