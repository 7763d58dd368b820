public import Foundation

/// Passive authentication: whether the issuing state signed what was read (ICAO 9303-11, 5.1).
///
/// It says nothing of the chip, which may be a copy: that is what ``ActiveAuthentication`` is for.
///
///     let object = try SecurityObject(file)
///     let passive = PassiveAuthentication.verify(object, files: [1: dg1, 2: dg2], trust: trust, at: .now)
///     guard case .believed = passive.verdict else { return }
public struct PassiveAuthentication: Sendable {
    /// The findings, in the order in which they were made.
    public let findings: [Finding]
    /// The certificate of the document signer, if it was found.
    public let signer: Certificate?
    /// The authorities behind the signer: its issuer first, one that the trust list contains as such last.
    public let path: [Certificate]

    /// The answer whether to believe the files that were read.
    public enum Verdict: Hashable, Sendable {
        /// The issuing state signed the data groups that passed.
        ///
        /// - Parameter flagged: findings that somebody may not want to accept.
        case believed(flagged: [Finding])
        /// Something that it takes was not checked: these.
        case undecided([Finding])
        /// Something is not as the issuing state made it.
        case refuted([Finding])
    }

    /// Checks all that can be checked.
    ///
    /// - Parameters:
    ///   - securityObject: EF.SOD.
    ///   - files: the data groups that were read, by number, complete with tag and length.
    ///   - trust: the authorities to believe.  Its revocation lists are used, too.
    ///   - revocationLists: more of them.
    ///   - date: today.
    ///   - documentType: the first two characters of the machine readable zone in DG1.
    ///   - issuingState: the three characters after them.
    ///   - issued: the date of issue, where the document tells it.  An expired signer is accepted if it was valid then.
    ///   - expires: the date of expiry.  Where nothing tells when an expired signer was used, it is accepted if its
    ///     certificate was valid for as long as the document.
    public static func verify(
        _ securityObject: SecurityObject, files: [Int: [UInt8]], trust: TrustList,
        revocationLists: [RevocationList] = [], at date: Date, documentType: String? = nil,
        issuingState: String? = nil, issued: Date? = nil, expires: Date? = nil
    ) -> PassiveAuthentication {
        let circumstances = SignerVerification.Circumstances(
            trust: trust, revocationLists: revocationLists, date: date, issued: issued, expires: expires)
        let verification = SignerVerification(
            securityObject.signedData, circumstances, contentType: SecurityObject.outcome(ofContentType:))
        var findings = verification.findings
        if let signer = verification.signer {
            let certificates = [signer] + verification.path
            findings.append(Finding(.country, Country.outcome(certificates, issuingState: issuingState)))
            findings.append(Finding(.documentType, outcome(of: documentType, signer)))
        }
        var weakUses = verification.weakUses
        if Digest(securityObject.digestAlgorithm) == .sha1 { weakUses.append("the data groups") }
        findings.append(Finding(.digestAlgorithms, weakUses.isEmpty ? .passed : .flagged(.sha1(weakUses))))
        for number in Set(securityObject.dataGroupDigests.keys).union(files.keys).sorted() {
            findings.append(Finding(.dataGroup(number), outcome(of: files[number], number, securityObject)))
        }
        return PassiveAuthentication(findings: findings, signer: verification.signer, path: verification.path)
    }

    private static func outcome(
        of file: [UInt8]?, _ number: Int, _ securityObject: SecurityObject
    ) -> Finding.Outcome {
        guard let signed = securityObject.dataGroupDigests[number] else { return .failed(.notSigned) }
        guard let file else { return .notChecked(.notRead) }
        guard file.count <= SecurityObject.maximumLength else { return .failed(.tooLong) }
        guard let digest = Digest(securityObject.digestAlgorithm) else {
            return .notChecked(.unsupportedAlgorithm(securityObject.digestAlgorithm.oid))
        }
        return digest.hash(file) == signed ? .passed : .failed(.digestDiffers)
    }

    private static func outcome(of documentType: String?, _ signer: Certificate) -> Finding.Outcome {
        guard let types = signer.extensions.documentTypes else { return .notChecked(.noDocumentTypes) }
        guard let type = documentType.map({ String($0.prefix { $0 != "<" }) }), let letter = type.first else {
            return .notChecked(.documentTypeNotGiven)
        }
        let signed = types.map { String($0.prefix { $0 != "<" }) }
        if signed.contains(type) { return .passed }
        return signed.contains(String(letter))
            ? .flagged(.documentTypeByFirstLetter) : .failed(.otherDocumentTypes(types))
    }

    /// The checks without which nothing is believed.
    static let essential: Set<Finding.Check> = [
        .contentType, .messageDigest, .signerCertificate, .signature, .path, .validity(.signer), .validity(.issuer(0)),
        .keyUsage(.signer), .keyUsage(.issuer(0)),
    ]

    /// The sum of the findings.
    public var verdict: Verdict { Verdict(findings) }
}

extension PassiveAuthentication.Verdict {
    /// Sums up findings: any failure refutes, and what is essential has to be known.
    ///
    /// - Parameter essential: checks beside those that each document takes.
    init(_ findings: [Finding], essential: Set<Finding.Check> = []) {
        let failures = findings.filter(\.isFailure)
        guard failures.isEmpty else {
            self = .refuted(failures)
            return
        }
        let essential = essential.union(PassiveAuthentication.essential)
        let held = Set(findings.filter { !$0.isOpen }.map(\.check))
        func isDataGroup(_ check: Finding.Check) -> Bool { if case .dataGroup = check { true } else { false } }
        let hasDataGroup = held.contains(where: isDataGroup)
        guard hasDataGroup, essential.isSubset(of: held) else {
            self = .undecided(
                findings.filter {
                    $0.isOpen && (essential.contains($0.check) || !hasDataGroup && isDataGroup($0.check))
                })
            return
        }
        self = .believed(flagged: findings.filter(\.isFlagged))
    }
}

/// The country that certificates and a document have in common.
enum Country {
    static func outcome(_ certificates: [Certificate], issuingState: String?) -> Finding.Outcome {
        let countries = certificates.flatMap { [$0.subject.country, $0.issuer.country] }
        let known = Set(countries.compactMap(\.self))
        guard !countries.contains(nil), let country = known.first else { return .failed(.noCountry) }
        guard known.count == 1 else { return .failed(.countriesDiffer(known.sorted())) }
        guard let issuingState else { return .notChecked(.issuingStateNotGiven) }
        guard let ofState = IssuingStates.countries(of: issuingState) else { return .notChecked(.unknownIssuingState) }
        return ofState.contains(country) ? .passed : .failed(.countriesDiffer([country] + ofState.sorted()))
    }
}
