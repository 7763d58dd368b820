/// The way from a certificate to an authority that is trusted (ICAO 9303-12, 7.2 and 4.2.2).
///
/// A certificate of the trust list that its own key signed is trusted.  A link certificate is trusted as its issuer is:
/// the authority signs its next key with its last one.
enum CertificatePath {
    enum Outcome: Hashable {
        /// The issuer first, the trusted authority last.
        case found([Certificate])
        case notFound(Finding.Reason)
    }

    static let maximumLength = 8
    /// The signatures that one search verifies.
    private static let maximumVerifications = 64

    static func find(from certificate: Certificate, _ trust: TrustList) -> Outcome {
        var search = Search(trust: trust, reason: .unknownIssuer(certificate.issuer))
        return search.path(from: certificate, depth: 0).map { .found($0) } ?? .notFound(search.reason)
    }

    private struct Search {
        let trust: TrustList
        var verifications = 0
        /// Why nothing was found so far.
        var reason: Finding.Reason

        mutating func path(from certificate: Certificate, depth: Int) -> [Certificate]? {
            guard depth < CertificatePath.maximumLength else { return nil }
            let keyIdentifier = certificate.extensions.authorityKeyIdentifier
            for authority in trust.authorities(for: certificate.issuer, keyIdentifier: keyIdentifier)
            where authority != certificate {
                verifications += 1
                guard verifications <= CertificatePath.maximumVerifications else {
                    reason = .tooManyCertificates
                    return nil
                }
                if let fault = authority.verify(
                    certificate.signature, of: certificate.toBeSigned, certificate.signatureAlgorithm)
                {
                    reason = fault
                    continue
                }
                if authority.isSelfSigned { return [authority] }
                reason = .unknownIssuer(authority.issuer)
                if let rest = path(from: authority, depth: depth + 1) { return [authority] + rest }
            }
            return nil
        }
    }
}
