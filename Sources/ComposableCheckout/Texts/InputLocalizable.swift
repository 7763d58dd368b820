import Logging

private let logger = Logger(label: "ComposableCheckout")

/// The texts of the checkout in the customer's language: one table of keys.
///
///     let texts = InputLocalizable(language: "de-AT")
///     texts.text("checkout.pay", ["amount": "12,34 €"])    // "12,34 € bezahlen"
///
/// A key that the language does not have is looked for in its wider language (`de-AT`, `de`), then in the fallback
/// languages, and in English at last.  A key that no table has is logged, and ``missing`` stands for it: no key is ever
/// shown.
public struct InputLocalizable: Sendable {
    /// Texts by key.
    public typealias Table = [String: String]

    /// The languages of the package's own tables.
    public static let languages = ["en", "de", "fr", "es"]
    /// The text in place of one that no table has.
    public static let missing = "—"
    /// The maximum length of a language tag (RFC 5646, 4.4.1).
    private static let longestTag = 35

    private static let builtIn: [String: Table] = [
        "en": table(english), "de": table(german), "fr": table(french), "es": table(spanish),
    ]

    /// The customer's language, a BCP 47 tag.
    public let language: String
    private let chain: [String]
    private let tables: [String: Table]

    /// Creates the texts for a language.
    ///
    /// - Parameters:
    ///   - language: a BCP 47 tag or a POSIX locale: `de-AT`, `de_AT.UTF-8`.
    ///   - fallbacks: further languages, before English.
    ///   - tables: the application's texts by language, which precede the package's.
    public init(language: String, fallbacks: [String] = [], tables: [String: Table] = [:]) {
        let tags = ([language] + fallbacks).map(Self.tag)
        self.language = tags.first.flatMap { $0.isEmpty ? nil : $0 } ?? "en"
        var chain: [String] = []
        for tag in tags + ["en"] {
            var parts = tag.split(separator: "-")
            while !parts.isEmpty {
                let tag = parts.joined(separator: "-")
                if !chain.contains(tag) { chain.append(tag) }
                parts.removeLast()
            }
        }
        self.chain = chain
        let own = tables.map { (Self.tag($0.key), $0.value) }
        self.tables = Self.builtIn.merging(own) { builtIn, own in builtIn.merging(own) { _, own in own } }
    }

    /// All keys of a language's table.
    public func keys(of language: String) -> Set<String> {
        Set(tables[Self.tag(language)].map { Array($0.keys) } ?? [])
    }

    /// The package's texts by key, with their placeholders: one for each of `languages`, in English where there is no other.
    package static func rows(in languages: [String]) -> [String: [String]] {
        let english = builtIn["en"] ?? [:]
        return Dictionary(
            uniqueKeysWithValues: english.map { key, text in (key, languages.map { builtIn[$0]?[key] ?? text }) })
    }

    /// True if the language is written from right to left.
    public var isRightToLeft: Bool { Self.isRightToLeft(language) }

    /// Returns a text.
    ///
    /// - Parameters:
    ///   - key: as `checkout.pay`.
    ///   - values: the values of its placeholders, `{amount}`.  They are isolated where their direction may differ from the
    ///     text's (Unicode Standard Annex 9, 2.4).
    public func text(_ key: String, _ values: [String: String] = [:]) -> String {
        guard let (text, language) = find([key]) else {
            logger.warning("no language has the text \(key)")
            return Self.missing
        }
        return Self.fill(text, values, isRightToLeft: Self.isRightToLeft(language))
    }

    /// Returns the text for a number, by the plural rules of the language that has it (Unicode CLDR): `key.one`,
    /// `key.other`.
    ///
    /// - Parameters:
    ///   - key: without the form.
    ///   - count: the number, and the value of the placeholder `{count}`.
    ///   - values: of the other placeholders, by their names.
    public func text(_ key: String, count: Int, _ values: [String: String] = [:]) -> String {
        let values = values.merging(["count": "\(count)"]) { own, _ in own }
        for language in chain {
            let form = PluralRule.of(language).form(of: count)
            for key in ["\(key).\(form.rawValue)", "\(key).other"] {
                guard let text = tables[language]?[key] else { continue }
                return Self.fill(text, values, isRightToLeft: Self.isRightToLeft(language))
            }
        }
        logger.warning("no language has the text \(key) for a number")
        return Self.missing
    }

    private func find(_ keys: [String]) -> (text: String, language: String)? {
        for language in chain {
            for key in keys { if let text = tables[language]?[key] { return (text, language) } }
        }
        return nil
    }

    /// Puts values in the place of `{name}`; a placeholder without a value becomes ``missing``.
    private static func fill(_ text: String, _ values: [String: String], isRightToLeft: Bool) -> String {
        var filled = ""
        var rest = text[...]
        while let start = rest.firstIndex(of: "{"), let end = rest[start...].firstIndex(of: "}") {
            filled += rest[..<start]
            let value = values[String(rest[rest.index(after: start)..<end])] ?? missing
            let isIsolated = isRightToLeft || value.unicodeScalars.contains(where: isRightToLeftScalar)
            filled += isIsolated ? "\u{2068}\(value)\u{2069}" : value
            rest = rest[rest.index(after: end)...]
        }
        return filled + rest
    }

    // MARK: Languages

    private static func table(_ text: String) -> Table {
        var table: Table = [:]
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: " = ", maxSplits: 1)
            if let key = parts.first, let text = parts.dropFirst().first { table[String(key)] = String(text) }
        }
        return table
    }

    /// The tag of a locale: `de_AT.UTF-8@euro` becomes `de-AT`.  Empty for what is no tag.
    private static func tag(_ locale: String) -> String {
        let name = locale.prefix { $0 != "." && $0 != "@" }
        guard name.utf8.count <= longestTag, !["C", "POSIX"].contains(name) else { return "" }
        let parts = name.split { $0 == "-" || $0 == "_" }
        guard parts.allSatisfy({ $0.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) } }) else { return "" }
        // RFC 5646, 2.1.1: languages in lower case, scripts capitalized, regions in upper case.
        return parts.enumerated().map { index, part in
            guard index > 0 else { return part.lowercased() }
            return switch part.count {
            case 2: part.uppercased()
            case 4: part.capitalizedFirst
            default: part.lowercased()
            }
        }.joined(separator: "-")
    }

    /// Languages that are written from right to left, and scripts (Unicode CLDR, characterOrder).
    private static let rightToLeft: Set<Substring> = [
        "ar", "ckb", "dv", "fa", "he", "ks", "ps", "sd", "ug", "ur", "yi", "Arab", "Hebr", "Thaa",
    ]

    private static func isRightToLeft(_ tag: String) -> Bool {
        let parts = tag.split(separator: "-")
        // A script decides, as in `az-Arab` and `ar-Latn`.
        if let script = parts.dropFirst().first(where: { $0.count == 4 }) { return rightToLeft.contains(script) }
        return parts.first.map(rightToLeft.contains) ?? false
    }

    /// Blocks of strong right-to-left characters: Hebrew to Arabic Extended-A, presentation forms, and those beyond the
    /// basic plane (Unicode Standard Annex 44, Bidi_Class R and AL by default).
    private static func isRightToLeftScalar(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x0590...0x08FF, 0xFB1D...0xFDFF, 0xFE70...0xFEFF, 0x10800...0x10FFF, 0x1E800...0x1EFFF: true
        default: false
        }
    }
}

extension Substring {
    fileprivate var capitalizedFirst: String { prefix(1).uppercased() + dropFirst().lowercased() }
}
