import Foundation
import SmartCard
import SmartCardTrace
import TestSupport
import Testing

/// Redaction before a judge that shares nothing with it (``RedactionJudge``): random cards in every shape in which a number
/// can be in a trace.  The judge must find it before redaction, so that its silence afterwards means something.
@Suite(.computing) struct RedactionJudgeTests {
    private let redaction = TraceRedaction(key: Array(0..<16))

    /// A number of a random length and issuer with the check digit of ISO/IEC 7812-1, Annex B.
    static func number(_ dice: inout some RandomNumberGenerator, count: Int? = nil) -> String {
        let count = count ?? Int.random(in: 13...19, using: &dice)
        var digits = [Int.random(in: 3...6, using: &dice)]
        while digits.count < count - 1 { digits.append(Int.random(in: 0...9, using: &dice)) }
        var sum = 0
        for (index, digit) in digits.reversed().enumerated() {
            let doubled = index % 2 == 0 ? 2 * digit : digit
            sum += doubled > 9 ? doubled - 9 : doubled
        }
        return (digits + [(10 - sum % 10) % 10]).map(String.init).joined()
    }

    private func trace(_ lines: [String]) throws -> Trace {
        try Trace(text: "apdu-trace 1\n" + lines.map { "0.000000000 \($0)\n" }.joined())
    }

    /// - Parameter isFound: whether the judge is expected to find the number before.
    private func judge(_ number: String, _ trace: Trace, _ name: String, isFound: Bool = true) throws {
        let before = try trace.text()
        if isFound { #expect(!RedactionJudge.findings(of: number, in: before).isEmpty, "\(name)") }
        #expect(!redaction.findings(in: trace).isEmpty, "\(name)")
        let redacted = redaction.redacted(trace)
        let text = try redacted.text()
        #expect(RedactionJudge.findings(of: number, in: text) == [], "\(name) \(number)\n\(before)\n\(text)")
        #expect(redaction.findings(in: redacted).isEmpty, "\(name) \(number)\n\(text)")
    }

    @Test("every form of a number", arguments: RedactionFormsTests.Form.allCases)
    func forms(_ form: RedactionFormsTests.Form) throws {
        var dice = SplitMix(state: 8)
        for _ in 0..<Tier.rounds(1, thorough: 4) {
            let number = Self.number(&dice)
            try judge(number, trace(form.events(number)), "\(form)")
        }
    }

    @Test(
        "every form of a number in frames of every kind", arguments: Tier.few(FrameRedactionTests.Carrier.allCases, 3))
    func frames(_ carrier: FrameRedactionTests.Carrier) throws {
        var dice = SplitMix(state: 80)
        for form in RedactionFormsTests.Form.allCases {
            let number = Self.number(&dice)
            let exchanges = try trace(form.events(number)).exchanges(on: [.apdu]).compactMap { exchange in
                if case .bytes(let answer)? = exchange.answer {
                    (command: exchange.command, response: answer)
                } else {
                    nil
                }
            }
            guard !exchanges.isEmpty, exchanges.allSatisfy({ $0.command.first != 0xFF }) else { continue }
            // A number that frames of 7 bytes split in three, with status words in them, is more than the judge sees.
            for count in [9, 200] {
                try judge(
                    number, carrier.trace(exchanges, count: count), "\(form) \(carrier) \(count)", isFound: count > 9)
            }
        }
    }

    /// A number of 16 digits in two commands or answers, and in more where it is known from a record.
    private static func splits(_ number: String) -> [(name: String, lines: [String])] {
        func part(_ digits: Range<Int>) -> String { String(number.dropFirst(digits.lowerBound).prefix(digits.count)) }
        let (first, second) = (part(0..<8), part(8..<16))
        let text = { (digits: String) in Array(digits.utf8).hex }
        let record = ["> apdu 00B2010C00", "< apdu 700A5A08\(number)9000"]
        func written(_ ins: String) -> [String] {
            ["> apdu 00\(ins)010C04\(first)", "< apdu 9000", "> apdu 00\(ins)020C04\(second)", "< apdu 9000"]
        }
        return [
            ("UPDATE RECORD", written("DC")), ("APPEND RECORD", written("E2")), ("WRITE BINARY", written("D0")),
            ("UPDATE BINARY", written("D6")), ("WRITE RECORD", written("D2")), ("PUT DATA", written("DA")),
            (
                "UPDATE RECORD, text",
                [
                    "> apdu 00DC010C08\(text(first))", "< apdu 9000", "> apdu 00DC020C08\(text(second))", "< apdu 9000",
                ]
            ),
            (
                "UPDATE RECORD, odd",
                [
                    "> apdu 00DC010C04A\(part(0..<7))", "< apdu 9000", "> apdu 00DC020C05\(part(7..<16))A",
                    "< apdu 9000",
                ]
            ),
            ("GET DATA", ["> apdu 80CA010100", "< apdu \(first)9000", "> apdu 80CA010200", "< apdu \(second)9000"]),
            (
                "GET DATA, objects",
                ["> apdu 80CADF0100", "< apdu DF0104\(first)9000", "> apdu 80CADF0200", "< apdu DF0204\(second)9000"]
            ),
            (
                "GET DATA, four",
                record
                    + stride(from: 0, to: 16, by: 4).flatMap {
                        ["> apdu 80CA010\($0 / 4)00", "< apdu \(part($0..<$0 + 4))9000"]
                    }
            ),
            (
                "READ BINARY of a storage card, with GENERAL AUTHENTICATE between",
                [
                    "> apdu FFB0000410", "< apdu 000000000000000000000000\(first)9000", "> apdu FF860000050100056000",
                    "< apdu 9000", "> apdu FFB0000510", "< apdu \(second)D30122010000000000000000\("9000")",
                ]
            ),
            (
                "UPDATE BINARY of a storage card, with GENERAL AUTHENTICATE between",
                [
                    "> apdu FFD6000404\(first)", "< apdu 9000", "> apdu FF860000050100056000", "< apdu 9000",
                    "> apdu FFD6000504\(second)", "< apdu 9000",
                ]
            ),
            (
                "READ BINARY, the second time from the beginning",
                [
                    "> apdu 00B0000404", "< apdu \(first)9000", "> apdu 00B0000004", "< apdu \(second)9000",
                ]
            ),
            (
                "READ BINARY, with another command between",
                [
                    "> apdu 00B0000004", "< apdu \(first)9000", "> apdu 80CA9F3600", "< apdu 9F360200419000",
                    "> apdu 00B0000404", "< apdu \(second)9000",
                ]
            ),
        ]
    }

    @Test("a number in two messages that belong to nothing whole")
    func messages() throws {
        var dice = SplitMix(state: 86)
        for _ in 0..<Tier.rounds(1, thorough: 3) {
            let number = Self.number(&dice, count: 16)
            for (name, lines) in Self.splits(number) { try judge(number, trace(lines), name) }
        }
    }

    /// EMV Book C-2, 5.3.2: where the time is too long, EXCHANGE RELAY RESISTANCE DATA follows up to three times, and each
    /// response ends with the same times and is followed by the tag of the next.
    @Test("times and random numbers of relay resistance are no account numbers by chance")
    func relayResistance() throws {
        var dice = SplitMix(state: 22)
        for round in 0..<Tier.rounds(30, thorough: 300) {
            let lines = (0..<3).flatMap { _ in
                let (terminal, card) = (Self.random(4, using: &dice), Self.random(4, using: &dice))
                return ["> apdu 80EA000004\(terminal.hex)00", "< apdu 800A\(card.hex)0100050020009000"]
            }
            let trace = try trace(lines)
            let kept = redaction.redacted(trace).events.filter { if case .redacted = $0.what { false } else { true } }
            #expect(kept == trace.events, "round \(round)")
        }
    }

    private static func random(_ count: Int, using dice: inout some RandomNumberGenerator) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: 0...255, using: &dice) }
    }

    @Test("values that change from message to message are no number by chance")
    func counters() throws {
        let lines = (0..<200).flatMap { index in
            let counter = String(2_000 + index)
            return ["> apdu 80CA9F3600", "< apdu 9F3602\(counter)9000"]
        }
        #expect(redaction.findings(in: try trace(lines)).isEmpty)
    }

    /// RFC 4648: base64 of the digits as text and packed, alone and behind one and two other bytes.
    @Test("a number in base64, and in digits in the other order")
    func encodings() throws {
        var dice = SplitMix(state: 64)
        for _ in 0..<Tier.rounds(2, thorough: 8) {
            let number = Self.number(&dice)
            let packed = number.count % 2 == 0 ? number : number + "F"
            let record = [
                "> apdu 00B2010C00",
                "< apdu 70\([UInt8(packed.count / 2 + 2)].hex)5A\([UInt8(packed.count / 2)].hex)\(packed)9000",
            ]
            for before in ["", "x", "xy"] {
                let text = base64(Array((before + number).utf8))
                try judge(number, trace(["note \"data \(text)\""]), "text in base64")
                let bytes = try Array(before.utf8) + [UInt8](hex: packed) + [0xDD]
                let coded = base64(bytes)
                let urls = coded.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
                for coded in [coded, urls] {
                    try judge(number, trace(record + ["note \"\(coded)\""]), "packed in base64")
                }
            }
            let swapped = stride(from: 0, to: packed.count, by: 2).map { place in
                String(packed.dropFirst(place).prefix(2).reversed())
            }.joined()
            let get = ["> apdu 80CA010100", "< apdu EE\(swapped)EE9000"]
            try judge(number, trace(record + get), "in the other order")
        }
    }

    private func base64(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        var text = ""
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let part = bytes[start...].prefix(3)
            let bits = part.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - part.count))
            for index in 0..<4 { text.append(index <= part.count ? alphabet[bits >> (18 - 6 * index) & 63] : "=") }
        }
        return text
    }

    @Test("the name of the card in notes, errors, and objects and commands that nobody knows, in either order")
    func names() throws {
        var dice = SplitMix(state: 52)
        func word(_ count: Int) -> String {
            String((0..<count).map { _ in Character(UnicodeScalar(UInt8.random(in: 65...87, using: &dice))) })
        }
        for round in 0..<6 {
            let (surname, given) = (
                word(Int.random(in: 3...9, using: &dice)), word(Int.random(in: 2...8, using: &dice))
            )
            let name = "\(surname)/\(given)\(round % 2 == 0 ? "" : ".MR")"
            let text = { (name: String) in Array(name.utf8).hex }
            let length = { (text: String) in [UInt8(text.count / 2)].hex }
            let track = text("B4761739001010010^\(name)^3012201123")
            let object = round % 3 == 0 ? "56\(length(track))\(track)" : "5F20\(length(text(name)))\(text(name))"
            let unknown = text("to \(given) \(surname)")
            let trace = try trace([
                "note \"\(given.capitalized) \(surname.capitalized) paid\"", "> apdu 00B2010C00",
                "< apdu 70\(length(object))\(object)9000", "> apdu 80CADF0100",
                "< apdu DF01\(length(unknown))\(unknown)9000", "> apdu 00D60000\(length(text(name)))\(text(name))",
                "! apdu other \"no card of \(surname.lowercased()), \(given.lowercased())\"",
                "note \"\(text(name.lowercased()))\"", "> escape E000\(text(given + " " + surname))", "< escape 00",
            ])
            #expect(RedactionJudge.findings(ofName: surname, given, in: try trace.text()).count >= 4)
            let redacted = redaction.redacted(trace)
            #expect(RedactionJudge.findings(ofName: surname, given, in: try redacted.text()) == [], "\(name)")
            #expect(redaction.findings(in: redacted).isEmpty)
        }
    }

    /// In pieces (``TracePieces``): halves on both sides of where a piece ends of itself, and where it must.
    @Test("a number on both sides of a cut between pieces", arguments: Tier.few([0, 1, 2, 3], 2))
    func pieces(_ shape: Int) throws {
        var dice = SplitMix(state: 81)
        let number = Self.number(&dice, count: 16)
        let (first, second) = (number.prefix(8), number.dropFirst(8))
        var lines = ["connect T=1 3B80800101"]
        switch shape {
        case 0, 1:
            let other = ["> apdu 00A40000023F00", "< apdu 9000"]
            lines += ["note \"x\""] + [[String]](repeating: other, count: 126).flatMap { $0 }
            lines +=
                shape == 0
                ? ["> apdu 00DC010C04\(first)", "< apdu 9000", "> apdu 00DC020C04\(second)", "< apdu 9000"]
                : ["> apdu 80CA010100", "< apdu \(first)9000", "> apdu 80CA010200", "< apdu \(second)9000"]
        case 2:
            // A byte at a time, the number around the 8192nd event.
            for place in 0..<4_300 {
                let digits = place >= 4_090 && place < 4_098 ? number.dropFirst(2 * (place - 4_090)).prefix(2) : "EE"
                lines += ["> apdu 00B0\([UInt8(place >> 8), UInt8(place & 0xFF)].hex)01", "< apdu \(digits)9000"]
            }
        default:
            // The same two places again and again: no piece has to be cut.
            for _ in 0..<3_000 {
                lines += ["> apdu 00B0000004", "< apdu \(first)9000", "> apdu 00B0000404", "< apdu \(second)9000"]
            }
        }
        let trace = try trace(lines)
        var reader = TracePieces(TraceReader(text: try trace.text()))
        var all: [TracePieces.Piece] = []
        while let piece = try reader.next() { all.append(piece) }
        #expect(all.count > 1 && all.contains(where: \.isCut) == (shape == 2))
        var secrets = TraceSecrets()
        for piece in all { secrets.learn(from: piece) }
        let found = all.map { redaction.findings(in: $0, knowing: &secrets).count }
        #expect(found.reduce(0, +) >= 2 && (shape == 3 || found.prefix(2).allSatisfy { $0 > 0 }), "\(found)")
        let redacted = Trace(all.flatMap { redaction.redacted($0, knowing: &secrets, isFirst: false).events })
        let near = Trace(
            Array(redacted.events.filter { $0.what != .received(.apdu, [0xEE, 0x90, 0x00]) }.prefix(9_000)))
        let text = try near.text().split(separator: "\n").filter { !$0.contains("00A4") }.joined(separator: "\n")
        if shape < 3 { #expect(RedactionJudge.findings(of: number, in: text) == []) }
        #expect(!text.contains(second) && redacted.events.count == trace.events.count)
    }
}
