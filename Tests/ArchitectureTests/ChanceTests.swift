import Foundation
import Testing

/// What failed once can be run again: chance in tests, and in the programs that they start, comes from a seed.
@Suite struct ChanceTests {
    /// What is real chance all the same, each with its reason.
    private static let real = [
        "UUID()": "names of files, folders and payments, which two runs at once must not share",
        "PrivateKey()": "new keys, whose value no expectation knows",
        "SymmetricKey(size:": "the same",
        "TraceRedaction()": "its key, which decides only what an account number becomes",
    ]

    @Test("Only the seed is drawn from")
    func seeded() throws {
        let root = Repository.root.appending(path: "Tests")
        // Here stand the words that are looked for.
        let paths = try FileManager.default.subpathsOfDirectory(atPath: root.path)
            .filter { $0.hasSuffix(".swift") && !$0.hasSuffix("/ChanceTests.swift") }
        let code = try paths.map { ($0, try String(contentsOf: root.appending(path: $0), encoding: .utf8)) }
        #expect(code.count > 400 && code.reduce(0) { $0 + Self.draws(in: $1.1).count } > 150)
        for (path, text) in code {
            #expect(Self.draws(in: text).filter { !$0.isSeeded }.map(\.text) == [], "\(path)")
        }
        for (draw, reason) in Self.real {
            #expect(code.contains { $0.1.contains(draw) }, "\(reason): is drawn nowhere")
        }
    }

    @Test(
        "A draw is found with its generator or without",
        arguments: [
            ("Int.random(in: 0..<8)", false), ("Int.random(in: 0..<max(8, count(of: [1])), using: &dice)", true),
            ("Bool.random()", false), (".random(\n    in: 1...2,\n    using: &dice)", true),
            ("names.randomElement()", false),
            ("names.randomElement(using: &dice)", true),
            ("Int.random(in: 0...(7 & 3))", false), ("list.shuffled()", false),
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
            return (match.output + arguments + ")", arguments.contains("using: &"))
        }
    }
}
