extension Digest {
    /// The hash functions of ICAO 9303-12, 4.4.3 (RFC 5754, 2).
    static let identifiers: [OID: Digest] = [
        OID("1.3.14.3.2.26"): .sha1,
        OID("2.16.840.1.101.3.4.2.4"): .sha224,
        OID("2.16.840.1.101.3.4.2.1"): .sha256,
        OID("2.16.840.1.101.3.4.2.2"): .sha384,
        OID("2.16.840.1.101.3.4.2.3"): .sha512,
    ]

    /// - Returns: nil for a hash function that is not of ICAO 9303, or with parameters other than NULL.
    init?(_ identifier: AlgorithmIdentifier) {
        // ICAO 9303-10, 4.6.2.3: parameters may be absent or NULL.
        guard identifier.parameters.map({ $0.tag == ASN1.Tag.null }) ?? true,
            let digest = Self.identifiers[identifier.oid]
        else { return nil }
        self = digest
    }
}

extension Digest: CustomStringConvertible {
    var description: String {
        switch self {
        case .sha1: "SHA-1"
        case .sha224: "SHA-224"
        case .sha256: "SHA-256"
        case .sha384: "SHA-384"
        case .sha512: "SHA-512"
        }
    }
}

/// An algorithm and its parameters (RFC 5280, 4.1.1.2).
struct AlgorithmIdentifier: Hashable, Sendable {
    let oid: OID
    let parameters: ASN1?
    let encoded: [UInt8]

    init(_ value: ASN1) throws(MalformedObject) {
        let due = "AlgorithmIdentifier"
        guard value.tag == ASN1.Tag.sequence else { throw value.fault(due) }
        var fields = value.fields
        oid = try fields.take(ASN1.Tag.objectIdentifier, due).identifier(due)
        parameters = fields.isEmpty ? nil : try fields.take(due)
        try fields.end(due)
        encoded = Array(value.encoded)
    }
}

/// An algorithm of signatures, with its parameters.
struct SignatureAlgorithm: Hashable, Sendable {
    enum Scheme: Hashable, Sendable {
        /// RSASSA-PKCS1-v1_5.
        case rsaPKCS1
        /// RSASSA-PSS with a mask generation function over a digest, and a salt of so many bytes.
        case rsaPSS(mask: Digest, saltLength: Int)
        /// ECDSA, r and s in a SEQUENCE.
        case ecdsa
        /// ECDSA, r and s one after the other (BSI TR-03111, 5.2.1).
        case plainECDSA
    }

    let scheme: Scheme
    let digest: Digest

    init(_ scheme: Scheme, _ digest: Digest) { (self.scheme, self.digest) = (scheme, digest) }

    /// - Returns: nil for an identifier that does not name a digest, too.
    init?(_ oid: OID) {
        guard let known = Self.identifiers[oid] else { return nil }
        self = known
    }

    /// - Parameter digest: the one beside the signature, for identifiers that name none.
    /// - Returns: nil for an algorithm that is not of ICAO 9303-12, 4.4.
    init?(_ identifier: AlgorithmIdentifier, digest: Digest? = nil) {
        if let known = Self.identifiers[identifier.oid] {
            self = known
        } else if identifier.oid == .rsaPSS {
            guard let algorithm = try? Self.pss(identifier.parameters) else { return nil }
            self = algorithm
        } else if let digest, let scheme = Self.keyIdentifiers[identifier.oid] {
            self.init(scheme, digest)
        } else {
            return nil
        }
    }

    /// RFC 4055, 3.1: what is absent is SHA-1, its mask, and 20 bytes of salt.
    private static func pss(_ parameters: ASN1?) throws(MalformedObject) -> SignatureAlgorithm? {
        let due = "RSASSA-PSS-params"
        guard let parameters else { return nil }
        guard parameters.tag == ASN1.Tag.sequence else { throw parameters.fault(due) }
        var fields = parameters.fields
        var (digest, mask, saltLength) = (Digest.sha1, Digest.sha1, 20)
        if let value = try fields.takeOptional(ASN1.Tag.context(0), due) {
            guard let named = Digest(try AlgorithmIdentifier(value.inner(ASN1.Tag.sequence, due))) else { return nil }
            digest = named
        }
        if let value = try fields.takeOptional(ASN1.Tag.context(1), due) {
            let generator = try AlgorithmIdentifier(value.inner(ASN1.Tag.sequence, due))
            guard generator.oid == .mgf1, let inner = generator.parameters,
                let named = Digest(try AlgorithmIdentifier(inner))
            else { return nil }
            mask = named
        }
        if let value = try fields.takeOptional(ASN1.Tag.context(2), due) {
            saltLength = try value.inner(ASN1.Tag.integer, due).number(due)
        }
        if let value = try fields.takeOptional(ASN1.Tag.context(3), due) {
            guard try value.inner(ASN1.Tag.integer, due).number(due) == 1 else { return nil }
        }
        try fields.end(due)
        guard saltLength <= 1024 else { return nil }
        return SignatureAlgorithm(.rsaPSS(mask: mask, saltLength: saltLength), digest)
    }

    /// Identifiers that name the digest too (RFC 5754, 3; RFC 5758, 3.2; BSI TR-03111, 5.2.1.1).
    private static let identifiers: [OID: SignatureAlgorithm] = [
        OID("1.2.840.113549.1.1.5"): .init(.rsaPKCS1, .sha1),
        OID("1.2.840.113549.1.1.14"): .init(.rsaPKCS1, .sha224),
        OID("1.2.840.113549.1.1.11"): .init(.rsaPKCS1, .sha256),
        OID("1.2.840.113549.1.1.12"): .init(.rsaPKCS1, .sha384),
        OID("1.2.840.113549.1.1.13"): .init(.rsaPKCS1, .sha512),
        OID("1.2.840.10045.4.1"): .init(.ecdsa, .sha1),
        OID("1.2.840.10045.4.3.1"): .init(.ecdsa, .sha224),
        OID("1.2.840.10045.4.3.2"): .init(.ecdsa, .sha256),
        OID("1.2.840.10045.4.3.3"): .init(.ecdsa, .sha384),
        OID("1.2.840.10045.4.3.4"): .init(.ecdsa, .sha512),
        OID("0.4.0.127.0.7.1.1.4.1.1"): .init(.plainECDSA, .sha1),
        OID("0.4.0.127.0.7.1.1.4.1.2"): .init(.plainECDSA, .sha224),
        OID("0.4.0.127.0.7.1.1.4.1.3"): .init(.plainECDSA, .sha256),
        OID("0.4.0.127.0.7.1.1.4.1.4"): .init(.plainECDSA, .sha384),
        OID("0.4.0.127.0.7.1.1.4.1.5"): .init(.plainECDSA, .sha512),
    ]

    /// Identifiers of keys, which stand for an algorithm in a SignerInfo (RFC 3370, 3.2).
    private static let keyIdentifiers: [OID: Scheme] = [.rsaEncryption: .rsaPKCS1, .ecPublicKey: .ecdsa]
}

extension OID {
    static let rsaEncryption = OID("1.2.840.113549.1.1.1")
    static let rsaPSS = OID("1.2.840.113549.1.1.10")
    static let mgf1 = OID("1.2.840.113549.1.1.8")
    static let ecPublicKey = OID("1.2.840.10045.2.1")
    static let primeField = OID("1.2.840.10045.1.1")
}
