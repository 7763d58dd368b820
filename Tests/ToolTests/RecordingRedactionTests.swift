import Foundation
import SmartCard
import SmartCardTrace
import TestSupport
import Testing

/// What `apdu-trace record` and `pay` leave of a card, and what `redact` and `show` make of a trace.  The virtual card
/// "visa" has the published test number 4761739001010010.
@Suite struct RecordingRedactionTests {
    private let tool = Program.built("apdu-trace")

    private func withFolder(_ body: (String) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "recording-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await body(folder.path)
    }

    private func run(_ arguments: String...) async throws -> Program.Outcome {
        try await Program.run([tool] + arguments)
    }

    private static let commands = [["record", "--virtual"], ["pay", "--virtual", "--amount", "12.34"]]

    @Test("a recording is redacted", arguments: commands)
    func isRedacted(_ command: [String]) async throws {
        try await withFolder { folder in
            let recorded = try await Program.run([tool] + command + ["-o", "\(folder)/x.apdu"])
            #expect(recorded.status == 0, "\(recorded)")
            let text = try String(contentsOfFile: "\(folder)/x.apdu", encoding: .utf8)
            #expect(text.contains(" redacted account-number ") && !text.contains("4761739001010010"))
            #expect(!text.contains("card-data") && !recorded.error.contains("clear"))
            #expect(try await run("verify", "\(folder)/x.apdu").status == 0)
        }
    }

    @Test(
        "with --clear card data stays, the file and standard error say so, and redaction takes it out",
        arguments: commands)
    func isClear(_ command: [String]) async throws {
        try await withFolder { folder in
            let recorded = try await Program.run([tool] + command + ["--clear", "-o", "\(folder)/x.apdu"])
            #expect(recorded.status == 0 && recorded.error.contains("card data in the clear"), "\(recorded)")
            let text = try String(contentsOfFile: "\(folder)/x.apdu", encoding: .utf8)
            #expect(text.contains("4761739001010010") && !text.contains(" redacted"))
            #expect(text.split(separator: "\n").dropFirst().first?.hasSuffix(#" meta card-data "clear""#) == true)
            #expect(try await run("redact", "\(folder)/x.apdu", "-o", "\(folder)/y.apdu").status == 0)
            let redacted = try Trace(path: "\(folder)/y.apdu")
            #expect(redacted.meta["card-data"] == "redacted")
            #expect(try await run("redact", "\(folder)/y.apdu", "-o", "\(folder)/z.apdu").status == 0)
            let files = try ["y", "z"].map { try Data(contentsOf: URL(filePath: "\(folder)/\($0).apdu")) }
            #expect(files[0] == files[1])
        }
    }

    @Test("a recorder that is interrupted leaves what it has recorded, redacted", arguments: [SIGINT, SIGTERM])
    func interrupted(_ signal: Int32) async throws {
        try await withFolder { folder in
            let file = "\(folder)/x.apdu"
            let program = try Program([tool, "record", "--virtual", "--count", "2", "-o", file])
            // The card is read, and stays, so the tool waits for its removal.
            try await program.wait(for: "disconnect") { Self.hasRecorded(" disconnect ", $0.pid) }
            #expect(!FileManager.default.fileExists(atPath: file))
            program.signal(signal)
            _ = try await program.outcome()
            let text = try String(contentsOfFile: file, encoding: .utf8)
            #expect(text.contains(" disconnect ") && text.contains(" redacted account-number "))
            #expect(!text.contains("4761739001010010"))
        }
    }

    /// Whether `text` is in a file without a name that a process has open.
    private static func hasRecorded(_ text: String, _ process: Int32) -> Bool {
        let folder = "/proc/\(process)/fd"
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return files.map { "\(folder)/\($0)" }.contains { file in
            let target = (try? FileManager.default.destinationOfSymbolicLink(atPath: file)) ?? ""
            guard target.contains("apdu-trace."), target.hasSuffix("(deleted)") else { return false }
            return (try? String(contentsOfFile: file, encoding: .utf8))?.contains(text) == true
        }
    }

    /// An object that nobody knows, with the number packed and as text, in a template with another.
    @Test("show masks the number in an answer, and shows the objects around it")
    func showsStructure() async throws {
        try await withFolder { folder in
            let number = "4761739001010010"
            let text = Array(number.utf8).hex
            try """
            apdu-trace 1
            0.000000000 > apdu 00B2010C00
            0.000000000 < apdu 7023DF0108\(number)9F36020041DF0210\(text)9000
            0.000000000 > apdu 80CA010100
            0.000000000 < apdu EE\(number)9000

            """.write(toFile: "\(folder)/x.apdu", atomically: true, encoding: .utf8)
            let shown = try await run("show", "--no-pager", "\(folder)/x.apdu")
            #expect(
                shown.output.contains("7023DF0108\(String(repeating: "*", count: 16))9F36020041DF0210****"), "\(shown)")
            #expect(shown.output.contains("9F36") && shown.output.contains("0041"), "\(shown)")
            #expect(shown.output.split(separator: "\n").contains { $0.contains("DF01") && $0.hasSuffix("****") })
            #expect(!shown.output.contains(number) && !shown.output.contains(text) && !shown.output.contains("EE47"))
            let json = try await run("show", "--json", "\(folder)/x.apdu")
            #expect(json.output.contains("7023DF0108****") && !json.output.contains(number))
        }
    }

    @Test("what is redacted stands verification, and redacted again is the same byte for byte")
    func fixedPoint() async throws {
        try await withFolder { folder in
            let lines = [
                "note \"4761, 7390\"", "note \"0101 0010\"", "> apdu 00B2010C00", "< apdu 700A5A0847617390010100109000",
                "note \"0x47, 0x61, 0x73, 0x90, 0x01, 0x01, 0x00, 0x10\"", "> apdu 00A40400084761739001010010",
                "< apdu 6A82", "> apdu 0020008008241234FFFFFFFFFF", "< apdu 9000", "meta card.x \"４７６１７３９００１０１００１０\"",
            ]
            try ("apdu-trace 1\n" + lines.map { "0.000000000 \($0)\n" }.joined())
                .write(toFile: "\(folder)/x", atomically: true, encoding: .utf8)
            #expect(try await run("verify", "\(folder)/x").status == 1)
            #expect(try await run("redact", "\(folder)/x", "-o", "\(folder)/y").status == 0)
            let verified = try await run("verify", "\(folder)/y")
            #expect(verified.status == 0, "\(verified)")
            #expect(try await run("redact", "\(folder)/y", "-o", "\(folder)/z").status == 0)
            let files = try ["y", "z"].map { try String(contentsOfFile: "\(folder)/\($0)", encoding: .utf8) }
            #expect(files[0] == files[1] && !files[0].contains("9001010010"))
        }
    }
}
