import EMVContactless
import SmartCard
import ToolReaders
import ToolSupport
import TravelDocument

/// The keys are documented in reader-probe(1) and stable; absent values are null.
extension Report {
    /// The report of `passport`.  Personal data are masked, character by character, unless they are to be shown.
    struct TravelDocument: Encodable {
        struct File: Encodable {
            let name: String
            /// In bytes; null if the file was not read.
            @OrNull var length: Int?
            /// The reason why it was not read or parsed.
            @OrNull var error: String?
        }

        struct Portrait: Encodable {
            @OrNull var format: String?
            @OrNull var width: Int?
            @OrNull var height: Int?
            let bytes: Int
        }

        struct Zone: Encodable {
            let format: String
            let documentCode: String
            let issuingState: String
            let documentNumber: String
            let primaryIdentifier: String
            let secondaryIdentifier: String
            let nationality: String
            /// `1974-08-12`, with `?` for digits that are unknown
            @OrNull var dateOfBirth: String?
            @OrNull var dateOfExpiry: String?
            @OrNull var sex: String?
            /// The fields whose check digits are wrong.
            let wrongCheckDigits: [String]
        }

        let reader: Reader
        /// `BAC`, `PACE-ECDH-GM-AES-128`
        let access: String
        /// True if the chip offers PACE and was opened by Basic Access Control.
        let isDowngraded: Bool
        /// The variants that failed before, each with its reason.
        let accessFailures: [String]
        /// The data groups that the chip claims to have.
        let dataGroups: [String]
        let files: [File]
        @OrNull var zone: Zone?
        @OrNull var portrait: Portrait?
        struct Check: Encodable {
            let name: String
            /// `passed`, `flagged`, `failed` or `notChecked`
            let result: String
            /// Why it did not simply pass.
            @OrNull var reason: String?
        }

        /// The checks of the signature over the data groups and of the chip, each with its result.
        let checks: [Check]
        /// True if a trusted authority stands behind the signature over all that was read.
        let isBelieved: Bool
        /// Why not.
        let doubts: [String]
    }
}

extension Report.TravelDocument {
    /// - Parameter authentication: nil for a document without a security object.
    init(
        _ reading: PassportReading, _ authentication: PassiveAuthentication?, reader: ReaderIdentity, isRevealed: Bool
    ) {
        self.reader = Report.Reader(reader)
        access = "\(reading.access.method)"
        isDowngraded = reading.access.isDowngraded
        accessFailures = reading.access.failures.map { "\($0.method): \($0.refusal)" }
        dataGroups = reading.dataGroups.map(\.description)
        files =
            reading.lengths.map { read in
                File(
                    name: "\(read.file)", length: read.length,
                    error: reading.failures.first { $0.file == read.file }?.reason)
            }
            + reading.failures.filter { failure in !reading.lengths.contains { $0.file == failure.file } }
            .map { File(name: "\($0.file)", length: nil, error: $0.reason) }
        _zone = OrNull(wrappedValue: reading.zone.map { Zone($0, isRevealed: isRevealed) })
        _portrait = OrNull(
            wrappedValue: reading.faces?.faces.first.map { face in
                Portrait(
                    format: face.image.format?.rawValue, width: face.width, height: face.height,
                    bytes: face.image.bytes.count)
            })
        let proofs = [
            reading.chipAuthentication.flatMap { Check("chip authentication", $0) },
            reading.activeAuthentication.map { Check("active authentication", $0) },
        ].compactMap(\.self)
        checks = (authentication?.findings.map(Check.init) ?? []) + proofs
        var doubts = authentication?.doubts ?? ["nobody has signed the document"]
        // One proof is enough; whatever contradicts it is not.
        for proof in proofs where proof.result == "failed" || !proofs.contains(where: { $0.result == "passed" }) {
            doubts.append("\(proof.name): \(proof.reason ?? "")")
        }
        (self.doubts, isBelieved) = (doubts, doubts.isEmpty)
    }
}

extension Report.TravelDocument.Check {
    init(_ finding: Finding) {
        let (result, reason): (String, Finding.Reason?) =
            switch finding.outcome {
            case .passed: ("passed", nil)
            case .flagged(let reason): ("flagged", reason)
            case .failed(let reason): ("failed", reason)
            case .notChecked(let reason): ("notChecked", reason)
            }
        self.init(name: "\(finding.check)", result: result, reason: reason.map { "\($0)" })
    }
}

extension Report.TravelDocument.Check {
    init(_ name: String, _ verdict: ActiveAuthentication.Verdict) {
        switch verdict {
        case .genuine: self.init(name: name, result: "passed", reason: nil)
        case .wrongSignature: self.init(name: name, result: "failed", reason: "\(verdict)")
        default: self.init(name: name, result: "notChecked", reason: "\(verdict)")
        }
    }

    /// - Returns: nil if the chip does not have it.
    init?(_ name: String, _ verdict: ChipAuthentication.Verdict) {
        switch verdict {
        case .genuine: self.init(name: name, result: "passed", reason: nil)
        case .notGenuine: self.init(name: name, result: "failed", reason: "the chip does not have the key of DG14")
        case .refused(let refusal): self.init(name: name, result: "notChecked", reason: "\(refusal)")
        case .readerLimit:
            self.init(name: name, result: "notChecked", reason: "this reader does not pass on commands of that length")
        case .notOffered: return nil
        }
    }
}

extension PassiveAuthentication {
    /// The reasons not to believe the document; none if there are none.
    fileprivate var doubts: [String] {
        switch verdict {
        case .believed: []
        case .undecided(let findings), .refuted(let findings): findings.map { "\($0)" }
        }
    }
}

extension Report.TravelDocument.Zone {
    init(_ zone: MachineReadableZone, isRevealed: Bool) {
        func shown(_ text: String) -> String { isRevealed ? text : String(text.map { $0 == " " ? $0 : "*" }) }
        func shown(_ date: DocumentDate?) -> String? {
            date.map { date in
                func digits(_ number: Int?, _ count: Int) -> String {
                    let text = number.map(String.init) ?? String(repeating: "?", count: count)
                    return String(repeating: "0", count: max(0, count - text.count)) + text
                }
                let text = [digits(date.year, 4), digits(date.month, 2), digits(date.day, 2)].joined(separator: "-")
                return isRevealed ? text : String(text.map { $0 == "-" ? $0 : "*" })
            }
        }
        let now = TerminalTime.now.date
        let today = DocumentDate(year: now.year, month: now.month, day: now.day)
        self.init(
            format: zone.format.rawValue, documentCode: zone.documentCode, issuingState: zone.issuingState,
            documentNumber: shown(zone.documentNumber), primaryIdentifier: shown(zone.name.primaryIdentifier),
            secondaryIdentifier: shown(zone.name.secondaryIdentifier), nationality: shown(zone.nationality),
            dateOfBirth: shown(today.flatMap { zone.dateOfBirth.birth(notAfter: $0) }),
            dateOfExpiry: shown(today.flatMap { zone.dateOfExpiry.expiry(near: $0) }),
            sex: zone.sex.map { isRevealed ? String($0.rawValue) : "*" },
            wrongCheckDigits: zone.checkDigits.filter { !$0.isRight }.map(\.field.rawValue))
    }
}

/// A travel document as text for people.
struct PassportText {
    private let report: Report.TravelDocument

    init(_ report: Report.TravelDocument) { self.report = report }

    var text: String {
        var lines = [CardText.field("Reader", "\(report.reader.name)  (\(report.reader.backend))")]
        lines.append(
            CardText.field("Access", report.access + (report.isDowngraded ? ", although the chip offers PACE" : "")))
        lines += report.accessFailures.map(finding)
        if !report.dataGroups.isEmpty {
            lines.append(CardText.field("Data groups", report.dataGroups.joined(separator: " ")))
        }
        for file in report.files {
            if let length = file.length { lines.append(CardText.field(file.name, "\(length) bytes")) }
            if let error = file.error { lines.append(finding("\(file.name): \(error)")) }
        }
        if let zone = report.zone { lines += [""] + self.lines(zone) }
        if let portrait = report.portrait {
            let size = portrait.width.flatMap { width in portrait.height.map { "\(width) by \($0)" } }
            let parts = [portrait.format ?? "unknown format", size, "\(portrait.bytes) bytes"]
            lines.append(CardText.field("Photo", parts.compactMap(\.self).joined(separator: ", ")))
        }
        if !report.checks.isEmpty { lines.append("") }
        for check in report.checks where check.result == "passed" { lines.append(CardText.field("passed", check.name)) }
        for check in report.checks where check.result != "passed" {
            let text = "\(check.name): \(check.reason ?? "")"
            lines.append(CardText.field(check.result == "notChecked" ? "not checked" : check.result, text))
        }
        lines += ["", Terminal.styled(report.isBelieved ? "Read and believed" : "Read and not believed", .bold)]
        lines += report.doubts.map(finding)
        return lines.joined(separator: "\n")
    }

    private func lines(_ zone: Report.TravelDocument.Zone) -> [String] {
        let fields: [(String, String?)] = [
            ("Document", "\(zone.documentCode), \(zone.format), issued by \(zone.issuingState)"),
            ("Number", zone.documentNumber), ("Surname", zone.primaryIdentifier), ("Names", zone.secondaryIdentifier),
            ("Nationality", zone.nationality), ("Born", zone.dateOfBirth), ("Sex", zone.sex),
            ("Expires", zone.dateOfExpiry),
        ]
        return fields.compactMap { name, value in value.map { CardText.field(name, $0) } }
            + zone.wrongCheckDigits.map { finding("the check digit of the \($0) is wrong") }
    }

    private func finding(_ text: String) -> String { "   " + Terminal.styled("! \(text)", .warning) }
}
