/// The result of a comparison of a name with that of a machine readable zone.
public enum NameAgreement: Hashable, Sendable {
    /// The zone has the whole name.
    case same
    /// The zone has the name as far as there was room for it (ICAO 9303-4, 4.2.3).
    case truncated
    case different
    /// The name has letters for which there is no table, such as Chinese ones.
    case notComparable
}

extension DocumentName {
    /// Compares this name, as DG11 has it in national characters, with the name in a zone.
    ///
    /// A letter agrees with each of its recommended forms, in every language: `MÜLLER` with `MUELLER`, `MUXXLLER` and
    /// `MULLER`.
    ///
    ///     details.fullName?.agreement(with: zone.name)
    public func agreement(with zone: DocumentName) -> NameAgreement {
        let agreements = [
            Self.agreement(primaryComponents, zone.primaryComponents, zone.mayBeTruncated),
            Self.agreement(secondaryComponents, zone.secondaryComponents, zone.mayBeTruncated),
        ]
        return [.notComparable, .different, .truncated].first(where: agreements.contains) ?? .same
    }

    private static func agreement(
        _ components: [String], _ zoneComponents: [String], _ mayBeTruncated: Bool
    ) -> NameAgreement {
        let words = components.flatMap(Transliteration.words)
        var forms: [[[String]]] = []
        for word in words {
            guard let letters = Transliteration.allForms(word) else { return .notComparable }
            forms.append(letters)
        }
        guard zoneComponents.count <= forms.count else { return .different }
        let matches = zip(forms, zoneComponents).map(Match.init)
        if matches.allSatisfy(\.isWhole), zoneComponents.count == forms.count { return .same }
        return mayBeTruncated && matches.allSatisfy(\.isBeginning) ? .truncated : .different
    }

    /// Tells how a component of a zone agrees with the letters of a word, each of which has several forms.
    private struct Match {
        /// True if the component is the word.
        private(set) var isWhole = false
        /// True if the component is the word, or its beginning.
        private(set) var isBeginning = false

        init(_ letters: [[String]], _ component: String) {
            let component = Array(component.utf8)
            // The positions in the component up to which the letters so far may reach.
            var positions: Set<Int> = [0]
            for letter in letters {
                var next: Set<Int> = []
                for position in positions {
                    let rest = component[position...]
                    for form in letter {
                        if rest.starts(with: form.utf8) { next.insert(position + form.utf8.count) }
                        if Array(form.utf8).starts(with: rest) { isBeginning = true }
                    }
                }
                positions = next
            }
            isWhole = positions.contains(component.count)
            isBeginning = isBeginning || isWhole
        }
    }
}
