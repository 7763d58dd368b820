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
        struct Detail: Encodable {
            /// `fullName`, `placeOfBirth`, `issuingAuthority` and so on.  A name may come more than once.
            let name: String
            let value: String
        }

        /// The fields of DG11 and DG12, if they were asked for.
        let details: [Detail]
        struct Check: Encodable {
            let name: String
            /// `passed`, `flagged`, `failed` or `notChecked`
            let result: String
            /// Why it did not simply pass.
            @OrNull var reason: String?
        }

        /// The checks of the signature over the data groups and of the chip, each with its result.
        let checks: [Check]
        /// True if a trusted authority issued the signer's certificate, all that was read is signed, and the chip is
        /// no copy as far as it can show.
        let isBelieved: Bool
        /// Why not.
        let doubts: [String]
    }
}

extension Report.TravelDocument {
    init(_ reading: DocumentReading, _ belief: DocumentBelief, reader: ReaderIdentity, isRevealed: Bool) {
        let mask = PersonalMask(isRevealed: isRevealed)
        self.reader = Report.Reader(reader)
        access = "\(reading.access.method)"
        isDowngraded = reading.access.isDowngraded
        accessFailures = reading.access.failures.map { "\($0.method): \($0.refusal)" }
        dataGroups = reading.dataGroups.map { "\(ElementaryFile.dataGroup($0))" }
        let failures = Dictionary(reading.failures.map { ($0.file, $0) }) { first, _ in first }
        files =
            reading.files.map { read in
                File(name: "\(read.file)", length: read.bytes.count, error: failures[read.file]?.reasonText)
            }
            + reading.failures.filter { reading.bytes(of: $0.file) == nil }
            .map { File(name: "\($0.file)", length: nil, error: $0.reasonText) }
        _zone = OrNull(wrappedValue: reading.zone.map { Zone($0, mask) })
        _portrait = OrNull(
            wrappedValue: reading.faces?.faces.first.map { face in
                Portrait(
                    format: face.image.format?.rawValue, width: face.width, height: face.height,
                    bytes: face.image.bytes.count)
            })
        details = reading.details(mask)
        checks = belief.findings.map(Check.init)
        let unread = reading.failures.filter { if case .dataGroup = $0.file { true } else { false } }
        doubts = belief.doubts + unread.map { "\($0)" }
        isBelieved = if case .believed = belief.verdict { unread.isEmpty } else { false }
    }
}

extension DocumentReading.Failure {
    /// The reason without the name of the file.
    fileprivate var reasonText: String {
        let prefix = "\(file): "
        return description.hasPrefix(prefix) ? String(description.dropFirst(prefix.count)) : description
    }
}

extension DocumentReading {
    /// DG2.
    var faces: EncodedFaces? {
        if case .encodedFaces(let faces)? = contents[.dataGroup(2)] { faces } else { nil }
    }

    /// DG11 and DG12, field by field; no more than they have.
    fileprivate func details(_ mask: PersonalMask) -> [Report.TravelDocument.Detail] {
        var fields: [(name: String, value: String?)] = []
        if case .additionalPersonalDetails(let person)? = contents[.dataGroup(11)] {
            fields += [("fullName", person.fullName.map(Self.text))]
            fields += person.otherNames.map { ("otherName", Self.text($0)) }
            fields += [
                ("personalNumber", person.personalNumber),
                ("dateOfBirth", person.fullDateOfBirth.map(PersonalMask.text)),
                ("placeOfBirth", Self.text(person.placeOfBirth)), ("address", Self.text(person.permanentAddress)),
                ("telephone", person.telephone), ("profession", person.profession), ("title", person.title),
                ("summary", person.personalSummary),
            ]
            fields += person.otherTravelDocumentNumbers.map { ("otherDocument", $0) }
            fields += [("custody", person.custodyInformation)]
        }
        if case .additionalDocumentDetails(let document)? = contents[.dataGroup(12)] {
            fields += [
                ("issuingAuthority", document.issuingAuthority),
                ("dateOfIssue", document.dateOfIssue.map(PersonalMask.text)),
            ]
            fields += document.otherPersons.map { ("otherPerson", Self.text($0)) }
            fields += [
                ("observations", document.endorsementsAndObservations),
                ("taxOrExitRequirements", document.taxOrExitRequirements),
                ("dateOfPersonalization", document.timeOfPersonalization.map { PersonalMask.text($0.date) }),
                ("personalizationSystem", document.personalizationSystemSerialNumber),
            ]
        }
        return fields.compactMap { name, value in
            value.map { Report.TravelDocument.Detail(name: name, value: mask.shown($0)) }
        }
    }

    private static func text(_ name: DocumentName) -> String {
        [name.secondaryIdentifier, name.primaryIdentifier].filter { !$0.isEmpty }.joined(separator: " ")
    }

    private static func text(_ lines: [String]) -> String? { lines.isEmpty ? nil : lines.joined(separator: ", ") }
}

extension DocumentBelief {
    /// The reasons not to believe the document; none if there are none.
    fileprivate var doubts: [String] {
        switch verdict {
        case .believed: []
        case .undecided(let findings), .refuted(let findings): findings.map { "\($0)" }
        }
    }
}

/// A mask for personal data: character by character, unless they are to be shown.
struct PersonalMask {
    let isRevealed: Bool

    func shown(_ text: String) -> String { isRevealed ? text : String(text.map { " -".contains($0) ? $0 : "*" }) }
    func shown(_ date: DocumentDate?) -> String? { date.map { shown(Self.text($0)) } }

    /// `1974-08-12`, with `?` for digits that are unknown
    static func text(_ date: DocumentDate) -> String {
        func digits(_ number: Int?, _ count: Int) -> String {
            let text = number.map(String.init) ?? String(repeating: "?", count: count)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        return [digits(date.year, 4), digits(date.month, 2), digits(date.day, 2)].joined(separator: "-")
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

extension Report.TravelDocument.Zone {
    fileprivate init(_ zone: MachineReadableZone, _ mask: PersonalMask) {
        let now = TerminalTime.now.date
        let today = DocumentDate(year: now.year, month: now.month, day: now.day)
        self.init(
            format: zone.format.rawValue, documentCode: zone.documentCode, issuingState: zone.issuingState,
            documentNumber: mask.shown(zone.documentNumber), primaryIdentifier: mask.shown(zone.name.primaryIdentifier),
            secondaryIdentifier: mask.shown(zone.name.secondaryIdentifier), nationality: mask.shown(zone.nationality),
            dateOfBirth: mask.shown(today.flatMap { zone.dateOfBirth.birth(notAfter: $0) }),
            dateOfExpiry: mask.shown(today.flatMap { zone.dateOfExpiry.expiry(near: $0) }),
            sex: zone.sex.map { mask.shown(String($0.rawValue)) },
            wrongCheckDigits: zone.checkDigits.filter { !$0.isRight }.map(\.field.rawValue))
    }
}

/// A travel document as text for people.
struct PassportText {
    private let report: Report.TravelDocument

    init(_ report: Report.TravelDocument) { self.report = report }

    var text: String {
        var lines = [Self.field("Reader", "\(report.reader.name)  (\(report.reader.backend))")]
        lines.append(
            Self.field("Access", report.access + (report.isDowngraded ? ", although the chip offers PACE" : "")))
        lines += report.accessFailures.map(finding)
        if !report.dataGroups.isEmpty {
            lines.append(Self.field("Data groups", report.dataGroups.joined(separator: " ")))
        }
        for file in report.files {
            if let length = file.length { lines.append(Self.field(file.name, "\(length) bytes")) }
            if let error = file.error { lines.append(finding("\(file.name): \(error)")) }
        }
        if let zone = report.zone { lines += [""] + self.lines(zone) }
        lines += (report.details.isEmpty ? [] : [""])
        lines += report.details.map { "   \($0.name.words.padding(to: 24)) \($0.value.withoutControls)" }
        if let portrait = report.portrait {
            let size = portrait.width.flatMap { width in portrait.height.map { "\(width) by \($0)" } }
            let parts = [portrait.format ?? "unknown format", size, "\(portrait.bytes) bytes"]
            lines.append(Self.field("Photo", parts.compactMap(\.self).joined(separator: ", ")))
        }
        if !report.checks.isEmpty { lines.append("") }
        for check in report.checks where check.result == "passed" { lines.append(Self.field("passed", check.name)) }
        for check in report.checks where check.result != "passed" {
            let text = "\(check.name): \(check.reason ?? "")"
            lines.append(Self.field(check.result == "notChecked" ? "not checked" : check.result, text))
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
        return fields.compactMap { name, value in value.map { Self.field(name, $0) } }
            + zone.wrongCheckDigits.map { finding("the check digit of the \($0) is wrong") }
    }

    private func finding(_ text: String) -> String {
        "   " + Terminal.styled("! \(text.withoutControls)", .warning)
    }

    /// A field of one line: no text of a chip looks like a line of this report.
    private static func field(_ name: String, _ value: String) -> String { CardText.field(name, value.withoutControls) }
}

extension String {
    /// The text in one line, without escape sequences.
    var withoutControls: String {
        String(
            String.UnicodeScalarView(unicodeScalars.map { $0.properties.generalCategory == .control ? "\u{FFFD}" : $0 })
        )
    }
}
