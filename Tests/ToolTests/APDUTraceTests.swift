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
        let paid = try await run("pay", "--virtual", "--amount", "12.34", "-o", clear)
        #expect(paid.status == 0 && paid.output.contains("onlineRequest"), "\(paid)")
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
            #expect(replayed.status == 0 && replayed.output.contains("onlineRequest"), "\(replayed)")
            let exact = try await run("replay", redacted, "--amount", "0.99", "--exact")
            #expect(exact.status == 1, "\(exact)")
            #expect(exact.error.contains("recorded") && exact.error.contains("! 80A80000"), "\(exact)")
        }
    }

    @Test("show masks unless told not to, diff tells by its exit status, stats counts")
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

    @Test("what is wrong is said in two lines, with the line of the file")
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
                    apdu-trace: line 2: bytes of two digits each were due
                      Mend that line, or take it out.

                    """)
        }
        let there = try await run("record", "--virtual", "-o", file)
        #expect(there.status == 2 && there.error.contains("--force"), "\(there)")
    }

    @Test("a program that is killed while it records leaves a trace up to the last event")
    func killed() async throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let file = "\(directory.path)/killed.apdu"
        let program = try Program([tool, "record", "--virtual", "--count", "2", "-o", file])
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
