import Foundation
import Testing

/// What failed once can be run again: chance in tests, and in the programs that they start, comes from a seed.
@Suite struct ChanceTests {
    /// The files that draw from the system's generator, each with its reason.
    ///
    /// Everywhere stay a `UUID()` as the name of a file, a folder or a payment, and a new key whose value cannot matter.
    private static let excepted = [
        "TestSupport/PrivatePCSCD.swift": "two runs on one machine at once must not try the same ports",
        "ArchitectureTests/ChanceTests.swift": "here stand the words that are looked for",
    ]

    @Test("Only the seed is drawn from")
    func seeded() throws {
        let root = Repository.root.appending(path: "Tests")
        var (files, draws) = (0, 0)
        var unseeded: [String: [String]] = [:]
        for path in try FileManager.default.subpathsOfDirectory(atPath: root.path) where path.hasSuffix(".swift") {
            let found = Self.draws(in: try String(contentsOf: root.appending(path: path), encoding: .utf8))
            files += 1
            draws += found.count
            let others = found.filter { !$0.isSeeded }.map(\.text)
            if !others.isEmpty { unseeded[path] = others }
        }
        #expect(files > 400 && draws > 150)
        #expect(unseeded.filter { Self.excepted[$0.key] == nil }.isEmpty)
        #expect(Self.excepted.keys.filter { unseeded[$0] == nil }.isEmpty, "is excepted, and draws nothing")
    }

    @Test(
        "A draw is found with its generator or without",
        arguments: [
            ("Int.random(in: 0..<8)", false), ("Int.random(in: 0..<max(8, count(of: [1])), using: &dice)", true),
            ("Bool.random()", false), (".random(\n    in: 1...2,\n    using: &dice)", true),
            ("names.randomElement()", false),
            ("names.randomElement(using: &dice)", true), ("list.shuffled()", false),
            ("list.shuffle(using: &dice)", true),
            ("SystemRandomNumberGenerator()", false), ("var random = SystemRandomSource()", false),
        ])
    func kinds(_ code: String, _ isSeeded: Bool) {
        #expect(Self.draws(in: "let x = \(code) + f(using: 1)\n").map(\.isSeeded) == [isSeeded])
    }

    /// Each draw of a file, to the parenthesis that ends it.
    private static func draws(in code: String) -> [(text: String, isSeeded: Bool)] {
        let call = #/\.(?:random|randomElement|shuffled|shuffle)\(|\bSystemRandom(?:NumberGenerator|Source)\b/#
        return code.matches(of: call).map { match in
            guard match.output.last == "(" else { return (String(match.output), false) }
            var depth = 0
            let arguments = code[match.range.upperBound...].prefix { character in
                depth += character == "(" ? 1 : character == ")" ? -1 : 0
                return depth >= 0
            }
            return (match.output + arguments + ")", arguments.contains("using:"))
        }
    }
}
