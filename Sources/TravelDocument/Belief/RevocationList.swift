public import Foundation

/// A list of certificates that their issuer revoked (RFC 5280, 5; ICAO 9303-12, 7.4).
public struct RevocationList: Hashable, Sendable {
    /// The list's bytes.
    public let encoded: [UInt8]
    public let issuer: DistinguishedName
    public let thisUpdate: Date
    /// The date on which the next list is due.
    public let nextUpdate: Date?
    let toBeSigned: [UInt8]
    let signatureAlgorithm: AlgorithmIdentifier
    let signature: [UInt8]
    let authorityKeyIdentifier: [UInt8]?
    /// Critical extensions, none of which a list for all certificates of its issuer has: of a part, or of the changes.
    let critical: [OID]
    /// The date of revocation by serial number, without leading zeros.
    private let revocations: [[UInt8]: Date]

    private static let maximumLength = 1 << 24

    /// Parses a list.
    ///
    /// - Throws: ``MalformedObject``.
    public init(_ bytes: [UInt8]) throws(MalformedObject) {
        let due = "CertificateList"
        let value = try ASN1(bytes, ASN1.Tag.sequence, due)
        guard bytes.count <= Self.maximumLength else { throw value.fault("a list of at most 16 MiB") }
        let signed = try SignedObject(value, due)
        (toBeSigned, signatureAlgorithm, signature) = (signed.toBeSigned, signed.algorithm, signed.signature)
        var fields = signed.content.fields
        _ = try fields.takeOptional(ASN1.Tag.integer, "version")
        let algorithm = try fields.take(ASN1.Tag.sequence, "signature")
        guard algorithm.encoded.elementsEqual(signatureAlgorithm.encoded) else {
            throw algorithm.fault("the same signature algorithm twice")
        }
        issuer = try DistinguishedName(fields.take(ASN1.Tag.sequence, "issuer"))
        thisUpdate = try fields.take("thisUpdate").moment("thisUpdate")
        let hasNext = [ASN1.Tag.utcTime, ASN1.Tag.generalizedTime].contains(fields.nextTag)
        nextUpdate = hasNext ? try fields.take("nextUpdate").moment("nextUpdate") : nil
        var critical: [OID] = []
        revocations = try Self.revocations(
            fields.takeOptional(ASN1.Tag.sequence, "revokedCertificates"), &critical)
        let list = try fields.takeOptional(ASN1.Tag.context(0), "crlExtensions")
        try fields.end("TBSCertList")
        var keyIdentifier: [UInt8]?
        if let list {
            for element in try list.inner(ASN1.Tag.sequence, "Extensions").elements(ASN1.Tag.sequence, "Extension") {
                let item = try CertificateExtension(element)
                if item.oid == .authorityKeyIdentifier { keyIdentifier = try AuthorityKeyIdentifier.parse(item.value) }
                if item.isCritical { critical.append(item.oid) }
            }
        }
        (authorityKeyIdentifier, self.critical, encoded) = (keyIdentifier, critical, bytes)
    }

    private static func revocations(
        _ list: ASN1?, _ critical: inout [OID]
    ) throws(MalformedObject) -> [[UInt8]: Date] {
        guard let list else { return [:] }
        let due = "revokedCertificates"
        var revocations: [[UInt8]: Date] = [:]
        for element in try list.elements(ASN1.Tag.sequence, due) {
            var fields = element.fields
            let serial = Array(try fields.take(ASN1.Tag.integer, due).content.drop { $0 == 0 })
            revocations[serial] = try fields.take(due).moment(due)
            if let extensions = try fields.takeOptional(ASN1.Tag.sequence, due) {
                for extensionElement in try extensions.elements(ASN1.Tag.sequence, due) {
                    let item = try CertificateExtension(extensionElement)
                    if item.isCritical { critical.append(item.oid) }
                }
            }
            try fields.end(due)
        }
        return revocations
    }

    public static func == (a: RevocationList, b: RevocationList) -> Bool { a.encoded == b.encoded }
    public func hash(into hasher: inout Hasher) { hasher.combine(encoded) }

    /// The date on which a certificate was revoked; nil: it was not.
    func revocation(of certificate: Certificate) -> Date? {
        certificate.issuer == issuer ? revocations[certificate.serialNumber] : nil
    }
}
