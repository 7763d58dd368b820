import Foundation

/// Signed content with the certificates of its signer (RFC 5652, 5).
struct SignedData: Sendable {
    /// The signer's name for its certificate (RFC 5652, 5.3).
    enum SignerIdentifier: Hashable, Sendable {
        case issuerAndSerialNumber(DistinguishedName, [UInt8])
        case subjectKeyIdentifier([UInt8])
    }

    /// The attributes that are signed in place of the content (RFC 5652, 11).
    struct SignedAttributes: Sendable {
        /// The set whose signature it is: its own tag in place of the implicit one (RFC 5652, 5.4).
        let encoded: [UInt8]
        let contentType: OID
        let messageDigest: [UInt8]
        let signingTime: Date?
    }

    let contentType: OID
    /// The bytes in the octet string.
    let content: [UInt8]
    let certificates: [Certificate]
    let signerIdentifier: SignerIdentifier
    /// The signers; only the first one is looked at.
    let signerCount: Int
    let digestAlgorithm: AlgorithmIdentifier
    let attributes: SignedAttributes?
    let signatureAlgorithm: AlgorithmIdentifier
    let signature: [UInt8]

    private static let maximumSigners = 16

    /// Parses a ContentInfo, whose lengths may be indefinite.
    init(_ bytes: ArraySlice<UInt8>) throws(MalformedObject) {
        let due = "ContentInfo"
        let definite = try BasicEncoding.definite(Array(bytes), due)
        var info = try ASN1(definite, ASN1.Tag.sequence, due).fields
        let type = try info.take(ASN1.Tag.objectIdentifier, due)
        guard try type.identifier(due) == .signedData else { throw type.fault("id-signedData") }
        let data = try info.take(ASN1.Tag.context(0), due).inner(ASN1.Tag.sequence, "SignedData")
        try info.end(due)

        var fields = data.fields
        let version = try fields.take(ASN1.Tag.integer, "version")
        guard (1...5).contains(try version.number("version")) else { throw version.fault("version 1 to 5") }
        _ = try fields.take(ASN1.Tag.set, "digestAlgorithms")
        var content = try fields.take(ASN1.Tag.sequence, "encapContentInfo").fields
        contentType = try content.take(ASN1.Tag.objectIdentifier, "eContentType").identifier("eContentType")
        let octets = try content.take(ASN1.Tag.context(0), "eContent").inner(ASN1.Tag.octetString, "eContent")
        try content.end("encapContentInfo")
        self.content = Array(octets.content)
        certificates = try Self.certificates(fields.takeOptional(ASN1.Tag.context(0), "certificates"))
        _ = try fields.takeOptional(ASN1.Tag.context(1), "crls")
        let signers = try fields.take(ASN1.Tag.set, "signerInfos")
        try fields.end("SignedData")
        let all = try signers.elements(ASN1.Tag.sequence, "SignerInfo")
        guard let first = all.first, all.count <= Self.maximumSigners else { throw signers.fault("a SignerInfo") }
        signerCount = all.count

        var signer = first.fields
        _ = try signer.take(ASN1.Tag.integer, "version")
        signerIdentifier = try Self.signerIdentifier(signer.take("sid"))
        digestAlgorithm = try AlgorithmIdentifier(signer.take("digestAlgorithm"))
        attributes = try signer.takeOptional(ASN1.Tag.context(0), "signedAttrs").map(SignedAttributes.init)
        signatureAlgorithm = try AlgorithmIdentifier(signer.take("signatureAlgorithm"))
        signature = Array(try signer.take(ASN1.Tag.octetString, "signature").content)
        _ = try signer.takeOptional(ASN1.Tag.context(1), "unsignedAttrs")
        try signer.end("SignerInfo")
    }

    /// Other kinds of certificates than X.509's, which have other tags, are left out.
    private static func certificates(_ set: ASN1?) throws(MalformedObject) -> [Certificate] {
        guard let set else { return [] }
        var certificates: [Certificate] = []
        var fields = set.fields
        while !fields.isEmpty {
            let value = try fields.take("CertificateChoices")
            if value.tag == ASN1.Tag.sequence { certificates.append(try Certificate(value)) }
        }
        return certificates
    }

    private static func signerIdentifier(_ value: ASN1) throws(MalformedObject) -> SignerIdentifier {
        if value.tag == ASN1.Tag.plainContext(0) { return .subjectKeyIdentifier(Array(value.content)) }
        guard value.tag == ASN1.Tag.sequence else { throw value.fault("sid") }
        var fields = value.fields
        let name = try DistinguishedName(fields.take(ASN1.Tag.sequence, "issuer"))
        let serial = try fields.take(ASN1.Tag.integer, "serialNumber")
        try fields.end("IssuerAndSerialNumber")
        return .issuerAndSerialNumber(name, Array(serial.content.drop { $0 == 0 }))
    }
}

extension SignedData.SignedAttributes {
    fileprivate init(_ set: ASN1) throws(MalformedObject) {
        var values: [OID: ASN1] = [:]
        for attribute in try set.elements(ASN1.Tag.sequence, "Attribute") {
            var fields = attribute.fields
            let type = try fields.take(ASN1.Tag.objectIdentifier, "attrType").identifier("attrType")
            var content = try fields.take(ASN1.Tag.set, "attrValues").fields
            try fields.end("Attribute")
            let value = try content.take("attrValue")
            // RFC 5652, 5.3: an attribute is there once.  11: those that count have one value.
            guard values.updateValue(value, forKey: type) == nil else { throw attribute.fault("an attribute once") }
            if [.contentType, .messageDigest, .signingTime].contains(type) { try content.end("the one attrValue") }
        }
        guard let type = values[.contentType] else { throw set.fault("the attribute content-type") }
        guard let digest = values[.messageDigest], digest.tag == ASN1.Tag.octetString else {
            throw set.fault("the attribute message-digest")
        }
        contentType = try type.identifier("content-type")
        messageDigest = Array(digest.content)
        signingTime = try values[.signingTime]?.moment("signing-time")
        encoded = set.retagged(ASN1.Tag.set)
    }
}

extension OID {
    static let signedData = OID("1.2.840.113549.1.7.2")
    static let data = OID("1.2.840.113549.1.7.1")
    fileprivate static let contentType = OID("1.2.840.113549.1.9.3")
    fileprivate static let messageDigest = OID("1.2.840.113549.1.9.4")
    fileprivate static let signingTime = OID("1.2.840.113549.1.9.5")
}
