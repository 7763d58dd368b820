import SmartCard

/// DG15: the public key whose private key active authentication proves (ICAO 9303-10, 4.7.15).
public struct ActiveAuthenticationPublicKey: Hashable, Sendable {
    /// The key, by its algorithm.
    public enum Kind: Hashable, Sendable {
        /// RSA; both numbers without leading zeros.
        case rsa(modulus: [UInt8], exponent: [UInt8])
        /// ECDSA: a curve's name, nil for domain parameters that are not those of a curve with a name, and a point as it is
        /// encoded.
        case elliptic(curve: String?, point: [UInt8])
        /// A key of another algorithm: the bits of its encoding.
        case other([UInt8])
    }

    /// The object identifier of the key's algorithm.
    public let algorithm: OID
    public let kind: Kind
    /// The key as other programs read it: SubjectPublicKeyInfo (RFC 5280, 4.1.2.7).
    public let subjectPublicKeyInfo: [UInt8]

    /// Parses `6F { SubjectPublicKeyInfo }`.  It does not check that an RSA key is long enough, or a point on its curve:
    /// ``ActiveAuthentication`` does.
    ///
    /// - Throws: ``TravelDocumentFormatError``.
    public init(parsing bytes: [UInt8]) throws(TravelDocumentFormatError) {
        var content = try Template(bytes, of: .dataGroup(15))
        let object = try content.take(0x30)
        try content.finish()
        do {
            try self.init(ASN1(object.encoded, ASN1.Tag.sequence, "SubjectPublicKeyInfo"))
        } catch {
            throw content.error(.value(error.due), at: error.offset)
        }
    }

    private init(_ info: ASN1) throws(MalformedObject) {
        let due = "SubjectPublicKeyInfo"
        var fields = info.fields
        let algorithm = try AlgorithmIdentifier(fields.take(due))
        let field = try fields.take(ASN1.Tag.bitString, due)
        let bits = try field.bits(due)
        try fields.end(due)
        self.algorithm = algorithm.oid
        subjectPublicKeyInfo = Array(info.encoded)
        switch algorithm.oid {
        case .rsaEncryption, .rsaPSS:
            // Offsets are those in the file: the number of unused bits is before the bytes.
            let numbers = try SignatureKey.rsaNumbers(field.content.dropFirst())
            kind = .rsa(modulus: numbers.modulus, exponent: numbers.exponent)
        case .ecPublicKey:
            kind = .elliptic(curve: try algorithm.parameters.flatMap(NamedCurve.init)?.name, point: bits)
        default: kind = .other(bits)
        }
    }
}

extension ActiveAuthenticationPublicKey: PersonalData {
    /// The kind of key: `RSA key, 2048 bits`, `key on P-256`.
    public var description: String {
        switch kind {
        case .rsa(let modulus, _): "RSA key, \(modulus.count * 8 - (modulus.first?.leadingZeroBitCount ?? 0)) bits"
        case .elliptic(let curve, _): "key on \(curve ?? "a curve without a name")"
        case .other: "key of algorithm \(algorithm)"
        }
    }
}
