import Foundation
import TestSupport
import Testing

/// The recipe for users' own repositories, performed with Tests/Traces.
@Suite struct TraceRecipeTests {
    private static let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().path
    private let traces = "\(package)/Tests/Traces"
    private let recipe = "\(package)/Examples/trace-ci"
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("recipe-\(UUID().uuidString)")
        .path

    private func withFolder(_ body: () async throws -> Void) async throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await body()
    }

    private var path: String {
        let built = URL(fileURLWithPath: Program.built("apdu-trace")).deletingLastPathComponent().path
        return "\(built):\(ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin")"
    }

    private func replayTraces(_ arguments: String...) async throws -> Program.Outcome {
        try await Program.run(
            ["\(recipe)/replay-traces"] + arguments, environment: ["PATH": path, "REPORT": "\(folder)/traces.xml"])
    }

    @Test("the traces of this package are verified and replayed by the recipe's script, whole and in parts")
    func script() async throws {
        try await withFolder {
            let all = try await replayTraces(traces)
            #expect(all.status == 0 && all.output.contains("as recorded"), "\(all)")
            let report = try String(contentsOfFile: "\(folder)/traces.xml", encoding: .utf8)
            let names = try FileManager.default.subpathsOfDirectory(atPath: traces).filter { $0.hasSuffix(".apdu") }
            #expect(report.components(separatedBy: "<testcase ").count == names.count + 1)
            let part = try await replayTraces(traces, "1/2")
            #expect(part.status == 0 && part.output.contains("in other parts"), "\(part)")
        }
    }

    @Test("a change of behavior fails it, and so does a clear account number")
    func failures() async throws {
        try await withFolder {
            let good = try String(contentsOfFile: "\(traces)/visa/online.apdu", encoding: .utf8)
            let file = URL(fileURLWithPath: "\(folder)/x.apdu")
            try Data(good.replacing(#"outcome.kind "onlineRequest""#, with: #"outcome.kind "approved""#).utf8).write(
                to: file)
            let changed = try await replayTraces(folder)
            #expect(changed.status == 1 && changed.output.contains("approved | onlineRequest"), "\(changed)")
            // A published test number.
            try Data((good + "90.000000000 note \"4761739001010010\"\n").utf8).write(to: file)
            let clear = try await replayTraces(folder)
            #expect(clear.status == 1 && clear.error.contains("does not stand verification"), "\(clear)")
        }
    }

    @Test(
        "the workflow is YAML, runs the script beside it, and has all its parts",
        .enabled(
            if: FileManager.default.fileExists(atPath: "/usr/lib/python3/dist-packages/yaml"),
            "python3-yaml is not installed"))
    func workflow() async throws {
        let text = try String(contentsOfFile: "\(recipe)/traces.yml", encoding: .utf8)
        #expect(text.contains("run: Tests/replay-traces Tests/Traces ${{ matrix.shard }}"))
        #expect(text.contains("shard: [1/3, 2/3, 3/3]") && text.contains("report_paths: traces.xml"))
        let parsed = try await Program.run([
            "/usr/bin/python3", "-c",
            "import sys, yaml\nprint(list(yaml.safe_load(open(sys.argv[1]))['jobs']))",
            "\(recipe)/traces.yml",
        ])
        #expect(parsed.status == 0 && parsed.output == "['replay']\n", "\(parsed)")
    }
}
