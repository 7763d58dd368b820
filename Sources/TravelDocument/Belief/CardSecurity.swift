public import Foundation

/// EF.CardSecurity: the protocols of the chip with its public keys, signed (ICAO 9303-10, 3.11.4; BSI TR-03110-3,
/// A.1.2.5).
public struct CardSecurity: Sendable {
    /// The protocols, with the keys of chip authentication.
    let securityInfos: SecurityInfos
    private let signedData: SignedData

    /// Parses the file, all of it.
    ///
    /// - Throws: ``MalformedObject``.
    public init(_ file: [UInt8]) throws(MalformedObject) {
        let due = "EF.CardSecurity"
        guard file.count <= SecurityObject.maximumLength else { throw MalformedObject(due: due, offset: 0) }
        signedData = try SignedData(file[...])
        let set = try ASN1(signedData.content, ASN1.Tag.set, "SecurityInfos")
        guard let infos = SecurityInfos(signedData.content) else { throw set.fault("SecurityInfos") }
        securityInfos = infos
    }

    /// Checks the signature, as passive authentication does that of EF.SOD.
    ///
    /// - Parameters:
    ///   - trust: the authorities to believe.  Its revocation lists are used, too.
    ///   - revocationLists: more of them.
    ///   - date: today.
    ///   - issuingState: three letters of the machine readable zone.  Without them, nobody knows whether the file is of the
    ///     document's state.
    ///   - issued: the document's date of issue, where it tells one.
    ///   - expires: the document's date of expiry.
    /// - Returns: what was found.  The file is to be believed if nothing failed, and path and signature passed.
    public func verify(
        trust: TrustList, revocationLists: [RevocationList] = [], at date: Date, issuingState: String? = nil,
        issued: Date? = nil, expires: Date? = nil
    ) -> [Finding] {
        let verification = SignerVerification(
            signedData,
            .init(trust: trust, revocationLists: revocationLists, date: date, issued: issued, expires: expires),
            contentType: { $0 == OID("0.4.0.127.0.7.3.2.1") ? .passed : .failed(.otherContentType($0)) })
        guard let signer = verification.signer else { return verification.findings }
        let country = Country.outcome([signer] + verification.path, issuingState: issuingState)
        return verification.findings + [Finding(.country, country)]
    }
}
