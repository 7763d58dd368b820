import Foundation
import Testing

/// The rule tables in Rules/: every rule of a book that is kept here, and the tests that show it.
///
/// A line is empty, a comment from `#` on, or a row of four columns with `|` between them:
///
///     section and requirement | the rule, in our words | tests, with commas between | checked or unchecked
@Suite struct RulesTests {
    private struct Row {
        let line: Int
        let section: String
        let rule: String
        let tests: [String]
        let isChecked: Bool
    }

    private struct Malformed: Error, CustomStringConvertible {
        let description: String
    }

    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()

    private static func rows(_ text: String) throws -> [Row] {
        var rows: [Row] = []
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            if line.isEmpty || line.hasPrefix("#") { continue }
            let columns = line.split(separator: "|", omittingEmptySubsequences: false)
                .map { $0.trimmingCharacters(in: .whitespaces) }
            guard columns.count == 4, columns.allSatisfy({ !$0.isEmpty }) else {
                throw Malformed(description: "line \(index + 1): not four columns")
            }
            guard ["checked", "unchecked"].contains(columns[3]) else {
                throw Malformed(description: "line \(index + 1): neither checked nor unchecked")
            }
            let tests = columns[2].split(separator: ",", omittingEmptySubsequences: false)
                .map { $0.trimmingCharacters(in: .whitespaces) }
            rows.append(
                Row(
                    line: index + 1, section: columns[0], rule: columns[1], tests: tests,
                    isChecked: columns[3] == "checked"))
        }
        return rows
    }

    /// The names of the test functions in Swift source: the first function behind each `@Test`.
    private static func tests(in source: String) -> [String] {
        source.components(separatedBy: "@Test").dropFirst().compactMap { part in
            guard let function = part.range(of: "func ") else { return nil }
            let name = part[function.upperBound...].prefix { $0.isLetter || $0.isNumber || $0 == "_" }
            return name.isEmpty ? nil : String(name)
        }
    }

    private static func files(in folder: URL, withExtension pathExtension: String) throws -> [URL] {
        try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == pathExtension }.sorted { $0.path < $1.path }
    }

    @Test func everyRuleNamesItsTests() throws {
        // This file quotes tests that are none.
        let sources = try Self.files(in: Self.folder, withExtension: "swift")
            .filter { $0.lastPathComponent != "RulesTests.swift" }
        let known = Set(try sources.flatMap { Self.tests(in: try String(contentsOf: $0, encoding: .utf8)) })
        let tables = try Self.files(in: Self.folder.appending(path: "Rules"), withExtension: "txt")
        #expect(!tables.isEmpty)
        for table in tables {
            let name = table.lastPathComponent
            let rows = try Self.rows(String(contentsOf: table, encoding: .utf8))
            #expect(!rows.isEmpty, "\(name) has no rules")
            for row in rows {
                for test in row.tests {
                    #expect(known.contains(test), "\(name):\(row.line): there is no test \(test)")
                }
            }
            let sections = Dictionary(grouping: rows, by: { "\($0.section) | \($0.rule)" }).filter {
                $0.value.count > 1
            }
            #expect(sections.isEmpty, "\(name): stand there twice: \(sections.keys.sorted())")
            print("\(name): \(rows.count) rules, \(rows.count { !$0.isChecked }) unchecked")
        }
    }

    @Test(arguments: [
        "B 1.2.3 | rule | test", "B 1 | rule | test | perhaps", "B 1 | | test | checked", "B 1 | a | b | checked |",
    ])
    func whatIsNoRow(_ line: String) {
        #expect(throws: Malformed.self) { try Self.rows("# comment\n\n" + line) }
    }

    @Test func testsAreFound() throws {
        let source = """
            /// @Suite
            @Test func first() {}
            @Test(arguments: [1, 2])
            func second(_ number: Int) async throws {}
            func helper() {}
            @Test("a sentence") func third() {}
            """
        #expect(Self.tests(in: source) == ["first", "second", "third"])
        #expect(try Self.rows("B 1 | a rule | first, second | checked\n").map(\.tests) == [["first", "second"]])
    }
}
