import Foundation
import TestSupport
import Testing

/// Swift code that the documentation shows, compiled against the modules of this build.
///
/// A block is compiled as the body of a function on the main actor.  A comment above it, which pages do not show, names the
/// modules and values that it takes for granted: `<!-- import SmartCard; given reader: any CardReader -->`.
@Suite struct DocumentedCodeTests {
    private struct Block: CustomStringConvertible {
        let page: String
        let line: Int
        let imports: Set<String>
        let given: String
        let code: [Substring]

        var description: String { "\(page):\(line)" }

        /// The block as a source file whose lines bear the page's numbers.
        func source(_ number: Int) -> String {
            // The program is the one that is built (ReadmeTests).
            let isWhole = code.contains("@main")
            let body = code.map { $0.hasPrefix("import ") || $0 == "@main" ? "" : String($0) }.joined(separator: "\n")
            let located = "#sourceLocation(file: \"\(page)\", line: \(line + 1))\n\(body)\n#sourceLocation()"
            return imports.sorted().map { "import \($0)\n" }.joined()
                + (isWhole ? located : "@MainActor func block\(number)(\(given)) async throws {\n\(located)\n}") + "\n"
        }
    }

    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../..").standardizedFileURL

    /// The files below a folder of the package whose path ends so.
    private static func files(_ folder: String, _ ending: String) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: root.appendingPathComponent(folder).path)
            .filter { $0.hasSuffix(ending) }.map { "\(folder)/\($0)" }.sorted()
    }

    private static func blocks() throws -> [Block] {
        let pages = ["README.md"] + (try files("Sources", ".md")).filter { $0.contains(".docc/") }
        return try pages.flatMap { page in
            let lines = try String(contentsOf: root.appendingPathComponent(page), encoding: .utf8)
                .split(separator: "\n", omittingEmptySubsequences: false)
            let module = page.split(separator: "/").dropFirst().first.map { [String($0)] } ?? []
            return lines.indices.filter { lines[$0] == "```swift" }.map { start in
                let code = Array(lines[(start + 1)...].prefix { $0 != "```" })
                let context = start > 0 ? lines[start - 1] : ""
                let taken = context.firstMatch(of: #/<!-- (?:import ([^;]*?))?(?:; )?(?:given (.*?))? -->/#)
                let imports =
                    code.compactMap { $0.firstMatch(of: #/^import (\w+)/#).map { String($0.1) } }
                    + (taken?.1.map { $0.split(separator: ", ").map(String.init) } ?? [])
                return Block(
                    page: page, line: start + 1, imports: Set(module + imports),
                    given: taken?.2.map(String.init) ?? "", code: code)
            }
        }
    }

    @Test("every block of Swift in the README and in the documentation's pages compiles")
    func pages() async throws {
        let blocks = try Self.blocks()
        #expect(blocks.count >= 25)
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("blocks-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        for (number, block) in blocks.enumerated() {
            try block.source(number).write(
                to: folder.appendingPathComponent("Block\(number).swift"), atomically: true, encoding: .utf8)
        }
        let outcome = try await Program.run(
            ["swiftc", "-typecheck", "-continue-building-after-errors", "-parse-as-library", "-swift-version", "6"]
                + (try await BuiltModules.compilerArguments(Self.root))
                + blocks.indices.map { folder.appendingPathComponent("Block\($0).swift").path })
        #expect(outcome.status == 0, "\(outcome.error)")
    }
}
