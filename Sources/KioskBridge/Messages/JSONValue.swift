import CardEncryption

/// A JSON value (RFC 8259) in the data of a message.
///
/// A whole number beyond 2^53 is an ``integer(_:)``, so that it keeps all digits; each other number is a ``number(_:)``.
/// A page cannot compute with the former: send those as strings.
public enum JSONValue: Hashable, Sendable {
    case null
    case bool(Bool)
    /// A number that a page represents exactly, or a fraction.
    case number(Double)
    /// A whole number beyond 2^53 in amount.
    case integer(Int64)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(integerLiteral value: Int64) { self.init(value) }
    public init(floatLiteral value: Double) { self = .number(value) }
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    public init(nilLiteral: ()) { self = .null }

    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(elements) { _, last in last })
    }

    /// A whole number: ``number(_:)`` as far as a page represents it, else ``integer(_:)``.
    public init(_ value: Int64) {
        self = Self.wholeNumbers.contains(value) ? .number(Double(value)) : .integer(value)
    }

    /// The whole numbers that a page represents exactly.
    static let wholeNumbers: ClosedRange<Int64> = -(1 << 53)...(1 << 53)

    /// The members of an object; nil for other values.
    public var members: [String: JSONValue]? { if case .object(let members) = self { members } else { nil } }
    /// The elements of an array; nil for other values.
    public var elements: [JSONValue]? { if case .array(let elements) = self { elements } else { nil } }
    /// The characters of a string; nil for other values.
    public var text: String? { if case .string(let text) = self { text } else { nil } }
    /// The value of `true` and `false`; nil for other values.
    public var flag: Bool? { if case .bool(let flag) = self { flag } else { nil } }
    /// A whole number; nil for fractions and other values.
    public var wholeNumber: Int64? {
        switch self {
        case .integer(let number): number
        case .number(let number): Int64(exactly: number)
        default: nil
        }
    }
}

extension JSONValue {
    /// A reason why a JSON text is no value.
    struct Unsuitable: Error, Hashable {
        let due: String
    }

    /// - Throws: ``Unsuitable`` for numbers that neither `Double` nor `Int64` can represent, and for members whose names
    ///   differ in bytes alone.
    init(_ json: JSON) throws(Unsuitable) {
        switch json {
        case .null: self = .null
        case .boolean(let value): self = .bool(value)
        case .number(let text): self = try Self.number(text)
        case .string(let text): self = .string(text.string)
        case .array(let items):
            var elements: [JSONValue] = []
            for item in items { elements.append(try JSONValue(item)) }
            self = .array(elements)
        case .object(let members):
            var values: [String: JSONValue] = [:]
            for (name, member) in members {
                guard values.updateValue(try JSONValue(member), forKey: name.string) == nil else {
                    throw Unsuitable(due: "a name that was not there before")
                }
            }
            self = .object(values)
        }
    }

    private static func number(_ text: String) throws(Unsuitable) -> JSONValue {
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == UInt8(ascii: "-") }), text != "-0" else {
            guard let number = Double(text), number.isFinite else { throw Unsuitable(due: "a number of 64 bits") }
            return .number(number)
        }
        guard let whole = Int64(text) else { throw Unsuitable(due: "a number of 64 bits") }
        return JSONValue(whole)
    }

    /// The value as the house's JSON.  JSON has no infinity and no NaN: they become null, as in a page.
    var json: JSON {
        switch self {
        case .null: .null
        case .bool(let value): .boolean(value)
        case .integer(let number): .number(String(number))
        case .number(let number) where !number.isFinite: .null
        case .number(let number):
            .number(Int64(exactly: number).flatMap { Self.wholeNumbers.contains($0) ? String($0) : nil } ?? "\(number)")
        case .string(let text): .string(JSON.Text(text))
        case .array(let elements): .array(elements.map(\.json))
        case .object(let members):
            .object(Dictionary(members.map { (JSON.Text($0.key), $0.value.json) }) { _, last in last })
        }
    }
}

extension JSONValue: CustomStringConvertible {
    /// The value as JSON text, members in the order of their names.
    public var description: String { json.written }

    /// The value with every string and number masked: for logs and for people who look at traffic.
    var masked: JSONValue {
        switch self {
        case .null, .bool: self
        case .number, .integer, .string: .string("•••")
        case .array(let elements): .array(elements.map(\.masked))
        case .object(let members): .object(members.mapValues(\.masked))
        }
    }
}
