/// The grammar of a card file, without its meaning: statements, one a line, some with a block of statements.
///
///     file      = statement
///     statement = word+ [ "{" newline statement* "}" ] newline
///     word      = bare | '"' text '"'
///     comment   = "#" to the end of the line
enum CardFileSyntax {
    /// The maximum nesting depth of blocks.
    static let maximumDepth = 16

    struct Word: Hashable, Sendable {
        var text: String
        var isQuoted = false
    }

    struct Statement: Sendable {
        var line: Int
        /// The first word.
        var keyword: String
        /// The words after it.
        var arguments: [Word]
        /// The statements between the braces; nil without braces.
        var block: [Statement]?
    }

    /// The one statement that a file is.
    static func parse(_ bytes: [UInt8]) throws(CardFileError) -> Statement {
        guard bytes.count <= CardFile.maximumSize else {
            throw CardFileError(line: 1, reason: "the file has more than \(CardFile.maximumSize) bytes")
        }
        // The blocks that are open, outermost first; the file itself is the first and never closes.
        var open: [(head: Statement?, statements: [Statement])] = [(nil, [])]
        var number = 0
        for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            number += 1
            let words = try words(of: line, number: number)
            guard let first = words.first else { continue }
            let opens = words.last == .open
            let content = opens ? words.dropLast() : words[...]

            if first == .close {
                guard words.count == 1 else {
                    throw CardFileError(line: number, reason: "“}” stands on a line of its own")
                }
                guard open.count > 1, let closed = open.popLast(), var head = closed.head else {
                    throw CardFileError(line: number, reason: "“}” without “{”")
                }
                head.block = closed.statements
                open[open.count - 1].statements.append(head)
                continue
            }
            var arguments: [Word] = []
            for token in content {
                guard case .word(let word) = token else {
                    throw CardFileError(line: number, reason: "a brace in the middle of a line")
                }
                arguments.append(word)
            }
            guard !arguments.isEmpty else {
                throw CardFileError(line: number, reason: "“{” without a word before it")
            }
            let keyword = arguments.removeFirst()
            guard !keyword.isQuoted else {
                throw CardFileError(line: number, reason: "a line begins with a quotation mark")
            }
            let statement = Statement(line: number, keyword: keyword.text, arguments: arguments, block: nil)
            if opens {
                guard open.count <= maximumDepth else {
                    throw CardFileError(line: number, reason: "blocks nested more than \(maximumDepth) deep")
                }
                open.append((statement, []))
            } else {
                open[open.count - 1].statements.append(statement)
            }
        }
        if open.count > 1, let head = open.last?.head {
            throw CardFileError(line: number, reason: "“}” is missing for the “{” of line \(head.line)")
        }
        guard let card = open.first?.statements.first else {
            throw CardFileError(line: number, reason: "the file describes no card")
        }
        if let second = open.first?.statements.dropFirst().first {
            throw CardFileError(line: second.line, reason: "a file describes one card, and that ended before this line")
        }
        return card
    }

    private enum Token: Hashable {
        case word(Word)
        case open, close
    }

    private static func words(of line: ArraySlice<UInt8>, number: Int) throws(CardFileError) -> [Token] {
        var tokens: [Token] = []
        var word: [UInt8] = []
        var isQuoted = false
        var isEscaped = false
        func end() {
            guard isQuoted || !word.isEmpty else { return }
            tokens.append(.word(Word(text: String(decoding: word, as: UTF8.self), isQuoted: isQuoted)))
            word = []
            isQuoted = false
        }
        scan: for byte in line {
            switch byte {
            case _ where isEscaped:
                guard byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else {
                    throw CardFileError(
                        line: number, reason: "only a quotation mark or a backslash follows a backslash")
                }
                word.append(byte)
                isEscaped = false
            case UInt8(ascii: "\\") where isQuoted: isEscaped = true
            case UInt8(ascii: "\"") where isQuoted: end()
            case 0x20...0x7E where isQuoted: word.append(byte)
            case UInt8(ascii: "#") where !isQuoted: break scan
            case 0x20: end()
            case 0x09 where !isQuoted, 0x0D where !isQuoted: end()
            case UInt8(ascii: "{"):
                end()
                tokens.append(.open)
            case UInt8(ascii: "}"):
                end()
                tokens.append(.close)
            case UInt8(ascii: "\""):
                end()
                isQuoted = true
            case 0x21...0x7E: word.append(byte)
            default: throw CardFileError(line: number, reason: "only comments hold anything but printable ASCII")
            }
        }
        guard !isQuoted else { throw CardFileError(line: number, reason: "the quotation does not end") }
        end()
        return tokens
    }
}
