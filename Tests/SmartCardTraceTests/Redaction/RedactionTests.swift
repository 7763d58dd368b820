import EMVContactless
import SmartCard
import SmartCardSimulator
import TestSupport
import Testing

@testable import SmartCardTrace

/// 4761739001010010 is a published test account number (EMVCo, Visa); the virtual card "visa" has it.
@Suite(.computing) struct RedactionTests {
    private let redaction = TraceRedaction(key: Array(0..<16))

    private func trace(_ lines: String...) throws -> Trace {
        try Trace(text: "apdu-trace 1\n" + lines.map { "0.000000000 \($0)\n" }.joined())
    }

    /// Reference values: vectors of the authors' implementation, key 00…0F, messages 00… of 0, 1, 8 and 15 bytes
    /// (github.com/veorq/SipHash, vectors.h; the last is Appendix A of the paper).
    @Test(
        "SipHash-2-4 gives the published vectors",
        arguments: [
            (0, 0x726f_db47_dd0e_0e31 as UInt64), (1, 0x74f8_39c5_93dc_67fd), (8, 0x93f5_f579_9a93_2462),
            (15, 0xa129_ca61_49be_45e5),
        ])
    func sipHash(_ count: Int, _ hash: UInt64) {
        #expect(SipHash(key: Array(0..<16)).hash((0..<count).map { UInt8($0) }) == hash)
    }

    private func redactedData(_ hex: String, to command: String = "00B2010C00") throws -> String {
        let redacted = redaction.redacted(try trace("> apdu \(command)", "< apdu \(hex)9000"))
        guard case .received(_, let bytes)? = redacted.events.last?.what else { return "" }
        return bytes.dropLast(2).hex
    }

    /// What stands for the number above, whose form is checked in `form()`.
    private var replacement: String {
        AccountNumbers.Replacement.digits(
            for: [4, 7, 6, 1, 7, 3, 9, 0, 0, 1, 0, 1, 0, 0, 1, 0], key: SipHash(key: Array(0..<16))
        ).map(String.init).joined()
    }

    @Test("a replacement keeps scheme, length and check digit, and depends on the key")
    func form() throws {
        let pan = try #require(PAN(digits: replacement))
        #expect(pan.isLuhnValid)
        #expect(replacement.hasPrefix("476173"))
        #expect(replacement.count == 16)
        #expect(replacement != "4761739001010010")
        let keys = Set(
            (0..<20).map { key in
                AccountNumbers.Replacement.digits(
                    for: [4, 7, 6, 1, 7, 3, 9, 0, 0, 1, 0, 1, 0, 0, 1, 0], key: SipHash(key: [UInt8(key)]))
            })
        #expect(keys.count > 15)
    }

    /// Ranges: Mastercard 2221 to 2720 (Mastercard's announcement of 2014); Discover 622126 to 622925, 6011, 644 to 65
    /// (Discover, IIN routing guide); Maestro 676770 and 676774; American Express 34 and 37; Diners Club 300 to 305; JCB
    /// 3528 to 3589; Mir 2200 to 2204.  The numbers behind them are made up.
    @Test(
        "a replacement is of the same scheme and range",
        arguments: [
            ("2221000000000009", 6), ("2720990000000007", 6), ("6221260000000000", 6), ("6229250000000000", 6),
            ("6767700000000000", 6), ("6767740000000000000", 6), ("378282246310005", 4), ("30569309025904", 4),
            ("3528000000000000", 6), ("2204000000000000", 6), ("630490017740", 4),
        ])
    func ranges(_ number: String, _ kept: Int) throws {
        let digits = number.utf8.map { $0 - 0x30 }
        for key in 0..<50 {
            let replacement = AccountNumbers.Replacement.digits(for: digits, key: SipHash(key: [UInt8(key)]))
            #expect(replacement.count == digits.count && replacement.prefix(kept) == digits.prefix(kept))
            #expect(try #require(PAN(digits: replacement.map(String.init).joined())).isLuhnValid)
            #expect(AccountNumbers.Replacement.isOne(replacement[...]))
        }
    }

    @Test("no two of a thousand cards that differ in their last digits are one, but for a few; the form is rarely met")
    func collisions() {
        let key = SipHash(key: Array(0..<16))
        let numbers = (0..<1000).map { number -> [UInt8] in
            [4, 7, 6, 1, 7, 3] + String(9_000_000_000 + number * 7).utf8.map { $0 - 0x30 }
        }
        // Of 1000 numbers and 100,000 replacements five pairs agree on average.
        #expect(Set(numbers.map { AccountNumbers.Replacement.digits(for: $0, key: key) }).count > 980)
        #expect(numbers.count { AccountNumbers.Replacement.isOne($0[...]) } < 5)
    }

    @Test("PAN, track 2 and track 1: the same number in each form; the rest is masked, its length and structure stay")
    func objects() throws {
        // 70 [ 5A, 57: PAN D 3012 201 discretionary F, 5F20 "DOE/JANE" ]
        let record = "70295A084761739001010010" + "57124761739001010010D301220112345678912F" + "5F2008444F452F4A414E45"
        let expected = "70295A08\(replacement)" + "5712\(replacement)D301220100000000000F" + "5F20085858582F58585858"
        #expect(try redactedData(record) == expected)
        // 56: B4761739001010010^DOE/JANE^3012201123
        let track1 = Array("B4761739001010010^DOE/JANE^3012201123".utf8)
        let covered = Array("B\(replacement)^XXX/XXXX^3012201000".utf8)
        #expect(try redactedData("70275625" + track1.hex) == "70275625" + covered.hex)
    }

    @Test("a number split by GET RESPONSE is found, and in objects nobody knows, as text and as hexadecimal text")
    func hiddenForms() throws {
        let redacted = redaction.redacted(
            try trace(
                "> apdu 00B2010C00", "< apdu 700A5A0847616106", "> apdu 00C0000006",
                "< apdu 7390010100109000"))
        let bytes = redacted.events.compactMap { event -> String? in
            if case .received(_, let bytes) = event.what { bytes.hex } else { nil }
        }
        #expect(bytes == ["700A5A08\(replacement.prefix(4))6106", "\(replacement.dropFirst(4))9000"])
        let text = Array("4761739001010010".utf8)
        #expect(try redactedData("DF0110" + text.hex) == "DF0110" + Array(replacement.utf8).hex)
        let hexText = Array(text.hex.utf8)
        #expect(try redactedData("DF0120" + hexText.hex) == "DF0120" + Array(Array(replacement.utf8).hex.utf8).hex)
        // Begins in the middle of a byte.
        #expect(try redactedData("DF0109A4761739001010010A") == "DF0109A\(replacement)A")
    }

    @Test("PINs, keys, certificates and logs become zeros, notes and errors lose their numbers")
    func others() throws {
        let redacted = redaction.redacted(
            try trace(
                "> apdu 0020008008241234FFFFFFFFFF", "< apdu 9000", "> apdu FF82000006A0A1A2A3A4A5", "< apdu 9000",
                "> apdu 00B2015C00", "< apdu 00112233449000", "> apdu 00B2010C00", "< apdu 70069F4603AABBCC9000",
                #"note "card 4761739001010010""#, "> ccid 6F0500000000010000004761739001", "> rf 0247617390",
                "< escape D5410047617390"))
        let text = try redacted.text()
        #expect(
            text == """
                apdu-trace 1
                0.000000000 redacted account-number certificate key log pin track
                0.000000000 > apdu 00200080080000000000000000
                0.000000000 < apdu 9000
                0.000000000 > apdu FF82000006000000000000
                0.000000000 < apdu 9000
                0.000000000 > apdu 00B2015C00
                0.000000000 < apdu 00000000009000
                0.000000000 > apdu 00B2010C00
                0.000000000 < apdu 70069F46030000009000
                0.000000000 note "card \(replacement)"
                0.000000000 > ccid 6F0500000000010000000000000000
                0.000000000 > rf 0200000000
                0.000000000 < escape D5410000000000

                """)
    }

    /// 630490017740 is a number of twelve digits, as Maestro has them; its check digit is wrong on purpose.
    @Test("in its own data object a number is known without a check digit, and with twelve digits")
    func shortNumber() throws {
        let trace = try trace("> apdu 00B2010C00", "< apdu 70085A066304900177409000", "< apdu 9000")
        #expect(TraceRedaction.eventsWithAccountNumbers(in: trace) == [1])
        let redacted = redaction.redacted(trace)
        #expect(TraceRedaction.eventsWithAccountNumbers(in: redacted).isEmpty)
        guard case .received(_, let bytes)? = redacted.events.dropLast().last?.what else {
            Issue.record("\(redacted)")
            return
        }
        #expect(bytes.hex.hasPrefix("70085A066304") && bytes.hex != "70085A066304900177409000")
        #expect(redaction.redacted(redacted) == redacted)
    }

    @Test("cryptograms go on request only")
    func cryptograms() throws {
        #expect(try redactedData("770B9F2608AABBCCDDEEFF0011") == "770B9F2608AABBCCDDEEFF0011")
        let trace = try trace("> apdu 80A8000002830000", "< apdu 770B9F2608AABBCCDDEEFF00119000")
        let redacted = TraceRedaction(includingCryptograms: true).redacted(trace)
        #expect(redacted.events.last?.what == .received(.apdu, try [UInt8](hex: "770B9F260800000000000000009000")))
    }

    @Test(
        "the scan finds each form, and nothing after redaction",
        arguments: [
            "70 0A 5A 08 4761739001010010", "DF01 10 34373631373339303031303130303130", "DF01 09 A4761739001010010A",
            "57 11 4761739001010010D3012201123456789F",
        ])
    func scan(_ data: String) throws {
        let hex = data.replacing(" ", with: "")
        let trace = try trace("> apdu 00B2010C00", "< apdu \(hex)9000")
        #expect(TraceRedaction.eventsWithAccountNumbers(in: trace) == [1])
        #expect(TraceRedaction.eventsWithAccountNumbers(in: redaction.redacted(trace)).isEmpty)
    }

    @Test(
        "whole transactions of the virtual cards are clean after redaction, shaped as before, and replay",
        arguments: [
            "visa", "mastercard", "two-applications", "emv-cda",
        ])
    func transactions(_ card: String) async throws {
        let inspector = CardInspector(unpredictableNumber: [1, 2, 3, 4], date: [0x25, 0x06, 0x01])
        let recording = try Recording()
        let reader = recording.recorder.recording(virtualReader(card))
        let channel = try await reader.connect()
        let inspection = try await inspector.inspect(WrongLeLayer(GetResponseLayer(channel)))
        #expect(!inspection.applications.isEmpty)
        await channel.disconnect(.leave)
        let trace = try recording.trace()
        #expect(!TraceRedaction.eventsWithAccountNumbers(in: trace).isEmpty)
        let redacted = redaction.redacted(trace)
        #expect(TraceRedaction.eventsWithAccountNumbers(in: redacted).isEmpty)
        // Only the event that says so is new, and every answer is as long as before.
        let rest = redacted.events.filter { if case .redacted = $0.what { false } else { true } }
        #expect(rest.map(Self.shape) == trace.events.map(Self.shape))
        // Redacted again it is the same.
        #expect(Set(redaction.redacted(redacted).events) == Set(redacted.events))
        let replay = ReplayReader(redacted)
        let played = try await inspector.inspect(WrongLeLayer(GetResponseLayer(replay.connect())))
        #expect(played.applications.count == inspection.applications.count)
    }

    private static func shape(_ event: TraceEvent) -> String {
        switch event.what {
        case .sent(let layer, let bytes): "> \(layer) \(bytes.count)"
        case .received(let layer, let bytes):
            "< \(layer) \((try? TLVList(bytes.dropLast(2)))?.flattened.map { "\($0.tag) \($0.value.count)" } ?? [])"
        default: "other"
        }
    }

    /// ISO/IEC 7816-4, 11.6, with data of its own or as objects; GSM 11.11, 9.2.  Rows: command, and what is left of it.
    @Test(
        "a PIN goes from each command that has one, and where Lc is wrong",
        arguments: [
            ("002000800824124FFFFFFFFFFF", "00200080080000000000000000"), ("0021008004C1021234", "002100800400000000"),
            ("00240080043132333400", "00240080040000000000"), ("0025008004C1021234", "002500800400000000"),
            ("A02600010431323334", "A02600010400000000"), ("A02800010431323334", "A02800010400000000"),
            ("002C00800431323334", "002C00800400000000"), ("002D008004C1021234", "002D00800400000000"),
            ("00200080082412", "00200080000000"), ("0020008004241234FFFFFF", "0020008000000000000000"),
            ("0020008002123456", "0020008002000000"), ("0020008000", "0020008000"),
        ])
    func pins(_ command: String, _ expected: String) throws {
        let redacted = redaction.redacted(try trace("> apdu \(command)", "< apdu 9000"))
        let sent = redacted.events.compactMap { if case .sent(_, let bytes) = $0.what { bytes.hex } else { nil } }
        #expect(sent == [expected])
    }

    @Test("an account number in a command to the reader or its answer is found, and gone after redaction")
    func escapes() throws {
        let trace = try trace(
            "> escape E00000", "< escape 4761739001010010", "> escape 34373631373339303031303130303130", "< escape 00")
        #expect(TraceRedaction.eventsWithAccountNumbers(in: trace) == [1, 2])
        let redacted = redaction.redacted(trace)
        #expect(TraceRedaction.eventsWithAccountNumbers(in: redacted).isEmpty)
        #expect(try redacted.text().contains("< escape \(replacement)"))
    }

    @Test("what an ACR122U sends to the card past the reader is redacted on the layer apdu, too")
    func direct() throws {
        let pin = "31323334"
        let redacted = redaction.redacted(
            try trace(
                "> apdu FF00000008D4400100B2010C00", "< apdu D54100700B5F2008444F452F4A414E4590009000",
                "> apdu FF0000000CD440010020008004\(pin)", "< apdu D5410090009000",
                "> apdu FF00000006D442\(pin)", "< apdu D54300\(pin)9000",
                // Lc is wrong.
                "> apdu FF0000000ED440010020008004\(pin)", "< apdu D54100\(pin)90009000"))
        let text = try redacted.text()
        #expect(text.contains("< apdu D54100700B5F20085858582F58585858"))
        #expect(!text.contains(pin) && !text.contains("444F45"))
        #expect(text.contains("> apdu FF0000000CD44001002000800400000000\n"))
    }

    @Test("GET DATA and PUT DATA of a bare value: P1 and P2 are its tag")
    func bareValues() throws {
        let name = Array("DOE/JANE".utf8).hex
        #expect(try redactedData(name, to: "00CA5F2000") == "5858582F58585858")
        #expect(try redactedData("4761739001010010", to: "00CA005A00") == replacement)
        // Looks like an object of tag 44.
        #expect(try redactedData("44024142", to: "00CA5F2000") == "00000000")
        #expect(try redactedData("5F2008" + name, to: "00CA5F2000") == "5F20085858582F58585858")
        #expect(try redactedData("9F36020001", to: "80CA9F3600") == "9F36020001")
        let redacted = redaction.redacted(try trace("> apdu 00DA5F2008\(name)", "< apdu 9000"))
        #expect(try redacted.text().contains("> apdu 00DA5F20085858582F58585858"))
    }

    @Test("behind another separator than that of the standard nothing but the expiry is left of a track")
    func separator() throws {
        #expect(
            try redactedData("70135711" + "4761739001010010E22122011758928889")
                == "70135711\(replacement)E22120000000000000")
    }

    /// Digits that begin in the date check as account numbers, too: 2026110347617 and 61103476173900101.
    @Test("digits before a number take nothing of it: where it is known it alone is replaced, else all that may be one")
    func digitsBefore() throws {
        let date = "2026-11-03 4761 7390 0101 0010"
        let record = "70195A084761739001010010" + "DF010C202611034761739001010010"
        let known = redaction.redacted(
            try trace("> apdu 00B2010C00", "< apdu \(record)9000", #"note "\#(date)""#))
        let text = try known.text()
        let groups = stride(from: 0, to: 16, by: 4).map { String(replacement.dropFirst($0).prefix(4)) }
        #expect(text.contains(#"note "2026-11-03 \#(groups.joined(separator: " "))""#))
        #expect(text.contains("DF010C20261103\(replacement)9000"))
        #expect(TraceRedaction.eventsWithAccountNumbers(in: known).isEmpty)
        let guessed = redaction.redacted(try trace(#"note "\#(date)""#))
        #expect(try !guessed.text().contains("01 0010"))
        #expect(TraceRedaction.eventsWithAccountNumbers(in: guessed).isEmpty)
        #expect(redaction.redacted(guessed) == guessed)
    }

    /// A few digits of 4761739412345609 have the form of a replacement by chance.
    @Test("what has been redacted is looked at like any other: no part of a number makes it a replacement")
    func chanceReplacement() throws {
        let trace = try trace("redacted account-number", #"note "card 4761739412345609""#)
        #expect(TraceRedaction.eventsWithAccountNumbers(in: trace) == [1])
        let redacted = redaction.redacted(trace)
        #expect(try !redacted.text().contains("412345609"))
        #expect(TraceRedaction.eventsWithAccountNumbers(in: redacted).isEmpty)
    }

    /// Tracks 1 and 2 of a record of Kernel 2's magnetic stripe mode: `B5413330089010434^`, the published test number, with
    /// digits behind the name that go on as the number ends.
    @Test("under a hundred keys a record with both tracks keeps its shape")
    func tracksUnderKeys() throws {
        let track1 = Array("B5413330089010434^TAPPER/TESSA^31121010000".utf8).hex
        let trace = try trace("> apdu 00B2010C00", "< apdu 703D562A\(track1)9F6B0E5413330089010434D3112101000F9000")
        for key in 0..<Tier.rounds(10, thorough: 100) {
            let redacted = TraceRedaction(key: [UInt8](repeating: UInt8(key), count: 16)).redacted(trace)
            guard case .received(_, let bytes)? = redacted.events.last?.what else {
                Issue.record("no answer")
                return
            }
            let number = bytes[49...].prefix(8).hex
            let expected = Array("B\(number)^XXXXXX/XXXXX^31121010000".utf8).hex
            #expect(bytes.hex == "703D562A\(expected)9F6B0E\(number)D3112101000F9000", "\(key)")
        }
    }

    /// A blank event is where redaction ends (``TraceSecrets/maximumPasses``): in a trace of nothing else nothing is found,
    /// and it changes no more.
    @Test("a trace of blank events is clean, whatever it was")
    func blankEvents() throws {
        var dice = SplitMix(state: 16)
        for _ in 0..<Tier.rounds(20, thorough: 200) {
            let trace = Trace(try RedactionFormsTests.changed("4761739001010010", &dice))
            let blank = Trace(trace.events.map { TraceEvent(at: $0.time, $0.what.blank) })
            #expect(redaction.findings(in: blank).isEmpty)
            #expect(redaction.redacted(blank).events.filter { $0.what != .redacted([]) } == blank.events)
            #expect(try Trace(text: blank.text()) == blank)
        }
    }
}
