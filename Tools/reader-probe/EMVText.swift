import ToolSupport

/// An EMV card as text for people.
struct EMVText {
    private let probe: Report.Probe<Report.Application>

    init(_ probe: Report.Probe<Report.Application>) { self.probe = probe }

    var text: String {
        var lines = CardText(probe.reader, probe.card).lines
        if let directory = probe.directory { lines.append(field("Directory", directory)) }
        lines += probe.findings.map(finding)
        for (number, application) in zip(1..., probe.applications) { lines += [""] + self.lines(number, application) }
        if let interruption = probe.interruption { lines.append(finding("reading ended: \(interruption)")) }
        return lines.joined(separator: "\n")
    }

    private func lines(_ number: Int, _ application: Report.Application) -> [String] {
        var lines = [
            Terminal.styled("\(number)  \(application.label ?? "no label")", .bold) + "  \(application.aid)"
        ]
        let kind = [
            application.scheme, application.kernel.map { "kernel \($0)" },
            application.priority.map { "priority \($0)" },
        ]
        lines.append(field("", kind.compactMap(\.self).joined(separator: ", ")))
        if let pan = application.pan {
            let more = [
                application.expiry.map { "expires \($0)" }, application.panSequence.map { "sequence number \($0)" },
            ]
            lines.append(field("PAN", ([pan] + more.compactMap(\.self)).joined(separator: ", ")))
        }
        if let atc = application.atc { lines.append(field("ATC", "\(atc)")) }
        if let tries = application.pinTryCounter { lines.append(field("PIN tries", "\(tries) left")) }
        if let cryptogram = application.cryptogram {
            lines.append(field("Cryptogram", "\(cryptogram) \(application.cryptogramType ?? "")"))
        }
        if let aip = application.aip { lines.append(field("AIP", aip)) }
        if let afl = application.afl { lines.append(field("AFL", afl)) }
        lines += application.findings.map(finding)

        var origin: String?
        for element in application.elements {
            if element.origin != origin {
                origin = element.origin
                lines.append("   " + Terminal.styled(origin ?? "", .dim))
            }
            lines += ElementText.lines(element, indent: 5)
        }
        for (number, record) in zip(1..., application.log) {
            lines.append("   " + Terminal.styled("transaction log, entry \(number)", .dim))
            if record.elements.isEmpty { lines.append("     \(record.value)") }
            lines += record.elements.flatMap { ElementText.lines($0, indent: 5) }
        }
        return lines
    }

    private func field(_ name: String, _ value: String) -> String { CardText.field(name, value) }

    private func finding(_ text: String) -> String { "   " + Terminal.styled("! \(text)", .warning) }
}

/// A data element as text for people: one line, and a line for each of its bits.
enum ElementText {
    static func lines(_ element: Report.Element, indent: Int) -> [String] {
        let margin = String(repeating: " ", count: indent)
        let tag = element.tag.padding(to: 6)
        let value = element.text.map { "\($0)  \(Terminal.styled(element.value, .dim))" } ?? element.value
        return ["\(margin)\(tag)  \(element.name ?? "unknown")  \(value)"]
            + element.bits.map { "\(margin)          \($0)" }
    }
}

/// A reader and a card as text for people.
struct CardText {
    let lines: [String]

    init(_ reader: Report.Reader, _ card: Report.Card) {
        var lines = [Self.field("Reader", "\(reader.name)  (\(reader.backend))"), Self.field("Card", card.technology)]
        if let uid = card.uid { lines.append(Self.field("UID", uid)) }
        lines.append(Self.field("ATR", card.atr))
        if let ats = card.ats { lines.append(Self.field("ATS", ats)) }
        if !card.historicalBytes.isEmpty { lines.append(Self.field("History", card.historicalBytes)) }
        lines += card.defects.map { "   " + Terminal.styled("! ATR: \($0)", .warning) }
        self.lines = lines
    }

    static func field(_ name: String, _ value: String) -> String { "   \(name.padding(to: 12)) \(value)" }
}

extension String {
    func padding(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
