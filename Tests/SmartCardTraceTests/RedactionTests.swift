import EMVContactless
import SmartCard
import SmartCardSimulator
import Testing

@testable import SmartCardTrace

/// 4761739001010010 is a published test account number (EMVCo, Visa); the virtual card "visa" has it.
@Suite struct RedactionTests {
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
        #expect(replacement.hasPrefix("47610000000"))
        #expect(replacement.count == 16)
        #expect(replacement != "4761739001010010")
        let keys = Set(
            (0..<20).map { key in
                AccountNumbers.Replacement.digits(
                    for: [4, 7, 6, 1, 7, 3, 9, 0, 0, 1, 0, 1, 0, 0, 1, 0], key: SipHash(key: [UInt8(key)]))
            })
        #expect(keys.count > 15)
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
        guard case .received(_, let bytes)? = redacted.events.dropLast().last?.what else { return }
        #expect(bytes.hex.hasPrefix("70085A066304000"))
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
        let inspection = try await inspector.inspect(channel.layered())
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
        let played = try await inspector.inspect(replay.connect().layered())
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
}
