import Foundation
import TestSupport
import Testing

/// `apdu-trace` with long traces, and where its output goes.
@Suite struct LongTraceTests {
    private let tool = Program.built("apdu-trace")
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("long-\(UUID().uuidString)").path

    private func withFolder(_ body: () async throws -> Void) async throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await body()
    }

    /// A trace of so many exchanges; the number N takes N milliseconds.
    private func write(exchanges: Int, to file: String, endingWith end: String = "") throws {
        var text = "apdu-trace 1\n"
        var time = 0
        func line(_ what: String) { text += "\(time / 1000).\(String(1000 + time % 1000).dropFirst())000000 \(what)\n" }
        for number in 1...exchanges {
            line("> apdu 80CA9F3600")
            time += number
            line("< apdu 9F360200419000")
            time += 2
        }
        try Data((text + end).utf8).write(to: URL(fileURLWithPath: "\(folder)/\(file)"))
    }

    @Test("stats: percentiles by nearest rank within one in a hundred, phases, and the host's own time")
    func stats() async throws {
        try await withFolder {
            try write(exchanges: 1_000, to: "x.apdu")
            let outcome = try await Program.run([tool, "stats", "--json", "\(folder)/x.apdu"])
            let object = try #require(
                JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any], "\(outcome)")
            let row = try #require(object["all"] as? [String: Any])
            let all = row.compactMapValues { ($0 as? NSNumber)?.doubleValue }
            #expect(all["count"] == 1_000 && all["total"] == 500_500 && all["minimum"] == 1 && all["maximum"] == 1_000)
            for (name, exact) in [("median", 500.0), ("percentile95", 950), ("percentile99", 990)] {
                #expect(abs((all[name] ?? 0) / exact - 1) < 0.01, "\(name): \(all)")
            }
            let host = try #require(object["host"] as? [String: Any])
            #expect(host["count"] as? Int == 999 && host["total"] as? Double == 1_998)
            let phases = try #require(object["phases"] as? [[String: Any]])
            #expect(phases.map { $0["name"] as? String } == ["records and data"])
        }
    }

    @Test("show, stats and verify of a long trace take no more memory than of a short one", .enabled(if: isMeasurable))
    func memory() async throws {
        try await withFolder {
            try write(exchanges: 10, to: "short.apdu")
            // In the fast tier `stats` stands for the others: all of them take a trace in pieces.
            for (arguments, exchanges) in Tier.first(
                [(["stats"], Tier.rounds(20_000, thorough: 60_000))],
                then: [(["verify", "--clear"], 20_000), (["show", "--reveal"], 20_000)])
            {
                try write(exchanges: exchanges, to: "long.apdu")
                func peak(_ file: String) async throws -> Int {
                    let command = [tool] + arguments + ["\(folder)/\(file).apdu"]
                    let run = try await Program.run(["python3", "-c", Self.peak] + command)
                    #expect(run.status == 0, "\(run)")
                    return try #require(Int(run.error.split(separator: "\n").last ?? ""))
                }
                // An event takes some 200 bytes.
                let (short, long) = (try await peak("short"), try await peak("long"))
                #expect((long - short) * 1024 < exchanges * 2 * 100, "\(arguments): \(short) and \(long) KiB")
            }
        }
    }

    private static let isMeasurable = Program.isInstalled("python3")

    /// Runs a program without its output and tells its peak RSS, in KiB.
    private static let peak = """
        import resource, subprocess, sys
        status = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
        print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
        sys.exit(status)
        """

    @Test("standard input can be read twice; output and redaction are the same as for a file")
    func standardInput() async throws {
        try await withFolder {
            let clear = "\(folder)/clear.apdu"
            _ = try await Program.run([tool, "pay", "--virtual", "--clear", "--amount", "1.00", "-o", clear])
            let text = try String(contentsOfFile: clear, encoding: .utf8)
            for arguments in [
                ["show"], ["show", "--json"], ["stats"], ["verify"],
                ["redact", "--key", "00112233445566778899AABBCCDDEEFF", "-o", "-"],
            ] {
                let file = try await Program.run([tool] + arguments + [clear])
                let piped = try await Program.run([tool] + arguments + ["-"], input: text)
                #expect(piped.output == file.output && !piped.output.isEmpty, "\(piped)")
                // What can be opened, but not twice.
                let fifo = try await Program.run(
                    ["sh", "-c", "cat \(clear) | \"$0\" \"$@\" /dev/stdin", tool] + arguments)
                #expect(fifo.output == file.output, "\(fifo)")
            }
            let lines = try await Program.run([tool, "show", "--json", clear]).output.split(separator: "\n")
            #expect(lines.count == text.split(separator: "\n").count - 1)
            for line in lines {
                let event = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
                #expect(event?["event"] is String && event?["time"] is Double)
            }
        }
    }

    @Test(
        "on a terminal, output goes through the pager unless it is disabled",
        .enabled(if: Program.isInstalled("script")))
    func pager() async throws {
        try await withFolder {
            // More than a pipe takes.
            let exchanges = Tier.rounds(1_000, thorough: 3_000)
            try write(exchanges: exchanges, to: "x.apdu")
            /// On a terminal, as util-linux's script makes one.
            func show(_ arguments: String, pager: String) async throws -> Program.Outcome {
                try await Program.run(
                    ["script", "-qec", "\(tool) show \(arguments) \(folder)/x.apdu", "/dev/null"],
                    environment: ["PAGER": pager, "TERM": "xterm", "NO_COLOR": ""])
            }
            let paged = try await show("", pager: "sed s/^/PAGED/; echo END")
            #expect(paged.status == 0 && paged.output.contains("PAGED\u{1B}[2m") && paged.output.contains("END"))
            #expect(try await !show("--no-pager", pager: "sed s/^/PAGED/").output.contains("PAGED"))
            #expect(try await !show("--json", pager: "sed s/^/PAGED/").output.contains("PAGED"))
            // Who closes the pager has seen enough.
            let closed = try await show("", pager: "head -n 1")
            #expect(closed.status == 0 && closed.output.split(separator: "\n").count == 1, "\(closed)")
            // Where there is no pager, the text is there all the same.
            let none = try await show("", pager: "/nonexistent/pager -x")
            #expect(
                none.status == 0 && none.output.split(whereSeparator: \.isNewline).count > exchanges, "\(none.status)")
            let unknown = try await show("", pager: "no-such-pager")
            #expect(unknown.output.split(whereSeparator: \.isNewline).count > exchanges)
            let piped = try await Program.run(
                [tool, "show", "\(folder)/x.apdu"], environment: ["PAGER": "sed s/^/PAGED/"])
            #expect(!piped.output.contains("PAGED") && !piped.output.contains("\u{1B}"))
        }
    }

    @Test("verify repeats the trace's calls, and reports those that cannot be repeated")
    func verify() async throws {
        try await withFolder {
            try write(exchanges: 1_000, to: "x.apdu", endingWith: "90000.000000000 connect T=1 -\n")
            let outcome = try await Program.run([tool, "verify", "\(folder)/x.apdu"])
            #expect(outcome.status == 1, "\(outcome)")
            // A bare channel's trace becomes that of a reader in the middle.
            #expect(outcome.output.contains("cannot be replayed: there is no connection to the card"), "\(outcome)")
        }
    }
}
