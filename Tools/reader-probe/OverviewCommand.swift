import ArgumentParser
import EMVContactless
import SmartCard
import ToolSupport

/// What `reader-probe` does when it is told nothing else.
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
        var slots: [(ReaderIdentity, SlotState)] = []
        for reader in try await readerOptions.readers() {
            slots.append((reader.identity, try await reader.currentState()))
        }
        if !output.json {
            for (identity, state) in slots { Terminal.print(ListCommand.line(identity, state)) }
            Terminal.print("")
        }
        let probe = try await Probe(readerOptions)
        if output.json {
            try Report.print(
                Overview(
                    readers: slots.map { Report.Slot($0, $1) }, probe: probe.report(reveal: output.reveal)),
                redactor: output.reveal ? Redactor() : Redactor(hiding: probe.inspection))
        } else {
            try probe.show(output)
        }
        try probe.check(needsApplications: false)
    }
}
