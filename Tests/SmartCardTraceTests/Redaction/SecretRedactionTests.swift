import SmartCard
import Testing

@testable import SmartCardTrace

/// Keys, names and tracks where no data object tells of them.  4761739001010010 is a published test account number (EMVCo,
/// Visa), A0A1A2A3A4A5 and B0B1B2B3B4B5 are the keys of NXP's application notes (AN10787).
@Suite struct SecretRedactionTests {
    private let redaction = TraceRedaction(key: Array(0..<16))

    /// What is left of the events that `lines` are, without the one that says so.
    private func redacted(_ lines: String...) throws -> [String] {
        let trace = try Trace(text: "apdu-trace 1\n" + lines.map { "0.000000000 \($0)\n" }.joined())
        let redacted = redaction.redacted(trace)
        #expect(TraceRedaction.eventsWithAccountNumbers(in: redacted).isEmpty)
        #expect(TraceRedaction(key: Array(16..<32)).redacted(redacted) == redacted)
        return try redacted.text().split(separator: "\n").dropFirst()
            .map { String($0.dropFirst("0.000000000 ".count)) }.filter { !$0.hasPrefix("redacted") }
    }

    /// As it comes from the factory (NXP MF1S50yyX, 8.6.3): access conditions FF 07 80, and 69 behind them.
    private static let trailer = "A0A1A2A3A4A5FF078069B0B1B2B3B4B5"
    private static let blank = "000000000000FF078069000000000000"
    private static let block = "00A1B2C3D4E5F6A7B8C9DAEBFC0D1E2F"

    @Test("the keys of a MIFARE Classic go, whether its blocks are written or read alone, in a row or at once")
    func sectorTrailers() throws {
        let (trailer, blank, block) = (Self.trailer, Self.blank, Self.block)
        #expect(
            try redacted(
                "> apdu FFD6000210\(block)", "< apdu 9000", "> apdu FFD6000310\(trailer)", "< apdu 9000",
                "> apdu FFD6000430\(block)\(trailer)\(block)", "< apdu 9000")
                == [
                    "> apdu FFD6000210\(block)", "< apdu 9000", "> apdu FFD6000310\(blank)", "< apdu 9000",
                    "> apdu FFD6000430\(block)\(blank)\(block)", "< apdu 9000",
                ])
        #expect(
            try redacted(
                "> apdu FFB0000210", "< apdu \(block)9000", "> apdu FFB0000310", "< apdu \(trailer)9000",
                "> apdu FFB0000420", "< apdu \(block)\(trailer)9000")
                == [
                    "> apdu FFB0000210", "< apdu \(block)9000", "> apdu FFB0000310", "< apdu \(blank)9000",
                    "> apdu FFB0000420", "< apdu \(block)\(blank)9000",
                ])
        // A page of four bytes at a time.
        let pages = stride(from: 0, to: 32, by: 8).map { trailer.dropFirst($0).prefix(8) }
        let read = try redacted(
            "> apdu FFB0000004", "< apdu \(pages[0])9000", "> apdu FFB0000104", "< apdu \(pages[1])9000",
            "> apdu FFB0000204", "< apdu \(pages[2])9000", "> apdu FFB0000304", "< apdu \(pages[3])9000")
        #expect(read.filter { $0.hasPrefix("<") }.map { $0.dropFirst(7).dropLast(4) }.joined() == blank)
    }

    /// LOAD KEYS (PC/SC part 3, 3.2.2.1.4), UPDATE BINARY (3.2.2.1.9), PUT KEY (GlobalPlatform Card Specification, 11.8).
    @Test(
        "a key goes where Lc is wrong, too",
        arguments: [
            ("FF82000007A0A1A2A3A4A5", "FF82000000000000000000"), ("FF82000005A0A1A2A3A4A5", "FF82000005000000000000"),
            ("FFD6000311\(trailer)", "FFD60003\(String(repeating: "0", count: 34))"),
            ("FFD600030F\(trailer)", "FFD600030F\(blank)"),
            ("80D8008143018010A0A1A2A3A4A5", "80D8008100000000000000000000"),
            ("84D8008108A0A1A2A3A4A5", "84D8008100000000000000"),
        ])
    func keysBehindWrongLengths(_ command: String, _ expected: String) throws {
        #expect(try redacted("> apdu \(command)", "< apdu 9000") == ["> apdu \(expected)", "< apdu 9000"])
    }

    /// The data objects of a transparent session (PC/SC part 3, supplemental document 2.02): 90 flags, 95 Transceive; C0
    /// status, 92 framing, 96 response status, 97 ICC Response.  What is sent is VERIFY; what comes, a name.
    @Test("what a transparent session sends to the card, and has from it, goes", arguments: ["apdu", "escape"])
    func transparentSession(_ layer: String) throws {
        let verify = "0A0000200080" + "0824123456FFFFFFFF"
        let name = "0A00700B5F2008444F452F4A414E459000"
        #expect(
            try redacted(
                "> \(layer) FFC200010F950D" + "0A002000800431323334" + "AABBCC" + "00",
                "< \(layer) C00300900092010096020000" + "9711\(name)9000",
                "> \(layer) FFC2000111\(verify)0000", "< \(layer) \(name)6F00")
                == [
                    "> \(layer) FFC200010F950D" + String(repeating: "00", count: 13) + "00",
                    "< \(layer) C00300900092010096020000" + "9711" + String(repeating: "00", count: 17) + "9000",
                    // What is sent without an object looks like some by chance, and so does what comes.
                    "> \(layer) FFC20001110A000020008008" + "0000000000000000" + "0000",
                    "< \(layer) 0A00700B5F2008" + "0000000000000000" + "90006F00",
                ])
    }

    @Test("a command for a storage card is one where commands to the reader go, and so is its answer")
    func pseudoAPDUs() throws {
        let (trailer, blank) = (Self.trailer, Self.blank)
        #expect(
            try redacted(
                "> escape FF82000006A0A1A2A3A4A5", "< escape 9000", "> escape FFD6000310\(trailer)", "< escape 9000",
                "> escape E00000", "< escape E100000000", "> escape FFB0000310", "< escape \(trailer)9000")
                == [
                    "> escape FF82000006000000000000", "< escape 9000", "> escape FFD6000310\(blank)", "< escape 9000",
                    "> escape E00000", "< escape E100000000", "> escape FFB0000310", "< escape \(blank)9000",
                ])
    }

    /// TgSetData, TgGetData and its answer, TgResponseToInitiator, TgGetInitiatorCommand's answer, GetFirmwareVersion and
    /// its answer (NXP UM0701-02, 7.2.2 and 7.3.14 to 7.3.20).
    @Test("of a command to a PN532 and its answer only the beginning stays, but where they are of the chip itself")
    func directCommands() throws {
        #expect(
            try redacted(
                "> escape FF00000006D48E31323334", "< escape D58F009000", "> escape FF00000002D486",
                "< escape D58700313233349000", "> escape FF00000006D49031323334", "< escape D591009000",
                "> escape FF00000002D488", "< escape D58900313233349000", "> escape FF00000002D402",
                "< escape D503320106079000")
                == [
                    "> escape FF00000006D48E00000000", "< escape D58F000000", "> escape FF00000002D486",
                    "< escape D58700000000000000", "> escape FF00000006D49000000000", "< escape D591000000",
                    "> escape FF00000002D488", "< escape D58900000000000000", "> escape FF00000002D402",
                    "< escape D503320106079000",
                ])
    }

    /// Track 2 Discretionary Data, last four digits, tracks 2 and 3, DD Card (Track2): packed digits that are letters and
    /// signs of ASCII, too.  Track 1 Discretionary Data is text.
    @Test(
        "packed digits that look like text become zeros, text keeps its shape",
        arguments: [
            ("9F25022529", "9F25020000"), ("9F20024057", "9F20020000"), ("58024057", "58020000"),
            ("5F22024057", "5F22020000"), ("5F23024057", "5F23020000"), ("DF812B024057", "DF812B020000"),
            ("9F1F0331412F", "9F1F0330582F"),
        ])
    func packedDigits(_ object: String, _ expected: String) throws {
        let count = [UInt8(object.count / 2)].hex
        #expect(
            try redacted("> apdu 00B2010C00", "< apdu 70\(count)\(object)9000")
                == ["> apdu 00B2010C00", "< apdu 70\(count)\(expected)9000"])
    }

    @Test("behind a number, track data goes from text, hexadecimal text and packed digits: name, discretionary data")
    func tracks() throws {
        let number = "4761739001010010"
        let new = AccountNumbers.Replacement.digits(
            for: number.utf8.map { $0 - 0x30 }, key: SipHash(key: Array(0..<16))
        )
        .map(String.init).joined()
        for (track, expected) in [
            ("\(number)=22122011143804400000", "\(new)=22122010000000000000"),
            ("\(number)D22122011143804400000F", "\(new)D22122010000000000000F"),
            ("%B\(number)^DOE/JANE.MS ^22122011143804489?", "%B\(new)^XXX/XXXX.XX ^22122010000000000?"),
            ("B\(number)^DOE/JANE", "B\(new)^XXX/XXXX"),
        ] {
            #expect(try redacted("note \"\(track)\"") == ["note \"\(expected)\""])
            let (hex, hexExpected) = (Array(track.utf8).hex, Array(expected.utf8).hex)
            #expect(try redacted("note \"\(hex)\"") == ["note \"\(hexExpected)\""])
            let spaced = { (hex: String) in
                stride(from: 0, to: hex.count, by: 2).map { String(hex.dropFirst($0).prefix(2)) }.joined(separator: " ")
            }
            #expect(try redacted("note \"\(spaced(hex))\"") == ["note \"\(spaced(hexExpected))\""])
        }
        #expect(
            try redacted("> apdu 80CA9F5000", "< apdu EE\(number)D221220111438044899000").last
                == "< apdu EE\(new)D221220100000000009000")
    }

    @Test("a number in a key of meta data or in an ATR is found, and gone after redaction; TCK is right")
    func metaAndATR() throws {
        let packed = try [UInt8](hex: "3B8A01" + "804761739001010010AA")
        let atr = packed + [packed.dropFirst().reduce(0, ^)]
        let trace = try Trace(
            text: """
                apdu-trace 1
                0.000000000 meta card.4761739001010010 "x"
                0.000000000 slot card \(atr.hex)
                0.000000000 connect T=1 \(atr.hex)
                0.000000000 > apdu 00B2010C00
                0.000000000 < apdu 700A5A0847617390010100109000

                """)
        #expect(TraceRedaction.eventsWithAccountNumbers(in: trace) == [0, 1, 2, 4])
        let redacted = redaction.redacted(trace)
        #expect(TraceRedaction.eventsWithAccountNumbers(in: redacted).isEmpty)
        #expect(try !redacted.text().contains("9001010010"))
        let atrs = redacted.events.compactMap { if case .connected(let atr, _) = $0.what { atr.bytes } else { nil } }
        #expect(atrs.count == 1 && atrs[0].count == atr.count && atrs[0].dropFirst().reduce(0, ^) == 0)
        // The text can be read again.
        #expect(try Trace(text: redacted.text()) == redacted)
    }

    /// READ RECORD waits, from the piece before; a command to the chip of the reader makes this one be raised.
    @Test("an answer is that of the command that waited when the piece began, with commands to the chip behind it, too")
    func openBehindRaising() throws {
        let trace = try Trace(
            text: """
                apdu-trace 1
                0.000000000 < apdu 00112233449000
                0.000000000 > apdu FF00000002D402
                0.000000000 < apdu D503320106079000

                """)
        let open = try [UInt8](hex: "00B2010C00")
        let first = try #require(LayeredMessages(trace, behind: [open]).messages.first)
        guard case .response(let command, _) = first.kind else {
            Issue.record("\(first.kind)")
            return
        }
        #expect(try command == CommandAPDU(open))
    }

    @Test(
        "no answer comes to a command behind which the card is connected or reset",
        arguments: ["connect T=1 3B80800101", "reset"])
    func begunAnew(_ event: String) throws {
        let text = """
            apdu-trace 1
            0.000000000 > apdu 00B2010C00
            0.000000000 \(event)
            0.000000000 > apdu 00A4000000
            0.000000000 < apdu 6A82

            """
        let trace = try Trace(text: text)
        let exchanges = trace.exchanges()
        #expect(exchanges.map(\.answer) == [nil, .bytes([0x6A, 0x82])])
        let answered = TraceMessage.all(in: trace).compactMap { message -> CommandAPDU? in
            if case .response(let command, _) = message.kind { command } else { nil }
        }
        #expect(try answered == [CommandAPDU([UInt8](hex: "00A4000000"))])
        var pieces = TracePieces(TraceReader(text: text + String(repeating: "0.000000000 note \"x\"\n", count: 8_200)))
        _ = try pieces.next()
        #expect(try pieces.next()?.open.isEmpty == true)
    }
}
