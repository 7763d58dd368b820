import Foundation
import TestSupport
import Testing

/// `reader-probe passport` where something fails, and with the authorities of a folder.
@Suite struct PassportFailureTests {
    /// The specimen of ICAO 9303-4, appendix B.  // TEST
    private static let zone = """
        P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<
        L898902C36UTO7408122F1204159ZE184226B<<<<<10

        """

    private let tool = Program.built("reader-probe")

    private func inFolder<Result>(_ body: (URL) async throws -> Result) async throws -> Result {
        let folder = FileManager.default.temporaryDirectory.appending(path: "passport-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        return try await body(folder)
    }

    private func run(_ arguments: [String]) async throws -> Program.Outcome {
        try await Program.run(
            [tool, "passport"] + arguments,
            environment: ["PCSCLITE_CSOCK_NAME": "/nonexistent", "XDG_DATA_HOME": "/nonexistent"], input: Self.zone)
    }

    /// Reads all that there is of `passport` with the statements `difference`, and DG2, too.
    private func read(_ difference: String) async throws -> Program.Outcome {
        try await inFolder { folder in
            let card = folder.appending(path: "it.card")
            try "variant passport {\n\(difference)\n}\n".write(to: card, atomically: true, encoding: .utf8)
            return try await run(["--card", card.path, "--photo", folder.appending(path: "photo").path])
        }
    }

    private func authority() async throws -> String {
        try await Program.run([Program.built("virtual-reader"), "--passport-authority"]).output
    }

    @Test("each authority in a folder is trusted") func folder() async throws {
        try await inFolder { folder in
            let trust = ["--card", "passport-bac", "--trust", folder.path]
            #expect(try await run(trust).status != 0, "an empty folder")
            try await authority().write(
                to: folder.appending(path: "utopia.pem"), atomically: true, encoding: .utf8)
            let outcome = try await run(trust)
            #expect(outcome.status == 0 && outcome.output.contains("Read and believed"), "\(outcome)")
        }
    }

    @Test("a session that somebody breaks is a failure, not a forged document") func wrongMAC() async throws {
        let outcome = try await read("fault wrong-mac 3")
        #expect(outcome.status == 5 && !outcome.output.contains("Read and"), "\(outcome)")
    }

    @Test("DG2 that is cut off is not believed") func truncated() async throws {
        let outcome = try await read("truncated 2 100")
        #expect(outcome.status == 7 && outcome.output.contains("! DG2: the file ends"), "\(outcome)")
    }

    @Test(
        "a card that leaves while DG2 is read is a failure",
        .enabled(if: PrivatePCSCD.obstacle == nil, "\(PrivatePCSCD.obstacle ?? "")"))
    func removed() async throws {
        try await inFolder { folder in
            let photo = folder.appending(path: "photo").path
            // The whole takes 17 commands, and the last five are those of DG2.
            let outcome = try await Program.run(
                [
                    Program.built("virtual-reader"), "--card", "passport-bac", "--fault", "field-loss=16", "--", tool,
                    "passport", "--photo", photo,
                ], environment: ["XDG_DATA_HOME": "/nonexistent"], input: Self.zone)
            #expect(outcome.status == 5 && !FileManager.default.fileExists(atPath: photo), "\(outcome)")
        }
    }
}
