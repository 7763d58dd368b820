import ArgumentParser
import Foundation
import ToolReaders
import ToolSupport

struct MergeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "merge", abstract: "Joins the results of replays that each took one part of the traces.",
        discussion: """
            Each file is that of apdu-trace replay --shard i/n --results, or its output with --json, in any order. A part \
            that is missing or given twice, and parts of other traces, another configuration or another version, are \
            errors. The output and the exit status are those of a replay of all traces.
            """)

    @Argument(help: .init("The results of each part.", valueName: "file"))
    var files: [String]

    @OptionGroup var options: ResultOptions
    @OptionGroup var format: JSONOption

    func run() throws {
        try options.checkWritable()
        let merged = try ReplayResults(merging: try files.map { ($0, try Self.results(at: $0)) })
        if !format.json { merged.traces.forEach { $0.tell(verbose: options.verbose) } }
        try merged.report(options, json: format.json)
    }

    private static func results(at path: String) throws -> ReplayResults {
        do {
            return try JSONDecoder().decode(ReplayResults.self, from: PaymentOptions.contents(of: path))
        } catch is DecodingError {
            throw ToolError.usage(
                "\(path) does not contain the results of a replay", "apdu-trace replay --json prints them.")
        }
    }
}

extension ReplayResults {
    /// Joins parts, in any order: each exactly once, of the same replay.
    ///
    /// The traces are in the order of their names.  The time is that of the longest part, as if all had run side by side.
    ///
    /// - Parameter parts: each with the path of its file; not empty.
    /// - Throws: ``ToolError`` if a part is missing, given twice or of another replay.
    fileprivate init(merging parts: [(path: String, results: ReplayResults)]) throws {
        let (path, first) = parts[0]
        var paths: [Int: String] = [:]
        for part in parts {
            if let difference = part.results.difference(from: first) {
                throw ToolError.usage(
                    "\(part.path) and \(path) do not belong together: \(difference)", "Replay all parts the same way.")
            }
            if let other = paths.updateValue(part.path, forKey: part.results.shard.index) {
                throw ToolError.usage(
                    "part \(part.results.shard) is given twice: \(other), \(part.path)", "Name each part once.")
            }
        }
        let missing = (1...first.shard.count).filter { paths[$0] == nil }
        guard missing.isEmpty else {
            let more = missing.count > 10 ? " and \(missing.count - 10) more" : ""
            let list = missing.prefix(10).map(String.init).joined(separator: ", ")
            throw ToolError.usage(
                "\(missing.count == 1 ? "part" : "parts") \(list)\(more) of \(first.shard.count) missing",
                "Replay what is missing: apdu-trace replay --shard \(missing[0])/\(first.shard.count) --json")
        }
        let traces = parts.flatMap(\.results.traces).sorted { $0.path < $1.path }
        guard traces.count == first.selection.count else {
            throw ToolError.usage(
                "the parts contain \(plural(traces.count, "trace")) instead of \(first.selection.count)",
                "Replay all parts again.")
        }
        self.init(
            version: first.version, configuration: first.configuration, selection: first.selection, shard: .whole,
            started: parts.map(\.results.started).min() ?? first.started,
            seconds: parts.map(\.results.seconds).max() ?? 0, traces: traces)
    }

    /// Returns what makes `other` the result of another replay; nil if nothing does.
    private func difference(from other: ReplayResults) -> String? {
        if shard.count != other.shard.count { return "\(shard.count) and \(other.shard.count) parts" }
        if version != other.version { return "versions \(version) and \(other.version)" }
        if configuration != other.configuration { return "different configurations or options" }
        return selection == other.selection ? nil : "different traces"
    }
}
