public import Foundation

/// One thing that was checked of a signature, and how it ended.
public struct Finding: Hashable, Sendable, CustomStringConvertible {
    public let check: Check
    public let outcome: Outcome

    init(_ check: Check, _ outcome: Outcome) { (self.check, self.outcome) = (check, outcome) }

    /// A check of a signature, of a certificate or of a file.
    public enum Check: Hashable, Sendable {
        /// The content is what the file should contain, and the signature is over its type (RFC 5652, 11.1).
        case contentType
        /// The signature is over the digest of the content (RFC 5652, 5.4 and 11.2).
        case messageDigest
        /// The certificate of the signer is there (RFC 5652, 5.3).
        case signerCertificate
        /// The signer's key made the signature (RFC 5652, 5.6).
        case signature
        /// A country signing authority of the trust list stands behind the signer (ICAO 9303-12, 7.2).
        case path
        /// The certificate was valid.
        case validity(Role)
        /// The certificate is for what it was used for (ICAO 9303-12, 7.1.1).
        case keyUsage(Role)
        /// Neither the signer nor its issuers were revoked (ICAO 9303-11, 5.1).
        case revocation
        /// Signer, issuers and document are of one country (ICAO 9303-12, 7.1.1).
        case country
        /// The signer signs documents of this type (ICAO 9303-12, 7.1.1.6).
        case documentType
        /// The hash functions withstand collisions.
        case digestAlgorithms
        /// The data group has the digest that is signed (ICAO 9303-11, 5.1).
        case dataGroup(Int)
        /// The document has not expired.
        case documentExpiry
        /// EF.CardAccess, which is not signed, offers what DG14 does (ICAO 9303-11, 9.2.8).
        case cardAccess
        /// The chip is no copy: it has the private key of EF.CardSecurity (ICAO 9303-11, 4.4.3.5.2).
        case chipAuthenticationMapping
        /// A check of EF.CardSecurity, which is signed like EF.SOD.
        indirect case cardSecurity(Check)
        /// The chip is no copy: it has the private key of DG14 (ICAO 9303-11, 6.2).
        case chipAuthentication
        /// The chip is no copy: it has the private key of DG15 (ICAO 9303-11, 6.1).
        case activeAuthentication
    }

    /// The owner of a certificate.
    public enum Role: Hashable, Sendable {
        case signer
        /// A country signing authority, the one that issued the signer's certificate first, those behind links after
        /// it.
        case issuer(Int)
    }

    /// The end of a check.
    public enum Outcome: Hashable, Sendable {
        case passed
        /// The check passed by a rule that some may not want to follow.
        case flagged(Reason)
        case failed(Reason)
        case notChecked(Reason)
    }

    /// Why a check did not simply pass.
    public enum Reason: Hashable, Sendable {
        // Content and signature.
        /// The type is not of ICAO 9303, and some states use it.
        case unusualContentType(OID)
        case otherContentType(OID)
        /// The signed type is not that of the content.
        case contentTypeDiffers
        case digestDiffers
        case noSignedAttributes
        case unsupportedAlgorithm(OID)
        /// The key's domain parameters are those of no curve with a name.
        case unknownCurve
        case malformedKey(MalformedObject)
        case wrongSignature
        /// No certificate is the one that the signer names.
        case noSignerCertificate
        /// No certificate is the one that the signer names, and there is one only, which was taken.
        case soleCertificate
        /// There are several signers, and the first one alone was checked.
        case severalSigners(Int)
        // Certificates.
        /// The trust list does not contain the issuer.
        case unknownIssuer(DistinguishedName)
        /// The search met more certificates than it may try.
        case tooManyCertificates
        /// The authority behind a master list is in that list alone.
        case trustedByItselfAlone
        case notYetValid(Date)
        /// The certificate expired, and nothing says when it was used.
        case expired(Date)
        /// The certificate expired after it was used.
        case expiredSince(Date)
        /// The certificate was not valid when it was used.
        case notValidWhenUsed
        case keyUsageAbsent
        case otherKeyUsage
        case unknownCriticalExtensions([OID])
        case noSigner
        // Revocation.
        case revoked(Date)
        case noRevocationList
        /// No trusted authority signed the list.
        case revocationListNotAuthentic
        /// The list is of a part of the certificates only.
        case partialRevocationList
        case revocationListOutdated(Date)
        // The document.
        case countriesDiffer([String])
        case noCountry
        case issuingStateNotGiven
        case unknownIssuingState
        case otherDocumentTypes([String])
        /// The signer signs documents whose type begins with this letter.
        case documentTypeByFirstLetter
        /// The certificate does not say which types the signer signs.
        case noDocumentTypes
        case documentTypeNotGiven
        /// SHA-1 is used there.
        case sha1([String])
        // Data groups.
        /// The data group is signed, and was not read.
        case notRead
        /// The data group was read, and is not signed.
        case notSigned
        case tooLong
        // The chip.
        /// The document has expired.  Its signature is none the worse for it.
        case documentExpired
        /// The chip does not have the private key.
        case copy
        /// The commands or the responses are longer than the reader passes on.
        case readerLimit
        /// DG14 names variants of PACE that EF.CardAccess did not offer: somebody has taken them away.
        case paceWithheld([PACEInfo])
        /// The chip's key is of a kind, or in a group, that this reader does not have.
        case unusableKey
        /// The chip refused the protocol.
        case refused(String)
        /// EF.CardSecurity has no key for the curve on which the chip was opened.
        case noKey
        /// EF.CardSecurity was not read.
        case noCardSecurity
        /// The file with the key is not as its standard has it.
        case malformed(MalformedObject)
        /// Nobody has shown that the issuing state signed the file with the key.
        case keyNotBelieved
        /// The document has no EF.SOD, or one that cannot be parsed.
        case noSecurityObject
    }

    public var isFailure: Bool { if case .failed = outcome { true } else { false } }
    public var isFlagged: Bool { if case .flagged = outcome { true } else { false } }
    public var isOpen: Bool { if case .notChecked = outcome { true } else { false } }

    public var description: String { "\(check): \(outcome)" }
}

extension Finding.Check: CustomStringConvertible {
    public var description: String {
        switch self {
        case .contentType: "content type"
        case .messageDigest: "message digest"
        case .signerCertificate: "signer's certificate"
        case .signature: "signature"
        case .path: "path to a country signing authority"
        case .validity(let role): "validity of \(role)"
        case .keyUsage(let role): "key usage of \(role)"
        case .revocation: "revocation"
        case .country: "country"
        case .documentType: "document type"
        case .digestAlgorithms: "hash functions"
        case .dataGroup(let number): "DG\(number)"
        case .documentExpiry: "date of expiry"
        case .cardAccess: "EF.CardAccess"
        case .chipAuthenticationMapping: "chip authentication mapping"
        case .cardSecurity(let check): "EF.CardSecurity, \(check)"
        case .chipAuthentication: "chip authentication"
        case .activeAuthentication: "active authentication"
        }
    }
}

extension Finding.Role: CustomStringConvertible {
    public var description: String {
        switch self {
        case .signer: "the signer"
        case .issuer(let index): index == 0 ? "the issuer" : "issuer \(index + 1)"
        }
    }
}

extension Finding.Outcome: CustomStringConvertible {
    public var description: String {
        switch self {
        case .passed: "passed"
        case .flagged(let reason): "passed, but \(reason)"
        case .failed(let reason): "failed: \(reason)"
        case .notChecked(let reason): "not checked: \(reason)"
        }
    }
}
