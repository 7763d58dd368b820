import ArgumentParser
import Foundation
import SmartCardTrace
import ToolSupport

/// The options for the results of many traces.
struct ResultOptions: ParsableArguments {
    @Option(help: .init("Write the results as JUnit XML, for a CI system.", valueName: "file"))
    var junit: String?

    @Option(help: .init("Write the results as --json prints them, for apdu-trace merge.", valueName: "file"))
    var results: String?

    @Flag(name: .shortAndLong, help: "List the traces without differences, too.")
    var verbose = false

    var isUnused: Bool { junit == nil && results == nil && !verbose }

    /// Checks before any work that the results can be written.
    func checkWritable() throws {
        for path in [junit, results].compactMap(\.self) {
            let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o666)
            guard descriptor >= 0 else { throw Self.notWritable(path) }
            close(descriptor)
        }
    }

    fileprivate func write(_ results: ReplayResults) throws {
        if let junit {
            let report = JUnitReport(cases: results.traces, seconds: results.seconds, timestamp: results.started)
            try Self.write(report.xml, to: junit)
        }
        if let path = self.results { try Self.write(try Report.text(results) + "\n", to: path) }
    }

    private static func write(_ text: String, to path: String) throws {
        do { try Data(text.utf8).write(to: URL(fileURLWithPath: path)) } catch { throw notWritable(path) }
    }

    private static func notWritable(_ path: String) -> ToolError {
        .usage("\(path) cannot be written", "Check that its folder exists and is writable.")
    }
}

/// The results of a replay, whole or one part of it: the output of `--json`, and the input of `merge`.
struct ReplayResults: Codable {
    /// The result of one trace.
    struct Case: Sendable {
        /// Folders, and the name of the file.
        let path: String
        let seconds: Double
        /// True if it passed before, and was not replayed again.
        let isCached: Bool
        let result: Result

        enum Result: Equatable {
            case passed
            /// The trace differs in this way.
            case failed(String)
            /// The reason why it could not be replayed.
            case broken(String)
        }
    }

    /// The traces of all parts.
    struct Selection: Codable, Equatable {
        let count: Int
        /// SHA-256 of their paths, relative to the named folder.
        let digest: String
    }

    /// The version of the tool.
    let version: String
    /// SHA-256 of the options and files that decide what comes of a trace.
    let configuration: String
    let selection: Selection
    let shard: Shard
    /// `2026-11-21T18:05:09`, UTC.
    let started: String
    let seconds: Double
    let passed: Int
    let failed: Int
    let errors: Int
    let traces: [Case]

    init(
        version: String, configuration: String, selection: Selection, shard: Shard, started: String, seconds: Double,
        traces: [Case]
    ) {
        (self.version, self.configuration, self.selection) = (version, configuration, selection)
        (self.shard, self.started, self.seconds, self.traces) = (shard, started, seconds, traces)
        passed = traces.count { $0.result == .passed }
        failed = traces.count { if case .failed = $0.result { true } else { false } }
        errors = traces.count - passed - failed
    }

    /// Writes and prints the results.
    ///
    /// - Parameter word: what is said of traces that passed.
    /// - Throws: `ExitCode` 2 if any trace could not be replayed, 1 if any differs; ``ToolError``.
    func report(_ options: ResultOptions, json: Bool, word: String = "as recorded") throws {
        try options.write(self)
        if json {
            try Report.print(self)
        } else {
            var parts = ["\(passed) \(word)"]
            let cached = traces.count { $0.isCached }
            if cached > 0 { parts.append("\(cached) of them from the cache") }
            if failed > 0 { parts.append("\(failed) differ") }
            if errors > 0 { parts.append("\(errors) cannot be replayed") }
            if traces.count < selection.count { parts.append("\(selection.count - traces.count) in other parts") }
            Terminal.print("\(plural(traces.count, "trace")): \(parts.joined(separator: ", "))")
        }
        if errors > 0 { throw ExitCode(2) }
        if failed > 0 { throw ExitCode(1) }
    }
}

extension ReplayResults.Case {
    /// Prints the trace if it differs, cannot be replayed, or `verbose` is true.
    func tell(verbose: Bool) {
        switch result {
        case .passed: if verbose { Terminal.print("ok      \(path)") }
        case .failed(let text): tell("differs", text)
        case .broken(let text): tell("error", text)
        }
    }

    private func tell(_ word: String, _ text: String) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { "    \($0)" }
        Terminal.print("\(Terminal.styled(word, .bold)) \(path)\n" + lines.joined(separator: "\n"))
    }
}

extension ReplayResults.Case: Codable {
    private enum Key: String, CodingKey {
        case file, result, text, seconds, cached
    }

    private enum Word: String, Codable {
        case passed, failed, error
    }

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Key.self)
        path = try values.decode(String.self, forKey: .file)
        seconds = try values.decode(Double.self, forKey: .seconds)
        isCached = try values.decode(Bool.self, forKey: .cached)
        result =
            switch try values.decode(Word.self, forKey: .result) {
            case .passed: .passed
            case .failed: .failed(try values.decode(String.self, forKey: .text))
            case .error: .broken(try values.decode(String.self, forKey: .text))
            }
    }

    func encode(to encoder: any Encoder) throws {
        let (word, text): (Word, String?) =
            switch result {
            case .passed: (.passed, nil)
            case .failed(let text): (.failed, text)
            case .broken(let text): (.error, text)
            }
        var values = encoder.container(keyedBy: Key.self)
        try values.encode(path, forKey: .file)
        try values.encode(word, forKey: .result)
        try values.encode(OrNull(wrappedValue: text), forKey: .text)
        try values.encode((seconds * 1e6).rounded() / 1e6, forKey: .seconds)
        try values.encode(isCached, forKey: .cached)
    }
}
