import Foundation
import TestSupport
import Testing

/// One grammar for all tools, from each tool's description of its options (`--experimental-dump-help`).
@Suite struct GrammarTests {
    struct Help: Decodable {
        let command: Command

        struct Command: Decodable {
            let commandName: String
            let arguments: [Argument]?
            let subcommands: [Command]?
        }

        struct Argument: Decodable {
            struct Name: Decodable {
                let kind: String
                let name: String
            }

            let kind: String
            let names: [Name]?
            let valueName: String?
            let allValues: [String]?
            let shouldDisplay: Bool

            func name(_ kind: String) -> String? { names?.first { $0.kind == kind }?.name }
            var long: String? { kind == "positional" ? nil : name("long") }
        }
    }

    /// A subcommand that does something, or a tool without any.
    private struct Verb {
        let path: String
        let arguments: [Help.Argument]

        func has(_ option: String) -> Bool { arguments.contains { $0.long == option } }
    }

    static let tools = ["reader-probe", "apdu-trace", "receipt", "virtual-reader", "psp-sandbox", "kiosk-host"]

    /// Why these have no `--json`.
    private static let withoutJSON = [
        "apdu-trace card": "makes a file", "apdu-trace convert": "makes a file", "apdu-trace plot": "makes a file",
        "apdu-trace record": "makes a file", "apdu-trace redact": "makes a file", "receipt render": "makes a file",
        "receipt print": "makes paper", "receipt example": "is JSON", "psp-sandbox": "answers over HTTP, in JSON",
        "kiosk": "tells a person what to do, as it happens", "kiosk-host": "answers over a WebSocket, in JSON",
        "reader-probe trust remove": "prints nothing",
    ]
    /// Why these files are written beside what `-o` names, or without it.
    private static let otherFiles = [
        "apdu-trace card --authorities": "the keys that go with it", "apdu-trace redact --authorities": "the same",
        "apdu-trace merge --junit": "the same as of replay", "apdu-trace merge --results": "the same as of replay",
        "apdu-trace replay --results": "for merge; what is shown is shown all the same",
        "kiosk-host --metrics-file": "replaced again and again, for another program",
        "apdu-trace replay --junit": "the name that CI systems have for it; what is shown is shown all the same",
        "virtual-reader --pcscd-log": "another program's log", "psp-sandbox --books": "read and written",
        "psp-sandbox --card-data-key": "read and written",
        "reader-probe passport --photo": "a picture beside what is shown",
    ]
    /// Files that are read.
    private static let input: Set = [
        "checkout-configuration", "config", "ca-keys", "exception-file", "key-file", "merchant", "mrz-file",
        "pass-config",
        "trust",
    ]
    /// What means something else in an example, where the reader is there or is not.
    private static let ofItsOwn: Set = ["kiosk --reader"]

    private static func verbs(_ tools: [String]) async throws -> [Verb] {
        var verbs: [Verb] = []
        func walk(_ command: Help.Command, _ path: String) {
            let path = path + command.commandName
            let subcommands = (command.subcommands ?? []).filter { $0.commandName != "help" }
            if subcommands.isEmpty { verbs.append(Verb(path: path, arguments: command.arguments ?? [])) }
            for subcommand in subcommands { walk(subcommand, path + " ") }
        }
        for tool in tools {
            let outcome = try await Program.run([Program.built(tool), "--experimental-dump-help"])
            walk(try JSONDecoder().decode(Help.self, from: Data(outcome.output.utf8)).command, "")
        }
        #expect(verbs.count >= 30, "\(verbs.map(\.path))")
        return verbs
    }

    @Test("--json exists for every output, and exceptions have a reason")
    func json() async throws {
        let verbs = try await Self.verbs(Self.tools + ["kiosk"])
        let without = verbs.filter { !$0.has("json") }.map(\.path)
        #expect(Set(without) == Set(Self.withoutJSON.keys))
    }

    @Test("an output file is -o, --output, with --force; exceptions have a reason, and no other option is a file")
    func output() async throws {
        let verbs = try await Self.verbs(Self.tools + ["kiosk"])
        for verb in verbs {
            if let output = verb.arguments.first(where: { $0.long == "output" }) {
                #expect(output.name("short") == "o" && output.valueName == "file", "\(verb.path)")
            }
            #expect(verb.has("output") == verb.has("force"), "\(verb.path)")
        }
        let files = verbs.flatMap { verb in
            verb.arguments.filter { $0.valueName == "file" }.compactMap(\.long)
                .filter { $0 != "output" && !Self.input.contains($0) }.map { "\(verb.path) --\($0)" }
        }
        #expect(Set(files) == Set(Self.otherFiles.keys))
    }

    @Test("a name means the same in every tool: with or without a value, and with the same letter")
    func names() async throws {
        var kinds: [String: Set<String>] = [:]
        var letters: [String: Set<String>] = [:]
        for verb in try await Self.verbs(Self.tools + ["kiosk"]) {
            for argument in verb.arguments {
                guard let long = argument.long, !Self.ofItsOwn.contains("\(verb.path) --\(long)") else { continue }
                kinds[long, default: []].insert("\(argument.kind) \(argument.name("short") ?? "")")
                if let short = argument.name("short") { letters[short, default: []].insert(long) }
            }
        }
        #expect(kinds.filter { $0.value.count > 1 }.isEmpty)
        #expect(letters.filter { $0.value.count > 1 }.isEmpty)
        #expect(letters["o"] == ["output"] && letters["r"] == ["reader"] && letters["v"] == ["verbose"])
    }
}
