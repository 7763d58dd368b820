public import Foundation

/// The reasons to believe a document, or not: its signature (passive authentication), and the chip's proofs of being no
/// copy.
public struct DocumentBelief: Sendable {
    /// The findings of passive authentication, then those about the chip.
    public let findings: [Finding]
    /// The certificate of the document signer, if it was found.
    public let signer: Certificate?
    /// The authorities behind the signer; see ``PassiveAuthentication/path``.
    public let path: [Certificate]
    /// The sum of the findings.
    ///
    /// A chip that offers proofs has to have given one.  A document without any is believed as far as its signature goes:
    /// nothing tells whether the chip is the original.
    public let verdict: PassiveAuthentication.Verdict

    /// True if the document is believed, and a proof of being no copy passed.
    public var isOriginal: Bool {
        guard case .believed = verdict else { return false }
        return findings.contains { Self.proofs.contains($0.check) && !$0.isOpen && !$0.isFailure }
    }

    private static let proofs: Set<Finding.Check> = [
        .chipAuthenticationMapping, .chipAuthentication, .activeAuthentication,
    ]

    init(_ passive: PassiveAuthentication?, _ aboutChip: [Finding]) {
        // Without a signature there is nothing to hold anything against.
        let unsigned = [Finding(.signature, .notChecked(.noSecurityObject))]
        findings = (passive?.findings ?? unsigned) + aboutChip
        (signer, path) = (passive?.signer, passive?.path ?? [])
        let offered = aboutChip.filter { Self.proofs.contains($0.check) }
        let isOpen = offered.allSatisfy(\.isOpen)
        verdict = PassiveAuthentication.Verdict(findings, essential: isOpen ? Set(offered.map(\.check)) : [])
    }
}

extension DocumentReading {
    /// Judges the signature over what was read, and the chip's proofs.
    ///
    /// - Parameters:
    ///   - trust: the authorities to believe, with their revocation lists.
    ///   - revocationLists: more of them.
    ///   - date: today.
    public func belief(
        trust: TrustList, revocationLists: [RevocationList] = [], at date: Date
    ) -> DocumentBelief {
        let groups = files.compactMap { read -> (Int, [UInt8])? in
            if case .dataGroup(let number) = read.file { (number, read.bytes) } else { nil }
        }
        let expires = zone.flatMap { DocumentDate(date).flatMap($0.dateOfExpiry.expiry) }?.endOfDay
        let passive = securityObject.map { object in
            PassiveAuthentication.verify(
                object, files: Dictionary(groups) { first, _ in first }, trust: trust, revocationLists: revocationLists,
                at: date, documentType: zone?.documentCode, issuingState: zone?.issuingState, issued: dateOfIssue,
                expires: expires)
        }
        var findings: [Finding] = []
        if let expires {
            findings.append(Finding(.documentExpiry, expires < date ? .flagged(.documentExpired) : .passed))
        }
        if let outcome = cardAccessOutcome { findings.append(Finding(.cardAccess, outcome)) }
        findings += proofs { security in
            security.verify(
                trust: trust, revocationLists: revocationLists, at: date, issuingState: zone?.issuingState,
                issued: dateOfIssue, expires: expires)
        }
        return DocumentBelief(passive, findings)
    }

    /// DG12's date of issue, at noon in universal time.
    private var dateOfIssue: Date? {
        guard case .additionalDocumentDetails(let details)? = contents[.dataGroup(12)] else { return nil }
        return details.dateOfIssue?.endOfDay?.addingTimeInterval(-43_200)
    }

    /// EF.CardAccess held against DG14, which is signed and has the same; nil where DG14 says nothing of PACE.
    private var cardAccessOutcome: Finding.Outcome? {
        guard let file = bytes(of: .dataGroup(14)),
            let signed = try? SecurityInfos(dataGroup14: file).paceInfos, !signed.isEmpty
        else { return nil }
        let withheld = signed.filter { !access.offered.contains($0) }
        return withheld.isEmpty ? .passed : .failed(.paceWithheld(withheld))
    }

    /// The chip's proofs.  One that the signature over the document promises, and that the chip did not give, is open.
    private func proofs(_ verify: (CardSecurity) -> [Finding]) -> [Finding] {
        var findings: [Finding] = []
        if let mapping = access.chipAuthenticationMapping { findings += judge(mapping, verify) }
        let isProven = access.mappingVerdict == .genuine || chipAuthentication == .genuine
        for (number, check, outcome) in [
            (14, Finding.Check.chipAuthentication, chipAuthentication.map(\.outcome)),
            (15, .activeAuthentication, activeAuthentication.map(\.outcome)),
        ] {
            if let outcome {
                if let outcome { findings.append(Finding(check, outcome)) }
            } else if !isProven, chipAuthentication != .notGenuine, securityObject?.dataGroupDigests[number] != nil {
                findings.append(Finding(check, .notChecked(reasonForSilence(of: .dataGroup(number)))))
            }
        }
        return findings
    }

    private func reasonForSilence(of file: ElementaryFile) -> Finding.Reason {
        for failure in failures where failure.file == file {
            switch failure.reason {
            case .malformedObject(let error): return .malformed(error)
            case .malformedContents(let error):
                return .malformed(MalformedObject(due: "\(file)", offset: error.offset))
            case .notRead, .needsTerminalAuthentication: break
            }
        }
        return .notRead
    }

    /// The mapping proves a key; the signature over EF.CardSecurity proves whose it is.
    private func judge(
        _ mapping: ChipAuthenticationMapping, _ verify: (CardSecurity) -> [Finding]
    ) -> [Finding] {
        func finding(_ outcome: Finding.Outcome) -> Finding { Finding(.chipAuthenticationMapping, outcome) }
        guard let file = access.cardSecurity else { return [finding(.notChecked(.noCardSecurity))] }
        let security: CardSecurity
        do throws(MalformedObject) { security = try CardSecurity(file) } catch {
            return [finding(.notChecked(.malformed(error)))]
        }
        switch mapping.verdict(of: security) {
        case .noKey: return [finding(.notChecked(.noKey))]
        case .notGenuine: return [finding(.failed(.copy))]
        case .genuine: break
        }
        let findings = verify(security)
        let known = Set(findings.filter { !$0.isOpen }.map(\.check))
        // Any state's key would do for a copy, if its country were not the document's.
        let essential = PassiveAuthentication.essential.union([.country])
        let isBelieved = !findings.contains(where: \.isFailure) && essential.isSubset(of: known)
        return findings.filter { $0.outcome != .passed }.map { Finding(.cardSecurity($0.check), $0.outcome) }
            + [finding(isBelieved ? .passed : .notChecked(.keyNotBelieved))]
    }
}

extension ChipAuthentication.Verdict {
    /// The outcome of the finding; nil for a chip without it.
    fileprivate var outcome: Finding.Outcome? {
        switch self {
        case .genuine: .passed
        case .notGenuine: .failed(.copy)
        case .notOffered: nil
        case .refused(let refusal): .notChecked(.refused("\(refusal)"))
        case .readerLimit: .notChecked(.readerLimit)
        case .unusableKey: .notChecked(.unusableKey)
        }
    }
}

extension ActiveAuthentication.Verdict {
    fileprivate var outcome: Finding.Outcome? {
        switch self {
        case .genuine: .passed
        case .wrongSignature: .failed(.copy)
        case .readerLimit: .notChecked(.readerLimit)
        case .refused(let status): .notChecked(.refused("\(status)"))
        case .unusableKey(let reason): .notChecked(reason)
        }
    }
}

extension DocumentDate {
    /// The day of a point in time, in universal time.
    package init?(_ date: Date) {
        let parts = Calendar.universal.dateComponents([.year, .month, .day], from: date)
        self.init(year: parts.year, month: parts.month, day: parts.day)
    }

    /// The last second of the day in universal time; nil if a part is unknown.
    fileprivate var endOfDay: Date? {
        guard let year, let month, let day else { return nil }
        let parts = DateComponents(year: year, month: month, day: day, hour: 23, minute: 59, second: 59)
        return Calendar.universal.date(from: parts)
    }
}

extension Calendar {
    fileprivate static let universal: Calendar = {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        return calendar
    }()
}
