import Foundation
import TestSupport
import Testing

/// The README agrees with the tools.
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

    @Test("the screen at the top is the tool's own, line for line, and the page stays short")
    func screen() async throws {
        let lines = try Self.text("README.md").split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count <= 131)
        let shown = lines.drop { !$0.hasPrefix("    $ ") }.prefix { $0.hasPrefix("    ") }.map { $0.dropFirst(4) }
        let command = try #require(shown.first).dropFirst(2).split(separator: " ").map(String.init)
        let output = try await Program.run([Program.built(command[0])] + command.dropFirst()).output
        var rest = output.split(separator: "\n")[...]
        for line in shown.dropFirst() where line != "…" {
            rest = rest.drop { $0 != line }
            #expect(!rest.isEmpty, "\(line)")
        }
    }

    @Test(.enabled(if: ReaderProbeTests.hasService, "\(ReaderProbeTests.needsService)"))
    func theFirstProgramRuns() async throws {
        let outcome = try await Program.run([
            Program.built("virtual-reader"), "--card", "visa", "--", Program.built("first-program"),
        ])
        #expect(outcome.status == 0 && outcome.output.contains("4F Application Dedicated File"), "\(outcome)")
    }

    @Test("the README names every tool, with its manual page", arguments: GrammarTests.tools)
    func manual(_ tool: String) throws {
        #expect(try Self.text("README.md").contains("[`\(tool)`](Tools/\(tool)/\(tool).1)"))
    }
}
