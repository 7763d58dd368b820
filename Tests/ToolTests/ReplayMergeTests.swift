import Foundation
import TestSupport
import Testing

/// Replays in parts, joined, and with a cache, from outside.  The oracle is a replay of everything in one go.
@Suite struct ReplayMergeTests {
    private let tool = Program.built("apdu-trace")
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("merge-\(UUID().uuidString)")
        .path

    private func run(_ arguments: [String], environment: [String: String] = [:]) async throws -> Program.Outcome {
        try await Program.run([tool] + arguments, environment: environment)
    }

    private func write(_ text: String, to file: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: "\(folder)/\(file)"))
    }

    /// Two folders: `traces` with ten payments, one of which differs from what its trace says, and `parts`.
    private func withTraces(_ body: () async throws -> Void) async throws {
        for name in ["traces/sub", "parts"] {
            try FileManager.default.createDirectory(atPath: "\(folder)/\(name)", withIntermediateDirectories: true)
        }
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let file = "\(folder)/visa.apdu"
        let paid = try await run(["pay", "--clear", "--card", "visa", "--amount", "12.34", "-o", file])
        #expect(paid.status == 0, "\(paid)")
        let good = try String(contentsOfFile: file, encoding: .utf8)
        for number in 0..<9 {
            try write("\(good)# \(number)\n", to: "traces/\(number < 5 ? "" : "sub/")\(number).apdu")
        }
        try write(
            good.replacing(#"outcome.kind "onlineRequest""#, with: #"outcome.kind "approved""#),
            to: "traces/sub/differs.apdu")
        try await body()
    }

    /// Replays each part, and writes its results to `parts/1.json` and so on.
    private func replayParts(_ count: Int) async throws -> [String] {
        var files: [String] = []
        for index in 1...count {
            files.append("\(folder)/parts/\(index).json")
            try write(try await replay(index, count), to: "parts/\(index).json")
        }
        return files
    }

    private func replay(_ index: Int, _ count: Int, _ options: [String] = []) async throws -> String {
        let outcome = try await run(["replay", "\(folder)/traces", "--shard", "\(index)/\(count)", "--json"] + options)
        #expect(outcome.status < 2, "\(outcome)")
        return outcome.output
    }

    /// Returns a report or results without what differs from run to run.
    private func steady(_ text: String) -> String {
        text.replacing(#/ (time|timestamp)="[^"]*"|"(seconds|started)" : [^\n,]*/#, with: "")
    }

    @Test("parts in any order join to the results of one replay: text, JSON, JUnit and exit status")
    func merging() async throws {
        try await withTraces {
            let parts = try await replayParts(3)
            let whole = try await run(["replay", "-v", "\(folder)/traces", "--junit", "\(folder)/whole.xml"])
            #expect(whole.status == 1 && whole.output.contains("10 traces: 9 as recorded, 1 differ\n"), "\(whole)")
            let report = try String(contentsOfFile: "\(folder)/whole.xml", encoding: .utf8)
            for files in [parts, parts.reversed(), [parts[1], parts[2], parts[0]]] {
                let merged = try await run(["merge", "-v", "--junit", "\(folder)/merged.xml"] + files)
                #expect(merged.status == 1 && merged.output == whole.output && merged.error.isEmpty, "\(merged)")
                #expect(steady(try String(contentsOfFile: "\(folder)/merged.xml", encoding: .utf8)) == steady(report))
            }
            let json = try await run(["replay", "--json", "\(folder)/traces"])
            let merged = try await run(["merge", "--json"] + parts)
            #expect(steady(merged.output) == steady(json.output) && merged.status == 1)
            // The results of all are the only part.
            try write(merged.output, to: "parts/all.json")
            #expect(try await run(["merge", "\(folder)/parts/all.json"]).output.hasSuffix("1 differ\n"))
        }
    }

    @Test("parts that are missing, given twice, or of another replay are errors, and there is no report")
    func refusal() async throws {
        try await withTraces {
            let parts = try await replayParts(3)
            let half = try await replay(1, 2)
            let exact = try await replay(3, 3, ["--exact"])
            let third = try String(contentsOfFile: parts[2], encoding: .utf8)
            try write("apdu-trace 1\n", to: "traces/new.apdu")
            let grown = try await run(["replay", "\(folder)/traces", "--shard", "3/3", "--json"]).output
            let version = third.replacing(#/"version" : "[^"]*"/#, with: #""version" : "9.9.9""#)
            let shorter = third.replacing(#/(?s)"traces" : \[.*\]/#, with: #""traces" : []"#)
            for (name, text) in [
                "half": half, "exact": exact, "grown": grown, "version": version, "shorter": shorter, "garbage": "{}",
                "beyond": third.replacing("3/3", with: "4/3"),
            ] {
                try write(text, to: "parts/\(name).json")
            }
            func part(_ name: String) -> String { "\(folder)/parts/\(name).json" }
            for (files, words) in [
                ([parts[0], parts[2]], "part 2 of 3 missing"), ([parts[2]], "parts 1, 2 of 3 missing"),
                ([parts[0], parts[1], parts[2], parts[1]], "part 2/3 is given twice: \(parts[1]), \(parts[1])"),
                ([part("half"), parts[1]], "3 and 2 parts"),
                ([parts[0], parts[1], part("exact")], "different configurations or options"),
                ([parts[0], parts[1], part("grown")], "different traces"),
                ([parts[0], parts[1], part("version")], "versions 9.9.9 and 0.1.0"),
                ([parts[0], parts[1], part("shorter")], "instead of 10"),
                ([part("garbage")], "does not contain the results of a replay"),
                ([part("beyond")], "does not contain the results of a replay"),
                ([part("nowhere")], "cannot be read"), ([], "file"),
            ] {
                let merged = try await run(["merge", "--junit", "\(folder)/none.xml"] + files)
                #expect(
                    merged.status == 2 && merged.error.contains(words) && merged.output.isEmpty, "\(words): \(merged)")
                #expect((try? String(contentsOfFile: "\(folder)/none.xml", encoding: .utf8)) ?? "" == "")
            }
        }
    }

    @Test("a trace that passed is not replayed again until trace, configuration, options or program change")
    func cache() async throws {
        try await withTraces {
            let cache = "\(folder)/new/cache"
            func replay(_ options: String..., tool: String? = nil) async throws -> String {
                let outcome = try await Program.run(
                    [tool ?? self.tool, "replay", "\(folder)/traces", "--cache", cache] + options)
                #expect(outcome.status == 1, "\(outcome)")
                return outcome.output.split(separator: "\n").last.map(String.init) ?? ""
            }
            let (first, second) = (
                "10 traces: 9 as recorded, 1 differ", "10 traces: 9 as recorded, 9 of them from the cache, 1 differ"
            )
            #expect(try await replay() == first)
            // The difference is shown each time, and the report is complete.
            #expect(try await replay("--kernel", "test", "--junit", "\(folder)/cached.xml") == second)
            let report = try String(contentsOfFile: "\(folder)/cached.xml", encoding: .utf8)
            #expect(report.contains(#"tests="10" failures="1""#))
            let names = try FileManager.default.contentsOfDirectory(atPath: cache)
            #expect(names.count == 9 && names.allSatisfy { $0.count == 64 })
            // Account numbers to refuse: none of these traces has this one, a published test number.
            try write("4761739001010010\n", to: "exceptions")
            #expect(try await replay("--exact") == first)
            #expect(try await replay("--order", "keyed") == first)
            #expect(try await replay("--exception-file", "\(folder)/exceptions") == first)
            // Another program is one that differs in a byte.
            let other = "\(folder)/apdu-trace"
            try await Program.copy(tool, to: other, appending: "\0")
            #expect(try await replay(tool: other) == first)
            let good = try String(contentsOfFile: "\(folder)/traces/0.apdu", encoding: .utf8)
            try write(good + "# a remark\n", to: "traces/0.apdu")
            #expect(try await replay() == second.replacing("9 of them", with: "8 of them"))
            try write(good.replacing(" 95=0000000000", with: " 95=8000000000"), to: "traces/0.apdu")
            #expect(
                try await replay() == "10 traces: 8 as recorded, 8 of them from the cache, 2 differ")
            for (options, words) in [
                (["--cache", cache, "--update"], "exclude each other"),
                (["--cache", "/proc/none"], "cannot be written"), (["--cache", cache, "--amount", "1.00"], "for one"),
            ] {
                let outcome = try await run(["replay", "\(folder)/traces"] + options)
                #expect(outcome.status == 2 && outcome.error.contains(words), "\(outcome)")
            }
        }
    }

    @Test("time zone, locale and number of processors change nothing")
    func machines() async throws {
        try await withTraces {
            let traces = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .appendingPathComponent("Traces").path
            let arguments = ["replay", "--json", "\(folder)/traces", traces]
            let here = try await run(arguments)
            #expect(here.status == 1 && here.output.contains(#""failed" : 1"#), "\(here)")
            // A day ahead of and a day behind each other; other digits, letters and calendars.
            for (zone, locale) in [
                ("Pacific/Kiritimati", "tr_TR.UTF-8"), ("Pacific/Midway", "fa_IR.UTF-8"), ("Asia/Kathmandu", "C"),
                ("", "th_TH.UTF-8"),
            ] {
                let there = try await run(
                    arguments, environment: ["TZ": zone, "LC_ALL": locale, "LANG": locale, "LANGUAGE": locale])
                #expect(steady(there.output) == steady(here.output) && there.status == 1, "\(zone) \(locale): \(there)")
            }
            let one = try await Program.run(["taskset", "-c", "0", tool] + arguments)
            #expect(steady(one.output) == steady(here.output) && one.status == 1, "\(one)")
        }
    }
}
