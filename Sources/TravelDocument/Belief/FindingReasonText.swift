import Foundation

extension Finding.Reason: CustomStringConvertible {
    public var description: String {
        switch self {
        case .unusualContentType(let oid): "the content type \(oid) is not of ICAO 9303, though some states use it"
        case .otherContentType(let oid): "the content type is \(oid)"
        case .contentTypeDiffers: "the signature is over another content type"
        case .digestDiffers: "the digest differs: somebody changed the contents"
        case .noSignedAttributes: "there are no signed attributes"
        case .unsupportedAlgorithm(let oid): "this reader does not have the algorithm \(oid)"
        case .unknownCurve: "the key is on an unnamed curve"
        case .malformedKey(let error): "the key is not one: \(error)"
        case .wrongSignature: "the signature is wrong"
        case .noSignerCertificate: "the signer's certificate is not there"
        case .soleCertificate: "the signer names another certificate than the only one"
        case .severalSigners(let count): "there are \(count) signers, and the first one was checked"
        case .unknownIssuer(let name): "the trust list does not contain the issuer \(name). Import its certificate."
        case .tooManyCertificates: "the trust list contains too many certificates of this issuer"
        case .trustedByItselfAlone:
            "the authority behind the list is in the list alone. Check where the list comes from."
        case .notYetValid(let date): "the certificate is valid from \(date.day) on"
        case .expired(let date): "the certificate expired on \(date.day), and nothing says when it was used"
        case .expiredSince(let date): "the certificate expired on \(date.day), after it was used"
        case .notValidWhenUsed: "the certificate was not valid when it was used"
        case .keyUsageAbsent: "the certificate does not say what it is for"
        case .otherKeyUsage: "the certificate is for something else"
        case .unknownCriticalExtensions(let oids):
            "the certificate has critical extensions that nobody here understands: "
                + oids.map(\.description).joined(separator: ", ")
        case .noSigner: "there is no signer to check"
        case .revoked(let date): "a certificate was revoked on \(date.day)"
        case .noRevocationList: "there is no revocation list of the issuer. Import one."
        case .revocationListNotAuthentic: "no trusted authority signed the revocation list"
        case .partialRevocationList: "the revocation list is of a part of the certificates only"
        case .revocationListOutdated(let date): "the revocation list is outdated since \(date.day). Import a new one."
        case .countriesDiffer(let countries): "the countries differ: " + countries.joined(separator: ", ")
        case .noCountry: "a certificate names no country"
        case .issuingStateNotGiven: "the issuing state is not known"
        case .unknownIssuingState: "the issuing state is not listed in ICAO 9303-3"
        case .otherDocumentTypes(let types): "the signer may sign only these types: " + types.joined(separator: ", ")
        case .documentTypeByFirstLetter: "the first letter alone was compared"
        case .noDocumentTypes: "the certificate does not say which types of documents it is for"
        case .documentTypeNotGiven: "the document's type is not known"
        case .sha1(let places):
            "SHA-1, which no longer withstands collisions, is used for " + places.joined(separator: ", ")
        case .notRead: "the data group was not read"
        case .notSigned: "the data group is not among those that are signed"
        case .tooLong: "the file is longer than a mebibyte"
        case .documentExpired: "the document has expired"
        case .copy: "the chip does not have the private key of the document: it is a copy"
        case .readerLimit: "this reader does not pass on messages of that length. Use one of extended lengths."
        case .paceWithheld(let infos):
            "the chip did not offer what DG14 names: " + infos.map(\.description).joined(separator: "; ")
        case .unusableKey: "the chip's key is of a kind that this reader does not have"
        case .refused(let answer): "the chip refused: \(answer)"
        case .noKey: "EF.CardSecurity has no key for this curve"
        case .noCardSecurity: "EF.CardSecurity was not read"
        case .malformed(let error): "\(error)"
        case .keyNotBelieved: "nothing shows that the issuing state signed the chip's key"
        case .noSecurityObject: "nobody has signed the document"
        }
    }
}

extension Date {
    /// Year, month and day, in universal time.
    fileprivate var day: String { formatted(.iso8601.year().month().day()) }
}
