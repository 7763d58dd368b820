import Foundation
import TestSupport
import Testing

/// The manual pages, as mandoc reads them, against each tool's own description of its subcommands and options
/// (`--experimental-dump-help`).
@Suite(.enabled(if: Program.isInstalled("mandoc"), "mandoc is not installed")) struct ManualPageTests {
    @Test("mandoc has nothing to say against a page", arguments: GrammarTests.tools)
    func lint(_ tool: String) async throws {
        let outcome = try await Program.run(["mandoc", "-T", "lint", "-W", "warning", ManualPage.path(of: tool)])
        #expect(outcome.status == 0, "\(outcome.output)")
    }

    @Test(
        "a page explains each subcommand and no other, and begins with how each is called",
        arguments: GrammarTests.tools)
    func subcommands(_ tool: String) async throws {
        let (page, verbs) = try await (ManualPage(of: tool), Self.verbs(of: tool))
        let names = Set(verbs.keys).subtracting([tool])
        #expect(page.subcommands == names)
        #expect(Set(page.calls.flatMap(\.verbs)) == names)
    }

    @Test(
        "a page explains each option of each subcommand where it belongs, and no other", arguments: GrammarTests.tools)
    func options(_ tool: String) async throws {
        let (page, verbs) = try await (ManualPage(of: tool), Self.verbs(of: tool))
        for (verb, arguments) in verbs {
            let explained = page.terms.filter { $0.verbs.isEmpty || $0.verbs.contains(verb) }.flatMap(\.options)
            let options = Set(arguments.flatMap(\.options))
            #expect(options.subtracting(explained).isEmpty, "of \(verb)")
        }
        func isOption(_ option: String, of verbs: [String: [GrammarTests.Help.Argument]]) -> Bool {
            option == "--" || verbs.values.contains { $0.contains { $0.options.contains(option) } }
        }
        for option in page.options { #expect(isOption(option, of: verbs), "is in \(tool)(1) only") }
        for list in page.terms.map({ ($0.verbs, $0.options) }) + page.calls.map({ ($0.verbs, $0.options) }) {
            for (verb, option) in list.0.flatMap({ verb in list.1.map { (verb, $0) } }) {
                #expect(isOption(option, of: verbs.filter { $0.key == verb }), "\(verb) does not take it")
            }
        }
    }

    @Test("a page names the values that an argument can have, and no other", arguments: GrammarTests.tools)
    func values(_ tool: String) async throws {
        let (page, verbs) = try await (ManualPage(of: tool), Self.verbs(of: tool))
        for (verb, arguments) in verbs {
            for argument in arguments {
                guard let values = argument.allValues else { continue }
                guard let option = argument.options.first else {
                    let calls = page.calls.filter { $0.verbs.contains(verb) }
                    #expect(!calls.isEmpty && calls.allSatisfy { $0.words == values }, "\(tool) \(verb)")
                    continue
                }
                // One that stands among others is explained on another page.
                for term in page.terms where Set(term.options).isSubset(of: argument.options) && !term.options.isEmpty {
                    #expect(term.words == values, "\(tool) \(verb) \(option)")
                }
            }
        }
    }

    /// The arguments of each subcommand, or of the tool under its own name.
    private static func verbs(of tool: String) async throws -> [String: [GrammarTests.Help.Argument]] {
        let outcome = try await Program.run([Program.built(tool), "--experimental-dump-help"])
        let command = try JSONDecoder().decode(GrammarTests.Help.self, from: Data(outcome.output.utf8)).command
        // Without a subcommand, reader-probe gives an overview, which is not one that a person names.
        let subcommands = (command.subcommands ?? []).filter { !["help", "overview"].contains($0.commandName) }
        let verbs = subcommands.flatMap { command in
            guard let parts = command.subcommands else { return [(command.commandName, command.shown)] }
            return parts.map { ("\(command.commandName) \($0.commandName)", $0.shown) }
        }
        return Dictionary(uniqueKeysWithValues: [(command.commandName, command.shown)] + verbs)
    }
}

extension GrammarTests.Help.Command {
    fileprivate var shown: [GrammarTests.Help.Argument] { (arguments ?? []).filter(\.shouldDisplay) }
}

extension GrammarTests.Help.Argument {
    /// `-o`, `--output`
    fileprivate var options: [String] {
        kind == "positional" ? [] : (names ?? []).map { ($0.kind == "short" ? "-" : "--") + $0.name }
    }
}

/// A page as mandoc writes it in HTML, where it keeps the kind of each word: `Fl` an option, `Cm` a word to be typed.
private struct ManualPage {
    struct Entry {
        /// Subcommands: those that a line of the synopsis begins with, or those of the paragraph before a list
        /// (`record and pay:`).
        let verbs: [String]
        let options: [String]
        /// The other words to be typed; of a line of the synopsis those at its end.
        let words: [String]
    }

    /// The lines of the synopsis.
    let calls: [Entry]
    /// What lists explain.
    let terms: [Entry]
    /// Those that the section with this title explains.
    let subcommands: Set<String>
    /// Each option that is named anywhere.
    let options: Set<String>

    static func path(of tool: String) -> String {
        URL(filePath: #filePath).appending(path: "../../../Tools/\(tool)/\(tool).1").standardized.path
    }

    init(of tool: String) async throws {
        let html = try await Program.run(["mandoc", "-T", "html", Self.path(of: tool)]).output
        options = Set(Self.words(in: html[...]).filter { $0.kind == "Fl" }.map(\.text))
        calls = html.matches(of: #/(?s)<table class="Nm">.*?<td>.*?</td>(.*?)</table>/#).map { match in
            let words = Self.words(in: match.1)
            let verbs = words.prefix { $0.kind == "Cm" }
            let last = words.dropFirst(verbs.count).reversed().prefix { $0.kind == "Cm" }.reversed()
            return Entry(
                verbs: verbs.map(\.text), options: words.filter { $0.kind == "Fl" }.map(\.text), words: last.map(\.text)
            )
        }
        let sections = html.components(separatedBy: "<section").filter { $0.contains("id=\"Subcommands\"") }
        subcommands = Set(
            sections.flatMap { $0.matches(of: #/(?s)<dt.*?</dt>/#) }.flatMap { Self.words(in: $0.output) }.map(\.text))
        let lists = html.components(separatedBy: #"<dl class="Bl-tag">"#)
        terms = zip(lists, lists.dropFirst()).flatMap { before, list in
            let paragraph = before.components(separatedBy: "<p").last ?? ""
            let isScope = paragraph.contains(#/^ class="Pp"><code class="Cm">[^.]*:</p>\s*$/#)
            let verbs = isScope ? Self.words(in: paragraph[...]).map(\.text) : []
            return list.matches(of: #/(?s)<dt.*?</dt>/#).map { match in
                let words = Self.words(in: match.output)
                return Entry(
                    verbs: verbs, options: words.filter { $0.kind == "Fl" }.map(\.text),
                    words: words.filter { $0.kind == "Cm" }.map(\.text))
            }
        }
    }

    private static func words(in html: Substring) -> [(kind: Substring, text: String)] {
        html.matches(of: #/<(?:code|var) class="(Fl|Cm|Ar)"[^>]*>([^<]*)</#).map {
            ($0.1, $0.2.split(whereSeparator: \.isWhitespace).joined(separator: " "))
        }
    }
}
