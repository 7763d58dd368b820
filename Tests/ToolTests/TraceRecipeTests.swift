import Foundation
import TestSupport
import Testing

/// The recipes for users' own repositories, performed as each engine performs them.  The oracle is one replay of all traces.
@Suite struct TraceRecipeTests {
    private static let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().path
    private static let recipes = "\(package)/Examples/trace-ci"
    private let traces = "\(package)/Tests/Traces"
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("recipe-\(UUID().uuidString)")
        .path

    /// An engine that runs parts, and where its recipe has what the engine takes: Python, with the documents of the file
    /// as `d`.
    struct Engine: Sendable, CustomTestStringConvertible {
        let file: String
        let count: String
        let replay: String
        let merge: String
        /// The variables that the engine sets for a part.
        let variables: @Sendable (_ part: Int, _ count: Int) -> [String: String]

        var testDescription: String { file }

        static let all = [
            Engine(
                file: "traces.yml", count: "len(d[0]['jobs']['replay']['strategy']['matrix']['part'])",
                replay: "['sh', '-ec', step('replay', 'Replay')['run']]",
                merge: "['sh', '-ec', step('merge', 'Merge')['run']]"
            ) { ["PART": "\($0)", "PARTS": "\($1)"] },
            Engine(
                file: "gitlab-ci.yml", count: "d[0]['replay-traces']['parallel']",
                replay: "['sh', '-ec', '\\n'.join(d[0]['replay-traces']['script'])]",
                merge: "['sh', '-ec', '\\n'.join(d[0]['merge-traces']['script'])]"
            ) { ["CI_NODE_INDEX": "\($0)", "CI_NODE_TOTAL": "\($1)"] },
            Engine(
                file: "kubernetes.yml", count: "d[0]['spec']['completions']",
                replay: """
                    ['env'] + [v['name'] + '=' + v['value'] for v in pod(0)['env']] + pod(0)['command'] + pod(0)['args']
                    """,
                merge: "pod(1)['command'] + pod(1)['args']"
            ) { part, _ in ["JOB_COMPLETION_INDEX": "\(part - 1)"] },
            Engine(
                file: "traces.slurm", count: "int(re.search('(?m)^#SBATCH --array=1-(.*)$', text)[1])",
                replay: "['Tests/traces.slurm']", merge: "['sh', '-ec', re.search(\"--wrap '(.*)'\", text)[1]]"
            ) { ["SLURM_ARRAY_TASK_ID": "\($0)", "SLURM_ARRAY_TASK_COUNT": "\($1)"] },
        ]
    }

    private struct Recipe: Decodable {
        let count: Int
        let replay: [String]
        let merge: [String]
    }

    private static func recipe(_ engine: Engine) async throws -> Recipe {
        let script = """
            import json, re, sys, yaml
            text = open(sys.argv[1]).read()
            d = list(yaml.safe_load_all(text)) if sys.argv[1].endswith('.yml') else []
            step = lambda job, name: next(s for s in d[0]['jobs'][job]['steps'] if s.get('name') == name)
            pod = lambda n: d[n]['spec']['template']['spec']['containers'][0]
            print(json.dumps({'count': \(engine.count), 'replay': \(engine.replay), 'merge': \(engine.merge)}))
            """
        let outcome = try await Program.run(["/usr/bin/python3", "-c", script, "\(recipes)/\(engine.file)"])
        try #require(outcome.status == 0, "\(outcome)")
        return try JSONDecoder().decode(Recipe.self, from: Data(outcome.output.utf8))
    }

    /// Calls `body` with a user's repository, which is the current folder of what `run` runs.
    private func withRepository(_ body: () async throws -> Void) async throws {
        for name in ["Tests", "results"] {
            try FileManager.default.createDirectory(
                atPath: "\(folder)/\(name)", withIntermediateDirectories: true)
        }
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for name in ["replay-traces", "traces.slurm"] {
            try FileManager.default.createSymbolicLink(
                atPath: "\(folder)/Tests/\(name)", withDestinationPath: "\(Self.recipes)/\(name)")
        }
        try FileManager.default.copyItem(atPath: traces, toPath: "\(folder)/Tests/Traces")
        try await body()
    }

    private func run(_ command: [String], _ variables: [String: String] = [:]) async throws -> Program.Outcome {
        let built = URL(fileURLWithPath: Program.built("apdu-trace")).deletingLastPathComponent().path
        let path = "\(built):\(ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin")"
        return try await Program.run(
            ["env", "-C", folder] + command, environment: variables.merging(["PATH": path]) { $1 })
    }

    private func text(_ file: String) throws -> String {
        try String(contentsOfFile: "\(folder)/\(file)", encoding: .utf8)
    }

    private func write(_ text: String, to file: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: "\(folder)/\(file)"))
    }

    /// A published test number, in a trace that can be replayed.
    private func clearTrace() throws -> String {
        try text("Tests/Traces/visa/online.apdu") + "90.000000000 note \"4761739001010010\"\n"
    }

    /// A trace with another outcome than that of its transaction.
    private func changedTrace() throws -> String {
        try text("Tests/Traces/visa/online.apdu")
            .replacing(#"outcome.kind "onlineRequest""#, with: #"outcome.kind "approved""#)
    }

    @Test("the traces of this package are verified and replayed by the recipe's script, whole and in parts")
    func script() async throws {
        try await withRepository {
            let all = try await run(["Tests/replay-traces"])
            #expect(all.status == 0 && all.output.contains("as recorded"), "\(all)")
            let names = try FileManager.default.subpathsOfDirectory(atPath: traces).filter { $0.hasSuffix(".apdu") }
            #expect(try text("traces.xml").components(separatedBy: "<testcase ").count == names.count + 1)
            let part = try await run(["Tests/replay-traces", "Tests/Traces", "1/2"], ["CACHE": "cache"])
            #expect(part.status == 0 && part.output.contains("in other parts"), "\(part)")
            let again = try await run(["Tests/replay-traces", "Tests/Traces", "1/2"], ["CACHE": "cache"])
            #expect(again.status == 0 && again.output.contains("from the cache"), "\(again)")
        }
    }

    @Test("a change of behavior fails it, and so do a clear account number and a name that hides a trace")
    func failures() async throws {
        try await withRepository {
            try FileManager.default.createDirectory(atPath: "\(folder)/x", withIntermediateDirectories: false)
            try write(changedTrace(), to: "x/x.apdu")
            let changed = try await run(["Tests/replay-traces", "x"])
            #expect(changed.status == 1 && changed.output.contains("approved | onlineRequest"), "\(changed)")
            try write(clearTrace(), to: "x/x.apdu")
            let clear = try await run(["Tests/replay-traces", "x"])
            #expect(clear.status == 1 && clear.error.contains("an account number in the clear"), "\(clear)")
            #expect(!clear.error.contains("4761739001010010") && !clear.output.contains("4761739001010010"))
            try FileManager.default.moveItem(atPath: "\(folder)/x/x.apdu", toPath: "\(folder)/x/\n.apdu")
            let hidden = try await run(["Tests/replay-traces", "x"])
            #expect(hidden.status == 2 && hidden.error.contains("cannot be verified"), "\(hidden)")
            // The results of another time are none.
            let nothing = try await run(["Tests/replay-traces", "nowhere"])
            #expect(nothing.status == 2 && nothing.error.contains("nowhere does not exist"), "\(nothing)")
        }
    }

    @Test("apdu-trace verify takes several traces, and names those with findings alone")
    func severalTraces() async throws {
        try await withRepository {
            try write(clearTrace(), to: "clear.apdu")
            let (good, bad) = ("Tests/Traces/visa/online.apdu", "clear.apdu")
            let several = try await run(["apdu-trace", "verify", good, bad, good])
            let one = try await run(["apdu-trace", "verify", bad])
            #expect(several.status == 1 && one.status == 1 && one.output.contains(" in the clear\n"), "\(one)")
            #expect(several.output == one.output.split(separator: "\n").map { "clear.apdu: \($0)\n" }.joined())
            let all = try await run(["apdu-trace", "verify", good, good])
            #expect(all.status == 0 && all.output.isEmpty, "\(all)")
            #expect(try await run(["apdu-trace", "verify", "--json", good, good]).status == 2)
        }
    }

    @Test("only the part that has a trace verifies it")
    func verification() async throws {
        try await withRepository {
            try write(clearTrace(), to: "Tests/Traces/clear.apdu")
            var failed = 0
            for part in 1...4 {
                let outcome = try await run(["Tests/replay-traces", "Tests/Traces", "\(part)/4"])
                guard outcome.status != 0 else { continue }
                failed += 1
                #expect(outcome.status == 1 && outcome.error.hasPrefix("Tests/Traces/clear.apdu: line "), "\(outcome)")
            }
            #expect(failed == 1)
        }
    }

    @Test(
        "the parts of each engine join to the results of one replay",
        .enabled(
            if: FileManager.default.fileExists(atPath: "/usr/lib/python3/dist-packages/yaml"),
            "python3-yaml is not installed"), arguments: Engine.all)
    func engines(_ engine: Engine) async throws {
        let recipe = try await Self.recipe(engine)
        #expect(recipe.count > 1)
        try await withRepository {
            try write(changedTrace(), to: "Tests/Traces/changed.apdu")
            let whole = try await run(["apdu-trace", "replay", "Tests/Traces", "--junit", "whole.xml"])
            #expect(whole.status == 1 && whole.output.contains("1 differ"), "\(whole)")
            var statuses: [Int32] = []
            for part in 1...recipe.count {
                statuses.append(try await run(recipe.replay, engine.variables(part, recipe.count)).status)
                guard part < recipe.count else { break }
                let early = try await run(recipe.merge)
                #expect(early.status == 2 && early.error.contains("missing"), "\(early)")
            }
            #expect(statuses.sorted() == [Int32](repeating: 0, count: recipe.count - 1) + [1])
            let merged = try await run(recipe.merge)
            #expect(merged.status == 1 && merged.output == whole.output, "\(merged)")
            let report = FileManager.default.fileExists(atPath: "\(folder)/results/traces.xml") ? "results/" : ""
            #expect(try steady(text("\(report)traces.xml")) == steady(text("whole.xml")))
        }
    }

    /// Returns a report without what differs from run to run.
    private func steady(_ report: String) -> String { report.replacing(#/ (time|timestamp)="[^"]*"/#, with: "") }

    /// The judges: each a module from PyPI with its arguments.
    private static let judges = [
        ("traces.yml", "check-jsonschema", ["--builtin-schema", "vendor.github-workflows"]),
        ("gitlab-ci.yml", "check-jsonschema", ["--builtin-schema", "vendor.gitlab-ci"]),
        ("kubernetes.yml", "kubernetes-validate", ["--strict"]),
    ]

    @Test(
        "each recipe is what its engine's schema permits",
        .enabled(
            if: ["check-jsonschema", "kubernetes-validate"].allSatisfy {
                FileManager.default.fileExists(atPath: "\(package)/.build/\($0)")
            }, "check-jsonschema and kubernetes-validate are not installed from PyPI"))
    func schemas() async throws {
        for (file, judge, arguments) in Self.judges {
            let module = judge.replacing("-", with: "_")
            let outcome = try await Program.run(
                ["/usr/bin/python3", "-m", module] + arguments + ["\(Self.recipes)/\(file)"],
                environment: ["PYTHONPATH": "\(Self.package)/.build/\(judge)"])
            #expect(outcome.status == 0, "\(file): \(outcome)")
        }
    }
}
