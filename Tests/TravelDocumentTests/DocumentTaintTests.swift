import Foundation
import SmartCardSimulator
import TestSupport
import Testing

@testable import TravelDocument

/// A document is read whose holder is nobody else, and then looked for wherever it must not be.
@Suite(
    .computing, .timeLimit(.minutes(5)), .enabled(if: PrivatePCSCD.obstacle == nil, "\(PrivatePCSCD.obstacle ?? "")"),
    .unsanitized(by: .address, .thread, because: "the heap is another, which is not wiped as it is freed"))
struct DocumentTaintTests {
    /// Of no person.  // TEST
    private static let zone = [
        "P<UTOMALLORY<<MARKED<TAINTED<<<<<<<<<<<<<<<<", "Q730581626UTO8309178F3102282TAINT58203<<<<72",
    ]
    private static let control = "CONTROL7305816294"

    @Test(
        "after a reading nothing of the holder is in what was printed, or in the memory of a program that wipes its heap",
        arguments: ["ecdh-gm aes-128 12", "none"])
    func leavesNothing(_ pace: String) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "taint-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let specimen = [
            "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<", "L898902C36UTO7408122F1204159ZE184226B<<<<<10",
        ]
        let passport = try #require(VirtualCards.all.first { $0.name == "passport" }).text
        let marked = zip(specimen, Self.zone).reduce(passport) { $0.replacing($1.0, with: $1.1) }
        let statement = "parameter pace      ecdh-gm aes-128 12"
        #expect(marked.contains(Self.zone[0]) && marked.contains(Self.zone[1]) && marked.contains(statement))
        let file = folder.appending(path: "marked.card")
        try marked.replacing(statement, with: "parameter pace \(pace)")
            .write(to: file, atomically: true, encoding: .utf8)

        let host = try await VirtualReaderProcess(host: "umockdev", arguments: ["--card", file.path])
        defer { host.stop() }
        let program = try Program(
            [Program.built("tainted-document"), Self.control], environment: ["PCSCLITE_CSOCK_NAME": host.socket],
            input: Self.zone.joined(separator: "\n"))
        try await program.wait(for: "the reading") { $0.output.contains("done\n") || $0.error.contains("rror:") }
        #expect(program.output.contains("DG1 DG14 DG2 9 []"), "\(program.output) \(program.error)")

        let face = try #require(marked.split(separator: "\n").first { $0.contains("AC 45 ED 84 C8") })
        let secrets =
            ["MALLORY<<MARKED", "MALLORY", "Q73058162", "TAINT58203"].flatMap(Taint.forms(of:)) + [
                Taint.Form(name: "the face", bytes: try hex(String(face))),
                Taint.Form(name: "the key", bytes: AccessKey(try MachineReadableZone(Self.zone.joined())).secret),
            ]
        expectEqual(Taint.found(secrets, in: Data((program.output + program.error).utf8)), [])
        let memory = try Taint.memory(of: program.pid)
        for part in memory { expectEqual(Taint.found(secrets, in: part.bytes), [], "\(part.name)") }
        #expect(
            memory.contains { Taint.found(Taint.forms(of: Self.control), in: $0.bytes) == ["\(Self.control) as it is"] }
        )
    }
}
