public import Foundation

/// A certificate of a country signing authority, a document signer or a master list signer (ICAO 9303-12, 7; RFC 5280,
/// 4).
public struct Certificate: Hashable, Sendable {
    /// The certificate's bytes.
    public let encoded: [UInt8]
    public let issuer: DistinguishedName
    public let subject: DistinguishedName
    /// Most significant byte first, without leading zeros.
    public let serialNumber: [UInt8]
    public let notBefore: Date
    public let notAfter: Date
    let toBeSigned: [UInt8]
    let signatureAlgorithm: AlgorithmIdentifier
    let signature: [UInt8]
    /// SubjectPublicKeyInfo.
    let publicKeyInfo: ASN1
    let extensions: CertificateExtensions

    private static let maximumLength = 1 << 16

    /// Parses a certificate of which there is one.
    ///
    /// - Throws: ``MalformedObject``.
    public init(_ bytes: [UInt8]) throws(MalformedObject) {
        try self.init(ASN1(bytes, ASN1.Tag.sequence, "Certificate"))
    }

    init(_ value: ASN1) throws(MalformedObject) {
        let due = "Certificate"
        guard value.tag == ASN1.Tag.sequence, value.encoded.count <= Self.maximumLength else { throw value.fault(due) }
        let signed = try SignedObject(value, due)
        (toBeSigned, signatureAlgorithm, signature) = (signed.toBeSigned, signed.algorithm, signed.signature)
        var fields = signed.content.fields
        _ = try fields.takeOptional(ASN1.Tag.context(0), "version")
        serialNumber = Array(try fields.take(ASN1.Tag.integer, "serialNumber").content.drop { $0 == 0 })
        // RFC 5280, 4.1.1.2: the algorithm inside, which is signed, is the one outside.
        let algorithm = try fields.take(ASN1.Tag.sequence, "signature")
        guard algorithm.encoded.elementsEqual(signatureAlgorithm.encoded) else {
            throw algorithm.fault("the same signature algorithm twice")
        }
        issuer = try DistinguishedName(fields.take(ASN1.Tag.sequence, "issuer"))
        var validity = try fields.take(ASN1.Tag.sequence, "validity").fields
        notBefore = try validity.take("notBefore").moment("notBefore")
        notAfter = try validity.take("notAfter").moment("notAfter")
        try validity.end("validity")
        subject = try DistinguishedName(fields.take(ASN1.Tag.sequence, "subject"))
        publicKeyInfo = try fields.take(ASN1.Tag.sequence, "subjectPublicKeyInfo")
        _ = try fields.takeOptional(ASN1.Tag.plainContext(1), "issuerUniqueID")
        _ = try fields.takeOptional(ASN1.Tag.plainContext(2), "subjectUniqueID")
        let list = try fields.takeOptional(ASN1.Tag.context(3), "extensions")
        extensions = try CertificateExtensions(list)
        try fields.end("TBSCertificate")
        encoded = Array(value.encoded)
    }

    public static func == (a: Certificate, b: Certificate) -> Bool { a.encoded == b.encoded }
    public func hash(into hasher: inout Hasher) { hasher.combine(encoded) }

    /// The key that it certifies.
    var key: SignatureKey {
        get throws(SignatureKey.Fault) { try SignatureKey(publicKeyInfo) }
    }

    /// The identifier of its key: that of its extension, or SHA-1 of the key (RFC 5280, 4.2.1.2, method 1).
    var keyIdentifier: [UInt8] {
        if let identifier = extensions.subjectKeyIdentifier { return identifier }
        var fields = publicKeyInfo.fields
        guard (try? fields.take("algorithm")) != nil,
            let bits = try? fields.take(ASN1.Tag.bitString, "subjectPublicKey").bits("subjectPublicKey")
        else { return [] }
        return Digest.sha1.hash(bits)
    }

    /// True if the issuer that a certificate or a list names may be this one: by name, and by key where it says which.
    func mayIssue(for issuer: DistinguishedName, keyIdentifier: [UInt8]?) -> Bool {
        guard subject == issuer else { return false }
        // An authority that does not tell its key's identifier may have computed it in any way.
        guard let keyIdentifier, let own = extensions.subjectKeyIdentifier else { return true }
        return keyIdentifier == own
    }

    /// Verifies that this certificate's key made a signature.
    func verify(_ signature: [UInt8], of message: [UInt8], _ identifier: AlgorithmIdentifier) -> Finding.Reason? {
        guard let algorithm = SignatureAlgorithm(identifier) else { return .unsupportedAlgorithm(identifier.oid) }
        return verify(signature, of: message, by: algorithm)
    }

    /// - Returns: the reason why it did not; nil if it did.
    func verify(
        _ signature: [UInt8], of message: [UInt8], by algorithm: SignatureAlgorithm
    ) -> Finding.Reason? {
        do throws(SignatureKey.Fault) {
            return try key.verify(signature, of: message, by: algorithm) ? nil : .wrongSignature
        } catch {
            switch error {
            case .malformed(let error): return .malformedKey(error)
            case .unsupported(let oid): return .unsupportedAlgorithm(oid)
            case .unknownCurve: return .unknownCurve
            }
        }
    }

    /// True if its own key signed it.
    var isSelfSigned: Bool {
        mayIssue(for: issuer, keyIdentifier: extensions.authorityKeyIdentifier)
            && verify(signature, of: toBeSigned, signatureAlgorithm) == nil
    }

    func isValid(at date: Date) -> Bool { notBefore <= date && date <= notAfter }
}

/// The signed part, the algorithm and the signature: the form of certificates and revocation lists (RFC 5280, 4.1.1 and
/// 5.1.1).
struct SignedObject {
    let content: ASN1
    let toBeSigned: [UInt8]
    let algorithm: AlgorithmIdentifier
    let signature: [UInt8]

    init(_ value: ASN1, _ due: String) throws(MalformedObject) {
        var fields = value.fields
        content = try fields.take(ASN1.Tag.sequence, "TBS\(due)")
        algorithm = try AlgorithmIdentifier(fields.take("signatureAlgorithm"))
        signature = try fields.take(ASN1.Tag.bitString, "signatureValue").bits("signatureValue")
        try fields.end(due)
        toBeSigned = Array(content.encoded)
    }
}
