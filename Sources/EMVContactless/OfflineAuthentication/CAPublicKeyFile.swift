import SmartCard

extension CAPublicKeys {
    /// Parses a file of CA public keys; <doc:CAPublicKeyFile> describes the format.
    ///
    /// - Throws: ``CAPublicKeyFileError`` at the first malformed line, or at a key that does not match its checksum.
    public init(parsing text: some StringProtocol) throws(CAPublicKeyFileError) {
        self.init()
        var statement = Words(line: 0)
        var number = 0
        for line in text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            number += 1
            let content = line.prefix { $0 != UInt8(ascii: "#") }
            // A carriage return before the line feed is white space, too.
            let words = content.split { [0x20, 0x09, 0x0D].contains($0) }
            if let first = content.first, first == 0x20 || first == 0x09 {
                guard words.isEmpty || !statement.isEmpty else {
                    throw CAPublicKeyFileError(line: number, reason: "there is no line that this one continues")
                }
                statement.append(words, line: number)
            } else if !words.isEmpty {
                try read(&statement)
                statement = Words(line: number)
                statement.append(words, line: number)
            }
        }
        try read(&statement)
    }

    private mutating func read(_ words: inout Words) throws(CAPublicKeyFileError) {
        guard !words.isEmpty else { return }
        switch try words.next("key or revoked") {
        case "key": try readKey(&words)
        case "revoked":
            let rid = try words.bytes("a RID", 5)
            let index = try words.bytes("an index", 1)[0]
            let serialNumber = try words.bytes("a certificate serial number", 3)
            revoked.insert(RevokedCertificate(rid: rid, index: index, serialNumber: serialNumber))
        default: throw words.error("a line begins with key or revoked")
        }
        guard words.isEmpty else { throw words.error("there is more on the line than belongs there") }
    }

    private mutating func readKey(_ words: inout Words) throws(CAPublicKeyFileError) {
        let start = words.line
        guard let environment = CAPublicKey.Environment(rawValue: try words.next("live or test")) else {
            throw words.error("the environment is live or test")
        }
        let rid = try words.bytes("a RID", 5)
        let index = try words.bytes("an index", 1)[0]
        let expiration = words.skip("expires") ? try words.date() : nil
        try words.expect("exponent")
        let exponent = try words.bytes("an exponent", nil)
        try words.expect("checksum")
        let checksum = try words.bytes("a checksum", 20)
        try words.expect("modulus")
        var modulus = try words.bytes("a modulus", nil)
        while !words.isEmpty { modulus += try words.bytes("a modulus", nil) }
        guard self[environment, rid, index] == nil else {
            throw CAPublicKeyFileError(line: start, reason: "the key occurs twice")
        }
        do {
            insert(
                try CAPublicKey(
                    environment: environment, rid: rid, index: index, modulus: modulus, exponent: exponent,
                    checksum: checksum, expiration: expiration))
        } catch {
            throw CAPublicKeyFileError(line: start, reason: "\(error)")
        }
    }
}

/// An error in a file of certification authority public keys.
public struct CAPublicKeyFileError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The line, from 1.
    public let line: Int
    /// The fault, and the correct form.
    public let reason: String

    public var description: String { "line \(line): \(reason)" }
}

/// The words of a statement, taken from the left.
private struct Words {
    private var words: ArraySlice<(text: String, line: Int)> = []
    /// The line of the word that was taken last.
    private(set) var line: Int

    init(line: Int) { self.line = line }

    var isEmpty: Bool { words.isEmpty }

    mutating func append(_ more: [some Collection<UInt8>], line: Int) {
        words += more.map { (String(decoding: $0, as: UTF8.self), line) }
    }

    func error(_ reason: String) -> CAPublicKeyFileError { CAPublicKeyFileError(line: line, reason: reason) }

    mutating func next(_ what: String) throws(CAPublicKeyFileError) -> String {
        guard let word = words.popFirst() else { throw error("\(what) is missing") }
        line = word.line
        return word.text
    }

    mutating func skip(_ keyword: String) -> Bool {
        guard words.first?.text == keyword else { return false }
        words.removeFirst()
        return true
    }

    mutating func expect(_ keyword: String) throws(CAPublicKeyFileError) {
        guard try next(keyword) == keyword else { throw error("\(keyword) is missing") }
    }

    mutating func bytes(_ what: String, _ count: Int?) throws(CAPublicKeyFileError) -> [UInt8] {
        let word = try next(what)
        guard let bytes = try? [UInt8](hex: word), bytes.count * 2 == word.utf8.count, !bytes.isEmpty else {
            throw error("\(what) is written in hexadecimal digits")
        }
        guard count == nil || bytes.count == count else { throw error("\(what) has \(count ?? 0) bytes") }
        return bytes
    }

    mutating func date() throws(CAPublicKeyFileError) -> CalendarDate {
        let parts = try next("a day").split(separator: "-", omittingEmptySubsequences: false)
        let numbers = parts.compactMap { $0.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int($0) : nil }
        guard parts.map(\.count) == [4, 2, 2], numbers.count == 3,
            let date = CalendarDate(year: numbers[0], month: numbers[1], day: numbers[2])
        else { throw error("a day is written 2031-12-31") }
        return date
    }
}
