/// The name of a person in the form of ICAO 9303-3, 4.6: a primary and a secondary identifier, each of components.
///
/// Two fillers stand between the identifiers, one between components: `ERIKSSON<<ANNA<MARIA`.
public struct DocumentName: Hashable, Sendable {
    /// The components of the primary identifier, usually the surname.
    public let primaryComponents: [String]
    /// The components of the secondary identifier, usually the given names; empty for a name without one.
    public let secondaryComponents: [String]
    /// True if the name may have been cut off: it fills its field in a machine readable zone (ICAO 9303-4, 4.2.3).
    public let mayBeTruncated: Bool

    /// Takes a name apart.
    ///
    /// - Parameters:
    ///   - text: with fillers; those at the end are dropped.
    ///   - isWholeField: true if `text` is the name's field of a zone, in which only a name that was cut off, or that just
    ///     fits, ends with a letter.
    init(_ text: String, isWholeField: Bool = false) {
        mayBeTruncated = isWholeField && text.last != "<"
        let scalars = Array(text.unicodeScalars)
        let separator = scalars.indices.dropLast().first { scalars[$0] == "<" && scalars[$0 + 1] == "<" }
        func components(_ part: ArraySlice<Unicode.Scalar>) -> [String] {
            part.split(separator: "<").map { String(String.UnicodeScalarView($0)) }
        }
        primaryComponents = components(scalars[..<(separator ?? scalars.endIndex)])
        secondaryComponents = components(scalars[(separator ?? scalars.endIndex)...])
    }

    /// The components with blanks between them: `VAN DER STEEN`.
    public var primaryIdentifier: String { primaryComponents.joined(separator: " ") }
    /// The components with blanks between them: `ANNA MARIA`.
    public var secondaryIdentifier: String { secondaryComponents.joined(separator: " ") }
}

extension DocumentName: PersonalData {
    public var description: String { "name" }
}
