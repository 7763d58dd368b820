/// A JSON text (RFC 8259) by JOSE's strict rules: no object names a member twice (RFC 7515, section 4).
package indirect enum JSON: Hashable, Sendable {
    case null
    case boolean(Bool)
    /// The number in its original notation.
    case number(String)
    case string(Text)
    case array([JSON])
    case object([Text: JSON])

    /// A string that is compared byte for byte, as JOSE requires (RFC 7515, section 5.3).  Swift's own comparison uses
    /// Unicode equivalence: U+212A, the kelvin sign, equals K.
    package struct Text: Hashable, Sendable, ExpressibleByStringLiteral {
        package let string: String

        package init(_ string: String) { self.string = string }
        package init(stringLiteral string: String) { self.string = string }

        package static func == (a: Text, b: Text) -> Bool { a.string.utf8.elementsEqual(b.string.utf8) }
        package func hash(into hasher: inout Hasher) { for byte in string.utf8 { hasher.combine(byte) } }
    }

    /// The position of an error in bytes, and the expected token.
    package struct Fault: Error, Hashable {
        package let offset: Int
        package let due: String
    }

    /// Parses a text.
    ///
    /// - Parameter depth: the maximum nesting depth of objects and arrays.
    package init(_ text: some Collection<UInt8>, depth: Int = 8) throws(Fault) {
        var parser = Parser(text: Array(text), maximumDepth: depth)
        self = try parser.document()
    }

    /// Returns the members of a text that is an object.
    package static func object(_ text: some Collection<UInt8>) throws(Fault) -> [Text: JSON] {
        guard case .object(let members) = try JSON(text) else { throw Fault(offset: 0, due: "an object") }
        return members
    }

    package var text: Text? { if case .string(let text) = self { text } else { nil } }
    package var object: [Text: JSON]? { if case .object(let members) = self { members } else { nil } }
    package var array: [JSON]? { if case .array(let items) = self { items } else { nil } }

    /// The value as JSON text: members in the order of their names' bytes, no spaces.
    package var written: String {
        switch self {
        case .null: "null"
        case .boolean(let value): value ? "true" : "false"
        case .number(let text): text
        case .string(let text): Self.quoted(text.string)
        case .array(let items): "[" + items.map(\.written).joined(separator: ",") + "]"
        case .object(let members):
            "{"
                + members.sorted { $0.key.string.utf8.lexicographicallyPrecedes($1.key.string.utf8) }
                .map { Self.quoted($0.key.string) + ":" + $0.value.written }.joined(separator: ",") + "}"
        }
    }

    /// Returns a string with its quotation marks as JSON text; all control characters are escaped.
    static func quoted(_ text: String) -> String {
        var out = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": out += "\\\""
            case "\\": out += "\\\\"
            case "\0"..."\u{1F}", "\u{7F}"..."\u{9F}":
                let code = String(scalar.value, radix: 16)
                out += "\\u" + String(repeating: "0", count: 4 - code.count) + code
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out + "\""
    }

    /// Returns the beginning of a foreign text for a person, without control characters.
    package static func excerpt(_ text: String) -> String {
        let beginning = text.unicodeScalars.prefix(64)
        return quoted(String(String.UnicodeScalarView(beginning)))
            + (beginning.count < text.unicodeScalars.count ? "…" : "")
    }
}

private struct Parser {
    let text: [UInt8]
    let maximumDepth: Int
    var at = 0

    private func fault(_ due: String) -> JSON.Fault { JSON.Fault(offset: at, due: due) }
    private var next: UInt8? { at < text.count ? text[at] : nil }

    mutating func document() throws(JSON.Fault) -> JSON {
        let value = try value(depth: 0)
        space()
        guard at == text.count else { throw fault("the end") }
        return value
    }

    private mutating func space() {
        while let byte = next, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { at += 1 }
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard next == UInt8(ascii: character) else { return false }
        at += 1
        return true
    }

    private mutating func word(_ word: StaticString, _ value: JSON) throws(JSON.Fault) -> JSON {
        let letters = Array(word.description.utf8)
        guard text[at...].starts(with: letters) else { throw fault("a value") }
        at += letters.count
        return value
    }

    private mutating func value(depth: Int) throws(JSON.Fault) -> JSON {
        space()
        switch next.map({ Unicode.Scalar($0) }) {
        case "{": return .object(try object(depth: depth))
        case "[": return .array(try array(depth: depth))
        case "\"": return .string(try string())
        case "t": return try word("true", .boolean(true))
        case "f": return try word("false", .boolean(false))
        case "n": return try word("null", .null)
        case .some("-"), .some("0"..."9"): return .number(try number())
        default: throw fault("a value")
        }
    }

    private mutating func object(depth: Int) throws(JSON.Fault) -> [JSON.Text: JSON] {
        try open(depth)
        var members: [JSON.Text: JSON] = [:]
        space()
        if take("}") { return members }
        repeat {
            space()
            let start = at
            guard next == UInt8(ascii: "\"") else { throw fault("a name") }
            let name = try string()
            guard members[name] == nil else { throw JSON.Fault(offset: start, due: "a name that was not there before") }
            space()
            guard take(":") else { throw fault(":") }
            members[name] = try value(depth: depth + 1)
            space()
        } while take(",")
        guard take("}") else { throw fault("}") }
        return members
    }

    /// Takes the bracket of an object or an array.
    private mutating func open(_ depth: Int) throws(JSON.Fault) {
        guard depth < maximumDepth else { throw fault("at most \(maximumDepth) levels") }
        at += 1
    }

    private mutating func array(depth: Int) throws(JSON.Fault) -> [JSON] {
        try open(depth)
        var items: [JSON] = []
        space()
        if take("]") { return items }
        repeat {
            items.append(try value(depth: depth + 1))
            space()
        } while take(",")
        guard take("]") else { throw fault("]") }
        return items
    }

    private mutating func digits() throws(JSON.Fault) {
        let start = at
        while let byte = next, (0x30...0x39).contains(byte) { at += 1 }
        guard at > start else { throw fault("a digit") }
    }

    private mutating func number() throws(JSON.Fault) -> String {
        let start = at
        _ = take("-")
        if !take("0") { try digits() }
        if take(".") { try digits() }
        if take("e") || take("E") {
            if !take("+") { _ = take("-") }
            try digits()
        }
        return String(decoding: text[start..<at], as: UTF8.self)
    }

    private mutating func string() throws(JSON.Fault) -> JSON.Text {
        let start = at
        at += 1
        var out: [UInt8] = []
        while let byte = next, byte != UInt8(ascii: "\"") {
            guard byte >= 0x20 else { throw fault("no control character") }
            at += 1
            if byte == UInt8(ascii: "\\") { try escape(into: &out) } else { out.append(byte) }
        }
        guard take("\"") else { throw fault("\"") }
        guard let string = String(validating: out, as: UTF8.self) else {
            throw JSON.Fault(offset: start, due: "UTF-8")
        }
        return JSON.Text(string)
    }

    private mutating func escape(into out: inout [UInt8]) throws(JSON.Fault) {
        guard let byte = next else { throw fault("an escape") }
        at += 1
        switch Unicode.Scalar(byte) {
        case "\"", "\\", "/": out.append(byte)
        case "b": out.append(0x08)
        case "f": out.append(0x0C)
        case "n": out.append(0x0A)
        case "r": out.append(0x0D)
        case "t": out.append(0x09)
        case "u":
            var code = try codeUnit()
            if (0xD800...0xDBFF).contains(code) {
                guard take("\\"), take("u") else { throw fault("a low surrogate") }
                let low = try codeUnit()
                guard (0xDC00...0xDFFF).contains(low) else { throw fault("a low surrogate") }
                code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
            }
            guard let scalar = Unicode.Scalar(code) else { throw fault("a character") }
            out += Array(String(Character(scalar)).utf8)
        default:
            at -= 1
            throw fault("an escape")
        }
    }

    private mutating func codeUnit() throws(JSON.Fault) -> UInt32 {
        var code: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = next, let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80 else {
                throw fault("four hexadecimal digits")
            }
            code = code << 4 | UInt32(digit)
            at += 1
        }
        return code
    }
}
