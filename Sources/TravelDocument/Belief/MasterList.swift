public import Foundation

/// A master list: certificates of country signing authorities, signed by a state that vouches for them (ICAO 9303-12,
/// 8).
public struct MasterList: Sendable {
    /// The certificates, in the list's order.
    public let certificates: [Certificate]
    /// Faults of entries that are not certificates, which are left out.
    public let faults: [MalformedObject]
    let signedData: SignedData

    /// Parses a list.
    ///
    /// - Throws: ``MalformedObject``.
    public init(_ bytes: [UInt8]) throws(MalformedObject) {
        let due = "CscaMasterList"
        guard bytes.count <= TrustList.maximumFileLength else { throw MalformedObject(due: due, offset: 0) }
        signedData = try SignedData(bytes[...])
        let list = try ASN1(signedData.content, ASN1.Tag.sequence, due)
        var fields = list.fields
        guard try fields.take(ASN1.Tag.integer, "version").number("version") == 0 else { throw list.fault("version 0") }
        let set = try fields.take(ASN1.Tag.set, "certList")
        try fields.end(due)
        var certificates: [Certificate] = []
        var faults: [MalformedObject] = []
        for element in try set.elements(ASN1.Tag.sequence, "Certificate") {
            do { certificates.append(try Certificate(element)) } catch { faults.append(error) }
        }
        (self.certificates, self.faults) = (certificates, faults)
    }

    /// Checks the signature: by a signer of master lists, behind whom an authority stands.
    ///
    /// - Parameters:
    ///   - trust: the authorities that are believed already.  Where none of them stands behind the signer, one of the list
    ///     itself may, and the finding says so.
    ///   - date: today.
    /// - Returns: what was found.  The list is for use unless something failed, or the signer is unknown.
    public func verify(trust: TrustList, at date: Date) -> [Finding] {
        let verification = verification(trust, date)
        guard verification.path.isEmpty else { return verification.findings }
        var both = trust
        for certificate in certificates { both.add(authority: certificate, source: "", at: date) }
        let byItself = self.verification(both, date)
        return byItself.findings.map { finding in
            finding == Finding(.path, .passed) ? Finding(.path, .flagged(.trustedByItselfAlone)) : finding
        }
    }

    private func verification(_ trust: TrustList, _ date: Date) -> SignerVerification {
        SignerVerification(
            signedData, SignerVerification.Circumstances(trust: trust, date: date),
            contentType: { $0 == OID("2.23.136.1.1.2") ? .passed : .failed(.otherContentType($0)) },
            keyUsage: Self.keyUsage)
    }

    /// ICAO 9303-12, 7.1.1, table 6: a signer of master lists says that it is one.
    private static func keyUsage(ofSigner signer: Certificate) -> Finding.Outcome {
        guard signer.extensions.extendedKeyUsages.contains(OID("2.23.136.1.1.3")) else {
            return .failed(.otherKeyUsage)
        }
        return SignerVerification.keyUsage(ofSigner: signer)
    }

    /// The findings without which a list is not imported.
    static let essential: Set<Finding.Check> = [.contentType, .messageDigest, .signerCertificate, .signature, .path]
}
