import Foundation
import TestSupport
import Testing

/// Swift code that the documentation and doc comments show, compiled against the modules of this build.
///
/// A block is compiled as the body of a function on the main actor.  A comment above it, which pages do not show, names the
/// modules and values that it takes for granted: `<!-- import SmartCard; given reader: any CardReader -->`.  For doc comments,
/// `DocumentedSymbols` does.
@Suite struct DocumentedCodeTests {
    private struct Block: CustomStringConvertible {
        let page: String
        let line: Int
        let imports: Set<String>
        let given: String
        var before = ""
        let code: [Substring]

        var description: String { "\(page):\(line)" }

        /// The block as a source file whose lines bear the page's numbers.
        func source(_ number: Int) -> String {
            // The program is the one that is built (ReadmeTests).  An ellipsis stands for statements.
            let isWhole = code.contains("@main")
            let body = code.map { $0.hasPrefix("import ") || $0 == "@main" ? "" : $0.replacing("…", with: "_ = ()") }
                .joined(separator: "\n")
            let located = "#sourceLocation(file: \"\(page)\", line: \(line + 1))\n\(body)\n#sourceLocation()"
            return imports.sorted().map { "import \($0)\n" }.joined()
                + (isWhole
                    ? located : "@MainActor func block\(number)(\(given)) async throws {\n\(before)\n\(located)\n}")
                + "\n"
        }
    }

    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../..").standardizedFileURL

    /// The files below a folder of the package whose path ends so.
    private static func files(_ folder: String, _ ending: String) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: root.appendingPathComponent(folder).path)
            .filter { $0.hasSuffix(ending) }.map { "\(folder)/\($0)" }.sorted()
    }

    /// The indented blocks of doc comments.
    private static func examples() throws -> [Block] {
        try files("Sources", ".swift").flatMap { page in
            let lines = try String(contentsOf: root.appendingPathComponent(page), encoding: .utf8)
                .split(separator: "\n", omittingEmptySubsequences: false).map { $0.drop { $0 == " " } }
            let name = page.split(separator: "/").dropFirst().joined(separator: "/")
            let context = DocumentedSymbols.contexts[name] ?? .init()
            let module = page.split(separator: "/").dropFirst().prefix(1).map(String.init)
            return lines.indices.dropFirst().filter {
                lines[$0].hasPrefix("///     ") && lines[$0 - 1] == "///"
                    && !DocumentedSymbols.otherBlocks.contains(lines[$0].dropFirst(8))
            }.map { start in
                Block(
                    page: page, line: start, imports: Set(module + context.imports), given: context.given,
                    before: context.before,
                    code: lines[start...].prefix { $0.hasPrefix("///     ") }.map { $0.dropFirst(8) })
            }
        }
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

    @Test(
        "every block of Swift in the README and in the documentation's pages compiles",
        .thorough(
            "the compiler checks some thirty programs; what README and pages say of tools stays fast, in ReadmeTests"))
    func pages() async throws {
        let blocks = try Self.blocks()
        #expect(blocks.count >= 25)
        try await compile(blocks)
    }

    @Test(
        "every example in a doc comment compiles, with what it takes for granted",
        .thorough(
            "the compiler checks some fifty programs; the same calls are in tests of their modules, which stay fast"))
    func symbols() async throws {
        let blocks = try Self.examples()
        #expect(blocks.count >= 40)
        let names = Set(blocks.map { $0.page.split(separator: "/").dropFirst().joined(separator: "/") })
        #expect(Set(DocumentedSymbols.contexts.keys).subtracting(names).isEmpty)
        // Some are for the package alone; its name is that of its folder, as an identifier.
        let name = Self.root.lastPathComponent.lowercased().replacing(#/[^a-z0-9_]/#, with: "_")
        try await compile(blocks, ["-package-name", name])
    }

    private func compile(_ blocks: [Block], _ options: [String] = []) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("blocks-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        for (number, block) in blocks.enumerated() {
            try block.source(number).write(
                to: folder.appendingPathComponent("Block\(number).swift"), atomically: true, encoding: .utf8)
        }
        let outcome = try await Program.run(
            ["swiftc", "-typecheck", "-continue-building-after-errors", "-parse-as-library", "-swift-version", "6"]
                + options + (try await BuiltModules.compilerArguments(Self.root))
                + blocks.indices.map { folder.appendingPathComponent("Block\($0).swift").path })
        #expect(outcome.status == 0, "\(outcome.error)")
    }
}
