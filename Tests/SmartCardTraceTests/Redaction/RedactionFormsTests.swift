import EMVContactless
import SmartCard
import SmartCardSimulator
import SmartCardTrace
import TestSupport
import Testing

/// Account numbers in every form and every place, and whole cards.
@Suite(.computing) struct RedactionFormsTests {
    /// Numbers that payment service providers publish for tests (docs.stripe.com/testing, Braintree's and Adyen's pages of
    /// the kind): Visa, one of many zeros, Mastercard, Mastercard of the 2 series, American Express, Discover, Diners Club,
    /// JCB, UnionPay of 16 and of 19 digits, Maestro.
    static let numbers = [
        "4111111111111111", "4000000000000002", "5555555555554444", "2223003122003222", "378282246310005",
        "6011111111111117", "36227206271667", "3566002020360505", "6200000000000005", "6205500000000000004",
        "6304000000000000",
    ]

    enum Form: CaseIterable {
        case pan, track2, track1, packedFromHalfAByte, text, hexText, inCommand, inChain, inWrites, inReads, inResponses
        case inDirectory, inNote, inGroups, inHexNote, inFailure, inReaderName, inBareBytes

        /// The events of a trace that holds `number` in this form.
        func events(_ number: String) throws -> [String] {
            func filled(_ digits: String) -> String { digits.count % 2 == 0 ? digits : digits + "F" }
            func object(_ tag: String, _ value: String) -> String {
                "\(tag)\([UInt8(value.count / 2)].hex)\(value)"
            }
            func record(_ object: String) -> [String] {
                ["> apdu 00B2010C00", "< apdu \("70" + [UInt8(object.count / 2)].hex)\(object)9000"]
            }
            let packed = filled(number)
            let text = Array(number.utf8).hex
            switch self {
            case .pan: return record(object("5A", packed))
            case .track2: return record(object("57", filled(number + "D30122011234567")))
            case .track1: return record(object("56", "42" + text + Array("^DOE/J^3012201".utf8).hex))
            case .packedFromHalfAByte:
                return record(object("DF01", "A" + (number.count % 2 == 0 ? number + "A" : number)))
            case .text: return record(object("DF01", text))
            case .hexText: return record(object("DF01", Array(text.utf8).hex))
            case .inCommand:
                let data = object("70", object("5A", packed))
                return ["> apdu 00DC010C\([UInt8(data.count / 2)].hex)\(data)", "< apdu 9000"]
            case .inChain:
                return ["> apdu 10DA000005AABB\(packed.prefix(6))", "< apdu 9000"] + [
                    "> apdu 00DA0000\([UInt8(packed.count / 2 - 3)].hex)\(packed.dropFirst(6))", "< apdu 9000",
                ]
            case .inWrites:
                return ["> apdu FFD6000404\(packed.prefix(8))", "< apdu 9000"] + [
                    "> apdu FFD60005\([UInt8(packed.count / 2 - 4)].hex)\(packed.dropFirst(8))", "< apdu 9000",
                ]
            case .inReads:
                return ["> apdu FFB0000404", "< apdu \(packed.prefix(8))9000"] + [
                    "> apdu FFB0000510", "< apdu \(packed.dropFirst(8))9000",
                ]
            case .inResponses:
                let whole = object("70", object("5A", packed))
                return ["> apdu 00B2010C00", "< apdu \(whole.prefix(14))6104"] + [
                    "> apdu 00C0000004", "< apdu \(whole.dropFirst(14))9000",
                ]
            case .inDirectory:
                let directory = object(
                    "6F",
                    object("84", "325041592E5359532E4444463031") + object("A5", object("BF0C", object("DF50", packed))))
                return ["> apdu 00A404000E325041592E5359532E444446303100", "< apdu \(directory)9000"]
            case .inNote: return ["note \"the card \(number), mine\""]
            case .inGroups:
                let groups = number.enumerated().map { $0.offset % 4 == 3 ? "\($0.element) " : "\($0.element)" }
                return ["note \"the card \(groups.joined())\""]
            case .inHexNote:
                let groups = packed.enumerated().map { $0.offset % 2 == 1 ? "\($0.element) " : "\($0.element)" }
                return ["note \"5A 08 \(groups.joined())\""]
            case .inFailure: return ["> apdu 00B2010C00", "! apdu malformedAnswer \"no answer but \(number)\""]
            case .inReaderName: return ["reader pcsc \"Reader \(number)\""]
            case .inBareBytes: return ["> apdu 80CA9F5000", "< apdu EE\(packed)9000"]
            }
        }
    }

    @Test(
        "a number is found in every form, and gone after redaction in every encoding",
        arguments: numbers, Form.allCases)
    func forms(_ number: String, _ form: Form) throws {
        let lines = try form.events(number).map { "0.000000000 \($0)\n" }
        let trace = try Trace(text: "apdu-trace 1\n" + lines.joined())
        #expect(!TraceRedaction.eventsWithAccountNumbers(in: trace).isEmpty)
        let redacted = TraceRedaction(key: Array(0..<16)).redacted(trace)
        #expect(TraceRedaction.eventsWithAccountNumbers(in: redacted).isEmpty)
        #expect(try Self.encodings(of: number, in: redacted) == [])
        #expect(redacted.events.count == trace.events.count + 1)
        #expect(TraceRedaction(key: Array(16..<32)).redacted(redacted) == redacted)
    }

    /// Which encodings of `secret`, digits or letters, are somewhere in the text of `trace` or across its data.
    private static func encodings(of secret: String, in trace: Trace) throws -> [String] {
        let text = try trace.text().uppercased()
        var data = ""
        for event in trace.events {
            switch event.what {
            case .sent(_, let bytes): data += bytes.dropFirst(5).hex
            case .received(_, let bytes): data += bytes.dropLast(2).hex
            default: break
            }
        }
        let ascii = Array(secret.utf8).hex
        let forms = [secret.uppercased(), ascii, Array(ascii.utf8).hex]
        let joined = text.filter { $0 != " " }
        return forms.filter { form in [text, joined, data].contains { $0.contains(form) } }
    }

    /// Every built-in card, those that are no variants with a number, a name and discretionary data of their own.
    private static func cards(_ dice: inout some RandomNumberGenerator) throws -> [(
        name: String, file: CardFile, secrets: [String]
    )] {
        try VirtualCards.all.map { card in
            guard card.text.contains("\ncard ") else { return (card.name, try CardFile(parsing: card.text), []) }
            var text = card.text
            var secrets: [String] = []
            for number in ["4761739001010010", "5413330089010434", "4000000000000002"] where text.contains(number) {
                var digits = number.utf8.map { $0 - 0x30 }
                for index in 6..<digits.count - 1 { digits[index] = UInt8.random(in: 0...9, using: &dice) }
                let sum = digits.dropLast().reversed().enumerated().reduce(0) { sum, next in
                    let doubled = Int(next.element) * (2 - next.offset % 2)
                    return sum + doubled / 10 + doubled % 10
                }
                digits[digits.count - 1] = UInt8((10 - sum % 10) % 10)
                let other = digits.map(String.init).joined()
                text = text.replacing(number, with: other)
                secrets.append(other)
            }
            for (old, range) in [
                ("1143804489", UInt64(1_000_000_000)...9_999_999_999), ("01234567890", 10_000_000_000...99_999_999_999),
            ]
            where text.contains(old) {
                let other = String(UInt64.random(in: range, using: &dice))
                text = text.replacing(old, with: other)
                secrets.append(other)
            }
            if text.contains("TAPPER/TESSA") {
                let name = String(
                    (0..<12).map { $0 == 6 ? "/" : Character(UnicodeScalar(UInt8.random(in: 65...90, using: &dice))) })
                text = text.replacing("TAPPER/TESSA", with: name)
                secrets.append(name)
            }
            return (card.name, try CardFile(parsing: text), secrets)
        }
    }

    @Test(
        "whole payments with every built-in card, at random numbers and names: nothing left, same shape, same outcome",
        arguments: 0..<1 as Range<UInt64>)
    func payments(_ seed: UInt64) async throws {
        var dice = SplitMix(state: seed)
        let transaction = try #require(
            purchase(amount: UInt64.random(in: 1...8000, using: &dice), unpredictableNumber: [1, 2, 3, 4]))
        for (name, file, secrets) in try Tier.few(Self.cards(&dice), 4) {
            let device = SoftwareACR122U()
            device.insert(file.makeCard())
            let recording = try Recording()
            guard let outcome = try? await pay(transaction, on: recording.recorder.recording(VirtualReader(device)))
            else { continue }
            let trace = try recording.trace()
            let redacted = TraceRedaction().redacted(trace)
            #expect(TraceRedaction.eventsWithAccountNumbers(in: redacted).isEmpty, "\(name)")
            for secret in secrets { #expect(try Self.encodings(of: secret, in: redacted) == [], "\(name)") }
            #expect(
                redacted.events.filter { if case .redacted = $0.what { false } else { true } }.map(Self.shape)
                    == trace.events.map(Self.shape), "\(name)")
            guard
                case .redacted(let items) = redacted.events.first(where: {
                    if case .redacted = $0.what { true } else { false }
                })?.what
            else { continue }
            // What the marks say is gone may change the outcome.
            guard !items.contains(.certificate) else { continue }
            let replayed = try await pay(transaction, on: ReplayReader(redacted, comparison: .lenient))
            #expect(replayed.kind == outcome.kind, "\(name)")
        }
    }

    /// Events of every form, and frames around some of them, with bytes changed, taken out, put in, and in another order.
    static func changed(_ number: String, _ dice: inout some RandomNumberGenerator) throws -> [TraceEvent] {
        var lines: [String] = []
        for _ in 0..<6 { lines += try Form.allCases.randomElement(using: &dice)?.events(number) ?? [] }
        var events = try Trace(text: "apdu-trace 1\n" + lines.map { "0.000000000 \($0)\n" }.joined()).events
        let layers = TraceEvent.Layer.allCases
        for index in events.indices {
            let isMoved = UInt8.random(in: 0..<4, using: &dice) == 0
            func change(_ bytes: [UInt8]) -> [UInt8] {
                var bytes = bytes
                for _ in 0..<Int.random(in: 0...2, using: &dice) {
                    let place = Int.random(in: 0...bytes.count, using: &dice)
                    switch UInt8.random(in: 0..<4, using: &dice) {
                    case 0: bytes.removeLast(bytes.count - place)
                    case 1: bytes.insert(.random(in: 0...255, using: &dice), at: place)
                    case 2: bytes.insert(contentsOf: [0xFF, 0, 0, 0, 8, 0xD4, 0x40, 1].prefix(place), at: place)
                    default: if place < bytes.count { bytes[place] = .random(in: 0...255, using: &dice) }
                    }
                }
                return bytes
            }
            switch events[index].what {
            case .sent(let layer, let bytes):
                events[index].what = .sent(isMoved ? layers.randomElement(using: &dice) ?? layer : layer, change(bytes))
            case .received(let layer, let bytes):
                events[index].what = .received(
                    isMoved ? layers.randomElement(using: &dice) ?? layer : layer, change(bytes))
            default: break
            }
        }
        if Bool.random(using: &dice) { events.shuffle(using: &dice) }
        return events
    }

    @Test("whatever has become of a trace, redaction is a fixed point, and of a number that it tells nothing is left")
    func changedTraces() throws {
        var dice = SplitMix(state: 6)
        for round in 0..<Tier.rounds(20, thorough: 200) {
            let number = Self.numbers[round % Self.numbers.count]
            let packed = number.count % 2 == 0 ? number : number + "F"
            // The number is known from here, whatever stands before.
            let length = [UInt8(packed.count / 2)].hex
            let record = "5A\(length)\(packed)"
            let known = try Trace(
                text: """
                    apdu-trace 1
                    0.000000000 connect T=1 3B80800101
                    0.000000000 > apdu 00B2010C00
                    0.000000000 < apdu 70\([UInt8(record.count / 2)].hex)\(record)9000

                    """)
            let trace = Trace(try Self.changed(number, &dice) + known.events)
            let redacted = TraceRedaction(key: Array(0..<16)).redacted(trace)
            #expect(TraceRedaction().findings(in: redacted).isEmpty, "round \(round)")
            #expect(TraceRedaction().redacted(redacted) == redacted, "round \(round)")
            let ascii = Array(number.utf8).hex
            for line in try redacted.text().split(separator: "\n") {
                for form in [number, ascii, Array(ascii.utf8).hex] {
                    #expect(!line.contains(form), "round \(round)")
                }
            }
        }
    }

    /// Lengths, headers, status words and data objects of an event.
    private static func shape(_ event: TraceEvent) -> String {
        switch event.what {
        case .sent(let layer, let bytes): "> \(layer) \(bytes.prefix(5).hex) \(bytes.count)"
        case .received(let layer, let bytes):
            "< \(layer) \(bytes.count) \(bytes.suffix(2).hex) "
                + "\((try? TLVList(bytes.dropLast(2)))?.flattened.map { "\($0.tag) \($0.value.count)" } ?? [])"
        default: "other"
        }
    }
}
