import Foundation
import SmartCardTrace
import TestSupport
import Testing

/// The files that `apdu-trace` makes: only a complete file replaces an existing one.
@Suite struct NewFileTests {
    private let tool = Program.built("apdu-trace")
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("new-\(UUID().uuidString)").path

    private static let trace = """
        apdu-trace 1
        0.000000000 > apdu 00B2010C00
        0.000000000 < apdu 700A5A0847617390010100109000

        """

    private func run(_ arguments: String...) async throws -> Program.Outcome {
        try await Program.run([tool] + arguments)
    }

    private func text(_ name: String) throws -> String {
        try String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8)
    }

    private func mode(_ name: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: "\(folder)/\(name)")[.posixPermissions] as? Int
    }

    private var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: folder).sorted() }
    }

    /// With `x.apdu`, a trace.
    private func withFolder(_ body: () async throws -> Void) async throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try write(Self.trace, to: "x.apdu")
        try await body()
    }

    private func write(_ text: String, to name: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: "\(folder)/\(name)"))
    }

    @Test("a trace may be redacted and converted into its own file")
    func inPlace() async throws {
        try await withFolder {
            let file = "\(folder)/x.apdu"
            let redacted = try await run("redact", file, "-o", file, "--force")
            #expect(redacted.status == 0, "\(redacted)")
            #expect(
                try text("x.apdu").contains("< apdu 700A5A08476173") && !text("x.apdu").contains("4761739001010010"))
            #expect(try await run("verify", file).status == 0)
            let before = try text("x.apdu")
            #expect(try await run("convert", file, "-o", file, "--force").status == 0)
            #expect(try text("x.apdu") == before && mode("x.apdu") == 0o600)
            #expect(try names == ["x.apdu"])
        }
    }

    @Test("after a failed subcommand, the old file is still there, and no other")
    func failing() async throws {
        try await withFolder {
            try write("apdu-trace 1\n0.000000000 > apdu 00B2010C00\n0.0 nonsense\n", to: "bad")
            let (good, bad) = ("\(folder)/x.apdu", "\(folder)/bad")
            for arguments in [
                ["convert", bad, "-o", good, "--force"], ["redact", bad, "-o", good, "--force"],
                ["convert", "--from", "scriptor", bad, "-o", good, "--force"], ["redact", bad, "-o", good],
                ["record", "--force", "-o", good, "--", "\(folder)/no-such-program"],
                ["record", "--force", "-o", good, "--", "true"], ["plot", bad, "-o", good, "--force"],
            ] {
                let outcome = try await Program.run([tool] + arguments)
                #expect(outcome.status != 0 || arguments.last == "true", "\(arguments): \(outcome)")
                #expect(try text("x.apdu") == Self.trace && names == ["bad", "x.apdu"], "\(arguments)")
            }
        }
    }

    @Test("a link stays and its target is replaced; devices and pipes are written to")
    func linksAndDevices() async throws {
        try await withFolder {
            let (trace, link) = ("\(folder)/x.apdu", "\(folder)/link")
            try write("before", to: "target")
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "target")
            #expect(try await run("plot", trace, "-o", link).status == 2)
            #expect(try await run("plot", trace, "-o", link, "--force").status == 0)
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "target")
            #expect(try text("target").hasPrefix("<svg"))
            for (command, end) in [
                ("plot \(trace) -o", "</svg>"), ("convert \(trace) -o", "9000"), ("redact \(trace) -o", "9000"),
                ("pay --virtual --amount 1.00 -o", "outcome"),
            ] {
                // Of a shell's substitution it is a pipe.
                let piped = try await Program.run(["bash", "-c", "\(tool) \(command) >(cat >&2) 2>/dev/null; wait $!"])
                #expect(piped.status == 0, "\(command): \(piped)")
                let words = try await Program.run(["bash", "-c", "\(tool) \(command) /dev/stdout | cat"])
                #expect(words.output.contains(end), "\(command): \(words)")
                #expect(try await Program.run(["bash", "-c", "\(tool) \(command) /dev/null"]).status == 0)
            }
            #expect(try names == ["link", "target", "x.apdu"])
        }
    }

    @Test("a file that appears meanwhile is not replaced without --force")
    func meanwhile() async throws {
        try await withFolder {
            #expect(mkfifo("\(folder)/pipe", 0o600) == 0)
            let program = try Program([tool, "convert", "--from", "apdu", "\(folder)/pipe", "-o", "\(folder)/new.apdu"])
            let pipe = try #require(FileHandle(forWritingAtPath: "\(folder)/pipe"))
            try pipe.write(contentsOf: Data(Self.trace.utf8))
            try await program.wait(for: "the beginning of a file", until: hasNewFile)
            try write("another's", to: "new.apdu")
            try pipe.close()
            let outcome = try await program.outcome()
            #expect(outcome.status == 2 && outcome.error.contains("already exists"), "\(outcome)")
            #expect(try text("new.apdu") == "another's" && names == ["new.apdu", "pipe", "x.apdu"])
        }
    }

    /// Whether the program writes a file that is not called what it will be: one without a name, or with more behind that.
    private func hasNewFile(_ program: Program) -> Bool {
        let descriptors = "/proc/\(program.pid)/fd"
        return ((try? FileManager.default.contentsOfDirectory(atPath: descriptors)) ?? []).contains { number in
            let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(descriptors)/\(number)")
            return path.map { $0.hasPrefix("\(folder)/#") || $0.hasPrefix("\(folder)/new.apdu.") } ?? false
        }
    }

    private static let hasNamelessFiles: Bool = {
        // O_TMPFILE, which Swift does not see.
        let descriptor = open(FileManager.default.temporaryDirectory.path, O_DIRECTORY | 0o20_000_000 | O_WRONLY, 0o600)
        if descriptor >= 0 { close(descriptor) }
        return descriptor >= 0
    }()

    @Test(
        "a killed tool leaves no files behind, and the old file stays",
        .enabled(if: hasNamelessFiles, "the file system has no files without a name"), arguments: [false, true])
    func killed(replacing: Bool) async throws {
        try await withFolder {
            try write("before", to: "old.apdu")
            #expect(mkfifo("\(folder)/pipe", 0o600) == 0)
            let output = "\(folder)/\(replacing ? "old" : "new").apdu"
            let program = try Program([
                tool, "convert", "--from", "apdu", "\(folder)/pipe", "-o", output,
                replacing ? "--force" : "--from=apdu",
            ])
            let pipe = try #require(FileHandle(forWritingAtPath: "\(folder)/pipe"))
            try pipe.write(contentsOf: Data(Self.trace.utf8))
            try await program.wait(for: "the beginning of a file", until: hasNewFile)
            program.signal(SIGKILL)
            #expect(try await program.outcome().status == 128 + SIGKILL)
            #expect(try text("old.apdu") == "before" && names == ["old.apdu", "pipe", "x.apdu"])
        }
    }

    @Test("a recording with card data gets its name with its first event, and contains all later ones at any time")
    func recording() async throws {
        try await withFolder {
            try write("before", to: "old.apdu")
            let program = try Program([
                Program.built("virtual-reader"), "--card", "visa", "--", tool, "record", "--force",
                "--clear", "-o", "\(folder)/old.apdu",
            ])
            try await program.wait(for: "an answer in the trace") { _ in
                (try? text("old.apdu").contains("< apdu")) ?? false
            }
            #expect(try names == ["old.apdu", "x.apdu"] && mode("old.apdu") == 0o600)
            program.signal(SIGTERM)
            #expect(try await program.outcome().status == 128 + SIGTERM)
            #expect(try !Trace(path: "\(folder)/old.apdu").exchanges().isEmpty)
        }
    }

    @Test("--update keeps a trace's permissions, comments, and lines of unknown encoding")
    func update() async throws {
        try await withFolder {
            let file = "\(folder)/p.apdu"
            #expect(try await run("pay", "--virtual", "--amount", "12.34", "-o", file).status == 0)
            var bytes = try Data(contentsOf: URL(fileURLWithPath: file))
            let comment = Data("# meta outcome.kind is what I look at\n# caf".utf8) + [0xE9, 0x0A]
            let end = try #require(bytes.firstIndex(of: 0x0A))
            bytes.insert(contentsOf: comment, at: end + 1)
            let changed = try #require(String(data: bytes, encoding: .isoLatin1))
                .replacing(#"outcome.kind "onlineRequest""#, with: #"outcome.kind "approved""#)
                .replacing(#"configuration "test""#, with: #"configuration "other.json""#)
            try changed.write(toFile: file, atomically: false, encoding: .isoLatin1)
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
            #expect(try await run("replay", file).status == 1)
            let updated = try await run("replay", "--update", file)
            #expect(updated.status == 0, "\(updated)")
            #expect(try mode("p.apdu") == 0o644)
            let now = try Data(contentsOf: URL(fileURLWithPath: file))
            #expect(now.range(of: comment)?.lowerBound == end + 1)
            #expect(try Trace(path: file).meta["transaction.configuration"] == "test")
            #expect(try await run("replay", file).status == 0)
        }
    }

    /// GNU diff is the judge of how much must differ.
    @Test("diff shows the fewest possible lines, even of long traces", arguments: [50, 3_000])
    func difference(_ count: Int) async throws {
        try await withFolder {
            var random = Seed.generator(count)
            func lines() -> [String] {
                (0..<count).map { _ in "note \"\(Int.random(in: 0..<count, using: &random) / 8)\"" }
            }
            let lists = [lines(), lines()]
            for (name, lines) in zip(["a", "b"], lists) {
                try write("apdu-trace 1\n" + lines.map { "0.000000000 \($0)\n" }.joined(), to: name)
            }
            let judge = try await Program.run(["diff", "--minimal", "\(folder)/a", "\(folder)/b"]).output
            let outcome = try await run("diff", "\(folder)/a", "\(folder)/b")
            func marked(_ text: String, _ marks: String) -> Int {
                text.split(separator: "\n").count { marks.contains($0.first ?? "=") }
            }
            #expect(outcome.status == 1 && marked(outcome.output, "+-") == marked(judge, "<>"))
            let kept = outcome.output.split(separator: "\n")
            for (mark, list) in zip("-+", lists) {
                let own = kept.filter { $0.first == mark || $0.first == " " }.map { $0.dropFirst(2) }
                #expect(own.map { $0.filter(\.isNumber) } == list.map { $0.filter(\.isNumber) })
            }
        }
    }
}
