import ArgumentParser
import SmartCard
import SmartCardTrace
import ToolSupport

struct StatsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats", abstract: "Shows how long the exchanges of a trace took, by command.")

    @OptionGroup var trace: TraceArgument

    @Flag(help: "Print one JSON object instead of text.")
    var json = false

    /// Times in milliseconds; percentiles by nearest rank.
    private struct Row: Encodable {
        let command: String
        let count: Int
        let total: Double
        let minimum: Double
        let median: Double
        let percentile95: Double
        let percentile99: Double
        let maximum: Double

        init(_ command: String, _ durations: [Duration]) {
            let times = durations.map { $0 / .milliseconds(1) }.sorted()
            func percentile(_ percent: Int) -> Double {
                times.isEmpty ? 0 : times[max(0, (times.count * percent + 99) / 100 - 1)]
            }
            func rounded(_ time: Double) -> Double { (time * 1000).rounded() / 1000 }
            self.command = command
            count = times.count
            total = rounded(times.reduce(0, +))
            minimum = rounded(times.first ?? 0)
            median = rounded(percentile(50))
            percentile95 = rounded(percentile(95))
            percentile99 = rounded(percentile(99))
            maximum = rounded(times.last ?? 0)
        }
    }

    private struct Statistics: Encodable {
        /// From the first event to the last, in milliseconds.
        let duration: Double
        let failures: Int
        let all: Row
        let commands: [Row]
    }

    func run() throws {
        let trace = try trace.trace()
        let exchanges = trace.exchanges().filter { $0.answer != nil }
        let times = Dictionary(grouping: exchanges) { exchange in
            let command = exchange.layer == .apdu ? try? CommandAPDU(exchange.command) : nil
            return command.map { CommandName.name($0) ?? "\([$0.cla, $0.ins].hex)" } ?? exchange.layer.rawValue
        }
        let rows = times.map { Row($0, $1.map(\.duration)) }.sorted { ($1.total, $0.command) < ($0.total, $1.command) }
        let span = (trace.events.last?.time ?? .zero) - (trace.events.first?.time ?? .zero)
        let statistics = Statistics(
            duration: (span / .microseconds(1)).rounded() / 1000,
            failures: exchanges.count { if case .failure = $0.answer { true } else { false } },
            all: Row("all", exchanges.map(\.duration)), commands: rows)
        if json { return try Report.print(statistics) }
        Terminal.print("trace     \(milliseconds(statistics.duration)) ms, \(statistics.failures) exchanges failed")
        let titles = ["count", "total", "min", "median", "p95", "p99", "max"].map { right($0, 12) }.joined()
        Terminal.print(Terminal.styled("ms" + String(repeating: " ", count: 30) + titles, .dim))
        for row in rows + [statistics.all] {
            let times = [row.total, row.minimum, row.median, row.percentile95, row.percentile99, row.maximum]
            let name = row.command + String(repeating: " ", count: max(1, 32 - row.command.count))
            Terminal.print(name + right("\(row.count)", 12) + times.map(milliseconds).joined())
        }
    }

    private func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(1, width - text.count)) + text
    }
}
