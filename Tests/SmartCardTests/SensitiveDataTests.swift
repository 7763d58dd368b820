import Testing

@testable import SmartCard

@Suite struct SensitiveDataTests {
    @Test(arguments: [
        ("4761739001010010", "476173******0010"),
        ("4761739001010010D2212201", "476173******0010D*******"),
        ("4761739001010010=2212201", "476173******0010=*******"),
        ("541333008901FFFF", "********8901FFFF"),
        ("541333FF", "******FF"),
        ("", ""),
    ])
    func accountNumbers(_ digits: String, _ shown: String) {
        #expect(SensitiveData.maskingAccountNumber(digits) == shown)
    }

    @Test("Names, tracks, IBANs and certificates of cards are among the objects that are not shown")
    func kinds() {
        let kinds = [SensitiveData.names, SensitiveData.tracks, [0x5F53], [0x9F46, 0x9F2D]]
        for tag in kinds.flatMap(\.self) { #expect(SensitiveData.exposures[tag] != nil, "\(tag)") }
    }

    /// ISO/IEC 7812-1, 4: 8 to 19 digits.  PCI SSC, FAQ 1091, in what all brands permit: of 13 to 19 digits the first six and
    /// the last four; of less, which no brand has, not more than half.
    @Test(arguments: [
        ("", ""), ("1", "*"), ("1234567", "*******"),
        ("12345678", "****5678"), ("123456789", "*****6789"), ("1234567890", "******7890"),
        ("12345678901", "*******8901"), ("123456789012", "********9012"),
        ("1234567890123", "123456***0123"), ("12345678901234", "123456****1234"),
        ("123456789012345", "123456*****2345"), ("1234567890123456", "123456******3456"),
        ("12345678901234567", "123456*******4567"), ("123456789012345678", "123456********5678"),
        ("1234567890123456789", "123456*********6789"),
    ])
    func truncation(_ digits: String, _ shown: String) {
        #expect(SensitiveData.maskingAccountNumber(digits) == shown)
        #expect(shown.count == digits.count)
        let count = shown.count { $0 != "*" }
        #expect(count <= 10 && (digits.count >= 13 || 2 * count <= digits.count))
    }

    @Test func constructedObjectsAreMaskedInside() {
        #expect(
            SensitiveData.maskedTLV(bytes("70 0E 5A 08 47 61 73 90 01 01 00 10 5F 20 01 41"))
                == "70[ 5A:476173******0010 5F20:** ]")
        #expect(SensitiveData.maskedTLV([]) == nil)
        #expect(SensitiveData.maskedTLV(bytes("47 61 73 90 01 01 00 10")) == nil)
    }
}

/// Test values: Visa's published test account number 4761739001010010.
@Suite struct MaskedHexTests {
    static let readRecord = CommandAPDU.readRecord(1, sfi: 1)

    @Test func digitForDigit() {
        let record = bytes("70 10 5A 08 47 61 73 90 01 01 00 10 5F 20 01 41 82 00")
        #expect(SensitiveData.maskedHex(record, answering: Self.readRecord) == "70105A08476173******00105F2001**8200")
    }

    @Test(arguments: [
        "34 37 36 31 37 33 39 30 30 31 30 31 30 30 31 30",  // as text
        "44 F4 76 17 39 00 10 10 01 0F",  // half a byte off
        "90 5A 08 47 61 73 90 01 01 00 10",  // the record's length was lost
    ])
    func accountNumbersWithoutTLVAreFound(_ hex: String) throws {
        let getData = try CommandAPDU(bytes("80 CA 9F 4F 00"))
        #expect(SensitiveData.maskedHex(bytes(hex), answering: getData).allSatisfy { $0 == "*" })
    }

    /// DF01 is no one's, and 50 a label: neither is a place for an account number.
    @Test func accountNumbersInOtherObjectsAreHidden() {
        let record = bytes(
            "70 1D DF 01 08 47 61 73 90 01 01 00 10 50 10 34 37 36 31 37 33 39 30 30 31 30 31 30 30 31 30")
        let stars = String(repeating: "*", count: 16)
        let shown = "701DDF0108\(stars)5010\(stars)\(stars)"
        #expect(SensitiveData.maskedHex(record, answering: Self.readRecord) == shown)
        #expect(SensitiveData.maskedTLV(record) == "70[ DF01:\(stars) 50:\(stars)\(stars) ]")
        #expect(SensitiveData.masked(Array("VISA DEBIT".utf8), of: 0x50) == "56495341204445424954")
        // An account number by chance: EMV Book 2's certificates and cryptograms are random.
        #expect(SensitiveData.masked(bytes("47 61 73 90 01 01 00 10"), of: 0x9F26) == "4761739001010010")
    }

    @Test func harmlessBytesAreShown() throws {
        let uid = try CommandAPDU(bytes("FF CA 00 00 00"))
        #expect(SensitiveData.maskedHex(bytes("04 A1 B2 C3 D4 E5 F6"), answering: uid) == "04A1B2C3D4E5F6")
        #expect(SensitiveData.maskedHex(bytes("00 00 00 00 00 00 00 00 00"), answering: uid) == "000000000000000000")
        // But a record of any shape may be anything.
        #expect(SensitiveData.maskedHex(bytes("44 4F 45"), answering: Self.readRecord) == "******")
    }

    /// Commands and the beginning of an answer as proxmark3 has them; the contents are patterns.
    @Test("of passes in a phone's wallet nothing is shown, sealed or not")
    func passesAreHidden() throws {
        let vas = try CommandAPDU(
            bytes("80 CA 01 01 2F 9F 22 02 01 00 9F 25 20" + String(repeating: " A5", count: 32))
                + bytes("9F 26 04 00 80 00 02 00"))
        let answer = bytes("70 0D 9F 2A 02 4B 53 9F 27 05 01 02 03 04 05")
        #expect(SensitiveData.maskedHex(answer, answering: vas) == "700D9F2A02****9F2705**********")
        #expect(
            SensitiveData.maskedTLV(answer, answering: vas) == "70[ 9F2A:**** 9F27:********** ]")
        #expect(SensitiveData.maskedHex(bytes("4B 53"), answering: vas) == "****")
        #expect(
            TrafficLogLayer.text(ResponseAPDU(data: answer, status: .success), answering: vas)
                .hasPrefix("70[ 9F2A:**** 9F27:********** ], 9000"))
        // srq with its version; the rest of the answer.
        for command in ["90 50 00 00 08 D4 03 02 73 72 71 00 01 00", "90 C0 00 00 00"] {
            let command = try CommandAPDU(bytes(command))
            #expect(SensitiveData.maskedHex(bytes("D4 03 01 73 72 73 4B"), answering: command) == "**************")
            #expect(SensitiveData.maskedHex(bytes("5A 02 4B 53"), answering: command) == "5A02****")
        }
        // GET DATA of a payment card, whose CID it is; a command of DESFire.
        let counter = try CommandAPDU(bytes("80 CA 9F 27 00"))
        #expect(SensitiveData.maskedHex(bytes("9F 27 01 80"), answering: counter) == "9F270180")
        let version = try CommandAPDU(bytes("90 60 00 00 00"))
        #expect(SensitiveData.maskedHex(bytes("04 01 01 33"), answering: version) == "04010133")
    }
}
