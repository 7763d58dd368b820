import ArgumentParser
import EMVContactless
import SmartCard
import ToolReaders
import ToolSupport

struct CardCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "card", abstract: "Shows the kind of card: ATR, ATS, UID, technology, applications.")

    @OptionGroup var readerOptions: ReaderOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let probe = try await Probe(readerOptions, onlyDirectory: true)
        let report = Report.Probe(
            reader: .init(probe.reader), card: .init(probe.card), directory: probe.inspection.directory?.rawValue,
            applications: probe.inspection.applications.map(Report.ListedApplication.init),
            findings: probe.inspection.findings, interruption: probe.inspection.interruption?.description)
        if output.json {
            try Report.print(report)
        } else {
            var lines = CardText(report.reader, report.card).lines
            for (number, application) in zip(1..., report.applications) {
                let kind = [
                    application.scheme, application.kernel.map { "kernel \($0)" },
                    application.priority.map { "priority \($0)" },
                ]
                lines.append(
                    CardText.field(
                        number == 1 ? "Applications" : "",
                        "\(application.aid)  \(application.label ?? "no label")  "
                            + kind.compactMap(\.self).joined(separator: ", ")))
            }
            lines += report.findings.map { "   " + Terminal.styled("! \($0)", .warning) }
            Terminal.print(lines.joined(separator: "\n"))
        }
        try probe.check(needsApplications: false)
    }
}
