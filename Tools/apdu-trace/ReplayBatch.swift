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

    @Option(
        help: .init(
            """
            Do not replay traces again that passed before, with this program and configuration: the folder remembers \
            them.
            """, valueName: "folder"))
    var cache: String?

    @Flag(help: "Write the outcome of each transaction into its trace, as the expected outcome from then on.")
    var update = false

    @OptionGroup var results: ResultOptions

    var isUnused: Bool { kernel == nil && shard == nil && cache == nil && !update && results.isUnused }
}

/// One part of all traces.
struct Shard: CustomStringConvertible, Codable {
    /// From 1.
    let index: Int
    let count: Int

    /// All traces.
    static let whole = Shard(index: 1, count: 1)

    var description: String { "\(index)/\(count)" }

    private init(index: Int, count: Int) { (self.index, self.count) = (index, count) }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let shard = Shard(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "no part")
        }
        self = shard
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }

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
    /// SHA-256 of the options and files that decide what comes of a trace.
    let configurationDigest: String
    let json: Bool

    /// No replay without times takes longer.
    private static let limit = Duration.seconds(60)

    private struct File: Sendable {
        let path: String
        /// To the folder that was named.
        let relativePath: String
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
        let unique = all.filter { known.insert($0.path).inserted }
        let shard = options.shard ?? .whole
        try options.results.checkWritable()
        let cache = try options.cache.map { try ReplayCache($0, configuration: configurationDigest) }
        let (date, start) = (Date(), ContinuousClock.now)
        let traces = await replay(unique.filter { shard.contains($0.relativePath) }, cache)
        let results = ReplayResults(
            version: APDUTrace.configuration.version, configuration: configurationDigest,
            selection: .init(
                count: unique.count, digest: Data(unique.map { "\($0.relativePath)\n" }.joined().utf8).digest),
            shard: shard, started: String(date.formatted(.iso8601).dropLast()),
            seconds: (ContinuousClock.now - start) / .seconds(1), traces: traces)
        try results.report(options.results, json: json, word: options.update ? "written" : "as recorded")
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
    private func replay(_ files: [File], _ cache: ReplayCache?) async -> [ReplayResults.Case] {
        await withTaskGroup(of: (Int, ReplayResults.Case).self) { group in
            var waiting = files.enumerated().makeIterator()
            func addNext() {
                guard let (index, file) = waiting.next() else { return }
                group.addTask { (index, await replay(file, cache)) }
            }
            for _ in 0..<max(1, ProcessInfo.processInfo.activeProcessorCount) { addNext() }
            var done: [Int: ReplayResults.Case] = [:]
            var cases: [ReplayResults.Case] = []
            for await (index, entry) in group {
                addNext()
                done[index] = entry
                while let next = done.removeValue(forKey: cases.count) {
                    if !json { next.tell(verbose: options.results.verbose) }
                    cases.append(next)
                }
            }
            return cases
        }
    }

    private func replay(_ file: File, _ cache: ReplayCache?) async -> ReplayResults.Case {
        let start = ContinuousClock.now
        func entry(_ result: ReplayResults.Case.Result, isCached: Bool = false) -> ReplayResults.Case {
            .init(
                path: file.path, seconds: (ContinuousClock.now - start) / .seconds(1), isCached: isCached,
                result: result)
        }
        let remembered = cache?.entry(for: file.path)
        if let remembered, cache?.contains(remembered) == true { return entry(.passed, isCached: true) }
        let result: ReplayResults.Case.Result
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
        if let remembered, result == .passed { cache?.insert(remembered) }
        return entry(result)
    }

    private func compare(_ path: String) async throws -> ReplayResults.Case.Result {
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
    ) async throws -> ReplayResults.Case.Result {
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
    ) throws -> ReplayResults.Case.Result {
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
