import CardEncryption
import Foundation

/// A JSON object from a payment service, read strictly: each member has its type and a bounded length, and texts have no
/// control characters.  Members without a meaning here are ignored.
struct Answer: Sendable {
    private let members: [JSON.Text: JSON]

    /// The reason for which an answer is not accepted; names members and no values.
    struct Malformed: Error, CustomStringConvertible {
        let description: String
    }

    init(_ text: some Collection<UInt8>) throws(Malformed) {
        do {
            members = try JSON.object(text)
        } catch {
            throw Malformed(description: "byte \(error.offset) should be \(error.due)")
        }
    }

    private init(_ members: [JSON.Text: JSON]) { self.members = members }

    private static func malformed(_ name: String, _ due: String) -> Malformed {
        Malformed(description: "“\(name)” should be \(due)")
    }

    private func value(_ name: String) -> JSON? {
        if case .null? = members[JSON.Text(name)] { return nil }
        return members[JSON.Text(name)]
    }

    /// True if there is such a member, and it is not null.
    func has(_ name: String) -> Bool { value(name) != nil }

    /// True if there is such a member, and it is null.
    func isNull(_ name: String) -> Bool { members[JSON.Text(name)] == .null }

    // MARK: Objects

    func object(_ name: String) throws(Malformed) -> Answer {
        guard let object = value(name)?.object else { throw Self.malformed(name, "an object") }
        return Answer(object)
    }

    /// The member as JSON text.
    func written(_ name: String) throws(Malformed) -> String {
        guard let value = value(name), value.object != nil else { throw Self.malformed(name, "an object") }
        return value.written
    }

    func objects(_ name: String, atMost count: Int) throws(Malformed) -> [Answer] {
        guard let items = value(name)?.array, items.count <= count, case let objects = items.compactMap(\.object),
            objects.count == items.count
        else { throw Self.malformed(name, "a list of at most \(count) objects") }
        return objects.map(Answer.init)
    }

    /// The names of the members.
    var names: [String] { members.keys.map(\.string) }

    // MARK: Texts

    func text(_ name: String, _ lengths: ClosedRange<Int>) throws(Malformed) -> String {
        guard let text = value(name)?.text?.string, lengths.contains(text.utf8.count),
            text.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
        else { throw Self.malformed(name, "a text of \(lengths.lowerBound) to \(lengths.upperBound) bytes") }
        return text
    }

    /// An identifier: see ``isName(_:)``.
    func name(_ name: String) throws(Malformed) -> String {
        let text = try text(name, 1...128)
        guard Self.isName(text) else { throw Self.malformed(name, "an identifier") }
        return text
    }

    func names(_ name: String, atMost count: Int = 32) throws(Malformed) -> [String] {
        guard let items = value(name)?.array, items.count <= count,
            case let texts = items.compactMap(\.text?.string), texts.count == items.count,
            texts.allSatisfy(Self.isName), Set(texts).count == texts.count
        else { throw Self.malformed(name, "a list of at most \(count) identifiers, none of them twice") }
        return texts
    }

    /// True for 1 to 128 characters of which a path of a URL may consist as they are (RFC 3986, 2.3), and that name no
    /// other folder.
    static func isName(_ text: String) -> Bool {
        text.wholeMatch(of: #/[A-Za-z0-9._~-]{1,128}/#) != nil && !text.allSatisfy { $0 == "." }
    }

    // MARK: Values

    /// An amount in the major unit, as `12.34`: not negative, at most 12 digits and 4 decimals.
    func amount(_ name: String) throws(Malformed) -> Decimal {
        guard let text = value(name)?.text?.string, text.wholeMatch(of: #/[0-9]{1,12}(\.[0-9]{1,4})?/#) != nil,
            let amount = Decimal(string: text, locale: Locale(identifier: "en_US_POSIX"))
        else { throw Self.malformed(name, "an amount") }
        return amount
    }

    /// The ISO 4217 code of a currency.
    func currency(_ name: String) throws(Malformed) -> String { try letters(name, 3) }

    /// The ISO 3166-1 alpha-2 code of a country.
    func country(_ name: String) throws(Malformed) -> String { try letters(name, 2) }

    private func letters(_ name: String, _ count: Int) throws(Malformed) -> String {
        guard let text = value(name)?.text?.string, text.utf8.count == count,
            text.utf8.allSatisfy({ (0x41...0x5A).contains($0) })
        else { throw Self.malformed(name, "\(count) capital letters") }
        return text
    }

    /// A masked number or code, of which at most ten characters are shown (PCI SSC, FAQ 1091: the first six and the last
    /// four).
    func masked(_ name: String) throws(Malformed) -> String {
        let text = try text(name, 1...64)
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }), text.count(where: { $0 != "*" }) <= 10 else {
            throw Self.malformed(name, "masked")
        }
        return text
    }

    /// The address of a page: HTTPS, or on this machine.
    func page(_ name: String) throws(Malformed) -> URL {
        guard let url = URL(string: try text(name, 1...2048)), ServiceConnection.isConfidential(url) else {
            throw Self.malformed(name, "the address of a page under https")
        }
        return url
    }
}
