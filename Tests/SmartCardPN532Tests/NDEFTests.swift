import SmartCard
import SmartCardPN532
import Testing

/// Expected bytes: the examples of the NFC Forum's specifications.
@Suite struct NDEFTests {
    // MARK: Well-known records

    /// URI Record Type Definition 1.0, Appendix A.1 and A.2: a web address, a telephone number.
    @Test(arguments: [
        ("http://www.nfc.com", "D1 01 08 55 01 6E 66 63 2E 63 6F 6D"),
        ("tel:+35891234567", "D1 01 0D 55 05 2B 33 35 38 39 31 32 33 34 35 36 37"),
        // A.3: no abbreviation.
        (
            "mms://example.com/download.wmv",
            "D1 01 1F 55 00 6D 6D 73 3A 2F 2F 65 78 61 6D 70 6C 65 2E 63 6F 6D 2F 64 6F 77 6E 6C 6F 61 64 2E 77 6D 76"
        ),
        // Table 3: the longest abbreviation that fits.
        ("urn:epc:id:1", "D1 01 02 55 1E 31"), ("urn:x", "D1 01 02 55 13 78"), ("", "D1 01 01 55 00"),
        ("urn:nfc:1", "D1 01 02 55 23 31"), ("https://www.x", "D1 01 02 55 02 78"),
    ])
    func uri(uri: String, hex: String) throws {
        let record = try #require(NDEFRecord.uri(uri))
        #expect(NDEFMessage([record]).bytes.hex(separator: " ") == hex)
        #expect(try NDEFMessage(bytes(hex)).records.map(\.uri) == [uri])
    }

    @Test func urisOfOthers() throws {
        // 24 and above are reserved, and stand for nothing; TNF 03 has the URI in its type.
        #expect(try NDEFMessage(bytes("D1 01 02 55 24 78")).records.first?.uri == "x")
        #expect(try NDEFMessage(bytes("D1 01 02 55 FF 78")).records.first?.uri == "x")
        #expect(try NDEFMessage(bytes("D3 03 00 61 3A 62")).records.first?.uri == "a:b")
        // No UTF-8, no payload, another type.
        for hex in ["D1 01 02 55 00 FF", "D1 01 00 55", "D1 01 02 54 00 78", "D2 01 02 55 00 78", "D3 01 00 FF"] {
            #expect(try NDEFMessage(bytes(hex)).records.map(\.uri) == [nil], "\(hex)")
        }
    }

    /// Text Record Type Definition 1.0, Appendix: "Hello, World!" in English.
    @Test func text() throws {
        let hex = "D1 01 10 54 02 65 6E 48 65 6C 6C 6F 2C 20 57 6F 72 6C 64 21"
        #expect(try NDEFMessage(bytes(hex)).records.map(\.text) == [.init("Hello, World!", language: "en")])
        let record = try #require(NDEFRecord.text("Hello, World!", language: "en"))
        #expect(NDEFMessage([record]).bytes.hex(separator: " ") == hex)
        #expect(NDEFRecord.text("", language: String(repeating: "x", count: 64)) == nil)
        #expect(NDEFRecord.text("", language: "ä") == nil)
        #expect(NDEFRecord.text("ä", language: "")?.text == .init("ä", language: ""))
    }

    /// UTF-16: big-endian by mark or without, little-endian by mark; and what is none.
    @Test func text16() throws {
        func text(_ payload: String) throws -> String? {
            try NDEFRecord(format: .wellKnown, type: [0x54], payload: bytes(payload)).text?.text
        }
        #expect(try text("82 64 65 00 E4 20 AC") == "ä€")
        #expect(try text("82 64 65 FE FF 00 E4") == "ä")
        #expect(try text("82 64 65 FF FE E4 00") == "ä")
        #expect(try text("82 64 65 D8 3D DE 00") == "😀")
        for broken in ["82 64 65 00", "82 64 65 D8 3D", "02 64 65 E4", "02 64", "3F", "02 FF FE 41", ""] {
            #expect(try text(broken) == nil, "\(broken)")
        }
    }

    // MARK: Messages

    /// NDEF 1.0, 3.2: each field of a normal record, and several records.
    @Test func fields() throws {
        let long = [UInt8](repeating: 0x5A, count: 256)
        let message = NDEFMessage([
            try NDEFRecord(format: .external, type: Array("a:b".utf8), id: Array("i".utf8), payload: long),
            try #require(.media("text/plain", [0x41])), .empty, try NDEFRecord(format: .unknown, payload: [1]),
        ])
        // MB IL TNF 4; type 3; payload 256 in four bytes; ID 1 | SR TNF 2 | SR TNF 0 | ME SR TNF 5
        let expected =
            bytes("8C 03 00 00 01 00 01 61 3A 62 69") + long + bytes("12 0A 01") + Array("text/plain".utf8)
            + bytes("41 10 00 00 55 00 01 01")
        #expect(message.bytes == expected)
        #expect(try NDEFMessage(expected) == message)
        #expect(try NDEFMessage([UInt8]()) == NDEFMessage())
        #expect(NDEFMessage().bytes == [])
        #expect(NDEFMessage([.empty]).bytes == bytes("D0 00 00"))
        // TNF 07 is taken for unknown (3.2.6); ID of no bytes.
        #expect(try NDEFMessage(bytes("D7 01 01 54 41")).records == [NDEFRecord(format: .unknown, payload: [0x41])])
        #expect(try NDEFMessage(bytes("D9 01 01 00 54 41")).records.first?.id == [])
    }

    /// NDEF 1.0, 2.3.3: the first chunk has type and ID, the others TNF 06 and no type; the last has no CF.
    @Test func chunks() throws {
        let message = try NDEFMessage(
            bytes(
                """
                BA 01 02 01 54 69 02 65
                36 00 02 6E 48
                26 00 00 00 00 00
                16 00 01 69
                51 01 01 55 00
                """))
        #expect(message.records.count == 2)
        #expect(message.records.first?.format == .media)
        #expect(message.records.first?.payload == bytes("02 65 6E 48 69"))
        #expect(message.records.first?.id == Array("i".utf8))
        #expect(message.records.last?.uri == "")
    }

    @Test(arguments: [
        ("51 01 01 55 00", 0, "message-begin"), ("91 01 01 55 00", 5, "header is cut off"),
        ("91 01 01 55 00 D1 01 01 55 00", 5, "message-begin"), ("D1 01 01 55 00 00", 5, "behind the last"),
        ("D1", 1, "type length"), ("D1 01", 2, "payload length"), ("C1 01 00 00", 2, "payload length"),
        ("D9 01 01", 3, "ID length"), ("D1 02 00 55", 3, "type is cut off"), ("D9 01 00 02 55 00", 5, "ID is cut off"),
        ("D1 01 02 55 00", 4, "payload is cut off"), ("C1 01 FF FF FF FF 55 00", 7, "payload is cut off"),
        ("C1 01 80 00 00 00 55 00", 7, "payload is cut off"), ("D6 00 01 00", 0, "continues"),
        ("B1 01 00 55 11 01 00 55", 4, "next chunk"), ("F1 01 00 55", 0, "inside a chunked"),
        ("B1 01 00 55 16 01 00 55", 4, "next chunk"), ("B1 01 00 55 1E 00 00 00", 4, "next chunk"),
        ("B1 01 00 55 96 00 00", 4, "next chunk"), ("B1 01 00 55", 4, "header is cut off"),
        ("D0 01 00 55", 0, "empty record"), ("D5 01 00 55", 0, "a type where none"),
        ("D1 00 00", 0, "without its type"),
        ("D0 00 01 00", 0, "empty record"),
    ])
    func defects(hex: String, offset: Int, reason: String) {
        #expect {
            _ = try NDEFMessage(bytes(hex))
        } throws: {
            let error = $0 as? NDEFError
            return error?.offset == offset && error?.reason.contains(reason) == true
        }
    }

    @Test func recordsThatCannotBe() {
        #expect(throws: NDEFError.self) { try NDEFRecord(format: .wellKnown) }
        #expect(throws: NDEFError.self) { try NDEFRecord(format: .empty, payload: [0]) }
        #expect(throws: NDEFError.self) { try NDEFRecord(format: .unknown, type: [0]) }
        #expect(throws: NDEFError.self) { try NDEFRecord(format: .media, type: [UInt8](repeating: 0x61, count: 256)) }
        #expect(NDEFRecord.media("", []) == nil)
    }

    /// Every change of one byte, and every end, of a message with all features: a message or an error, and what is
    /// read can be written and read again.
    @Test func hostile() throws {
        let whole = bytes("9A 01 02 01 54 69 02 65 11 01 03 54 02 65 6E 31 01 01 55 04 36 00 01 61 56 00 01 62")
        #expect(try NDEFMessage(whole).records.count == 3)
        for index in whole.indices {
            for value in 0...UInt8.max {
                var mutant = whole
                mutant[index] = value
                guard let message = try? NDEFMessage(mutant) else { continue }
                #expect(try NDEFMessage(message.bytes) == message)
                for record in message.records { _ = (record.uri, record.text) }
            }
            guard index > 0 else { continue }
            #expect(throws: NDEFError.self) { try NDEFMessage(whole[..<index]) }
        }
    }
}
