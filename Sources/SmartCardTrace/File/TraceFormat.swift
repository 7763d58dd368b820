import SmartCard

/// The text of a trace: a first line, then one event a line.  The grammar is in <doc:TraceFileFormat>.
public enum TraceFormat {
    /// The first line of every trace.
    public static let header = "apdu-trace 1"
    /// The most bytes a line may have, line feed not counted: two digits for each byte of the longest APDU, and room to
    /// spare.
    public static let maximumLineLength = 262_144

    /// Returns true if `word` can be the key of ``TraceEvent/What/meta(key:value:)``: one to 64 lowercase letters,
    /// digits, periods and hyphens.
    public static func isKey(_ word: String) -> Bool {
        (1...64).contains(word.utf8.count)
            && word.utf8.allSatisfy { byte in
                (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || byte == 0x2D || byte == 0x2E
            }
    }
}

// MARK: Writing

extension TraceEvent {
    /// Appends the line of this event, line feed included.
    func append(to line: inout [UInt8]) {
        line.append(time: time)
        line.append(0x20)
        switch what {
        case .reader(let identity):
            line.append(words: "reader", identity.backend.rawValue)
            line.append(quoted: identity.name)
            if let vendor = identity.vendor {
                line.append(text: " vendor")
                line.append(quoted: vendor)
            }
            if let serialNumber = identity.serialNumber {
                line.append(text: " serial")
                line.append(quoted: serialNumber)
            }
        case .slot(.empty): line.append(words: "slot", "empty")
        case .slot(.muteCard): line.append(words: "slot", "mute")
        case .slot(.unknown): line.append(words: "slot", "unknown")
        case .slot(.card(let atr, let exclusivelyHeld)):
            line.append(words: "slot", "card")
            line.append(bytes: atr.bytes)
            if exclusivelyHeld { line.append(text: " held") }
        case .connected(let atr, let transmissionProtocol):
            line.append(words: "connect", transmissionProtocol.rawValue)
            line.append(bytes: atr.bytes)
        case .reset: line.append(text: "reset")
        case .disconnected(let disposition): line.append(words: "disconnect", disposition.word)
        case .field(let isOn): line.append(words: "field", isOn ? "on" : "off")
        case .sent(let layer, let bytes):
            line.append(words: ">", layer.rawValue)
            line.append(bytes: bytes)
        case .received(let layer, let bytes):
            line.append(words: "<", layer.rawValue)
            line.append(bytes: bytes)
        case .failed(let operation, let failure):
            line.append(words: "!", operation.word, failure.kind?.rawValue ?? "cancelled")
            if let detail = failure.detail { line.append(quoted: detail) }
        case .note(let text):
            line.append(text: "note")
            line.append(quoted: text)
        case .meta(let key, let value):
            line.append(words: "meta", key)
            line.append(quoted: value)
        case .redacted(let items):
            line.append(text: "redacted")
            for item in items.map(\.rawValue).sorted() {
                line.append(text: " ")
                line.append(text: item)
            }
        }
        line.append(0x0A)
    }
}

extension [UInt8] {
    fileprivate mutating func append(text: String) { self += text.utf8 }

    fileprivate mutating func append(words: String...) {
        for (index, word) in words.enumerated() {
            if index > 0 { append(0x20) }
            append(text: word)
        }
    }

    /// A space, then the digits of `bytes`, or `-` for no bytes.
    fileprivate mutating func append(bytes: [UInt8]) {
        append(0x20)
        append(text: bytes.isEmpty ? "-" : bytes.hex)
    }

    /// Seconds with nine decimals.  A time before zero is written as zero, one that has no place as the last that has.
    fileprivate mutating func append(time: Duration) {
        let (seconds, attoseconds) = Swift.min(Swift.max(time, .zero), TraceFormat.maximumTime).components
        append(text: String(seconds))
        append(UInt8(ascii: "."))
        let decimals = String(attoseconds / 1_000_000_000)
        self += repeatElement(UInt8(ascii: "0"), count: 9 - decimals.utf8.count)
        append(text: decimals)
    }

    /// A space, then `text` in quotation marks.
    fileprivate mutating func append(quoted text: String) {
        append(text: " \"")
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\":
                append(UInt8(ascii: "\\"))
                append(UInt8(truncatingIfNeeded: scalar.value))
            case _ where scalar.needsEscape:
                append(text: "\\u{\(String(scalar.value, radix: 16, uppercase: true))}")
            default: append(text: String(scalar))
            }
        }
        append(UInt8(ascii: "\""))
    }
}

extension Unicode.Scalar {
    /// Control characters, and those that end a line or turn its direction where it is shown.
    fileprivate var needsEscape: Bool {
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: true
        default: false
        }
    }
}

extension TraceFormat {
    /// The last time that can be written: ten digits of seconds, over three hundred years.
    static let maximumTime = Duration.seconds(9_999_999_999) + .nanoseconds(999_999_999)
}

extension CardDisposition {
    fileprivate var word: String {
        switch self {
        case .leave: "leave"
        case .reset: "reset"
        case .powerOff: "power-off"
        }
    }

    fileprivate init?(word: String) {
        guard let found = [Self.leave, .reset, .powerOff].first(where: { $0.word == word }) else { return nil }
        self = found
    }
}

extension TraceEvent.Operation {
    fileprivate var word: String {
        switch self {
        case .connect: "connect"
        case .reset: "reset"
        case .slot: "slot"
        case .exchange(let layer): layer.rawValue
        }
    }

    fileprivate init?(word: String) {
        switch word {
        case "connect": self = .connect
        case "reset": self = .reset
        case "slot": self = .slot
        default:
            guard let layer = TraceEvent.Layer(rawValue: word) else { return nil }
            self = .exchange(layer)
        }
    }
}

// MARK: Reading

extension TraceEvent {
    /// Reads the line of an event, without line feed.
    ///
    /// - Throws: ``TraceError/Reason/malformed(_:)``, without the number of the line.
    init(line: ArraySlice<UInt8>) throws(TraceError) {
        var fields = Fields(rest: line)
        let time = try fields.time()
        let what: What
        switch try fields.word("an event") {
        case ">": what = .sent(try fields.layer(), try fields.bytes())
        case "<": what = .received(try fields.layer(), try fields.bytes())
        case "!":
            let operation = try fields.choice("apdu, another layer, connect, reset or slot", Operation.init(word:))
            let kind: CardError.Kind? = try fields.choice("a kind of error") { word in
                word == "cancelled" ? .some(nil) : CardError.Kind(rawValue: word).map { $0 }
            }
            what = .failed(operation, Failure(kind, fields.isAtEnd ? nil : try fields.quoted()))
        case "reader":
            let backend = try fields.choice("pcsc, usb, replay or virtual", ReaderIdentity.Backend.init(rawValue:))
            var identity = ReaderIdentity(name: try fields.quoted(), backend: backend)
            if fields.take(" vendor") { identity.vendor = try fields.quoted() }
            if fields.take(" serial") { identity.serialNumber = try fields.quoted() }
            what = .reader(identity)
        case "slot":
            switch try fields.word("empty, card, mute or unknown") {
            case "empty": what = .slot(.empty)
            case "mute": what = .slot(.muteCard)
            case "unknown": what = .slot(.unknown)
            case "card": what = .slot(.card(ATR(try fields.bytes()), exclusivelyHeld: fields.take(" held")))
            default: throw TraceError(.malformed("empty, card, mute or unknown was due"))
            }
        case "connect":
            let transmissionProtocol = try fields.choice("T=0, T=1 or raw", TransmissionProtocol.init(rawValue:))
            what = .connected(ATR(try fields.bytes()), transmissionProtocol)
        case "reset": what = .reset
        case "disconnect":
            what = .disconnected(try fields.choice("leave, reset or power-off", CardDisposition.init(word:)))
        case "field":
            what = .field(isOn: try fields.choice("on or off") { ["on": true, "off": false][$0] })
        case "note": what = .note(try fields.quoted())
        case "meta":
            let key = try fields.choice("a key") { TraceFormat.isKey($0) ? $0 : nil }
            what = .meta(key: key, value: try fields.quoted())
        case "redacted":
            var items: Set<RedactedItem> = []
            while !fields.isAtEnd {
                items.insert(try fields.choice("what was redacted", RedactedItem.init(rawValue:)))
            }
            what = .redacted(items)
        case let word: throw TraceError(.malformed("no event is called \(Fields.shown(word))"))
        }
        guard fields.isAtEnd else { throw TraceError(.malformed("more than the event has")) }
        self.init(at: time, what)
    }
}

/// The fields of a line, taken from the front.
private struct Fields {
    var rest: ArraySlice<UInt8>

    var isAtEnd: Bool { rest.isEmpty }

    /// Returns a form of the text that was read that is safe in an error: short, without control characters for a
    /// terminal, and without digits, which may belong to an account number.
    static func shown(_ word: String) -> String {
        let shown = word.prefix(20).filter { $0.isASCII && $0 >= " " }.map { $0.isNumber ? "*" : $0 }
        return "\"\(String(shown))\""
    }

    mutating func time() throws(TraceError) -> Duration {
        let text = rest.prefix { $0 != 0x20 }
        let parts = text.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, (1...10).contains(parts[0].count), parts[1].count == 9,
            let seconds = Self.number(parts[0]), let nanoseconds = Self.number(parts[1])
        else { throw TraceError(.malformed("a time of seconds with nine decimals was due")) }
        rest = rest[text.endIndex...]
        return .seconds(seconds) + .nanoseconds(nanoseconds)
    }

    /// Up to ten decimal digits.
    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        digits.reduce(0) { number, digit in
            number.flatMap { (0x30...0x39).contains(digit) ? $0 * 10 + Int64(digit - 0x30) : nil }
        }
    }

    /// Takes exactly one space and the word after it.
    mutating func word(_ due: String) throws(TraceError) -> String {
        guard rest.first == 0x20 else { throw TraceError(.malformed("\(due) was due")) }
        let word = rest.dropFirst().prefix { $0 != 0x20 }
        guard !word.isEmpty, word.count <= 64 else { throw TraceError(.malformed("\(due) was due")) }
        rest = rest[word.endIndex...]
        return String(decoding: word, as: UTF8.self)
    }

    mutating func choice<Value>(_ due: String, _ value: (String) -> Value?) throws(TraceError) -> Value {
        let word = try word(due)
        guard let value = value(word) else { throw TraceError(.malformed("\(due) was due, not \(Self.shown(word))")) }
        return value
    }

    mutating func layer() throws(TraceError) -> TraceEvent.Layer {
        try choice("apdu, escape or another layer", TraceEvent.Layer.init(rawValue:))
    }

    /// A space, then pairs of upper-case digits, or `-` for none.
    mutating func bytes() throws(TraceError) -> [UInt8] {
        guard rest.first == 0x20 else { throw TraceError(.malformed("bytes were due")) }
        let digits = rest.dropFirst().prefix { $0 != 0x20 }
        rest = rest[digits.endIndex...]
        if digits.elementsEqual([UInt8(ascii: "-")]) { return [] }
        guard !digits.isEmpty, digits.count % 2 == 0 else {
            throw TraceError(.malformed("bytes of two digits each were due"))
        }
        var isValid = true
        let bytes = digits.withUnsafeBufferPointer { digits in
            [UInt8](unsafeUninitializedCapacity: digits.count / 2) { bytes, count in
                for index in 0..<digits.count / 2 {
                    let (high, low) = (Self.digit(digits[2 * index]), Self.digit(digits[2 * index + 1]))
                    if high > 15 || low > 15 { isValid = false }
                    bytes[index] = high << 4 | low & 15
                }
                count = digits.count / 2
            }
        }
        guard isValid else { throw TraceError(.malformed("bytes are the digits 0 to 9 and A to F")) }
        return bytes
    }

    /// The value of an upper-case hexadecimal digit; FF for anything else.
    private static func digit(_ character: UInt8) -> UInt8 {
        switch character {
        case 0x30...0x39: character - 0x30
        case 0x41...0x46: character - 0x37
        default: 0xFF
        }
    }

    mutating func take(_ text: StaticString) -> Bool {
        let matches = text.withUTF8Buffer { rest.starts(with: $0) }
        if matches { rest = rest.dropFirst(text.utf8CodeUnitCount) }
        return matches
    }

    mutating func quoted() throws(TraceError) -> String {
        guard take(" \"") else { throw TraceError(.malformed("text in quotation marks was due")) }
        var text: [UInt8] = []
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\""):
                guard let text = String(validating: text, as: UTF8.self) else {
                    throw TraceError(.malformed("the text is not UTF-8"))
                }
                return text
            case UInt8(ascii: "\\"): text += try escape()
            default:
                guard byte >= 0x20, byte != 0x7F else {
                    throw TraceError(.malformed("a control character in a text"))
                }
                text.append(byte)
            }
        }
        throw TraceError(.malformed("the text has no end"))
    }

    /// Reads the characters after a backslash: a quotation mark, a backslash, or `u{` one to six digits `}`.
    private mutating func escape() throws(TraceError) -> [UInt8] {
        let malformed = TraceError(.malformed("after \\ one of \\ \" u{...} was due"))
        guard let byte = rest.popFirst() else { throw malformed }
        if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { return [byte] }
        guard byte == UInt8(ascii: "u"), take("{") else { throw malformed }
        let digits = rest.prefix { $0 != UInt8(ascii: "}") }.prefix(7)
        rest = rest.dropFirst(digits.count)
        let value = digits.reduce(UInt32(0)) { $0 << 4 | UInt32(Self.digit($1)) }
        guard (1...6).contains(digits.count), digits.allSatisfy({ Self.digit($0) <= 15 }), take("}"),
            let scalar = Unicode.Scalar(value)
        else { throw malformed }
        return Array(String(scalar).utf8)
    }
}
