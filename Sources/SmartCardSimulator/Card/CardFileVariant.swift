/// Parameters of a card file, and files that set those of another.
extension CardFileReader {
    static func read(_ file: Statement) throws(CardFileError) -> CardFile {
        guard file.keyword == "variant" else { return try card(try setting([:], in: file)) }
        let usage = "variant NAME \"what it is\" { PARAMETER VALUE, a line each }"
        try file.arguments(count: 1...2, usage)
        let name = file.arguments[0].text
        guard let builtIn = VirtualCards.all.first(where: { $0.name == name }) else {
            let names = VirtualCards.all.map(\.name).joined(separator: ", ")
            throw file.error("there is no card “\(name)”, only \(names)")
        }
        let base = try CardFileSyntax.parse(Array(builtIn.text.utf8))
        guard base.keyword == "card" else { throw file.error("“\(name)” is itself a variant") }
        let names = try parameters(of: base).keys
        var values: [String: [CardFileSyntax.Word]] = [:]
        for statement in try file.section() {
            try statement.withoutBlock()
            guard names.contains(statement.keyword) else {
                let all = names.isEmpty ? "none" : "only " + names.sorted().joined(separator: ", ")
                throw statement.error("“\(name)” has no parameter “\(statement.keyword)”, \(all)")
            }
            guard values[statement.keyword] == nil else {
                throw statement.error("“\(statement.keyword)” occurs twice")
            }
            values[statement.keyword] = statement.arguments
        }
        do throws(CardFileError) {
            return try card(try setting(values, in: base), summary: file.arguments.dropFirst().first?.text)
        } catch {
            throw file.error("so set, “\(name)” has a mistake in line \(error.line): \(error.reason)")
        }
    }

    /// The parameters of a card and their values, unless a variant has others.
    private static func parameters(
        of card: Statement
    ) throws(CardFileError) -> [String: [CardFileSyntax.Word]] {
        var parameters: [String: [CardFileSyntax.Word]] = [:]
        for statement in card.block ?? [] where statement.keyword == "parameter" {
            try statement.withoutBlock()
            guard let name = statement.arguments.first, !name.isQuoted, parameters[name.text] == nil else {
                throw statement.error("“parameter” is written: parameter NAME VALUE, each name once")
            }
            let value = Array(statement.arguments.dropFirst())
            guard !value.contains(where: isParameter) else {
                throw statement.error("the value of a parameter names no parameter")
            }
            parameters[name.text] = value
        }
        return parameters
    }

    /// The card with the values in the place of the parameters.
    private static func setting(
        _ values: [String: [CardFileSyntax.Word]], in card: Statement
    ) throws(CardFileError) -> Statement {
        let parameters = try parameters(of: card).merging(values) { $1 }
        var card = card
        card.block = card.block?.filter { $0.keyword != "parameter" }
        var room = CardFile.maximumSize
        return try replacing(parameters, in: card, &room)
    }

    /// - Parameter room: the number of bytes of text that the values may still add.
    private static func replacing(
        _ parameters: [String: [CardFileSyntax.Word]], in statement: Statement, _ room: inout Int
    ) throws(CardFileError) -> Statement {
        var out = statement
        out.arguments = []
        for word in statement.arguments {
            guard isParameter(word) else {
                out.arguments.append(word)
                continue
            }
            guard let value = parameters[String(word.text.dropFirst())] else {
                throw statement.error("the card has no parameter “\(word.text.dropFirst())”")
            }
            room -= value.reduce(0) { $0 + $1.text.utf8.count + 1 }
            guard room >= 0 else {
                throw statement.error("the parameters add more than \(CardFile.maximumSize) bytes")
            }
            out.arguments += value
        }
        guard let block = statement.block else { return out }
        var replaced: [Statement] = []
        for inner in block { replaced.append(try replacing(parameters, in: inner, &room)) }
        out.block = replaced
        return out
    }

    /// `$name`
    private static func isParameter(_ word: CardFileSyntax.Word) -> Bool { !word.isQuoted && word.text.hasPrefix("$") }
}
