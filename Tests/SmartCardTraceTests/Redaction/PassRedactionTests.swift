import CardEncryption
import Foundation
import SmartCard
import SmartCardSimulator
import TestSupport
import Testing
import WalletPasses

@testable import SmartCardTrace

/// Redaction of passes that a phone's wallet hands over.
@Suite(.computing) struct PassRedactionTests {
    private let redaction = TraceRedaction(key: Array(0..<16))
    private static let member = "MEMBER-0001"

    /// Redacts, and expects a fixed point with the same lengths and status words.
    private func redacted(_ trace: Trace) -> Trace {
        let redacted = redaction.redacted(trace)
        #expect(redaction.redacted(redacted) == redacted)
        #expect(TraceRedaction().findings(in: redacted).isEmpty)
        func shapes(_ trace: Trace) -> [[UInt8]] {
            trace.exchanges().map { exchange in
                guard case .bytes(let answer)? = exchange.answer else { return [] }
                return [UInt8(truncatingIfNeeded: exchange.command.count), UInt8(truncatingIfNeeded: answer.count)]
                    + answer.suffix(2)
            }
        }
        #expect(shapes(redacted) == shapes(trace))
        return redacted
    }

    private func items(_ trace: Trace) -> Set<TraceEvent.RedactedItem> {
        trace.events.reduce(into: []) { if case .redacted(let items) = $1.what { $0.formUnion(items) } }
    }

    private func trace(_ lines: String...) throws -> Trace {
        try Trace(text: "apdu-trace 1\n" + lines.map { "0.000000000 \($0)\n" }.joined())
    }

    /// The commands and answers of a trace, in hexadecimal.
    private func lines(_ trace: Trace) -> [String] {
        trace.exchanges().flatMap { exchange -> [String] in
            guard case .bytes(let answer)? = exchange.answer else { return [exchange.command.hex] }
            return [exchange.command.hex, answer.hex]
        }
    }

    // MARK: Phones

    /// TEST: the published keys of the virtual phones (proxmark3; Google's sample application for Smart Tap).
    private static func configuration() throws -> PassConfiguration {
        let keys = try [
            "3d1547f23cd78ad052a58860f1219e8fb791ec4dfe33769f5b9bfa627a656ca1",
            "826d17e50767b165b0e4d9e332f8d1d1e20224284fb4daf1e50a03246e70797d",
        ].map { try #require(MerchantKey(try [UInt8](hex: $0))) }
        return try PassConfiguration(merchants: [
            PassMerchant(
                id: "loyalty",
                apple: .init(passTypeIdentifier: "pass.com.passkit.pksamples.nfcdemo", keys: [keys[0]]),
                google: .init(collectorID: 20_180_608, keys: [1: keys[1]]))
        ])
    }

    /// A recorded conversation with a phone about its pass.
    private static func reading(_ card: String) async throws -> Trace {
        let recording = try Recording()
        let device = SoftwareACR122U()
        device.insert(try CardFile(parsing: "variant \(card)").makeCard())
        let reader = recording.recorder.recording(VirtualReader(device))
        _ = try await reader.waitForCard()
        let phone = try await reader.connect()
        let configuration = try configuration()
        var reading = PassReading(
            configuration.allRequests, configuration: configuration, mode: .passOnly,
            freshness: VASFreshness(tolerance: 300), at: .now)
        var step = reading.next(nil)
        while case .send(let command) = step { step = reading.next(try await phone.transmit(command)) }
        await phone.disconnect(.leave)
        guard case .finished(let outcome) = step else { throw CardError(.other, "not at the end") }
        #expect(outcome.entries.map { $0.pass?.data.text } == [member])
        return try recording.trace()
    }

    @Test("of Apple's answer the identifier of the merchant's key stays, and the terminal's commands")
    func apple() async throws {
        let trace = try await Self.reading("phone-apple {\nwakes at-once\nscreen both\n}")
        let redacted = redacted(trace)
        #expect(items(redacted) == [.pass])
        let (before, after) = (lines(trace), lines(redacted))
        #expect(before.count == 4 && after.prefix(3) == before.prefix(3))
        // 70, 9F2A, 9F27, the key of the merchant; 32 bytes of X, 4 + 11 of contents, 16 of tag.
        let head = "703A9F2A009F2743".replacing("703A", with: "7049") + "C0B77375"
        #expect(before[3].hasPrefix(head), "\(before[3])")
        #expect(after[3] == head + String(repeating: "00", count: 63) + "9000")
        #expect(Set(TraceRedaction().findings(in: trace).values) == [[.pass]])
    }

    /// The frames that wake a phone, and what a PN532 is told before it sends them.
    private static let waking = """
        > LAYER FF00000006D4066305630D
        < LAYER D50740009000
        > LAYER FF00000011D408630200630300630540630D00633D00
        < LAYER D5099000
        > LAYER FF00000009D4426A01000002E4D2
        < LAYER D543019000
        > LAYER FF00000006D40663026303
        < LAYER D50783839000
        > LAYER FF00000009D4426A01000002C51D
        < LAYER D543019000
        > LAYER FF00000011D4426A02C801000300027900000000C2D8
        < LAYER 6301
        > LAYER FF00000004D44A0100
        < LAYER D54B010100042004085C217E05788070029000
        """

    /// The same conversation by commands to the chip of a reader, after the frames that wake the phone.
    private func throughChip(_ trace: Trace, _ layer: TraceEvent.Layer) throws -> Trace {
        let waking = Self.waking.replacing("LAYER", with: layer.rawValue).split(separator: "\n")
        let start = try Trace(text: "apdu-trace 1\n" + waking.map { "0.000000000 \($0)\n" }.joined())
        return Trace(
            start.events
                + trace.events.compactMap { event in
                    switch event.what {
                    case .sent(.apdu, let bytes):
                        let data = [0xD4, 0x40, 0x01] + bytes
                        return TraceEvent(
                            at: event.time,
                            .sent(layer, [0xFF, 0x00, 0x00, 0x00, UInt8(truncatingIfNeeded: data.count)] + data))
                    case .received(.apdu, let bytes):
                        return TraceEvent(at: event.time, .received(layer, [0xD5, 0x41, 0x00] + bytes + [0x90, 0x00]))
                    default: return nil
                    }
                })
    }

    @Test(
        "of a pass that the chip of a reader fetched as much stays, and the frames that woke the phone",
        arguments: ["phone-apple {\nwakes at-once\nscreen both\n}", "phone-google {\n}"],
        [TraceEvent.Layer.apdu, .escape])
    func throughTheChip(_ card: String, _ layer: TraceEvent.Layer) async throws {
        let trace = try await Self.reading(card)
        let carried = try throughChip(trace, layer)
        #expect(Set(TraceRedaction().findings(in: carried).values) == [[.pass]])
        let redacted = redacted(carried)
        #expect(items(redacted) == [.pass])
        func bytes(_ trace: Trace) -> [String] {
            trace.events.compactMap { event in
                switch event.what {
                case .sent(_, let bytes), .received(_, let bytes): bytes.hex
                default: nil
                }
            }
        }
        #expect(bytes(redacted) == bytes(try throughChip(redaction.redacted(trace), layer)))
    }

    @Test(
        "a command to the chip that may carry something else is not taken for a polling frame",
        arguments: [
            "D4426A01000002E4D3", "D4426A0100000247617390", "D442476173900101001047",
            "D408633947633961633973633990633901633901633900633910",
        ])
    func otherCommands(_ command: String) throws {
        let count = [UInt8(command.count / 2)].hex
        let trace = try trace("> escape FF000000\(count)\(command)")
        #expect(!TraceRedaction().findings(in: trace).isEmpty)
    }

    @Test(
        "of Google's answer the session and the flags of the bundle stay, in how many parts it may come",
        arguments: [240, 64])
    func google(_ part: Int) async throws {
        let trace = try await Self.reading("phone-google {\npart \(part)\n}")
        let redacted = redacted(trace)
        #expect(items(redacted) == [.pass])
        let (before, after) = (lines(trace), lines(redacted))
        // SELECT, NEGOTIATE SECURE CHANNEL, and the question.
        for (old, new) in zip(before.prefix(5), after) { #expect(old == new) }
        #expect(before[2].hasPrefix("90530000") && before[4].hasPrefix("90500000"))
        #expect(before.filter { $0 == "90C0000000" } == after.filter { $0 == "90C0000000" })
        #expect((before.count > 6) == (part == 64))
        func answer(_ lines: [String]) -> String {
            lines.enumerated().filter { $0.offset > 4 && $0.offset % 2 == 1 }.map { String($0.element.dropLast(4)) }
                .joined()
        }
        let (old, new) = (answer(before), answer(after))
        // reb in the message of srs: its flags, and then nothing.
        let bundle = try #require(old.range(of: "726562"))
        let flags = old.index(bundle.upperBound, offsetBy: 2)
        #expect(new[..<flags] == old[..<flags] && old[bundle.upperBound..<flags] == "03")
        #expect(old[..<flags].contains("736573") && new[flags...].allSatisfy { $0 == "0" })
    }

    @Test(
        "the same in frames of every kind", arguments: FrameRedactionTests.Carrier.allCases,
        ["phone-apple", "phone-google"])
    func frames(_ carrier: FrameRedactionTests.Carrier, _ card: String) async throws {
        let awake = card == "phone-apple" ? "wakes at-once\nscreen both\n" : "part 64\n"
        let plain = try await Self.reading("\(card) {\n\(awake)}")
        let exchanges = plain.exchanges().compactMap { exchange -> (command: [UInt8], response: [UInt8])? in
            guard case .bytes(let answer)? = exchange.answer else { return nil }
            return (exchange.command, answer)
        }
        let trace = carrier.trace(exchanges, count: 60)
        let once = redaction.redacted(trace)
        #expect(redaction.redacted(once) == once)
        #expect(items(once) == [.pass])
        // As the APDUs themselves are redacted.
        let expected = lines(redaction.redacted(plain))
        let raised = LayeredMessages(once, behind: []).messages.map(\.bytes.hex)
        #expect(raised.contains { $0.contains(card == "phone-apple" ? "C0B7737500000000" : "72656203000000") })
        for (old, new) in zip(lines(plain), expected) where old != new {
            #expect(!raised.contains { $0.contains(old.dropFirst(80).prefix(32)) && old.count > 120 })
        }
    }

    // MARK: What is in the clear

    private static func record(_ name: String, _ payload: [UInt8], isText: Bool = false) -> NDEFRecord {
        isText
            ? NDEFRecord(unchecked: .wellKnown, Array("T".utf8), Array(name.utf8), [0x00] + payload)
            : NDEFRecord(unchecked: .external, Array(name.utf8), [], payload)
    }

    /// `srs` with a pass that is neither encrypted nor compressed.
    private static func clear() -> [UInt8] {
        let loyalty = NDEFMessage([
            record("oid", [0x04, 0, 0, 0, 0, 0, 0, 0, 1]), record("n", Array("LOYAL-4711-ANNA".utf8), isText: true),
        ]).bytes
        let customer = NDEFMessage([record("cid", [0x01] + Array("CUSTOMER-0815".utf8))]).bytes
        let objects = NDEFMessage([
            record("asv", NDEFMessage([record("ly", loyalty)]).bytes),
            record("asv", NDEFMessage([record("cus", customer)]).bytes),
        ]).bytes
        return NDEFMessage([
            record(
                "srs",
                NDEFMessage([
                    record("ses", [1, 2, 3, 4, 5, 6, 7, 8, 2, 1]), record("reb", [0x00] + objects),
                ]).bytes)
        ]).bytes
    }

    /// GET SMART TAP DATA: `srq` with its version.
    private static let question: [UInt8] =
        [0x90, 0x50, 0x00, 0x00, 0x08]
        + NDEFMessage([record("srq", [0x00, 0x01])]).bytes + [0x00]

    @Test(
        "a pass that is not encrypted goes, and so does what it says where it is said again", arguments: [7, 40, 250])
    func repeated(_ part: Int) throws {
        let answer = Self.clear()
        var lines: [String] = []
        for start in stride(from: 0, to: answer.count, by: part) {
            let end = min(start + part, answer.count)
            lines.append("> apdu " + (start == 0 ? Self.question.hex : "90C0000000"))
            lines.append("< apdu " + answer[start..<end].hex + (end == answer.count ? "9000" : "9100"))
        }
        lines += ["note \"member LOYAL-4711-ANNA\"", "meta customer \"CUSTOMER-0815\"", "note \"loyal 4711\""]
        let trace = try Trace(text: "apdu-trace 1\n" + lines.map { "0.000000000 \($0)\n" }.joined())
        let redacted = redacted(trace)
        let text = try redacted.text()
        #expect(items(redacted).contains(.pass))
        for secret in ["LOYAL-4711-ANNA", "CUSTOMER-0815", "4711-ANNA"] {
            #expect(Taint.found(Taint.forms(of: secret), in: Data(text.utf8)) == [], "\(text)")
        }
        #expect(text.contains("\"member XXXXX-0000-XXXX\"") && text.contains("\"loyal 4711\""), "\(text)")
    }

    @Test("Apple's mobile token goes, and an answer that is none")
    func token() throws {
        let command =
            "> apdu 80CA01013B9F220201009F2520" + String(repeating: "AB", count: 32) + "9F260400800002"
            + "9F2904" + "61626364" + "9F2B050100000000"
        func answer(_ data: String) throws -> String {
            let length = String((command.count - "> apdu 80CA01013B".count) / 2, radix: 16, uppercase: true)
            let asked = command.replacing("80CA01013B", with: "80CA0101" + length)
            return lines(redacted(try trace(asked + "00", "< apdu " + data + "9000")))[1]
        }
        #expect(try answer("70079F2A044B53534F") == "70079F2A04000000009000")
        #expect(try answer("700A9F2A009F27044B53534F") == "700A9F2A009F2704000000009000")
        #expect(try answer("4B53534F4B53") == "0000000000009000")
        #expect(try answer("70104B5353") == "00000000009000")
    }

    @Test("an answer whose command is missing is known by what it is")
    func withoutCommand() throws {
        let cryptogram = "70409F2A009F273AC0B77375" + String(repeating: "5A", count: 54)
        var redacted = redacted(try trace("< apdu \(cryptogram)9000"))
        #expect(try redacted.text().contains("70409F2A009F273AC0B77375" + String(repeating: "00", count: 54) + "9000"))
        redacted = self.redacted(try trace("< apdu \(Self.clear().hex)9000"))
        #expect(items(redacted).contains(.pass))
        let text = try redacted.text()
        #expect(Taint.found(Taint.forms(of: "LOYAL-4711-ANNA"), in: Data(text.utf8)) == [])
        // The rest of an answer whose beginning is missing.
        #expect(lines(self.redacted(try trace("> apdu 90C0000000", "< apdu 4B53534F9000")))[1] == "000000009000")
    }

    @Test("what is sent to a wallet goes, with the answer")
    func push() throws {
        let data = NDEFMessage([Self.record("spr", Array("CUSTOMER-0815".utf8))]).bytes
        let redacted = redacted(
            try trace("> apdu 90520000" + [UInt8(data.count)].hex + data.hex + "00", "< apdu 4B53534F9000"))
        #expect(
            lines(redacted) == [
                "90520000" + [UInt8(data.count)].hex + String(repeating: "00", count: data.count) + "00",
                "000000009000",
            ])
    }

    // MARK: What stays

    /// TEST: SELECT as an iPhone answered it (proxmark3), and a merchant whose hash has the digits of a published test number.
    @Test("the wallet's and the terminal's objects are no account's: 9F24, 9F25, 9F26")
    func ownObjects() throws {
        let hash = "4761739001010010" + String(repeating: "A5", count: 24)
        let trace = try trace(
            "> apdu 00A404000A4F53452E5641532E303100",
            "< apdu 6F1D50084170706C655061799F210201009F2404E9CAEDE39F23040000003E9000",
            "> apdu 80CA01012F9F220201009F2520\(hash)9F26040080000200", "< apdu 6A83")
        #expect(lines(redacted(trace)) == lines(trace))
        #expect(items(redacted(trace)) == [])
        #expect(TraceRedaction.eventsWithAccountNumbers(in: trace) == [])
    }

    @Test("commands of other cards that look alike are none of a wallet")
    func others() throws {
        let trace = try trace(
            // DESFire, GET CARD UID and CREATE APPLICATION, whose answers are 91 00 and 91 AF.
            "> apdu 9051000000", "< apdu 4B53534F9100", "> apdu 90CA0000050102030F2100", "< apdu 9100",
            "> apdu 905A00000301020300", "< apdu 91AF",
            // GET DATA of EMV, and the kernel in a directory entry.
            "> apdu 80CA9F3600", "< apdu 9F360201009000", "> apdu 00A404000E325041592E5359532E444446303100",
            "< apdu 6F1EA51CBF0C1961174F07A0000000031010870101" + "9F2A0103" + "9F27021122" + "9000")
        #expect(items(redacted(trace)) == [])
        #expect(lines(redacted(trace)) == lines(trace))
    }

    @Test("answers that are torn or changed come to a fixed point, without a trap")
    func hostile() throws {
        var generator = SplitMix(state: 18)
        let cryptogram = try [UInt8](hex: "70409F2A009F273AC0B77375" + String(repeating: "5A", count: 54))
        let vas = "> apdu 80CA01012F9F220201009F2520" + String(repeating: "AB", count: 32) + "9F26040080000200"
        for round in 0..<Tier.rounds(20, thorough: 150) {
            var answer = round % 2 == 0 ? Self.clear() : cryptogram
            for _ in 0..<Int.random(in: 0...3, using: &generator) {
                answer[Int.random(in: 0..<answer.count, using: &generator)] = UInt8.random(
                    in: 0...255, using: &generator)
            }
            answer.removeLast(Int.random(in: 0..<answer.count, using: &generator))
            let trace = try trace(
                round % 2 == 0 ? "> apdu \(Self.question.hex)" : vas, "< apdu \(answer.hex)9000")
            let once = redaction.redacted(trace)
            #expect(redaction.redacted(once) == once && TraceRedaction().findings(in: once).isEmpty, "\(answer.hex)")
            #expect(Taint.found(Taint.forms(of: "LOYAL-4711"), in: Data(try once.text().utf8)) == [], "\(answer.hex)")
        }
    }
}
