/// The extensions of a certificate that decide whether to believe it (ICAO 9303-12, 7.1; RFC 5280, 4.2).
struct CertificateExtensions: Sendable {
    /// RFC 5280, 4.2.1.3.
    struct KeyUsage: OptionSet, Hashable, Sendable {
        let rawValue: UInt8
        static let digitalSignature = KeyUsage(rawValue: 0x80)
        static let keyCertSign = KeyUsage(rawValue: 0x04)
        static let crlSign = KeyUsage(rawValue: 0x02)
    }

    private(set) var keyUsage: KeyUsage?
    /// The flag cA of the basic constraints.
    private(set) var isAuthority: Bool?
    private(set) var subjectKeyIdentifier: [UInt8]?
    private(set) var authorityKeyIdentifier: [UInt8]?
    private(set) var extendedKeyUsages: [OID] = []
    /// The documents that the signer signs, as in a machine readable zone.
    private(set) var documentTypes: [String]?
    /// Critical ones that nothing here understands.
    private(set) var unknownCritical: [OID] = []

    /// - Parameter list: the explicit tag; nil: there are none.
    init(_ list: ASN1?) throws(MalformedObject) {
        guard let list else { return }
        var seen: Set<OID> = []
        let sequence = try list.inner(ASN1.Tag.sequence, "Extensions")
        for element in try sequence.elements(ASN1.Tag.sequence, "Extension") {
            let item = try CertificateExtension(element)
            guard seen.insert(item.oid).inserted else { throw element.fault("an extension that is there once") }
            if let read = Self.readers[item.oid] {
                try read(&self, item.value)
            } else if item.isCritical, !Self.withoutEffect.contains(item.oid) {
                unknownCritical.append(item.oid)
            }
        }
    }

    private typealias Reader =
        @Sendable (_ extensions: inout CertificateExtensions, _ value: ASN1) throws(MalformedObject) -> Void

    private static let readers: [OID: Reader] = [
        OID("2.5.29.15"): { (extensions: inout CertificateExtensions, value: ASN1) throws(MalformedObject) in
            let due = "KeyUsage"
            guard value.tag == ASN1.Tag.bitString, value.content.count >= 1 else { throw value.fault(due) }
            extensions.keyUsage = KeyUsage(rawValue: value.content.dropFirst().first ?? 0)
        },
        OID("2.5.29.19"): { (extensions: inout CertificateExtensions, value: ASN1) throws(MalformedObject) in
            let due = "BasicConstraints"
            guard value.tag == ASN1.Tag.sequence else { throw value.fault(due) }
            var fields = value.fields
            extensions.isAuthority = try fields.takeOptional(ASN1.Tag.boolean, due)?.boolean(due) ?? false
            _ = try fields.takeOptional(ASN1.Tag.integer, due)
            try fields.end(due)
        },
        OID("2.5.29.14"): { (extensions: inout CertificateExtensions, value: ASN1) throws(MalformedObject) in
            guard value.tag == ASN1.Tag.octetString else { throw value.fault("SubjectKeyIdentifier") }
            extensions.subjectKeyIdentifier = Array(value.content)
        },
        .authorityKeyIdentifier: { (extensions: inout CertificateExtensions, value: ASN1) throws(MalformedObject) in
            extensions.authorityKeyIdentifier = try AuthorityKeyIdentifier.parse(value)
        },
        OID("2.5.29.37"): { (extensions: inout CertificateExtensions, value: ASN1) throws(MalformedObject) in
            let due = "ExtKeyUsageSyntax"
            guard value.tag == ASN1.Tag.sequence else { throw value.fault(due) }
            for usage in try value.elements(ASN1.Tag.objectIdentifier, due) {
                extensions.extendedKeyUsages.append(try usage.identifier(due))
            }
        },
        // ICAO 9303-12, 7.1.1.6.
        OID("2.23.136.1.1.6.2"): { (extensions: inout CertificateExtensions, value: ASN1) throws(MalformedObject) in
            let due = "DocumentTypeListSyntax"
            guard value.tag == ASN1.Tag.sequence else { throw value.fault(due) }
            var fields = value.fields
            _ = try fields.take(ASN1.Tag.integer, due)
            let list = try fields.take(ASN1.Tag.set, due)
            try fields.end(due)
            var types: [String] = []
            var elements = list.fields
            while !elements.isEmpty {
                types.append(String(decoding: try elements.take(due).content, as: UTF8.self))
            }
            extensions.documentTypes = types
        },
    ]

    /// Extensions that say nothing about whether to believe a document, whether critical or not: the private key's
    /// usage period, alternative names, policies, distribution points, a change of name.
    private static let withoutEffect: Set<OID> = [
        OID("2.5.29.16"), OID("2.5.29.17"), OID("2.5.29.18"), OID("2.5.29.31"), OID("2.5.29.32"),
        OID("2.23.136.1.1.6.1"),
    ]
}

/// One extension (RFC 5280, 4.1.2.9).
struct CertificateExtension: Sendable {
    let oid: OID
    let isCritical: Bool
    /// The value in the octet string.
    let value: ASN1

    init(_ element: ASN1) throws(MalformedObject) {
        let due = "Extension"
        var fields = element.fields
        oid = try fields.take(ASN1.Tag.objectIdentifier, due).identifier(due)
        isCritical = try fields.takeOptional(ASN1.Tag.boolean, due)?.boolean(due) ?? false
        var content = ASN1Fields(try fields.take(ASN1.Tag.octetString, due).content)
        try fields.end(due)
        value = try content.take(due)
        try content.end(due)
    }
}

/// RFC 5280, 4.2.1.1.
enum AuthorityKeyIdentifier {
    /// - Returns: the identifier of the key, if there is one.
    static func parse(_ value: ASN1) throws(MalformedObject) -> [UInt8]? {
        let due = "AuthorityKeyIdentifier"
        guard value.tag == ASN1.Tag.sequence else { throw value.fault(due) }
        var fields = value.fields
        let identifier = try fields.takeOptional(ASN1.Tag.plainContext(0), due)
        return identifier.map { Array($0.content) }
    }
}

extension OID {
    static let authorityKeyIdentifier = OID("2.5.29.35")
}
