import Foundation
import TestSupport
import Testing

/// The rule tables in Rules/: every rule of a book that is kept here, and the tests that show it.
///
/// A line is empty, a comment from `#` on, or a row of four columns with `|` between them:
///
///     section and requirement | the rule, in our words | tests, with commas between | checked or unchecked
///
/// A test has its function's name, with the file's and a slash before it where two files have a test of that name.
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

    /// What is wrong with the name of a test in a row.
    ///
    /// - Parameter known: the files that have a test, without their extension, by its name.
    /// - Returns: nil if it means one test.
    private static func complaint(about test: String, _ known: [String: Set<String>]) -> String? {
        let parts = test.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        let files = known[parts[parts.count - 1]] ?? []
        if parts.count == 2, files.contains(parts[0]) { return nil }
        guard parts.count == 1, !files.isEmpty else { return "there is no test \(test)" }
        return files.count == 1 ? nil : "\(test) is in \(files.sorted().joined(separator: " and in "))"
    }

    private static func files(in folder: URL, withExtension pathExtension: String) throws -> [URL] {
        try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == pathExtension }.sorted { $0.path < $1.path }
    }

    @Test func everyRuleNamesItsTests() throws {
        // This file quotes tests that are none.
        let sources = try Self.files(in: Self.folder, withExtension: "swift")
            .filter { $0.lastPathComponent != "RulesTests.swift" }
        var known: [String: Set<String>] = [:]
        for source in sources {
            for test in Self.tests(in: try String(contentsOf: source, encoding: .utf8)) {
                known[test, default: []].insert(source.deletingPathExtension().lastPathComponent)
            }
        }
        let tables = try Self.files(in: Self.folder.appending(path: "Rules"), withExtension: "txt")
        #expect(!tables.isEmpty)
        for table in tables {
            let name = table.lastPathComponent
            let rows = try Self.rows(String(contentsOf: table, encoding: .utf8))
            #expect(!rows.isEmpty, "\(name) has no rules")
            for row in rows {
                for test in row.tests {
                    let complaint = Self.complaint(about: test, known)
                    expectEqual(complaint, nil, "\(name):\(row.line): \(complaint ?? "")")
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

    @Test(arguments: [
        ("expired", nil), ("A/usage", nil), ("B/usage", nil), ("usage", "usage is in A and in B"),
        ("B/expired", "there is no test B/expired"), ("A/", "there is no test A/"), ("", "there is no test "),
        ("A/B/usage", "there is no test A/B/usage"),
    ])
    func whichTestIsMeant(_ test: String, _ complaint: String?) {
        expectEqual(Self.complaint(about: test, ["expired": ["A"], "usage": ["A", "B"]]), complaint)
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
        expectEqual(Self.tests(in: source), ["first", "second", "third"])
        try expectEqual(Self.rows("B 1 | a rule | first, second | checked\n").map(\.tests), [["first", "second"]])
    }
}
