import SmartCard

/// The name of an issuer or a subject (RFC 5280, 4.1.2.4).
///
/// Two names are equal if their attributes are, whichever string types they are written in: a country writes the same
/// name in different ways.
public struct DistinguishedName: Hashable, Sendable, CustomStringConvertible {
    /// A type and a value of a relative name.
    struct Attribute: Hashable, Sendable {
        let type: OID
        /// Folded: lower case, one blank for many (RFC 5280, 7.1).
        let folded: String
        let text: String

        static func == (a: Attribute, b: Attribute) -> Bool { a.type == b.type && a.folded == b.folded }
        func hash(into hasher: inout Hasher) {
            hasher.combine(type)
            hasher.combine(folded)
        }
    }

    let relativeNames: [Set<Attribute>]

    init(_ value: ASN1) throws(MalformedObject) {
        let due = "Name"
        guard value.tag == ASN1.Tag.sequence else { throw value.fault(due) }
        var names: [Set<Attribute>] = []
        for relative in try value.elements(ASN1.Tag.set, due) {
            var attributes: Set<Attribute> = []
            for element in try relative.elements(ASN1.Tag.sequence, due) {
                var fields = element.fields
                let type = try fields.take(ASN1.Tag.objectIdentifier, due).identifier(due)
                let text = Self.text(try fields.take(due))
                try fields.end(due)
                let folded = text.lowercased().split(whereSeparator: \.isWhitespace).joined(separator: " ")
                attributes.insert(Attribute(type: type, folded: folded, text: text))
            }
            guard !attributes.isEmpty else { throw relative.fault(due) }
            names.append(attributes)
        }
        relativeNames = names
    }

    /// The text of a DirectoryString; bytes of another type in hexadecimal, with their tag.
    private static func text(_ value: ASN1) -> String {
        switch value.tag {
        case 0x0C, 0x12, 0x13, 0x16: String(decoding: value.content, as: UTF8.self)
        case 0x14: String(String.UnicodeScalarView(value.content.map { Unicode.Scalar($0) }))
        case 0x1E where value.content.count.isMultiple(of: 2):
            String(
                decoding: stride(from: value.content.startIndex, to: value.content.endIndex, by: 2).map {
                    UInt16(value.content[$0]) << 8 | UInt16(value.content[$0 + 1])
                }, as: UTF16.self)
        default: "#" + value.encoded.hex
        }
    }

    private static let country = OID("2.5.4.6")

    /// The country, in capitals, if there is one and no other.
    public var country: String? {
        let countries = Set(relativeNames.joined().filter { $0.type == Self.country }.map(\.folded))
        return countries.count == 1 ? countries.first?.uppercased() : nil
    }

    private static let labels: [OID: String] = [
        country: "C", OID("2.5.4.10"): "O", OID("2.5.4.11"): "OU", OID("2.5.4.3"): "CN", OID("2.5.4.5"): "SERIALNUMBER",
    ]

    /// The attributes in order: `C=DE, O=bund, CN=csca`.
    public var description: String {
        relativeNames.map { names in
            names.map { "\(Self.labels[$0.type] ?? $0.type.description)=\($0.text)" }.sorted().joined(separator: "+")
        }.joined(separator: ", ")
    }
}
