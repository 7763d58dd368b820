import EMVContactless
import Foundation
import SmartCard
import TestSupport
import Testing

/// What a receipt has to state, from each kernel, and as BER-TLV.
@Suite struct ReceiptFactsTests {
    private static let visa = "84 07 A0 00 00 00 03 10 10"
    private static let cryptogram = "9F 26 08 4A 8C F7 AC 9A 93 78 A0"
    private static let results = "95 05 00 00 00 00 00"

    private static func expect(
        _ facts: ReceiptFacts?, _ objects: String..., at location: SourceLocation = #_sourceLocation
    )
        throws
    {
        try expectEqual(
            facts?.encoded.hex, wire(objects.joined(separator: " ")).hex, sourceLocation: location)
    }

    @Test func kernel3Approves() throws {
        let outcome = try Kernel3Bench.signing.run(SigningCard(qualifiers: "40 00").responses).outcome
        #expect(outcome.kind == .approved && outcome.receiptFacts?.cvmResults == nil)
        #expect(outcome.receiptFacts?.label == "VISA" && outcome.receiptFacts?.cardholderVerification == .signature)
        try Self.expect(
            outcome.receiptFacts, "50 04 56 49 53 41", Self.visa, "9F 27 01 40", Self.cryptogram, Self.results,
            "DF 81 29 08 F0 F0 F0 10 00 F0 FF 00")
    }

    /// With the issuer application data's word for a cryptogram information data that the card does not give.
    @Test(arguments: ["80", nil])
    func kernel3GoesOnline(_ information: String?) throws {
        let outcome = try Kernel3Bench().run(
            processingOptions(cryptogram: information, qualifiers: "80 00", issuerData: "06 01 12 03 A0 00 00")
        ).outcome
        #expect(outcome.kind == .onlineRequest && outcome.receiptFacts?.cardholderVerification == .onlinePIN)
        try Self.expect(
            outcome.receiptFacts, "50 04 56 49 53 41", Self.visa, "9F 27 01 80", Self.cryptogram, Self.results,
            "DF 81 29 08 F0 F0 F0 20 00 F0 FF 00")
    }

    @Test func kernel3Declines() throws {
        let outcome = try Kernel3Bench().run(processingOptions(cryptogram: "00")).outcome
        expectEqual(outcome.kind, .declined)
        try Self.expect(
            outcome.receiptFacts, "50 04 56 49 53 41", Self.visa, "9F 27 01 00", Self.cryptogram, Self.results,
            "DF 81 29 08 F0 F0 F0 00 00 F0 FF 00")
    }

    /// CDCVM: the qualifiers that the card signed say that the device has verified the cardholder.
    @Test func kernel3OnADevice() throws {
        let outcome = try Kernel3Bench().run(processingOptions(qualifiers: "00 80")).outcome
        expectEqual(outcome.receiptFacts?.cardholderVerification, .deviceCVM)
    }

    @Test func kernel2Approves() throws {
        let outcome = try Kernel2Bench.signing.run(MChipCard().read + [Kernel2Vectors.tc.answered]).outcome
        expectEqual(outcome.kind, .approved)
        try Self.expect(
            outcome.receiptFacts, "84 07 A0 00 00 00 04 10 10", "9F 27 01 40", Self.cryptogram,
            "95 05 00 00 00 00 01", "9F 34 03 1F 03 02", "DF 81 29 08 F0 F0 F0 00 00 F0 FF 00")
    }

    @Test func kernel2GoesOnline() throws {
        var bench = Kernel2Bench()
        bench.fci += "50 0A 4D 41 53 54 45 52 43 41 52 44"
        bench.amount = 50_00
        let outcome = try bench.run(MChipCard.unsigned.read + [MChipCard.cryptogram("80")]).outcome
        #expect(outcome.kind == .onlineRequest && outcome.receiptFacts?.cvmResults?.bytes.hex == "420300")
        try Self.expect(
            outcome.receiptFacts, "50 0A 4D 41 53 54 45 52 43 41 52 44", "84 07 A0 00 00 00 04 10 10", "9F 27 01 80",
            Self.cryptogram, "95 05 80 00 04 00 01", "9F 34 03 42 03 00", "DF 81 29 08 F0 F0 F0 20 00 F0 FF 00")
    }

    @Test func kernel2Declines() throws {
        var bench = Kernel2Bench()
        bench.data = ["DF8117": "40"]
        let outcome = try bench.run(MChipCard.unsigned.read + [MChipCard.cryptogram("00")]).outcome
        expectEqual(outcome.kind, .declined, "\(outcome.reason)")
        expectEqual(outcome.receiptFacts?.cryptogramInformationData, 0x00)
    }

    /// A magnetic stripe has no cryptogram, and no verification results.
    @Test func kernel2InMagStripeMode() throws {
        var bench = Kernel2Bench()
        bench.fci += "50 0A 4D 41 53 54 45 52 43 41 52 44  9F 12 02 4D 43  9F 11 01 01"
        bench.amount = 50_00
        let outcome = try bench.run(MagStripeCard().read + [MagStripeCard.checksum()]).outcome
        expectEqual(outcome.kind, .onlineRequest)
        try Self.expect(
            outcome.receiptFacts, "50 0A 4D 41 53 54 45 52 43 41 52 44", "9F 12 02 4D 43  9F 11 01 01",
            "84 07 A0 00 00 00 04 10 10", "DF 81 29 08 F0 F0 F0 10 00 F0 FF 00")
    }

    /// Nothing was decided.
    @Test func otherOutcomesHaveNone() throws {
        try expectEqual(Kernel3Bench().run("69 84").outcome.receiptFacts, nil)
        try expectEqual(Kernel3Bench().run("-").outcome.receiptFacts, nil)
        try expectEqual(Kernel2Bench().run("69 85").outcome.receiptFacts, nil)
    }

    /// 9F12 by the part of ISO/IEC 8859 that 9F11 names; the bytes are those of Python's codecs.
    @Test(
        arguments: [
            ("01", "43 61 66 E9", "Café"), ("02", "A3 F3 64 BC", "Łódź"), ("03", "A1 61 A6", "ĦaĤ"),
            ("04", "D3 C0 BF", "ĶĀŋ"), ("05", "BA D0 E0 E2 D0", "Карта"), ("06", "C8", "\u{628}"),
            ("07", "CA DC F1 F4 E1", "Κάρτα"), ("08", "F9", "\u{5E9}"), ("09", "DE EA F0", "Şêğ"),
            ("10", "BD C5 D6", "―ÅÖ"), ("01", "4D 43 20 20 00", "MC"),
            // No such part, a control character, no character of that part; without 9F11.
            ("00", "4D 43", nil), ("11", "4D 43", nil), ("0A", "4D 43", nil), ("01", "4D 07", nil),
            ("03", "A5 43", nil), (nil, "4D 43", nil),
        ] as [(String?, String, String?)])
    func preferredNames(_ table: String?, _ name: String, _ expected: String?) throws {
        var bench = Kernel2Bench()
        let bytes = try wire(name)
        bench.fci += TLVTag(0x9F12).encode(bytes).hex + (table.map { "9F1101\($0)" } ?? "")
        let outcome = try bench.run(MChipCard.unsigned.read + [MChipCard.cryptogram("80")]).outcome
        let facts = try #require(outcome.receiptFacts)
        expectEqual(facts.preferredName, expected)
        try expectEqual(ReceiptFacts(encoded: facts.encoded), facts)
    }

    @Test func thereAndBackAgain() throws {
        let facts = try #require(
            ReceiptFacts(
                label: "Visa Débit", preferredName: "ВИЗА", codeTable: 5,
                applicationIdentifier: wire("A0 00 00 00 03 10 10"),
                cryptogramInformationData: 0x80, applicationCryptogram: wire("4A 8C F7 AC 9A 93 78 A0"),
                terminalVerificationResults: .cdaFailed, cardholderVerification: .deviceCVM,
                cvmResults: CVMResults([0x01, 0x00, 0x02])))
        #expect(facts.encoded.count <= ReceiptFacts.maximumLength)
        try expectEqual(ReceiptFacts(encoded: facts.encoded), facts)
        try expectEqual(JSONDecoder().decode(ReceiptFacts.self, from: JSONEncoder().encode(facts)), facts)
        #expect("\(facts)" == "receipt facts" && "\(facts as Any)" == "receipt facts")
        for method in Outcome.CVM.allCases {
            let facts = try #require(
                ReceiptFacts(label: nil, applicationIdentifier: [1, 2, 3, 4, 5], cardholderVerification: method))
            try expectEqual(ReceiptFacts(encoded: facts.encoded).cardholderVerification, method)
        }
        expectEqual(
            ReceiptFacts(label: "", applicationIdentifier: [1, 2, 3, 4, 5], cardholderVerification: .none), nil)
        expectEqual(ReceiptFacts(label: nil, applicationIdentifier: [1], cardholderVerification: .none), nil)
    }

    @Test(
        arguments: [
            ("", "84 or DF8129 is missing", 0),
            ("84 05 A0 00 00 00 03", "84 or DF8129 is missing", 7),
            ("DF 81 29 08 F0 F0 F0 10 00 F0 FF 00", "84 or DF8129 is missing", 12),
            ("84 05 A0 00 00 00", "no BER-TLV", 1),
            ("00 84 05 A0 00 00 00 03", "no BER-TLV", 1),
            ("84 04 A0 00 00 00", "84 cannot be that", 0),
            ("84 05 A0 00 00 00 03  84 05 A0 00 00 00 03", "84 occurs twice", 7),
            ("5A 08 47 61 73 90 01 01 00 10", "5A is none of them", 0),
            ("DF 81 29 08 10 F0 F0 10 00 F0 FF 00", "DF8129 cannot be that", 0),
            ("DF 81 29 08 F0 F0 F0 40 00 F0 FF 00", "DF8129 cannot be that", 0),
            ("9F 34 03 1F 03 03", "9F34 cannot be that", 0), ("50 02 4D 20", "50 cannot be that", 0),
            ("9F 11 01 01", "9F11 cannot be that", 0),
            ("84 05 A0 00 00 00 03  DF 81 29 08 F0 F0 F0 10 00 F0 FF 00  50 01 07", "50 cannot be read", 19),
            ("84 05 A0 00 00 00 03  DF 81 29 08 F0 F0 F0 10 00 F0 FF 00  9F 12 01 4D", "9F12 cannot be read", 19),
        ])
    func malformed(_ bytes: String, _ reason: String, _ offset: Int) throws {
        let error = #expect(throws: ReceiptFacts.Malformed.self) { try ReceiptFacts(encoded: wire(bytes)) }
        expectEqual(error.map { $0.reason == reason && $0.offset == offset }, true, "\(error.map { "\($0)" } ?? "")")
    }

    @Test func theirLengthIsBounded() throws {
        let error = #expect(throws: ReceiptFacts.Malformed.self) {
            try ReceiptFacts(encoded: [UInt8](repeating: 0x50, count: 129))
        }
        expectEqual(error?.offset, 128)
    }
}
