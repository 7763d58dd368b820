import SmartCard

/// A chip's public key to agree with, and its group (ICAO 9303-11, 9.4 and 9.5).
///
/// The group is a standardized one, by number, by name, or with all of its parameters spelled out.
struct AgreementKey: Sendable {
    let group: any KeyAgreement
    /// The number of the group.
    let domainParameters: Int
    let value: [UInt8]
    let isElliptic: Bool

    /// Parses a SubjectPublicKeyInfo.
    ///
    /// - Returns: nil for a group that is not among the standardized ones.
    init?(_ info: ASN1) throws(MalformedObject) {
        let due = "SubjectPublicKeyInfo"
        var fields = info.fields
        let algorithm = try AlgorithmIdentifier(fields.take(due))
        let bits = try fields.take(ASN1.Tag.bitString, due).bits(due)
        try fields.end(due)
        guard let parameters = algorithm.parameters, let number = try Self.number(algorithm.oid, parameters),
            let group = StandardizedDomainParameters.group(number)
        else { return nil }
        (self.group, domainParameters, isElliptic) = (group, number, number > 2)
        value = isElliptic ? bits : try ASN1(bits, ASN1.Tag.integer, "DHPublicKey").natural("DHPublicKey")
    }

    private static let standardizedDomainParameters = OID("0.4.0.127.0.7.1.2")
    /// RFC 3279, 2.3.3, and PKCS #3.
    private static let modularGroups: Set<OID> = [OID("1.2.840.10046.2.1"), OID("1.2.840.113549.1.3.1")]

    /// The number of the standardized domain parameters (ICAO 9303-11, 9.5.1, table 6).
    private static func number(_ oid: OID, _ parameters: ASN1) throws(MalformedObject) -> Int? {
        switch oid {
        case standardizedDomainParameters: return try parameters.number("the number of domain parameters")
        case .ecPublicKey: return try NamedCurve(parameters)?.standardNumber
        case _ where modularGroups.contains(oid):
            // Both begin with the prime and the generator.
            let due = "DomainParameters"
            guard parameters.tag == ASN1.Tag.sequence else { throw parameters.fault(due) }
            var fields = parameters.fields
            let prime = try fields.take(ASN1.Tag.integer, due).natural(due)
            let generator = try fields.take(ASN1.Tag.integer, due).natural(due)
            return RFC5114.all.firstIndex { group in
                (try? [UInt8](hex: group.prime)) == prime && (try? [UInt8](hex: group.generator)) == generator
            }
        default: return nil
        }
    }
}
