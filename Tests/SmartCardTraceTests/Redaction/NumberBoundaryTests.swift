import SmartCard
import SmartCardTrace
import Testing

/// Account numbers at the limits of what is searched: the shortest, the widest apart, the last of their bytes.
@Suite struct NumberBoundaryTests {
    private let redaction = TraceRedaction(key: Array(0..<16))
    /// Sixteen digits, and ten, the fewest that are looked for.
    private static let (number, short) = ("4761739001010010", "4761739000")  // TEST

    /// READ RECORD of a template with a number in 5A.
    private func record(_ number: String) -> [String] {
        let count = UInt8(number.count / 2)
        return ["> apdu 00B2010C00", "< apdu 70\([count + 2].hex)5A\([count].hex)\(number)9000"]
    }

    private func trace(_ lines: [String]) throws -> Trace {
        try Trace(text: "apdu-trace 1\n" + lines.map { "0.000000000 \($0)\n" }.joined())
    }

    /// What becomes of `lines` beside a record with `number`.
    private func redacted(_ lines: [String], beside number: String = number) throws -> Trace {
        let clear = try trace(lines + record(number))
        let redacted = redaction.redacted(clear)
        #expect(redaction.findings(in: redacted).isEmpty && redaction.redacted(redacted) == redacted)
        return redacted
    }

    private func data(_ bytes: [UInt8]) -> [String] {
        ["> apdu 80CADF0100", "< apdu \(bytes.hex)9000"]
    }

    /// The data of the first response.
    private func first(_ trace: Trace) -> [UInt8]? {
        for event in trace.events {
            if case .received(_, let bytes) = event.what { return bytes.dropLast(2) }
        }
        return nil
    }

    @Test("digits up to twelve bytes apart are found: six characters of UTF-16 each", arguments: 1...12)
    func distance(_ distance: Int) throws {
        let digits = Self.number.flatMap {
            [UInt8](repeating: 0xEE, count: distance - 1) + [UInt8($0.wholeNumberValue ?? 0)]
        }
        let new = try #require(first(try redacted(data(digits))))
        #expect(new.count == digits.count && new != digits)
    }

    @Test("a number of ten digits that is all of a message is found")
    func shortest() throws {
        let digits = try [UInt8](hex: Self.short)
        let new = try #require(first(try redacted(data(digits), beside: Self.short)))
        #expect(new != digits)
    }

    @Test("a number that ends with the last byte is found, in bytes and in text")
    func last() throws {
        let number = try [UInt8](hex: Self.number)
        let new = try #require(first(try redacted(data([0xEE] + number))))
        #expect(new.first == 0xEE && Array(new.dropFirst()) != number)
        let note = try redacted(["note \"see 4 7 6 1 (then) 7 3 9 0 0 1 0 1 0 0 1 0\""]).text()
        #expect(!note.contains("7 3 9 0 0 1 0 1 0 0 1 0"))
    }

    @Test("six first digits are kept of sixteen, and four of fifteen")
    func kept() throws {
        for (number, kept) in [(Self.number, 6), ("378282246310005", 4)] {
            let text = try redaction.redacted(try trace(["note \"\(number)\""])).text()
            #expect(text.contains(number.prefix(kept)) && !text.contains(number.prefix(kept + 1)), "\(text)")
        }
    }

    @Test("a number without its check digit is none, where nobody tells that it is one")
    func checkDigit() throws {
        let wrong = try trace(["note \"4761739001010011\""])
        #expect(redaction.findings(in: wrong).isEmpty)
    }

    @Test("groups are of four digits, and at most three characters apart")
    func groups() throws {
        for (text, isFound) in [
            ("4761---7390---0101---0010", true), ("4761----7390----0101----0010", false),
            ("4761, 7390, 0101, 0010", true), ("476, 173, 900, 101, 001, 0", false),
        ] {
            let findings = redaction.findings(in: try trace(["note \"\(text)\""]))
            #expect(findings.values.contains { $0.contains(.accountNumber) } == isFound, "\(text)")
        }
    }

    /// The texts of the notes.
    private func notes(_ trace: Trace) -> [String] {
        trace.events.compactMap { if case .note(let text) = $0.what { text } else { nil } }
    }

    @Test("a number in hexadecimal text goes on behind twenty other characters, and becomes what it becomes in text")
    func hexadecimalText() throws {
        let gap = String(repeating: "z", count: 20)
        func split(_ number: String) -> String {
            let text = Array(number.utf8).hex
            return "\(text.prefix(8))\(gap)\(text.dropFirst(8))"
        }
        let notes = notes(try redacted(["note \"\(Self.number)\"", "note \"\(split(Self.number))\""]))
        #expect(notes[0] != Self.number && notes[0].hasPrefix("476173") && notes[1] == split(notes[0]))
    }

    @Test("a number in three notes, or far behind others in one, is found")
    func seams() throws {
        for notes in [
            ["card 4761", "739001", "010010"], [String(repeating: "x", count: 200) + " 47617390", "01010010"],
            ["card 47617390", "(" + String(repeating: "-", count: 20) + ") 01010010"],
        ] {
            let text = try redacted(notes.map { "note \"\($0)\"" }).text()
            for part in ["47617390", "739001\"", "01010010"] { #expect(!text.contains(part), "\(text)") }
        }
    }

    @Test("ten digits in two messages are as many as are looked for")
    func shortestSeam() throws {
        let parts = [Self.short.prefix(4), Self.short.dropFirst(4)].map { part in
            "< apdu \(part)9000"
        }
        let text = try redacted(
            ["> apdu 80CA010000", parts[0], "> apdu 80CA010100", parts[1]], beside: Self.short
        ).text()
        #expect(!text.contains(parts[1]))
    }

    @Test("a track's expiry and service code stay, and the digit after them does not")
    func track() throws {
        let text = try redaction.redacted(try trace(["note \";\(Self.number)=30122011234?\""])).text()
        #expect(text.contains("=30122010000?"), "\(text)")
    }

    /// What the notes are after pass `number`, a number in one of two.
    private func pass(_ number: Int) throws -> [String] {
        var pieces = TracePieces(TraceReader(text: try trace(["note \"\(Self.number)\"", "note \"stays\""]).text()))
        let piece = try #require(try pieces.next())
        var secrets = TraceSecrets()
        for _ in 0..<number { secrets.beginPass() }
        secrets.learn(from: piece)
        let redacted = redaction.redacted(piece, knowing: &secrets)
        #expect(secrets.isClean == (number == TraceSecrets.maximumPasses))
        return notes(redacted)
    }

    @Test("from the fourth pass on a note with a finding becomes blank, in the last pass every note")
    func passes() throws {
        for number in 1...3 {
            let notes = try pass(number)
            #expect(notes[0] != Self.number && notes[0].hasPrefix("476173") && notes[1] == "stays", "pass \(number)")
        }
        let blank = String(repeating: "X", count: Self.number.count)
        for number in 4..<TraceSecrets.maximumPasses {
            #expect(try pass(number) == [blank, "stays"], "pass \(number)")
        }
        #expect(try pass(TraceSecrets.maximumPasses) == [blank, "XXXXX"])
    }
}
