import Foundation
import Testing

/// The tests themselves: none passes without a word.
@Suite struct SilenceTests {
    @Test("No test returns before it has expected something: what is missing is a reason to be skipped")
    func earlyReturns() throws {
        let root = Repository.root.appending(path: "Tests")
        var count = 0
        for path in try FileManager.default.subpathsOfDirectory(atPath: root.path) where path.hasSuffix("Tests.swift") {
            let code = try String(contentsOf: root.appending(path: path), encoding: .utf8)
            let tests = Self.tests(in: code)
            count += tests.count
            for test in tests { #expect(!Self.isSilent(test), "\(path): \(test.prefix(120))") }
        }
        #expect(count > 1000)
    }

    @Test("A return counts before the first expectation only")
    func silent() {
        let closure = "        let task = Task {\n            return\n        }\n"
        let body =
            "    @Test func one() throws {\n\(closure)        guard isThere else { return }\n        #expect(true)\n    }\n"
        #expect(Self.tests(in: body).map(Self.isSilent) == [true])
        let spoken = body.replacing(
            "{ return }", with: "{\n            Issue.record(\"\")\n            return\n        }")
        #expect(Self.tests(in: spoken).map(Self.isSilent) == [false])
        let value = body.replacing("{ return }", with: "{ return 1 }")
        #expect(Self.tests(in: value).map(Self.isSilent) == [false])
    }

    /// From `@Test` to the end of the function, by the formatter's indentation.
    private static func tests(in code: String) -> [Substring] {
        code.matches(of: #/(?ms)^ *@Test.*?^(?:    )?\}$/#).map(\.output)
    }

    /// Before the first expectation, one of the function's own conditions ends it; a closure may return.
    private static func isSilent(_ test: Substring) -> Bool {
        let indentation = String(repeating: " ", count: test.prefix { $0 == " " }.count + 4)
        let expectation = #/#expect|#require|Issue\.record|[eE]xpect\w*\(/#
        var isCondition = false
        for line in test.split(separator: "\n").dropFirst() {
            if line.contains(expectation) { return false }
            let text = line.dropFirst(indentation.count)
            guard line.hasPrefix(indentation), let first = text.first else { continue }
            if first != " " {
                isCondition = text.hasPrefix("guard ") || text.hasPrefix("if ") || text.contains("else {")
            }
            if isCondition, text.contains(#/\breturn *(?:\}|$)/#) { return true }
        }
        return false
    }
}
