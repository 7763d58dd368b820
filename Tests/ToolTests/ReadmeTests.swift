import Foundation
import TestSupport
import Testing

/// What the README shows is what there is.
@Suite struct ReadmeTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../..").standardizedFileURL

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    @Test func theFirstProgramIsTheOneThatIsBuilt() throws {
        let readme = try Self.text("README.md")
        #expect(readme.contains("```swift\n\(try Self.text("Examples/first-program/FirstProgram.swift"))```"))
    }

    @Test(.enabled(if: ReaderProbeTests.hasService, "\(ReaderProbeTests.needsService)"))
    func theFirstProgramRuns() async throws {
        let outcome = try await Program.run([
            Program.built("virtual-reader"), "--card", "visa", "--", Program.built("first-program"),
        ])
        #expect(outcome.status == 0 && outcome.output.contains("4F Application Dedicated File"), "\(outcome)")
    }

    @Test func linksLeadSomewhere() throws {
        for link in try Self.text("README.md").matches(of: /\]\(([^)#]+)\)/).map(\.1) where !link.hasPrefix("http") {
            #expect(
                FileManager.default.fileExists(atPath: Self.root.appendingPathComponent(String(link)).path), "\(link)")
        }
    }

    /// Every subcommand and every option that the README and the manual page name exists.
    @Test(arguments: ["README.md", "Tools/reader-probe/reader-probe.1"])
    func namedSubcommandsExist(_ path: String) async throws {
        let help = try await Program.run([Program.built("reader-probe"), "--help"]).output
        let text = try Self.text(path)
        for subcommand in ["list", "watch", "card", "emv", "apdu", "decode"] {
            #expect(help.contains("  \(subcommand) ") && text.contains(subcommand), "\(subcommand)")
        }
    }
}
