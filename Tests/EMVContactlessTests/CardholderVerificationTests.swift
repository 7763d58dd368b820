import EMVContactless
import SmartCard
import TestSupport
import Testing

/// EMV Book 3, 10.5 and Annex C3; Book 4, 6.3.4.5; EMV Contactless Book C-2, 7.5.
///
/// Cases marked R have the results of a public implementation of EMV 4.4 that cites the same clauses, in its own tests of
/// CVM list processing.
@Suite struct CardholderVerificationTests {
    /// Online PIN, signature and no CVM.
    private static let all: CVMCapability = [.onlinePIN, .signature, .noCVM]

    private func perform(
        _ rules: String, amounts: String = "00 00 00 00  00 00 00 00", kind: Transaction.Kind = .purchase,
        amount: UInt64 = 20_00, currency: String? = "09 78", terminalType: UInt8? = 0x22,
        capability: CVMCapability = all, procedure: CardholderVerification.Procedure = .book3
    ) throws -> CardholderVerification {
        let list = try #require(CVMList(wire(amounts + rules)))
        return CardholderVerification(
            list, for: try transaction(kind, amount: amount), applicationCurrency: try currency.map { try wire($0) },
            terminalType: terminalType, capability: capability, procedure: procedure)
    }

    /// Each method, and what is told of it.
    @Test(
        arguments: [
            ("02 00", .onlinePIN, "020000", "0000040000"),  // R
            ("42 00", .onlinePIN, "420000", "0000040000"),
            ("1E 00", .signature, "1E0000", "0000000000"),  // R
            ("1F 00", .none, "1F0002", "0000000000"),  // R
            // Fail: there is nothing behind it, whatever bit 7 says (10.5).
            ("00 00", .none, "000001", "0000800000"),
            ("40 00 1F 00", .none, "400001", "0000800000"),  // R
            // Offline PINs, in the clear and enciphered, and with a signature
            ("01 00", .none, "3F0001", "0000900000"), ("03 00", .none, "3F0001", "0000900000"),
            ("04 00", .none, "3F0001", "0000900000"), ("05 00", .none, "3F0001", "0000900000"),
            ("41 00 42 03 1E 03 1F 03", .onlinePIN, "420300", "0000140000"),
            // Reserved, a scheme's and an issuer's own codes, biometrics, and the one that stands for none performed
            ("1D 00", .none, "3F0001", "0000C00000"), ("20 00", .none, "3F0001", "0000C00000"),
            ("30 00", .none, "3F0001", "0000C00000"), ("06 00", .none, "3F0001", "0000C00000"),
            ("3F 00", .none, "3F0001", "0000C00000"),
            ("70 00 1F 00", .none, "1F0002", "0000400000"),  // R
            ("70 00 30 00 1F 00", .none, "3F0001", "0000C00000"),
            // The card's preference decides.
            ("5E 00 02 00", .signature, "5E0000", "0000000000"),
            ("02 00 1E 00", .onlinePIN, "020000", "0000040000"),
        ] as [(String, Outcome.CVM, String, String)])
    func methods(_ rules: String, _ method: Outcome.CVM, _ results: String, _ findings: String) throws {
        let verification = try perform(rules)
        expectEqual(verification.method, method)
        expectEqual(verification.results.bytes.hex, results)
        expectEqual(verification.findings.bytes.hex, findings)
        expectEqual(verification.status, .cardholderVerification)
        // Offline PINs are the contacts' affair, even if the terminal has them.
        let capable = try perform(rules, capability: Self.all.union([.plaintextOfflinePIN, .encipheredOfflinePIN]))
        expectEqual(capable, verification)
    }

    /// What the terminal cannot do: the next rule where the card has it so.
    @Test(
        arguments: [
            ("02 00 1F 00", "3F0001", "0000900000"), ("42 00 1F 00", "1F0002", "0000100000"),
            ("1E 00 1F 00", "3F0001", "0000800000"), ("5E 00 1F 00", "1F0002", "0000000000"),
            ("42 00 5E 00", "3F0001", "0000900000"), ("42 00 40 00", "400001", "0000900000"),
            // 03: if the terminal supports it, without a word if not
            ("02 03 1F 00", "1F0002", "0000000000"), ("1E 03 1F 00", "1F0002", "0000000000"),  // R
            ("30 03 1F 00", "1F0002", "0000000000"), ("01 03 1F 00", "1F0002", "0000000000"),
            ("00 03 1F 00", "000301", "0000800000"), ("1F 03", "1F0302", "0000000000"),
        ])
    func whatTheTerminalCannotDo(_ rules: String, _ results: String, _ findings: String) throws {
        let verification = try perform(rules, capability: .noCVM)
        expectEqual(verification.results.bytes.hex, results)
        expectEqual(verification.findings.bytes.hex, findings)
        expectEqual(verification.method, .none)
    }

    @Test func noCVMHasToBeSupported() throws {
        let verification = try perform("1F 00", capability: [.onlinePIN, .signature])
        expectEqual(verification.results.bytes.hex, "3F0001")
        expectEqual(verification.findings, .cardholderVerificationNotSuccessful)
    }

    /// Annex C3, table 44: for each condition code whether a signature is obtained.  Attended and unattended terminals, and
    /// one that does not say.
    @Test(
        arguments: [
            (.purchase, [0, 2, 3], [0, 2, 3], [0, 3]),
            (.refund, [0, 2, 3], [0, 2, 3], [0, 3]),
            (.cash, [0, 3, 4], [0, 1, 3], [0, 3]),
            (.purchaseWithCashback, [0, 3, 5], [0, 3, 5], [0, 3, 5]),
        ] as [(Transaction.Kind, [UInt8], [UInt8], [UInt8])])
    func conditions(
        _ kind: Transaction.Kind, _ attended: [UInt8], _ unattended: [UInt8], _ unknown: [UInt8]
    ) throws {
        let types: [UInt8?: [UInt8]] = [
            0x11: attended, 0x22: attended, 0x23: attended, 0x14: unattended, 0x25: unattended, 0x36: unattended,
            nil: unknown, 0x20: unknown, 0x27: unknown,
        ]
        for (type, satisfied) in types {
            // 0A and higher are not understood.
            for condition in UInt8.min...UInt8.max where !(6...9).contains(condition) {
                let verification = try perform("1E \([condition].hex)", kind: kind, terminalType: type)
                expectEqual(
                    verification.method == .signature, satisfied.contains(condition),
                    "\(condition) \(String(describing: type))")
                if !satisfied.contains(condition) {
                    expectEqual(verification.results.bytes.hex, "3F0001")  // R
                    expectEqual(verification.findings, .cardholderVerificationNotSuccessful)
                    expectEqual(verification.status, .cardholderVerification)
                }
            }
        }
    }

    /// Under and over X, 50.00, and Y, 100.00; what equals them is neither.
    @Test(
        arguments: [
            (49_99, [6, 8]), (50_00, [8]), (50_01, [7, 8]), (99_99, [7, 8]), (100_00, [7]), (100_01, [7, 9]),
            (0, [6, 8]), (Transaction.maximumAmount, [7, 9]),
        ] as [(UInt64, [UInt8])])
    func amounts(_ amount: UInt64, _ satisfied: [UInt8]) throws {
        for condition in 6...9 as ClosedRange<UInt8> {
            func isObtained(_ currency: String?) throws -> Bool {
                try perform(
                    "1E 0\(condition)", amounts: "00 00 13 88  00 00 27 10", amount: amount, currency: currency
                ).method == .signature
            }
            try expectEqual(isObtained("09 78"), satisfied.contains(condition))
            // Another currency, or none known
            #expect(try !isObtained("08 40"))
            #expect(try !isObtained(nil))
        }
    }

    /// The amounts have 32 bits, and the first is not the second.
    @Test func amountsAreBinary() throws {
        try expectEqual(
            perform("1E 06 1F 00", amounts: "FF FF FF FF 00 00 00 00", amount: 42_949_672_94).method,
            .signature)
        try expectEqual(
            perform("1E 06 1F 00", amounts: "FF FF FF FF 00 00 00 00", amount: 42_949_672_95).method, .none)
        try expectEqual(
            perform("1E 08 1F 00", amounts: "00 00 00 00 FF FF FF FF", amount: 42_949_672_94).method,
            .signature)
    }

    /// Book 3, 7.5 and 10.5: no list, or one without rules.
    @Test func noList() throws {
        let without = try perform("")
        expectEqual(without.results.bytes.hex, "3F0000")  // R
        #expect(without.findings == .iccDataMissing && without.status == [] && without.method == .none)
        let none = CardholderVerification(
            nil, for: try purchase(1), applicationCurrency: nil, terminalType: 0x22, capability: Self.all)
        expectEqual(none, without)
        // AIP byte 1 bit 5
        expectEqual(CardholderVerification.unsupported.results.bytes.hex, "3F0000")
        #expect(CardholderVerification.unsupported.findings == [] && CardholderVerification.unsupported.status == [])
    }

    /// Book C-2, 7.5, CVM.1 to CVM.4
    @Test func onDevice() {
        let required = CardholderVerification.onDevice(isRequired: true)
        #expect(required.method == .deviceCVM && required.results.bytes.hex == "010002")
        let notRequired = CardholderVerification.onDevice(isRequired: false)
        #expect(notRequired.method == .none && notRequired.results.bytes.hex == "3F0002")
        #expect(required.findings == [] && notRequired.findings == [])
    }

    /// Book C-2, 7.5, CVM.9 to CVM.25
    @Test(
        arguments: [
            // CVM.17, CVM.19: what is behind "fail" is tried; CVM.24: if nothing is, "fail" is what is told.
            ("40 00 1F 00", "1F0002", "0000000000"), ("40 00", "400001", "0000800000"),
            ("00 00 1F 00", "000001", "0000800000"),
            // CVM.14: the rules behind it do not apply.
            ("40 00 1E 05", "3F0001", "0000800000"),
            // CVM.25, and no word of PIN pads
            ("01 00", "3F0001", "0000800000"), ("41 00 1F 00", "1F0002", "0000000000"),
            ("70 00 1F 00", "1F0002", "0000400000"), ("30 00", "3F0001", "0000C00000"),
            ("02 00", "020000", "0000040000"), ("1E 00", "1E0000", "0000000000"),
        ])
    func kernel2(_ rules: String, _ results: String, _ findings: String) throws {
        let verification = try perform(rules, procedure: .kernel2)
        expectEqual(verification.results.bytes.hex, results)
        expectEqual(verification.findings.bytes.hex, findings)
        expectEqual(verification.status, .cardholderVerification)
    }

    /// Book 4, Annex A2; as the dictionary names the bits.
    @Test(
        arguments: [
            (.plaintextOfflinePIN, "Plaintext PIN for ICC verification"),
            (.onlinePIN, "Enciphered PIN for online verification"), (.signature, "Signature"),
            (.encipheredOfflinePIN, "Enciphered PIN for offline verification"), (.noCVM, "No CVM required"),
        ] as [(CVMCapability, String)])
    func capabilities(_ bit: CVMCapability, _ meaning: String) {
        expectEqual(DataElement.bitMeanings(of: 0x9F33, value: [0, bit.rawValue, 0]).map(\.meaning), [meaning])
        expectEqual(CVMCapability(terminalCapabilities: [0xFF, bit.rawValue, 0xFF]), bit)
        expectEqual(CVMCapability(terminalCapabilities: [0xFF, 0xFF]), nil)
        expectEqual(CVMCapability(terminalCapabilities: [0xFF, 0xFF, 0xFF, 0xFF]), nil)
    }
}
