import ArgumentParser
import SmartCardTrace
import ToolSupport

struct ShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Shows a trace with times, decoded.",
        discussion: "Without --reveal, account numbers, tracks, names and command data that may be a PIN are masked.")

    @OptionGroup var trace: TraceArgument
    @OptionGroup var output: OutputOptions

    private struct Shown: Encodable {
        let events: [EventText]
    }

    func run() throws {
        let events = EventText.all(of: try trace.trace(), reveal: output.reveal)
        guard !output.json else { return try Report.print(Shown(events: events)) }
        for event in events {
            let time = milliseconds(event.time)
            let margin = String(repeating: " ", count: time.count + 2)
            Terminal.print("\(Terminal.styled(time, .dim))  \(event.line)")
            for object in event.objects { Terminal.print("\(margin)   \(object)") }
        }
    }
}

/// Twelve columns, three of them decimals.
func milliseconds(_ time: Double) -> String {
    let units = Int(max(0, min(time, 1e12)) * 1000 + 0.5)
    let text = "\(units / 1000).\(String(1000 + units % 1000).dropFirst())"
    return String(repeating: " ", count: max(0, 12 - text.count)) + text
}
