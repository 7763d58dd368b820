import Foundation

/// The findings of signed data, its signer, and the authorities behind it: the part that EF.SOD, EF.CardSecurity and
/// master lists have in common.
struct SignerVerification: Sendable {
    private(set) var findings: [Finding] = []
    private(set) var signer: Certificate?
    /// The authorities behind the signer, the one that issued its certificate first.
    private(set) var path: [Certificate] = []
    /// The uses of SHA-1.
    private(set) var weakUses: [String] = []

    /// The means by which a signature is judged.
    struct Circumstances: Sendable {
        var trust: TrustList
        var revocationLists: [RevocationList] = []
        var date: Date
        /// A date on which the document was there; nil: not known.
        var issued: Date?
        /// The document's date of expiry; nil: not known.
        var expires: Date?
    }

    /// - Parameter contentType: judges the type of the content.
    init(
        _ data: SignedData, _ circumstances: Circumstances, contentType: (_ type: OID) -> Finding.Outcome,
        keyUsage: (_ signer: Certificate) -> Finding.Outcome = Self.keyUsage(ofSigner:)
    ) {
        checkContent(data, contentType(data.contentType))
        findSigner(data, circumstances.trust)
        checkSignature(data)
        guard let signer else {
            findings.append(Finding(.path, .notChecked(.noSigner)))
            return
        }
        findPath(signer, circumstances.trust)
        let used = data.attributes?.signingTime ?? circumstances.issued
        checkValidity(signer, circumstances, used: used)
        findings.append(Finding(.keyUsage(.signer), keyUsage(signer)))
        for (index, authority) in path.enumerated() {
            findings.append(Finding(.keyUsage(.issuer(index)), Self.keyUsage(ofAuthority: authority)))
        }
        if !path.isEmpty {
            findings.append(Finding(.revocation, Revocation(circumstances).outcome(for: [signer] + path)))
        }
    }

    // MARK: The signature

    private mutating func checkContent(_ data: SignedData, _ typeOutcome: Finding.Outcome) {
        guard let attributes = data.attributes else {
            // RFC 5652, 5.3: they must be there unless the content is plain data; the signature is then over the
            // content.
            let outcome: Finding.Outcome =
                data.contentType == .data ? .flagged(.noSignedAttributes) : .failed(.noSignedAttributes)
            if case .failed = typeOutcome {
                findings.append(Finding(.contentType, typeOutcome))
            } else {
                findings.append(Finding(.contentType, outcome))
            }
            findings.append(Finding(.messageDigest, outcome))
            return
        }
        let isSame = attributes.contentType == data.contentType
        findings.append(Finding(.contentType, isSame ? typeOutcome : .failed(.contentTypeDiffers)))
        guard let digest = Digest(data.digestAlgorithm) else {
            findings.append(Finding(.messageDigest, .notChecked(.unsupportedAlgorithm(data.digestAlgorithm.oid))))
            return
        }
        if digest == .sha1 { weakUses.append("the message digest") }
        let holds = digest.hash(data.content) == attributes.messageDigest
        findings.append(Finding(.messageDigest, holds ? .passed : .failed(.digestDiffers)))
    }

    private mutating func findSigner(_ data: SignedData, _ trust: TrustList) {
        let outcome: Finding.Outcome
        if let named = (data.certificates + trust.signers).first(where: data.signerIdentifier.isOf) {
            signer = named
            outcome = data.signerCount > 1 ? .flagged(.severalSigners(data.signerCount)) : .passed
        } else if let sole = data.certificates.first, Set(data.certificates).count == 1 {
            signer = sole
            outcome = .flagged(.soleCertificate)
        } else {
            outcome = .failed(.noSignerCertificate)
        }
        findings.append(Finding(.signerCertificate, outcome))
    }

    private mutating func checkSignature(_ data: SignedData) {
        guard let signer else {
            findings.append(Finding(.signature, .notChecked(.noSigner)))
            return
        }
        guard let algorithm = SignatureAlgorithm(data.signatureAlgorithm, digest: Digest(data.digestAlgorithm)) else {
            findings.append(Finding(.signature, .notChecked(.unsupportedAlgorithm(data.signatureAlgorithm.oid))))
            return
        }
        if algorithm.digest == .sha1 { weakUses.append("the signature") }
        let message = data.attributes?.encoded ?? data.content
        let fault = signer.verify(data.signature, of: message, by: algorithm)
        findings.append(Finding(.signature, Self.outcome(of: fault)))
    }

    /// A fault fails, unless this reader or its trust list lacks what it takes to find one.
    private static func outcome(of fault: Finding.Reason?) -> Finding.Outcome {
        switch fault {
        case nil: .passed
        case let fault?:
            switch fault {
            case .unknownIssuer, .tooManyCertificates, .unsupportedAlgorithm: .notChecked(fault)
            default: .failed(fault)
            }
        }
    }

    // MARK: The certificates

    private mutating func findPath(_ signer: Certificate, _ trust: TrustList) {
        if SignatureAlgorithm(signer.signatureAlgorithm)?.digest == .sha1 {
            weakUses.append("the signer's certificate")
        }
        switch CertificatePath.find(from: signer, trust) {
        case .found(let authorities):
            path = authorities
            findings.append(Finding(.path, .passed))
        case .notFound(let reason): findings.append(Finding(.path, Self.outcome(of: reason)))
        }
    }

    /// Each certificate was used when the one before it was made: the signer's with the document, an issuer's with the
    /// certificate that it issued.
    private mutating func checkValidity(_ signer: Certificate, _ circumstances: Circumstances, used: Date?) {
        let date = circumstances.date
        // ICAO 9303-12, 4: a signer's certificate outlives the documents that it signed.  One that did was valid when it
        // signed, though nobody says when that was.
        let outlived = circumstances.expires.flatMap { $0 <= signer.notAfter && $0 > signer.notBefore ? $0 : nil }
        findings.append(Finding(.validity(.signer), Self.validity(signer, date, used: used ?? outlived)))
        var certified = signer
        for (index, authority) in path.enumerated() {
            findings.append(
                Finding(.validity(.issuer(index)), Self.validity(authority, date, used: certified.notBefore)))
            certified = authority
        }
    }

    private static func validity(_ certificate: Certificate, _ date: Date, used: Date?) -> Finding.Outcome {
        guard date >= certificate.notBefore else { return .failed(.notYetValid(certificate.notBefore)) }
        guard date > certificate.notAfter else { return .passed }
        guard let used else { return .failed(.expired(certificate.notAfter)) }
        return certificate.isValid(at: used)
            ? .flagged(.expiredSince(certificate.notAfter)) : .failed(.notValidWhenUsed)
    }

    /// ICAO 9303-12, 7.1.1, table 6: a document signer has digitalSignature, and is no authority.
    static func keyUsage(ofSigner signer: Certificate) -> Finding.Outcome {
        let extensions = signer.extensions
        guard extensions.unknownCritical.isEmpty else {
            return .failed(.unknownCriticalExtensions(extensions.unknownCritical))
        }
        guard extensions.isAuthority != true else { return .failed(.otherKeyUsage) }
        guard let usage = extensions.keyUsage else { return .flagged(.keyUsageAbsent) }
        return usage.contains(.digitalSignature) ? .passed : .failed(.otherKeyUsage)
    }

    /// The same table: an authority has keyCertSign and the flag cA.
    static func keyUsage(ofAuthority authority: Certificate) -> Finding.Outcome {
        let extensions = authority.extensions
        guard extensions.unknownCritical.isEmpty else {
            return .failed(.unknownCriticalExtensions(extensions.unknownCritical))
        }
        guard extensions.isAuthority != false, extensions.keyUsage?.contains(.keyCertSign) != false else {
            return .failed(.otherKeyUsage)
        }
        return extensions.isAuthority == nil || extensions.keyUsage == nil ? .flagged(.keyUsageAbsent) : .passed
    }
}

extension SignedData.SignerIdentifier {
    /// True for the certificate that the signer names.
    fileprivate func isOf(_ certificate: Certificate) -> Bool {
        switch self {
        case .issuerAndSerialNumber(let issuer, let serial):
            certificate.issuer == issuer && certificate.serialNumber == serial
        case .subjectKeyIdentifier(let identifier): certificate.keyIdentifier == identifier
        }
    }
}
