/// The plural rule of a language for whole numbers (Unicode CLDR, plurals.xml).
struct PluralRule: Sendable {
    enum Form: String, CaseIterable, Sendable {
        case zero, one, two, few, many, other
    }

    private let choose: @Sendable (Int) -> Form

    func form(of count: Int) -> Form { choose(count == .min ? .max : abs(count)) }

    /// The rule of a language; that of English for one that is not in the table.
    static func of(_ tag: String) -> PluralRule {
        let language = tag.prefix { $0 != "-" }
        return rules.first { $0.languages.contains(language) }?.rule ?? english
    }

    private static let english = PluralRule { $0 == 1 ? .one : .other }

    private static let rules: [(languages: Set<Substring>, rule: PluralRule)] = [
        (["en", "de", "nl", "sv", "da", "nb", "no", "fi", "et", "el", "hu", "tr", "bg"], english),
        (["es", "it"], PluralRule { $0 == 1 ? .one : isMillions($0) ? .many : .other }),
        (["fr"], PluralRule { $0 < 2 ? .one : isMillions($0) ? .many : .other }),
        (["pt"], PluralRule { $0 < 2 ? .one : isMillions($0) ? .many : .other }),
        (["ja", "zh", "ko", "th", "vi", "id"], PluralRule { _ in .other }),
        (["cs", "sk"], PluralRule { $0 == 1 ? .one : (2...4).contains($0) ? .few : .other }),
        (
            ["pl"],
            PluralRule { $0 == 1 ? .one : isFew($0) ? .few : .many }
        ),
        (
            ["ru", "uk"],
            PluralRule { $0 % 10 == 1 && $0 % 100 != 11 ? .one : isFew($0) ? .few : .many }
        ),
        (
            ["ar"],
            PluralRule { count in
                switch (count, count % 100) {
                case (0, _): .zero
                case (1, _): .one
                case (2, _): .two
                case (_, 3...10): .few
                case (_, 11...99): .many
                default: .other
                }
            }
        ),
    ]

    private static func isMillions(_ count: Int) -> Bool { count != 0 && count % 1_000_000 == 0 }

    /// Numbers that end with 2, 3 or 4, and not with 12, 13 or 14.
    private static func isFew(_ count: Int) -> Bool {
        (2...4).contains(count % 10) && !(12...14).contains(count % 100)
    }
}
