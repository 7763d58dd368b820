import ArgumentParser
import EMVContactless
import SmartCard
import ToolReaders
import ToolSupport

/// The action of `reader-probe` without a subcommand.
struct OverviewCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "overview", abstract: "Lists the readers and reads the first contactless card.",
        shouldDisplay: false)

    @OptionGroup var readerOptions: ReaderOptions
    @OptionGroup var output: OutputOptions

    private struct Overview: Encodable {
        let readers: [Report.Slot]
        let probe: Report.Probe<Report.Application>
    }

    func run() async throws {
        let readers = await SeenReader.look(at: try await readerOptions.readers())
        if !output.json {
            for reader in readers { Terminal.print(reader.text) }
            Terminal.print("")
        }
        let probe = try await Probe(readerOptions)
        if output.json {
            try Report.print(
                Overview(
                    readers: readers.map(Report.Slot.init), probe: probe.report(reveal: output.reveal)),
                redactor: output.reveal ? Redactor() : Redactor(hiding: probe.inspection))
        } else {
            try probe.show(output)
        }
        try probe.check(needsApplications: false)
    }
}
