import EMVContactless
import SmartCard
import TestSupport
import Testing

/// The account numbers here are published test numbers of the schemes, or made up.
@Suite("Account numbers and tracks")
struct TrackTests {
    @Test(
        "The Luhn check",
        arguments: [
            ("4761739001010010", true), ("4111111111111111", true), ("378282246310005", true),
            ("5413330089010434", true),
            ("6011111111111117", true), ("4111111111111112", false), ("1411111111111111", false),
        ])
    func luhn(_ digits: String, _ valid: Bool) throws {
        try expectEqual(#require(PAN(digits: digits)).isLuhnValid, valid)
    }

    @Test("Packed digits")
    func packed() throws {
        expectEqual(PAN(packed: [0x37, 0x82, 0x82, 0x24, 0x63, 0x10, 0x00, 0x5F])?.digits, "378282246310005")
        expectEqual(
            PAN(packed: [0x47, 0x61, 0x73, 0x90, 0x01, 0x01, 0x00, 0x10, 0xFF, 0xFF])?.digits, "4761739001010010")
        expectEqual(PAN(packed: [0x47, 0x61, 0xF3, 0x90, 0x01]), nil)
        expectEqual(PAN(packed: [0x47, 0x6A, 0x73, 0x90, 0x01]), nil)
        expectEqual(PAN(packed: [UInt8](repeating: 0x11, count: 10)), nil)
        expectEqual(PAN(digits: "1234567"), nil)
        expectEqual(PAN(digits: "４７６１７３９００１０１００１０"), nil)
    }

    /// All the ways in which a value gets into a log by mistake.
    private func printed(_ value: some Any) -> String {
        var dumped = ""
        dump(value, to: &dumped)
        return "\(value)" + String(reflecting: value) + dumped + "\(Optional(value) as Any)" + "\([value])"
    }

    @Test("No way of printing shows the number, the name or what lies on a track")
    func masked() throws {
        let pan = try #require(PAN(digits: "4761739001010010"))
        expectEqual("\(pan)", "476173******0010")
        let one = try Track1("B4761739001010010^TEST/CARD^25122011234567890".utf8.map { $0 })
        let two = try Track2([UInt8](hex: "4761739001010010D25122011234567890"))
        let object = try #require(try TLVList([0x70, 0x0A, 0x5A, 0x08] + [UInt8](hex: "4761739001010010")).first)
        for text in [printed(pan), printed(one), printed(two), printed(Annotation(object))] {
            #expect(!text.contains("4761739001010010"))
            #expect(!text.contains("900101"))
            #expect(!text.contains("TEST"))
            #expect(!text.contains("1234567890"))
            #expect(text.contains("476173******0010"))
        }
    }

    @Test(
        "A number prints in one way, whatever prints it",
        arguments: [
            ("12345678", "****5678"), ("123456789012", "********9012"), ("1234567890123", "123456***0123"),
            ("1234567890123456789", "123456*********6789"),
        ])
    func truncated(_ digits: String, _ shown: String) throws {
        let pan = try #require(PAN(digits: digits))
        let packed = try [UInt8](hex: digits.count.isMultiple(of: 2) ? digits : digits + "F")
        expectEqual(pan.masked, shown)
        #expect(SensitiveData.masked(packed, of: 0x5A).prefix(digits.count) == shown)
        #expect("\(Annotation(try #require(try TLVList([0x5A, UInt8(packed.count)] + packed).first)))".contains(shown))
    }

    @Test("Track 2: separator searched, filling dropped")
    func track2() throws {
        let sixteen = try Track2([UInt8](hex: "4761739001010010 D 2512 201 12345678901 F".replacing(" ", with: "")))
        expectEqual(sixteen.pan.digits, "4761739001010010")
        expectEqual(sixteen.expiration.map { "\($0)" }, "2025-12")
        expectEqual(sixteen.serviceCode, "201")
        expectEqual(sixteen.discretionaryData, "12345678901")
        // Fifteen digits, so that the separator is in the high half of a byte.
        let fifteen = try Track2([UInt8](hex: "378282246310005D2512101123456700".replacing(" ", with: "")))
        expectEqual(fifteen.pan.digits, "378282246310005")
        expectEqual(fifteen.serviceCode, "101")
        expectEqual(fifteen.discretionaryData, "123456700")
        // Nineteen digits and no discretionary data.
        let nineteen = try Track2([UInt8](hex: "6210946888888888883D4912220F"))
        expectEqual(nineteen.pan.digits.count, 19)
        expectEqual(nineteen.expiration?.year, 2049)
        expectEqual(nineteen.discretionaryData, "")
        // Separators in the place of expiry and service code.
        let bare = try Track2([UInt8](hex: "4761739001010010DDD0"))
        expectEqual(bare.expiration, nil)
        expectEqual(bare.serviceCode, nil)
        expectEqual(bare.discretionaryData, "0")
    }

    @Test(
        "What is no track 2 is refused where it stops being one",
        arguments: [
            ("", TrackError.Reason.accountNumber, 0), ("4761739001010010", .accountNumber, 0),
            ("D2512201", .accountNumber, 0), ("47617390A1010010D2512201", .accountNumber, 0),
            ("4761739001010010D25FF", .expiration, 17), ("4761739001010010D2513201F", .expiration, 17),
            ("4761739001010010D251220", .serviceCode, 21), ("4761739001010010D2512201B1", .discretionaryData, 24),
        ])
    func badTrack2(_ hex: String, _ reason: TrackError.Reason, _ offset: Int) throws {
        let bytes = try [UInt8](hex: hex.count % 2 == 0 ? hex : hex + "F")
        let error = #expect(throws: TrackError.self) { try Track2(bytes) }
        expectEqual(error?.reason, reason)
        expectEqual(error?.offset, offset)
        #expect(!"\(try #require(error))".contains("4761739001010010"))
    }

    @Test("Track 1, structure B")
    func track1() throws {
        let track = try Track1("B4761739001010010^TEST/CARD             ^251220100000000".utf8.map { $0 })
        expectEqual(track.pan.digits, "4761739001010010")
        expectEqual(track.name, "TEST/CARD             ")
        expectEqual(track.expiration, ExpirationDate(yymm: "2512"))
        expectEqual(track.serviceCode, "201")
        expectEqual(track.discretionaryData, "00000000")
        // The empty name that contactless cards carry.
        try expectEqual(Track1("B5413330089010434^ /^14122019900990000".utf8.map { $0 }).name, " /")
    }

    @Test(
        "What is no track 1 is refused where it stops being one",
        arguments: [
            ("", TrackError.Reason.formatCode, 0), ("A4761739001010010^A/B^2512201", .formatCode, 0),
            ("B^A/B^2512201", .accountNumber, 1), ("B4761739001010010^A^2512201", .name, 18),
            ("B4761739001010010^A/B", .name, 18), ("B4761739001010010^A/B^25", .expiration, 22),
            ("B4761739001010010^A/B^25122", .serviceCode, 26), ("B47617\u{1}", .character, 6),
        ])
    func badTrack1(_ text: String, _ reason: TrackError.Reason, _ offset: Int) {
        let bytes = Array(text.utf8)
        let error = #expect(throws: TrackError.self) { try Track1(bytes) }
        expectEqual(error?.reason, reason)
        expectEqual(error?.offset, offset)
    }

    @Test("Expiry: the century of EMV Book 4, 6.7.3")
    func expiration() {
        expectEqual(ExpirationDate(yymm: "4912")?.year, 2049)
        expectEqual(ExpirationDate(yymm: "5001")?.year, 1950)
        expectEqual(ExpirationDate(packed: [0x31, 0x12, 0x31]).map { "\($0)" }, "2031-12")
        expectEqual(ExpirationDate(yymm: "2500"), nil)
        expectEqual(ExpirationDate(packed: [0x2A, 0x12]), nil)
        expectEqual(ExpirationDate(packed: [0x25]), nil)
    }
}
