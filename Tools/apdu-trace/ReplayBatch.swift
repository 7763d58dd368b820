import ArgumentParser
import EMVContactless
import Foundation
import SmartCard
import SmartCardTrace
import ToolSupport

/// The options that select traces for replay and the files for the results.
struct BatchOptions: ParsableArguments {
    @Option(
        help: .init(
            """
            What the reader accepts: a file as --config takes it, or test for the built-in. Each trace's own transaction \
            is performed, and what comes of it is compared with what the trace says.
            """, valueName: "config"))
    var kernel: String?

    @Option(
        help: .init(
            "Replay only part i of n, counted from 1: each trace is in one part, the same on every machine.",
            valueName: "i/n"),
        transform: Shard.init(parsing:))
    var shard: Shard?

    @Option(help: .init("Write the results as JUnit XML, for a CI system.", valueName: "file"))
    var junit: String?

    @Flag(help: "Write the outcome of each transaction into its trace, as the expected outcome from then on.")
    var update = false

    @Flag(name: .shortAndLong, help: "List the traces without differences, too.")
    var verbose = false

    var isUnused: Bool { kernel == nil && shard == nil && junit == nil && !update && !verbose }
}

/// One part of all traces.
struct Shard {
    let index: Int
    let count: Int

    init(parsing argument: String) throws {
        guard let shard = Shard(argument) else {
            throw ValidationError("“\(argument)” is no part; parts are counted from 1: --shard 1/3 to --shard 3/3")
        }
        self = shard
    }

    private init?(_ argument: String) {
        let numbers = argument.split(separator: "/", omittingEmptySubsequences: false).map { Int($0) }
        guard numbers.count == 2, let index = numbers[0], let count = numbers[1], (1...100_000).contains(count),
            (1...count).contains(index)
        else { return nil }
        (self.index, self.count) = (index, count)
    }

    /// Returns true if the trace at `path`, relative to the named folder, is in this part: by its FNV-1a hash of 64
    /// bits.
    func contains(_ path: String) -> Bool {
        let hash = path.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        return hash % UInt64(count) == UInt64(index - 1)
    }
}

/// A replay of traces with our own terminal, each with its own transaction, and a comparison of the results.
struct ReplayBatch {
    let options: BatchOptions
    let order: ReplayReader.Order
    let comparison: ReplayReader.Comparison
    let timing: ReplayReader.Timing
    let terminal: ContactlessTerminal
    /// The file that configures the terminal; nil for the built-in configuration.
    let configuration: String?
    let json: Bool

    /// No replay without times takes longer.
    private static let limit = Duration.seconds(60)

    private struct File: Sendable {
        let path: String
        /// To the folder that was named.
        let relativePath: String
    }

    private struct Summary: Encodable {
        struct Trace: Encodable {
            let file: String
            /// `passed`, `failed` or `error`
            let result: String
            @OrNull var text: String?
            let seconds: Double
        }

        let passed: Int
        let failed: Int
        let errors: Int
        let traces: [Trace]
    }

    /// Replays the traces at `arguments`, files and folders.
    ///
    /// - Throws: `ExitCode` 2 if any trace cannot be replayed, 1 if any differs; ``ToolError``.
    func run(_ arguments: [String]) async throws {
        let all = try arguments.flatMap(Self.files)
        guard !all.isEmpty else {
            throw ToolError.usage("no trace in \(arguments.joined(separator: ", "))", "Traces are named *.apdu.")
        }
        var known: Set<String> = []
        let files = all.filter { known.insert($0.path).inserted && options.shard?.contains($0.relativePath) ?? true }
        if let junit = options.junit { try Self.checkWritable(junit) }
        let (date, start) = (Date(), ContinuousClock.now)
        let cases = await replay(files)
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        if let junit = options.junit {
            let report = JUnitReport(
                cases: cases, seconds: seconds, timestamp: String(date.formatted(.iso8601).dropLast()))
            do {
                try Data(report.xml.utf8).write(to: URL(fileURLWithPath: junit))
            } catch {
                throw Self.notWritable(junit)
            }
        }
        let summary = summary(cases)
        if json {
            try Report.print(summary)
        } else {
            var parts = ["\(summary.passed) \(options.update ? "written" : "as recorded")"]
            if summary.failed > 0 { parts.append("\(summary.failed) differ") }
            if summary.errors > 0 { parts.append("\(summary.errors) cannot be replayed") }
            if files.count < known.count { parts.append("\(known.count - files.count) in other parts") }
            Terminal.print("\(plural(cases.count, "trace")): \(parts.joined(separator: ", "))")
        }
        if summary.errors > 0 { throw ExitCode(2) }
        if summary.failed > 0 { throw ExitCode(1) }
    }

    /// Checks before any replay, so that the results of a long run are not lost.
    private static func checkWritable(_ path: String) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw notWritable(path) }
        close(descriptor)
    }

    private static func notWritable(_ path: String) -> ToolError {
        .usage("\(path) cannot be written", "Check that its folder exists and is writable.")
    }

    private func summary(_ cases: [JUnitReport.Case]) -> Summary {
        let traces = cases.map { entry in
            let (result, text): (String, String?) =
                switch entry.result {
                case .passed: ("passed", nil)
                case .failed(let text): ("failed", text)
                case .broken(let text): ("error", text)
                }
            return Summary.Trace(
                file: entry.path, result: result, text: text, seconds: (entry.seconds * 1e6).rounded() / 1e6)
        }
        func count(_ result: String) -> Int { traces.count { $0.result == result } }
        return Summary(
            passed: count("passed"), failed: count("failed"), errors: count("error"), traces: traces)
    }

    // MARK: Files

    /// The file at `path`, or the traces in the folder there and in those below it, in the order of their names.
    private static func files(at path: String) throws -> [File] {
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
            throw ToolError.usage("\(path) does not exist", "Name traces, or folders with traces.")
        }
        guard isFolder.boolValue else {
            return [File(path: path, relativePath: path.split(separator: "/").last.map(String.init) ?? path)]
        }
        let names = FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? []
        return names.filter { $0.hasSuffix(".apdu") && !$0.split(separator: "/").contains { $0.hasPrefix(".") } }
            .sorted().map { File(path: path.hasSuffix("/") ? path + $0 : "\(path)/\($0)", relativePath: $0) }
    }

    // MARK: Replaying

    /// Replays as many at once as there are processors; reports in the order of the files.
    private func replay(_ files: [File]) async -> [JUnitReport.Case] {
        await withTaskGroup(of: (Int, JUnitReport.Case).self) { group in
            var waiting = files.enumerated().makeIterator()
            func addNext() {
                guard let (index, file) = waiting.next() else { return }
                group.addTask { (index, await replay(file)) }
            }
            for _ in 0..<max(1, ProcessInfo.processInfo.activeProcessorCount) { addNext() }
            var done: [Int: JUnitReport.Case] = [:]
            var cases: [JUnitReport.Case] = []
            for await (index, entry) in group {
                addNext()
                done[index] = entry
                while let next = done.removeValue(forKey: cases.count) {
                    tell(next)
                    cases.append(next)
                }
            }
            return cases
        }
    }

    private func tell(_ entry: JUnitReport.Case) {
        guard !json else { return }
        switch entry.result {
        case .passed: if options.verbose { Terminal.print("ok      \(entry.path)") }
        case .failed(let text): tell("differs", entry.path, text)
        case .broken(let text): tell("error", entry.path, text)
        }
    }

    private func tell(_ word: String, _ path: String, _ text: String) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { "    \($0)" }
        Terminal.print(
            "\(Terminal.styled(word, .bold)) \(path)\n" + lines.joined(separator: "\n"))
    }

    private func replay(_ file: File) async -> JUnitReport.Case {
        let start = ContinuousClock.now
        let result: JUnitReport.Case.Result
        do {
            result = try await compare(file.path)
        } catch let error as ReplayMismatch {
            result = .failed("\(error)")
        } catch let error as UnreadableTrace {
            result = .broken(error.reason)
        } catch let error as ToolError {
            result = .broken("\(error.summary)\n\(error.hint)")
        } catch {
            result = .broken("\(error)")
        }
        return JUnitReport.Case(
            path: file.path, seconds: (ContinuousClock.now - start) / .seconds(1), result: result)
    }

    private func compare(_ path: String) async throws -> JUnitReport.Case.Result {
        let trace = try Trace(named: path)
        let recorded = trace.meta
        let hint = hint(recorded)
        do {
            let result = try await compare(trace, recorded, path)
            guard case .failed(let text) = result else { return result }
            return .failed(text + hint)
        } catch let error as ReplayMismatch {
            return .failed("\(error)\(hint)")
        }
    }

    /// Returns a possible reason why a trace with the meta lines `recorded` differs.
    private func hint(_ recorded: [String: String]) -> String {
        guard configuration == nil, let name = recorded["transaction.configuration"], name != "test" else { return "" }
        return "\n  recorded with a file called \(name); give its path: --kernel PATH"
    }

    private func compare(
        _ trace: Trace, _ recorded: [String: String], _ path: String
    ) async throws -> JUnitReport.Case.Result {
        let run = PaymentRun(try RecordedTransaction.transaction(recorded), terminal)
        let reader = ReplayReader(trace, order: order, comparison: comparison, timing: timing)
        let perform: @Sendable () async throws -> ContactlessTerminal.Report = {
            try await run.perform(on: reader, patience: nil)
        }
        let report =
            switch timing {
            case .none: try await withTimeLimit(Self.limit, perform)
            case .recorded: try await perform()
            }
        try reader.checkPlayedThrough()
        let replayed = RecordedTransaction.events(report.final)
        if options.update { return try write(replayed, to: path, after: trace) }
        guard recorded.keys.contains(where: RecordedTransaction.isOutcome) else {
            throw ToolError.usage(
                "the trace does not tell what came of its transaction", "--update writes what comes of it now.")
        }
        let differences = RecordedTransaction.differences(
            recorded: recorded, replayed: Trace(replayed.map { TraceEvent(at: .zero, $0) }).meta,
            exact: comparison == .exact)
        guard !differences.isEmpty else { return .passed }
        return .failed(
            (["another outcome: recorded | replayed"] + differences + ["  because \(report.outcome.reason)"])
                .joined(separator: "\n"))
    }

    // MARK: What is expected

    /// Replaces the outcome in the file by `outcome`, with the values that produced it; other lines stay unchanged,
    /// byte for byte.
    private func write(
        _ outcome: [TraceEvent.What], to path: String, after trace: Trace
    ) throws -> JUnitReport.Case.Result {
        guard let old = FileManager.default.contents(atPath: path) else {
            throw ToolError.usage("\(path) cannot be read", "Check that the file exists and is readable.")
        }
        var lines = old.split(separator: 0x0A, omittingEmptySubsequences: false)
        // A line that a crash cut off does not count.
        lines.removeLast()
        lines.removeAll { Self.key($0).map(RecordedTransaction.isOutcome) ?? false }
        let (key, value) = RecordedTransaction.configuration(configuration)
        if trace.meta[key] != value, let place = lines.lastIndex(where: { Self.key($0) == key }) {
            let line = try Self.lines([.meta(key: key, value: value)], at: .zero).dropLast()
            lines[place] = lines[place].prefix { $0 != 0x20 } + line.drop { $0 != 0x20 }
        }
        let time = trace.events.last?.time ?? .zero
        let new = Data(lines.flatMap { $0 + [0x0A] } + (try Self.lines(outcome, at: time)))
        if new != old {
            let file = try NewFile(path, replacing: true, keepsMode: true)
            try file.write(new)
            try file.finish()
        }
        return .passed
    }

    /// Returns the key of the meta line `line`.
    private static func key(_ line: Data) -> String? {
        let words = line.split(separator: 0x20, maxSplits: 3)
        guard line.first != UInt8(ascii: "#"), words.count > 2, words[1].elementsEqual("meta".utf8) else { return nil }
        return String(decoding: words[2], as: UTF8.self)
    }

    private static func lines(_ what: [TraceEvent.What], at time: Duration) throws -> Data {
        Data(try Trace(what.map { TraceEvent(at: time, $0) }).text().utf8.drop { $0 != 0x0A }.dropFirst())
    }
}
