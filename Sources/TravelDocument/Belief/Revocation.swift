import Foundation

/// The answer of revocation lists that a trusted authority of the certificates' issuer signed (ICAO 9303-12, 7.4).
///
/// A state's newest authority signs one list for all of its certificates, so the list's key may be another than theirs.
struct Revocation: Sendable {
    private let circumstances: SignerVerification.Circumstances
    private let lists: [RevocationList]

    init(_ circumstances: SignerVerification.Circumstances) {
        self.circumstances = circumstances
        lists = circumstances.revocationLists + circumstances.trust.revocationLists
    }

    /// - Parameter certificates: the signer's first.
    func outcome(for certificates: [Certificate]) -> Finding.Outcome {
        var authentic: [RevocationList] = []
        var isForged = false
        for list in lists where certificates.contains(where: { $0.issuer == list.issuer }) {
            if isAuthentic(list) { authentic.append(list) } else { isForged = true }
        }
        for list in authentic {
            if let date = certificates.lazy.compactMap(list.revocation).first { return .failed(.revoked(date)) }
        }
        let ofSigner = authentic.filter { $0.issuer == certificates.first?.issuer }
        guard !ofSigner.isEmpty else {
            return .notChecked(isForged ? .revocationListNotAuthentic : .noRevocationList)
        }
        guard let newest = ofSigner.filter(\.critical.isEmpty).max(by: { $0.thisUpdate < $1.thisUpdate }) else {
            return .notChecked(.partialRevocationList)
        }
        if let next = newest.nextUpdate, next < circumstances.date { return .flagged(.revocationListOutdated(next)) }
        return .passed
    }

    private func isAuthentic(_ list: RevocationList) -> Bool {
        let trust = circumstances.trust
        let authorities = trust.authorities(for: list.issuer, keyIdentifier: list.authorityKeyIdentifier)
        return authorities.prefix(Self.maximumAuthorities).contains { authority in
            guard authority.extensions.keyUsage?.contains(.crlSign) != false,
                authority.verify(list.signature, of: list.toBeSigned, list.signatureAlgorithm) == nil
            else { return false }
            if authority.isSelfSigned { return true }
            if case .found = CertificatePath.find(from: authority, trust) { return true }
            return false
        }
    }

    private static let maximumAuthorities = 64
}
