import ArgumentParser
import SmartCardTrace
import ToolSupport

struct ShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Shows a trace with times, decoded.",
        discussion: """
            Without --reveal, account numbers, tracks, names and command data that may be a PIN are masked. On a terminal, \
            the program named by PAGER, or less, shows the text.
            """)

    @OptionGroup var trace: TraceArgument

    @Flag(help: "Print a JSON object for each event, on one line each, instead of text.")
    var json = false

    @Flag(help: "Show account numbers, tracks and names in full.")
    var reveal = false

    @Flag(inversion: .prefixedNo, help: "Show long text on a terminal through a pager.")
    var pager = true

    func run() async throws {
        let source = try RereadableTrace(trace.file)
        let secrets = reveal ? TraceSecrets() : try await source.secrets()
        try await Pager.run(pager && !json) {
            try await source.forEachPiece { piece in
                for event in EventText.all(of: piece.trace, reveal: reveal, knowing: secrets) { try show(event) }
            }
        }
    }

    private func show(_ event: EventText) throws {
        guard !json else { return try Report.printLine(event) }
        let time = milliseconds(event.time)
        let margin = String(repeating: " ", count: time.count + 2)
        let line = event.isFailure ? Terminal.styled(event.line, .warning) : event.line
        Terminal.print(
            ((["\(Terminal.styled(time, .dim))  \(line)"] + event.objects.map { "\(margin)   \($0)" })
                .joined(separator: "\n")))
    }
}

/// Twelve columns, three of them decimals.
func milliseconds(_ time: Double) -> String {
    let units = Int(max(0, min(time, 1e12)) * 1000 + 0.5)
    let text = "\(units / 1000).\(String(1000 + units % 1000).dropFirst())"
    return String(repeating: " ", count: max(0, 12 - text.count)) + text
}
