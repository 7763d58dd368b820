import CCryptoLegacy
import SmartCard

/// An elliptic curve that has a name, and that libcrypto knows by it (ICAO 9303-12, 4.4.2; BSI TR-03111, 4.1).
///
/// A key whose domain parameters are spelled out is used only if they are those of such a curve, all of them: whoever
/// chooses the generator can sign for any public key.
struct NamedCurve: Hashable, Sendable {
    let name: String
    let oid: OID
    /// The number of the standardized domain parameters (ICAO 9303-11, 9.5.1); nil: none.
    let standardNumber: Int?
    private let number: Int32

    private init(_ name: String, _ oid: StaticString, _ number: Int32, _ standardNumber: Int?) {
        (self.name, self.oid, self.number, self.standardNumber) = (name, OID(oid), number, standardNumber)
    }

    static let all: [NamedCurve] = [
        .init("P-192", "1.2.840.10045.3.1.1", NID_X9_62_prime192v1, 8),
        .init("P-224", "1.3.132.0.33", NID_secp224r1, 10),
        .init("P-256", "1.2.840.10045.3.1.7", NID_X9_62_prime256v1, 12),
        .init("P-384", "1.3.132.0.34", NID_secp384r1, 15),
        .init("P-521", "1.3.132.0.35", NID_secp521r1, 18),
        .init("brainpoolP160r1", "1.3.36.3.3.2.8.1.1.1", NID_brainpoolP160r1, nil),
        .init("brainpoolP192r1", "1.3.36.3.3.2.8.1.1.3", NID_brainpoolP192r1, 9),
        .init("brainpoolP224r1", "1.3.36.3.3.2.8.1.1.5", NID_brainpoolP224r1, 11),
        .init("brainpoolP256r1", "1.3.36.3.3.2.8.1.1.7", NID_brainpoolP256r1, 13),
        .init("brainpoolP320r1", "1.3.36.3.3.2.8.1.1.9", NID_brainpoolP320r1, 14),
        .init("brainpoolP384r1", "1.3.36.3.3.2.8.1.1.11", NID_brainpoolP384r1, 16),
        .init("brainpoolP512r1", "1.3.36.3.3.2.8.1.1.13", NID_brainpoolP512r1, 17),
    ]

    /// The curve of a key's parameters: an identifier, or ECParameters (RFC 3279, 2.3.5).
    ///
    /// - Returns: nil if they are not those of a curve in the table.
    init?(_ parameters: ASN1) throws(MalformedObject) {
        let curve =
            if parameters.tag == ASN1.Tag.objectIdentifier {
                try Self.named(parameters)
            } else {
                try Self.equal(to: DomainParameters(parameters))
            }
        guard let curve else { return nil }
        self = curve
    }

    private static func named(_ parameters: ASN1) throws(MalformedObject) -> NamedCurve? {
        let oid = try parameters.identifier("namedCurve")
        return all.first { $0.oid == oid }
    }

    private static func equal(to parameters: DomainParameters) -> NamedCurve? {
        knownParameters.first { $0.parameters.contains(parameters) }?.curve
    }

    /// The parameters of each curve, with the generator in both forms.
    private static let knownParameters: [(curve: NamedCurve, parameters: [DomainParameters])] = all.map { curve in
        let forms = [POINT_CONVERSION_UNCOMPRESSED, POINT_CONVERSION_COMPRESSED]
        return (curve, forms.compactMap { DomainParameters(curve.number, form: $0) })
    }

    /// The bytes of a coordinate.
    var fieldLength: Int { Self.lengths[oid]?.field ?? 0 }
    /// The bytes of r, and of s.
    var orderLength: Int { Self.lengths[oid]?.order ?? 0 }

    private static let lengths: [OID: (field: Int, order: Int)] = Dictionary(
        uniqueKeysWithValues: knownParameters.compactMap { known in
            known.parameters.first.map { (known.curve.oid, ($0.prime.count, $0.order.count)) }
        })
}

/// The domain parameters of an elliptic curve over a prime field, whose cofactor is 1.  Numbers have no leading zeros.
private struct DomainParameters: Hashable {
    let prime: [UInt8]
    let a: [UInt8]
    let b: [UInt8]
    let generator: [UInt8]
    let order: [UInt8]

    /// Parses ECParameters (RFC 3279, 2.3.5).
    init(_ value: ASN1) throws(MalformedObject) {
        let due = "ECParameters"
        guard value.tag == ASN1.Tag.sequence else { throw value.fault(due) }
        var fields = value.fields
        guard (1...3).contains(try fields.take(ASN1.Tag.integer, due).number(due)) else { throw value.fault(due) }
        var field = try fields.take(ASN1.Tag.sequence, due).fields
        guard try field.take(ASN1.Tag.objectIdentifier, due).identifier(due) == .primeField else {
            throw value.fault("prime-field")
        }
        prime = try field.take(ASN1.Tag.integer, due).natural(due)
        try field.end(due)
        var curve = try fields.take(ASN1.Tag.sequence, due).fields
        a = Array(try curve.take(ASN1.Tag.octetString, due).content.drop { $0 == 0 })
        b = Array(try curve.take(ASN1.Tag.octetString, due).content.drop { $0 == 0 })
        _ = try curve.takeOptional(ASN1.Tag.bitString, due)
        try curve.end(due)
        generator = Array(try fields.take(ASN1.Tag.octetString, due).content)
        order = try fields.take(ASN1.Tag.integer, due).natural(due)
        let cofactor = try fields.takeOptional(ASN1.Tag.integer, due)
        guard try cofactor?.natural(due) ?? [1] == [1] else { throw value.fault("cofactor 1") }
        try fields.end(due)
    }

    /// The parameters of a curve of libcrypto.
    init?(_ number: Int32, form: point_conversion_form_t) {
        guard let group = EC_GROUP_new_by_curve_name(number) else { return nil }
        defer { EC_GROUP_free(group) }
        let numbers = (0..<4).map { _ in BigNumber([]) }
        let isRead = withPointers(numbers[0], numbers[1], numbers[2], numbers[3]) {
            EC_GROUP_get_curve(group, $0[0], $0[1], $0[2], nil) == 1 && EC_GROUP_get_order(group, $0[3], nil) == 1
        }
        var point = [UInt8](repeating: 0, count: 1 + 2 * numbers[0].byteCount)
        let count = EC_POINT_point2oct(group, EC_GROUP_get0_generator(group), form, &point, point.count, nil)
        let bytes = numbers.compactMap { $0.bytes($0.byteCount) }
        guard isRead, count > 0, bytes.count == 4 else { return nil }
        (prime, a, b, order) = (bytes[0], bytes[1], bytes[2], bytes[3])
        generator = Array(point.prefix(count))
    }
}
