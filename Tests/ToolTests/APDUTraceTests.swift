import Foundation
import SmartCard
import SmartCardTrace
import TestSupport
import Testing

/// `apdu-trace` from outside.  4761739001010010 is a published test account number.
@Suite struct APDUTraceTests {
    private let tool = Program.built("apdu-trace")
    private let directory = FileManager.default.temporaryDirectory.appendingPathComponent("traces-\(UUID().uuidString)")

    private func run(_ arguments: String...) async throws -> Program.Outcome {
        try await Program.run([tool] + arguments)
    }

    /// A recorded payment of 12.34, and where redaction has put it.
    private func withPayment(_ body: (_ clear: String, _ redacted: String) async throws -> Void) async throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let (clear, redacted) = ("\(directory.path)/clear.apdu", "\(directory.path)/redacted.apdu")
        let paid = try await run("pay", "--virtual", "--clear", "--amount", "12.34", "-o", clear)
        #expect(paid.status == 0 && paid.output.contains("online request"), "\(paid)")
        let outcome = try await run("redact", clear, "-o", redacted, "--key", "000102030405060708090A0B0C0D0E0F")
        #expect(outcome.status == 0, "\(outcome)")
        try await body(clear, redacted)
    }

    @Test("a payment is recorded, redacted, verified and replayed with another amount")
    func payment() async throws {
        try await withPayment { clear, redacted in
            #expect(try await run("verify", clear).status == 1)
            #expect(try await run("verify", "--clear", clear).status == 0)
            let verified = try await run("verify", redacted)
            #expect(verified.status == 0 && verified.output.hasPrefix("well-formed"), "\(verified)")
            #expect(try !String(contentsOfFile: redacted, encoding: .utf8).contains("4761739001010010"))
            let replayed = try await run("replay", redacted, "--amount", "0.99")
            #expect(replayed.status == 0 && replayed.output.contains("online request"), "\(replayed)")
            let exact = try await run("replay", redacted, "--amount", "0.99", "--exact")
            #expect(exact.status == 1, "\(exact)")
            #expect(exact.error.contains("recorded") && exact.error.contains("! 80A80000"), "\(exact)")
        }
    }

    @Test("show masks by default, diff reports by its exit status, stats counts")
    func reading() async throws {
        try await withPayment { clear, redacted in
            let shown = try await run("show", clear)
            #expect(shown.output.contains("READ RECORD") && shown.output.contains("476173******0010"), "\(shown)")
            #expect(!shown.output.contains("4761739001010010"))
            #expect(try await run("show", clear, "--reveal").output.contains("4761739001010010"))
            #expect(try await run("diff", clear, clear).status == 0)
            let difference = try await run("diff", clear, redacted)
            #expect(difference.status == 1 && !difference.output.contains("4761739001010010"), "\(difference)")
            let stats = try await run("stats", "--json", clear)
            let object = try JSONSerialization.jsonObject(with: Data(stats.output.utf8)) as? [String: Any]
            // SELECT twice, GET PROCESSING OPTIONS, READ RECORD.
            #expect((object?["all"] as? [String: Any])?["count"] as? Int == 4, "\(stats)")
        }
    }

    @Test("no subcommand shows an account number that verify finds", arguments: ["show", "diff"])
    func hiddenNumbers(_ command: String) async throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let (file, other) = ("\(directory.path)/x.apdu", "\(directory.path)/y.apdu")
        let text = Array("4761739001010010".utf8).map { String($0, radix: 16) }.joined()
        // A record by which the number is known; SELECT by it; it in two answers to READ BINARY; as text; and a reader.
        let lines = [
            "reader pcsc \"4761739001010010\"", "> apdu 00B2010C00", "< apdu 700A5A0847617390010100109000",
            "> apdu 00A4040008476173900101001000", "< apdu 6A82", "> apdu 00B0000006", "< apdu 0102476173909000",
            "> apdu 00B0000606", "< apdu 0101001003049000", "> apdu 00CA010000", "< apdu \(text)9000",
            "> apdu 00CA010100", "< apdu C110\(text)9000",
        ]
        try Data("apdu-trace 1\n\(lines.map { "0.000000000 \($0)\n" }.joined())".utf8)
            .write(to: URL(fileURLWithPath: file))
        try Data("apdu-trace 1\n".utf8).write(to: URL(fileURLWithPath: other))
        #expect(try await run("verify", file).output.split(separator: "\n").count == 7)
        let shown = try await Program.run([tool, command, file] + (command == "diff" ? [other] : []))
        for part in ["4761739001010010", "00A404000847", "47617390", "01010010", "34373631"] {
            #expect(!shown.output.contains(part), "\(part) in \(shown)")
        }
        #expect(shown.output.contains("00A40400******************") && shown.output.contains("************9000"))
        // What masking covers is not hidden.
        #expect(shown.output.contains("700A5A08476173******00109000"), "\(shown)")
        let revealed = try await Program.run([tool, command, "--reveal", file] + (command == "diff" ? [other] : []))
        #expect(revealed.output.contains("0102476173909000") && revealed.output.contains("4761739001010010"))
    }

    /// script(1) gives it a terminal.
    @Test(
        "convert writes no bytes to a terminal that are not text, and does to a pipe",
        .enabled(if: Program.isInstalled("script"), "script (bsdutils) is not installed"),
        arguments: ["iso14443", "usbmon", "apdu"])
    func converting(to format: String) async throws {
        let command = "\(tool) convert \(#filePath) --from scriptor --to \(format)"
        let shown = try await Program.run(["script", "-qec", command, "/dev/null"])
        #expect(shown.output.contains("\(format) is not for a terminal") == (format != "apdu"), "\(shown)")
        let piped = try await Program.run(["sh", "-c", "\(command) | cat"])
        #expect(!piped.error.contains("is not for a terminal"), "\(piped)")
    }

    @Test("convert makes traces from logs and other files from traces, reports omissions, and replaces nothing")
    func converting() async throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let (log, trace) = ("\(directory.path)/pcscd.log", "\(directory.path)/x.apdu")
        let text = "hello\n00000012 APDU: 00 A4 04 00 00 \n00001000 SW: 6A 82 \n"
        try Data(text.utf8).write(to: URL(fileURLWithPath: log))
        let unread = try await run("show", log)
        #expect(unread.status == 2 && unread.error.contains("apdu-trace convert FILE"), "\(unread)")
        let converted = try await run("convert", log, "-o", trace)
        #expect(converted.status == 0, "\(converted)")
        #expect(converted.error == "apdu-trace: left out: lines that are not of pcscd (1)\n")
        #expect(
            try String(contentsOfFile: trace, encoding: .utf8)
                == "apdu-trace 1\n0.000000000 > apdu 00A4040000\n0.001000000 < apdu 6A82\n")
        let again = try await run("convert", log, "-o", trace)
        #expect(again.status == 2 && again.error.contains("--force"), "\(again)")
        #expect(try await run("convert", "--force", log, "--output", trace).status == 0)
        let script = try await run("convert", trace, "-o", "\(directory.path)/x.script")
        #expect(script.error == "apdu-trace: left out: answers (1)\napdu-trace: left out: times (1)\n")
        #expect(try String(contentsOfFile: "\(directory.path)/x.script", encoding: .utf8) == "00 A4 04 00 00\n")
        #expect(try await run("convert", trace, "--to", "cardpeek").output.contains("C:00A4040000:6A82:\n"))
        #expect(try await run("convert", log, "--slot", "1").status == 2)
        let unknown = try await run("convert", log, "--from", "x")
        #expect(unknown.status == 2 && unknown.error.contains("pcsc-spy"), "\(unknown)")
        let help = try await run("convert", "--help").output
        #expect(
            help.contains("rw  scriptor") && help.contains("r-  libnfc") && help.contains("-w  cardpeek"), "\(help)")
        // A card is powered and read in CCID messages (CCID 1.10, 6.1.1 and 6.1.4).
        let frames = """
            -> 000000 6F 05 00 00 00 00 01 00 00 00 00 A4 04 00 00
            <- 000000 80 02 00 00 00 00 01 00 00 00 6A 82

            """
        try Data(frames.utf8).write(to: URL(fileURLWithPath: log))
        #expect(try await run("convert", log, "-o", "\(directory.path)/frames.apdu").status == 0)
        let unraised = try await run("verify", "\(directory.path)/frames.apdu")
        #expect(unraised.status == 1 && unraised.output.contains("convert --layer apdu"), "\(unraised)")
        let raised = try await run("convert", log, "--layer", "apdu")
        #expect(raised.output.contains("> apdu 00A4040000\n0.000000000 < apdu 6A82\n"), "\(raised)")
    }

    @Test("an error takes two lines and names the line of the file")
    func errors() async throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let file = "\(directory.path)/bad.apdu"
        try Data("apdu-trace 1\n0.000000000 > apdu 0\n".utf8).write(to: URL(fileURLWithPath: file))
        for command in ["show", "verify", "stats"] {
            let outcome = try await run(command, file)
            #expect(outcome.status == 2)
            #expect(
                outcome.error == """
                    apdu-trace: \(file): line 2: bytes of two digits each were due
                      Correct or remove that line.

                    """)
        }
        let difference = try await run("diff", file, file)
        #expect(difference.error.hasPrefix("apdu-trace: \(file): line 2: "), "\(difference)")
        // Records of a Proxmark are no lines.
        try Data([0x00, 0x01, 0x02]).write(to: URL(fileURLWithPath: "\(directory.path)/x.bin"))
        let binary = try await run("convert", "--from", "proxmark", "\(directory.path)/x.bin")
        #expect(
            binary.error.hasPrefix("apdu-trace: \(directory.path)/x.bin: byte 0: ")
                && !binary.error.contains("Correct or remove that line"), "\(binary)")
        let there = try await run("record", "--virtual", "-o", file)
        #expect(there.status == 2 && there.error.contains("--force"), "\(there)")
    }

    @Test(
        "a folder is no trace",
        arguments: [
            ["show"], ["verify"], ["stats"], ["diff"], ["redact", "-o", "-"], ["card", "-o", "-"], ["plot"],
            ["convert"], ["replay", "--amount", "1.00"],
        ])
    func folders(_ command: [String]) async throws {
        let files = command == ["diff"] ? ["/usr", "/usr"] : ["/usr"]
        let outcome = try await Program.run([tool] + command + files)
        #expect(outcome.status == 2 && outcome.error.hasPrefix("apdu-trace: /usr is a directory\n"), "\(outcome)")
    }

    @Test("no file is replaced without --force, and a failure leaves no file")
    func files() async throws {
        try await withPayment { clear, _ in
            let folder = directory.path
            func exists(_ name: String) -> Bool { FileManager.default.fileExists(atPath: "\(folder)/\(name)") }
            for (command, name) in [("card", "x.card"), ("plot", "x.svg")] {
                #expect(try await run(command, clear, "-o", "\(folder)/\(name)").status == 0)
                let again = try await run(command, clear, "-o", "\(folder)/\(name)")
                #expect(again.status == 2 && again.error.contains("already exists"), "\(again)")
                #expect(try await run(command, clear, "-o", "\(folder)/\(name)", "--force").status == 0)
            }
            let image = try await run("plot", clear, "-o", "\(folder)/p.png")
            #expect(image.status == 2 && image.error.contains(".svg and .html") && !exists("p.png"), "\(image)")
            let capture = try await run("convert", clear, "-o", "\(folder)/p.pcap")
            #expect(capture.status == 2 && capture.error.contains(".pcapng") && !exists("p.pcap"), "\(capture)")
            #expect(try await run("convert", clear, "-o", "\(folder)/p.pcap", "--to", "scriptor").status == 0)
            try Data("00A40400\n00A4040\n".utf8).write(to: URL(fileURLWithPath: "\(folder)/bad"))
            #expect(
                try await run("convert", "--from", "scriptor", "\(folder)/bad", "-o", "\(folder)/x.apdu").status == 2)
            #expect(!exists("x.apdu"))
            #expect(try await run("convert", clear, "--slot", "1", "-o", "\(folder)/x.apdu").status == 2)
            #expect(!exists("x.apdu"))
        }
    }

    @Test("a program that is killed while it records leaves a trace up to the last event")
    func killed() async throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let file = "\(directory.path)/killed.apdu"
        let program = try Program([tool, "record", "--virtual", "--clear", "--count", "2", "-o", file])
        // The card stays, so the tool waits for its removal.
        try await program.wait(for: "disconnect") { _ in
            (try? String(contentsOfFile: file, encoding: .utf8))?.contains(" disconnect ") == true
        }
        program.signal(SIGKILL)
        _ = try await program.outcome()
        let trace = try Trace(path: file)
        #expect(trace.events.last?.what == .disconnected(.leave))
    }
}
