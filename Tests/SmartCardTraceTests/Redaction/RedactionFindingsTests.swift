import SmartCard
import SmartCardTrace
import TestSupport
import Testing

/// What is found before redaction and gone after it, besides account numbers.  4761739001010010 is a published test number
/// (EMVCo, Visa); keys are those of application notes or made of counting bytes.
@Suite struct RedactionFindingsTests {
    private let redaction = TraceRedaction(key: Array(0..<16))

    private func trace(_ lines: [String]) throws -> Trace {
        try Trace(text: "apdu-trace 1\n" + lines.map { "0.000000000 \($0)\n" }.joined())
    }

    /// What redaction makes of `lines`, without the event that tells of it.
    private func redacted(_ lines: [String], by redaction: TraceRedaction? = nil) throws -> [String] {
        let redaction = redaction ?? self.redaction
        let redacted = redaction.redacted(try trace(lines))
        #expect(redaction.findings(in: redacted).isEmpty)
        return try redacted.text().split(separator: "\n").dropFirst()
            .map { String($0.dropFirst("0.000000000 ".count)) }.filter { !$0.hasPrefix("redacted") }
    }

    /// Rows: events, which of them is found, and as what.
    @Test(
        "each kind of item that is left is found in its event",
        arguments: [
            (["> apdu 0020008008241234FFFFFFFFFF", "< apdu 9000"], 0, TraceEvent.RedactedItem.pin),
            (["> apdu FF82000006A0A1A2A3A4A5", "< apdu 9000"], 0, .key),
            (["> apdu 00B2010C00", "< apdu 700B5F2008444F452F4A414E459000"], 1, .name),
            (["> apdu 00B2010C00", "< apdu 70069F4603AABBCC9000"], 1, .certificate),
            (["> apdu 00B2010C00", "< apdu 70059303AABBCC9000"], 1, .certificate),
            (["> apdu 00B2010C00", "< apdu 70059F1F0231329000"], 1, .track),
            (["> apdu 00B2015C00", "< apdu 00112233449000"], 1, .log),
            (["> apdu 00B2010C00", "< apdu 700A5A0847617390010100109000"], 1, .accountNumber),
            (["note \"4761739001010010\""], 0, .accountNumber),
            (["> apdu 00B2010C00", "< apdu 70059F6102AABB9000"], -1, .cryptogram),
        ])
    func kinds(_ lines: [String], _ event: Int, _ item: TraceEvent.RedactedItem) throws {
        let found = redaction.findings(in: try trace(lines))
        #expect(found == (event < 0 ? [:] : [event: [item]]))
        let all = TraceRedaction(key: Array(0..<16), includingCryptograms: true)
        if event < 0 { #expect(all.findings(in: try trace(lines)) == [1: [item]]) }
        _ = try redacted(lines)
    }

    /// A key leaves one digit in ten as it was: a search does not depend on one.
    @Test("a number that two answers hold is found in both, each time", arguments: [8, 10, 12])
    func splitNumbers(_ place: Int) throws {
        let digits = "4761739001010010".map(String.init)
        let (first, last) = (digits[..<place].joined(), digits[place...].joined())
        let lines = [
            "> apdu 00B2010C00", "< apdu 700A5A0847617390010100109000",
            "> apdu 00B0000006", "< apdu 0102\(first)9000", "> apdu 00B0000606", "< apdu \(last)03049000",
        ]
        let trace = try trace(lines)
        #expect(TraceRedaction.eventsWithAccountNumbers(in: trace) == [1, 3, 5])
        var random = Seed.generator(place)
        for _ in 0..<Tier.rounds(30, thorough: 300) {
            let key = (0..<16).map { _ in UInt8.random(in: 0...255, using: &random) }
            #expect(TraceRedaction(key: key).findings(in: trace).keys.sorted() == [1, 3, 5])
        }
    }

    /// 9F61 is the cardholder's identity document number of UnionPay, and CVC3 (Track2) of two bytes (Book C-2).
    @Test("the number of an identity document goes, CVC3 stays")
    func identityDocument() throws {
        let document = Array("E12345678X".utf8)
        #expect(
            try redacted([
                "> apdu 80CA9F6100", "< apdu 9F610A\(document.hex)9000", "> apdu 80CA9F6100", "< apdu 9F6102AABB9000",
                "> apdu 80CA9F6100", "< apdu \(document.hex)9000", "> apdu 80CA9F6100", "< apdu 9F6103AABBCC9000",
            ]).filter { $0.hasPrefix("<") }
                == [
                    "< apdu 9F610A\(Array("X00000000X".utf8).hex)9000", "< apdu 9F6102AABB9000",
                    "< apdu \(Array("X00000000X".utf8).hex)9000", "< apdu 9F61030000009000",
                ])
    }

    /// ISO/IEC 7816-6 (5F48), 7816-8 (7F48); OpenPGP card 3.4, 4.4.3.12 (PUT DATA, odd); GlobalPlatform Card Specification
    /// 11.11 (STORE DATA); Yubico PIV extensions (FE, FF); NXP AN12752 (C4).  Rows: command, and what is left of it.
    @Test(
        "keys go from commands that load them",
        arguments: [
            ("00DA5F4804A0A1A2A3", "00DA5F480400000000"), ("00DB3FFF085F48050102030405", "00DB3FFF085F48050000000000"),
            ("00DB3FFF0A7F48079103A0A1A29200", "00DB3FFF0A7F480700000000000000"),
            // The template tells lengths without values, as OpenPGP has it.
            ("00DB3FFF0E4D0CB8007F48029102" + "5F4802A0A1", "00DB3FFF0E" + String(repeating: "0", count: 28)),
            ("80E28000088000054041424344", "80E28000080000000000000000"),
            ("84E28000043C3D3E3F", "84E280000400000000"), ("80D8008103A0A1A2", "80D8008103000000"),
            ("00FE079A050103A0A1A2", "00FE079A050000000000"), ("00FFFFFF06039B03A0A1A2", "00FFFFFF06000000000000"),
            ("10FE079A03A0A1A2", "10FE079A03000000"), ("90C4000003A0A1A200", "90C400000300000000"),
            ("00DA00D503A0A1A2", "00DA00D503000000"), ("00DA00D303313233", "00DA00D303000000"),
            ("00DA00D503", "00DA00D503"), ("80E28000" + "09A0A1A2", "80E2800000000000"),
        ])
    func keys(_ command: String, _ expected: String) throws {
        #expect(try redacted(["> apdu \(command)", "< apdu 9000"]) == ["> apdu \(expected)", "< apdu 9000"])
    }

    /// GSM 11.11, 9.2.16 and 9.4.1; 3GPP TS 31.102, 7.1.2.1; ISO/IEC 7816-8 (DECIPHER).  P2 of EMV's INTERNAL
    /// AUTHENTICATE is 00 (EMV Book 3, 6.5.9.2).
    @Test("keys go from answers that hold them")
    func answeredKeys() throws {
        let (challenge, answer) = (String(repeating: "55", count: 16), "0102030405060708090A0B0C")
        let zeros = String(repeating: "0", count: 24)
        #expect(
            try redacted([
                "> apdu A088000010\(challenge)", "< apdu 9F0C", "> apdu A0C000000C", "< apdu \(answer)9000",
                "> apdu 0088008122" + "10\(challenge)10\(challenge)", "< apdu 610C", "> apdu 00C000000C",
                "< apdu \(answer)9000", "> apdu 002A80860500A1A2A3A400", "< apdu \(answer)9000",
                "> apdu 00880000041122334400", "< apdu 800C\(answer)9000", "> apdu A0C000000C", "< apdu \(answer)9000",
            ]).filter { $0.hasPrefix("<") }
                == [
                    "< apdu 9F0C", "< apdu \(zeros)9000", "< apdu 610C", "< apdu \(zeros)9000", "< apdu \(zeros)9000",
                    "< apdu 800C\(answer)9000", "< apdu \(answer)9000",
                ])
    }

    /// EMV Book 3, Annex D4: 9F4D is SFI and number of records; DF60 is the same of another log (UnionPay).  Records of a
    /// log are values without tags, which may look like objects.
    @Test("records of the log that the card names go, whatever they look like", arguments: ["9F4D", "DF60"])
    func logs(_ tag: String) throws {
        let count = tag.count / 2 + 3
        let select = [
            "> apdu 00A4040007A000000003101000",
            "< apdu 6F\([UInt8(count + 14)].hex)8407A0000000031010A5\([UInt8(count + 3)].hex)BF0C\([UInt8(count)].hex)\(tag)020B0A9000",
        ]
        let records = [
            // Date, amount and currency, as 9F4F would tell; as they are, and as objects of a template.
            "> apdu 00B2015C00", "< apdu 9A03261103000000009000", "> apdu 00B2025C00", "< apdu 70059A032611039000",
            "> apdu 00B2015C00", "< apdu 9A032611036104", "> apdu 00C0000004", "< apdu 9F0200009000",
            "> apdu 00DC015C039A0100", "< apdu 9000",
        ]
        let zeros = [
            "> apdu 00B2015C00", "< apdu 0000000000000000009000", "> apdu 00B2025C00", "< apdu 000000000000009000",
            "> apdu 00B2015C00", "< apdu 00000000006104", "> apdu 00C0000004", "< apdu 000000009000",
            "> apdu 00DC015C03000000", "< apdu 9000",
        ]
        #expect(try redacted(select + records) == select + zeros)
        // Of another file, data objects stay.
        let other = ["> apdu 00B2020C00", "< apdu 70059A032611039000"]
        #expect(try redacted(select + other) == select + other)
        #expect(redaction.findings(in: try trace(select + records)).values.allSatisfy { $0 == [.log] })
    }

    /// EMV Book 3, 6.5.5: the second GENERATE AC has what CDOL2 (8D) asks for: here 8A, 91 of 8 bytes, 95.
    @Test("with cryptograms, that of the issuer goes from where the second list has it; all goes where no list fits")
    func issuerCryptogram() throws {
        let all = TraceRedaction(key: Array(0..<16), includingCryptograms: true)
        let lists = ["> apdu 00B2010C00", "< apdu 700F8C059F020695058D068A02910895059000"]
        let first = ["> apdu 80AE80000B000000001234000000000000", "< apdu 77039F27009000"]
        let second = "> apdu 80AE40000F3030A1A2A3A4A5A6A7A8112233445500"
        let select = ["> apdu 00A4040000", "< apdu 9000"]
        let expected = "> apdu 80AE40000F30300000000000000000112233445500"
        #expect(
            try redacted(select + lists + first + [second, "< apdu 9000"], by: all)
                == select + lists + first + [expected, "< apdu 9000"])
        let unknown = "> apdu 80AE40000F" + String(repeating: "0", count: 30) + "00"
        #expect(try redacted([second, "< apdu 9000"], by: all) == [unknown, "< apdu 9000"])
        #expect(try redacted(select + lists + [second, "< apdu 9000"], by: all).contains(unknown))
        #expect(try redacted(select + lists + first + [second, "< apdu 9000"]).contains(second))
        #expect(all.findings(in: try trace(select + lists + first + [second, "< apdu 9000"])) == [6: [.cryptogram]])
        // As in pieces, where the lists stand in an earlier one.
        var secrets = TraceSecrets()
        let many =
            select + lists + first
            + [[String]](repeating: ["> apdu 80CA9F3600", "< apdu 9F360200419000"], count: 200)
            .flatMap { $0 } + [second, "< apdu 9000"]
        var reader = TracePieces(TraceReader(text: try trace(many).text()))
        var pieces: [TracePieces.Piece] = []
        while let piece = try reader.next() { pieces.append(piece) }
        for piece in pieces { secrets.learn(from: piece) }
        let events = pieces.flatMap { all.redacted($0, knowing: &secrets, isFirst: false).events }
        let command = try [UInt8](hex: String(expected.dropFirst(7)))
        #expect(pieces.count == 2 && events.contains { $0.what == .sent(.apdu, command) })
    }

    @Test("a product's name is no cardholder's, and a name that was covered is none")
    func noNames() throws {
        func record(_ name: String) -> [String] {
            let text = Array(name.utf8)
            return [
                "> apdu 00B2010C00",
                "< apdu 70\([UInt8(text.count + 3)].hex)5F20\([UInt8(text.count)].hex)\(text.hex)9000",
            ]
        }
        for name in ["MASTERCARD", " /", "XXX/XXXX", "A/B"] {
            let note = "note \"the words MASTERCARD XXX XXXX A B\""
            #expect(try redacted(record(name) + [note]).last == note)
        }
        #expect(
            try redacted(record("DOE/JANE.MS") + ["note \"Jane Doe, doe  jane; Janet Doe\""]).last
                == "note \"XXXX XXX, XXX  XXXX; Janet Doe\"")
    }
}
