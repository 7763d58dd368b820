import SmartCard
import SmartCardSimulator
import TestSupport
import Testing

@testable import EMVContactless

/// A reader advertises only what its configuration can do (EMV Contactless Book A, table 5-4; EMV Book 4, Annexes A1 to A3;
/// Book C-2, A.1).
@Suite struct ReaderAbilitiesTests {
    private typealias Abilities = Set<ReaderConfiguration.Ability>

    private static func configuration(_ abilities: Abilities, _ type: UInt8 = 0x22) -> ReaderConfiguration {
        var configuration = ReaderConfiguration.unattendedTest
        configuration.abilities = abilities
        configuration.terminal[0x9F35] = [type]
        return configuration
    }

    @Test(
        arguments: [
            // Abilities; 9F35; TTQ; 9F33 of Kernel 3 and of Kernel 2; 9F40; DF8117, DF8118, DF8119, DF811E, DF812C
            ([], 0x25, "2000C000", "000800", "000808", "F000000000", "00 00 08 F0 00"),
            ([], 0x22, "2000C000", "000800", "000808", "F000000000", "00 00 08 F0 00"),
            ([.pinPad], 0x22, "2400C000", "004800", "004808", "F000A00000", "00 40 08 20 00"),
            ([.pinPad], 0x24, "2400C000", "004800", "004808", "F000A00000", "00 40 08 20 00"),
            ([.pinPad], 0x23, "2800C000", "000800", "000808", "F000A00000", "00 00 08 F0 00"),
            ([.paper], 0x21, "2200C000", "002800", "002808", "F000008000", "00 20 08 10 00"),
            ([.paper], 0x25, "2000C000", "000800", "000808", "F000004000", "00 00 08 F0 00"),
            ([.screen], 0x22, "2200C000", "002800", "002808", "F00000A000", "00 20 08 10 00"),
            ([.screen], 0x25, "2000C000", "000800", "000808", "F000005000", "00 00 08 F0 00"),
            ([.display], 0x22, "2000C000", "000800", "000808", "F000002000", "00 00 08 F0 00"),
            ([.display], 0x34, "2000C000", "000800", "000808", "F000001000", "00 00 08 F0 00"),
            ([.keyboard], 0x22, "2000C000", "000800", "000808", "F000F00000", "00 00 08 F0 00"),
            ([.contacts], 0x25, "3000C000", "200800", "200808", "F000000000", "20 00 08 F0 00"),
            ([.magneticStripe], 0x25, "2000C000", "400800", "400808", "F000000000", "40 00 08 F0 00"),
            ([.manualKeyEntry], 0x22, "2000C000", "800800", "800808", "F000800000", "80 00 08 F0 00"),
            (
                Set(ReaderConfiguration.Ability.allCases), 0x22, "3600C000", "E06800", "E06808", "F000F0A000",
                "E0 60 08 10 00"
            ),
        ] as [(Set<ReaderConfiguration.Ability>, UInt8, String, String, String, String, String)])
    func whatFollows(
        _ abilities: Set<ReaderConfiguration.Ability>, _ type: UInt8, _ qualifiers: String, _ ofKernel3: String,
        _ ofKernel2: String, _ additional: String, _ capabilities: String
    ) throws {
        let configuration = Self.configuration(abilities, type)
        try configuration.validated()
        let advertised = configuration.advertised()
        try advertised.validated()
        for combination in advertised.combinations { expectEqual(combination.data[0x9F40]?.hex, additional) }
        for combination in advertised.combinations where combination.kernel == 3 {
            expectEqual(combination.terminalTransactionQualifiers?.bytes.hex, qualifiers)
            expectEqual(combination.data[0x9F33]?.hex, ofKernel3)
            expectEqual(combination.data[0xDF8117], nil)
        }
        for combination in advertised.combinations where combination.kernel == 2 {
            expectEqual(combination.data[0x9F33]?.hex, ofKernel2)
            let values = [0xDF8117, 0xDF8118, 0xDF8119, 0xDF811E, 0xDF812C].flatMap {
                combination.data[TLVTag(rawValue: $0)] ?? []
            }
            expectEqual(values, try wire(capabilities))
        }
    }

    /// Byte 1 of 9F40: cash, goods, services, cashback.
    @Test(
        arguments: [
            ([.purchase], "60"), ([.cash], "80"), ([.purchaseWithCashback], "70"), ([.refund], "00"),
            ([.purchase, .refund], "60"), ([.purchase, .cash], "E0"),
        ] as [(Set<Transaction.Kind>, String)])
    func typesOfTransactions(_ types: Set<Transaction.Kind>, _ byte: String) throws {
        var configuration = Self.configuration([])
        configuration.combinations[0].transactionTypes = types
        try configuration.validated()
        expectEqual(configuration.advertised().combinations[0].data[0x9F40]?.hex, byte + "00000000")
        expectEqual(configuration.advertised().combinations[1].data[0x9F40]?.hex, "F000000000")
    }

    /// A combination's own terminal type counts for it, and for what the terminal sets.
    @Test func theCombinationsTerminalType() throws {
        var configuration = Self.configuration([.paper])
        configuration.combinations[0].data[0x9F35] = [0x25]
        try configuration.validated()
        let data = configuration.advertised().combinations.map { $0.data[0x9F33]?.hex }
        #expect(data[0] == "000800" && data[1] == "002800")
        configuration.terminal[0x9F33] = [0x00, 0x28, 0x00]
        let error = #expect(throws: ConfigurationError.self) { try configuration.validated() }
        #expect(error?.path == "combinations[0].data.9F33" && error?.reason.contains("9F35") == true)
    }

    @Test(arguments: [0x00, 0x17, 0x20, 0x31, 0x37, 0x42] as [UInt8]) func noTerminalType(_ type: UInt8) throws {
        let error = #expect(throws: ConfigurationError.self) { try Self.configuration([], type).validated() }
        #expect(error?.path == "terminal.9F35" && error?.reason.contains("Annex A1") == true)
    }

    /// What is set to less stays.
    @Test func lessMayBeAdvertised() throws {
        var configuration = Self.configuration(Set(ReaderConfiguration.Ability.allCases))
        configuration.terminal[0xDF8118] = [0x40]
        configuration.terminal[0x9F33] = [0x20, 0x08, 0x08]
        configuration.terminal[0x9F40] = [0x60, 0x00, 0x80, 0x50, 0x01]
        try configuration.validated()
        let combination = try #require(configuration.advertised().combinations.first { $0.kernel == 2 })
        for tag in [0xDF8118, 0x9F33, 0x9F40] as [TLVTag] { expectEqual(combination.data[tag], nil) }
        // Byte 1 of Kernel 2's 9F33 follows from DF8117, where that is set.
        configuration.terminal[0x9F33] = nil
        configuration.terminal[0xDF8117] = [0x20]
        for combination in configuration.advertised().combinations {
            expectEqual(combination.data[0x9F33]?.hex, combination.kernel == 2 ? "206808" : "E06800")
        }
    }

    @Test("a kernel's own data objects are checked by a reader that has the kernel")
    func dataOfAKernel() throws {
        var configuration = Self.configuration([])
        configuration.terminal[0xDF8117] = [0x80]
        #expect(throws: ConfigurationError.self) { try configuration.validated() }
        try configuration.validated(for: [3: Kernel3.self])
        let advertised = configuration.advertised(for: [3: Kernel3.self])
        #expect(advertised.combinations.allSatisfy { $0.data[0x9F33]?.hex == "000800" && $0.data[0xDF8118] == nil })
    }

    @Test(
        arguments: [
            // Abilities; 9F35; tag; value; the bit; what is missing
            ([], 0x22, 0x9F33, "80 00 00", "byte 1 bit 8: Manual key entry", "add “manualKeyEntry”"),
            ([], 0x22, 0x9F33, "40 00 00", "byte 1 bit 7: Magnetic stripe", "add “magneticStripe”"),
            ([], 0x22, 0x9F33, "20 00 00", "byte 1 bit 6: IC with contacts", "add “contacts”"),
            ([], 0x22, 0x9F33, "00 80 00", "byte 2 bit 8", "add “pinPad”"),
            ([.pinPad], 0x22, 0x9F33, "00 80 00", "byte 2 bit 8", "add “contacts”"),
            ([.paper], 0x22, 0x9F33, "00 40 00", "byte 2 bit 7", "add “pinPad”"),
            ([.pinPad], 0x23, 0x9F33, "00 40 00", "byte 2 bit 7", "9F35, be one that goes online"),
            ([.pinPad], 0x22, 0x9F33, "00 20 00", "byte 2 bit 6: Signature", "add “paper”"),
            ([.pinPad], 0x22, 0x9F33, "00 20 00", "byte 2 bit 6: Signature", "add “screen”"),
            ([.screen], 0x25, 0x9F33, "00 20 00", "byte 2 bit 6: Signature", "9F35, be an attended one"),
            ([.screen], 0x22, 0x9F33, "00 10 00", "byte 2 bit 5", "add “pinPad”"),
            ([.pinPad], 0x22, 0x9F33, "00 10 00", "byte 2 bit 5", "add “contacts”"),
            ([.display], 0x22, 0x9F40, "00 00 80 00 00", "byte 3 bit 8: Numeric keys", "add “pinPad”"),
            ([.pinPad], 0x22, 0x9F40, "00 00 40 00 00", "byte 3 bit 7: Alphabetic", "add “keyboard”"),
            ([.manualKeyEntry], 0x22, 0x9F40, "00 00 20 00 00", "byte 3 bit 6: Command keys", "add “pinPad”"),
            ([.pinPad], 0x22, 0x9F40, "00 00 10 00 00", "byte 3 bit 5: Function keys", "add “keyboard”"),
            ([.display], 0x22, 0x9F40, "00 00 00 80 00", "byte 4 bit 8: Print", "add “paper”"),
            ([.paper], 0x24, 0x9F40, "00 00 00 80 00", "byte 4 bit 8: Print", "9F35, be an attended one"),
            ([.display], 0x22, 0x9F40, "00 00 00 40 00", "byte 4 bit 7: Print", "add “paper”"),
            ([.paper], 0x22, 0x9F40, "00 00 00 20 00", "byte 4 bit 6: Display, attendant", "add “display”"),
            ([.display], 0x36, 0x9F40, "00 00 00 20 00", "byte 4 bit 6: Display", "9F35, be an attended one"),
            ([.paper], 0x22, 0x9F40, "00 00 00 10 00", "byte 4 bit 5: Display, cardholder", "add “display”"),
            ([], 0x22, 0xDF8117, "80", "byte 1 bit 8: Manual key entry", "add “manualKeyEntry”"),
            ([], 0x22, 0xDF8117, "40", "byte 1 bit 7: Magnetic stripe", "add “magneticStripe”"),
            ([], 0x22, 0xDF8117, "20", "byte 1 bit 6: IC with contacts", "add “contacts”"),
            ([.contacts], 0x22, 0xDF8118, "80", "byte 1 bit 8", "add “pinPad”"),
            ([], 0x22, 0xDF8118, "40", "byte 1 bit 7", "add “pinPad”"),
            ([.pinPad], 0x26, 0xDF8118, "40", "byte 1 bit 7", "9F35, be one that goes online"),
            ([.pinPad], 0x22, 0xDF8118, "60", "byte 1 bit 6", "add “paper”"),
            ([.paper], 0x15, 0xDF8118, "20", "byte 1 bit 6", "9F35, be an attended one"),
            ([.pinPad], 0x22, 0xDF8118, "10", "byte 1 bit 5", "add “contacts”"),
            ([.pinPad], 0x22, 0xDF8119, "80", "byte 1 bit 8", "add “contacts”"),
            ([], 0x22, 0xDF8119, "40", "byte 1 bit 7", "add “pinPad”"),
            ([], 0x22, 0xDF8119, "20", "byte 1 bit 6", "add “paper”"),
            ([], 0x22, 0xDF8119, "10", "byte 1 bit 5", "add “pinPad”"),
            ([], 0x22, 0xDF811E, "10", "byte 1 bits 8-5", "add “paper”"),
            ([.paper], 0x22, 0xDF811E, "20", "byte 1 bits 8-5", "add “pinPad”"),
            ([], 0x22, 0xDF812C, "10", "byte 1 bits 8-5", "add “paper”"),
            ([], 0x22, 0xDF812C, "20", "byte 1 bits 8-5", "add “pinPad”"),
        ] as [(Set<ReaderConfiguration.Ability>, UInt8, TLVTag, String, String, String)])
    func contradictions(
        _ abilities: Set<ReaderConfiguration.Ability>, _ type: UInt8, _ tag: TLVTag, _ value: String, _ bit: String,
        _ hint: String
    ) throws {
        var configuration = Self.configuration(abilities, type)
        configuration.terminal[tag] = try wire(value)
        var error = #expect(throws: ConfigurationError.self) { try configuration.validated() }
        expectEqual(error?.path, "terminal.\(tag)")
        #expect(
            error?.reason.hasPrefix("\(tag) \(bit)") == true && error?.reason.contains(hint) == true, "\(error as Any)")
        configuration.terminal[tag] = nil
        configuration.combinations[1].data[tag] = try wire(value)
        error = #expect(throws: ConfigurationError.self) { try configuration.validated() }
        expectEqual(error?.path, "combinations[1].data.\(tag)")
    }

    @Test(
        arguments: [
            ([], 0x22, .emvContactChip, "byte 1 bit 5", "add “contacts”"),
            ([], 0x22, .offlineOnlyReader, "byte 1 bit 4", "9F35, be one that never goes online"),
            ([], 0x21, .offlineOnlyReader, "byte 1 bit 4", "9F35, be one that never goes online"),
            ([], 0x22, .onlinePIN, "byte 1 bit 3", "add “pinPad”"),
            ([.pinPad], 0x16, .onlinePIN, "byte 1 bit 3", "9F35, be one that goes online"),
            ([], 0x22, .signature, "byte 1 bit 2", "add “screen”"),
            ([.screen], 0x25, .signature, "byte 1 bit 2", "9F35, be an attended one"),
            ([], 0x22, .contactChipOfflinePIN, "byte 2 bit 6", "add “pinPad”"),
            ([.pinPad], 0x22, .contactChipOfflinePIN, "byte 2 bit 6", "add “contacts”"),
        ] as [(Set<ReaderConfiguration.Ability>, UInt8, TerminalTransactionQualifiers, String, String)])
    func contradictionsOfTheQualifiers(
        _ abilities: Set<ReaderConfiguration.Ability>, _ type: UInt8, _ bit: TerminalTransactionQualifiers,
        _ place: String, _ hint: String
    ) throws {
        var configuration = Self.configuration(abilities, type)
        configuration.combinations[0].terminalTransactionQualifiers?.insert(bit)
        let error = #expect(throws: ConfigurationError.self) { try configuration.validated() }
        expectEqual(error?.path, "combinations[0].terminalTransactionQualifiers")
        #expect(
            error?.reason.hasPrefix("9F66 \(place)") == true && error?.reason.contains(hint) == true, "\(error as Any)")
    }

    /// The names that JSON has.
    @Test func names() throws {
        expectEqual(
            ReaderConfiguration.Ability.allCases.map(\.rawValue),
            [
                "pinPad", "paper", "screen", "display", "keyboard", "contacts", "magneticStripe", "manualKeyEntry",
            ])
    }

    /// Above the limit, on a reader that has nothing but its antenna: a device verifies; a card that would have a PIN or a
    /// signature is declined (Book C-3, 5.7.1.3), or its issuer told that verification has failed (Book C-2, 7.5).
    @Test(
        arguments: [
            ("visa", 49_99, .onlineRequest, Outcome.CVM.none, nil), ("visa", 50_00, .declined, Outcome.CVM.none, nil),
            ("visa-online-pin", 50_00, .declined, Outcome.CVM.none, nil),
            ("visa-signature", 50_00, .declined, Outcome.CVM.none, nil),
            ("visa-cdcvm", 50_00, .onlineRequest, .deviceCVM, nil),
            ("mastercard", 49_99, .onlineRequest, Outcome.CVM.none, "1F0302"),
            ("mastercard", 50_00, .onlineRequest, Outcome.CVM.none, "3F0001"),
            ("mastercard-phone-ready", 60_00, .onlineRequest, .deviceCVM, "010002"),
        ] as [(String, UInt64, Outcome.Kind, Outcome.CVM, String?)])
    func withoutAnything(
        _ name: String, _ amount: UInt64, _ kind: Outcome.Kind, _ cvm: Outcome.CVM, _ results: String?
    ) async throws {
        let terminal = ContactlessTerminal(
            EntryPoint(configuration: .unattendedTest, keys: FuzzTargets.keys))
        let field = LosingKernel2Field(try #require(VirtualCards.named(name)), lost: -1, hasRecovery: false)
        let report = try await terminal.perform(purchase(amount), in: field) { _ in }
        expectEqual(report.outcome.kind, kind, "\(report.outcome.reason)")
        let facts = try #require(report.receiptFacts)
        #expect(facts.cardholderVerification == cvm && facts.cvmResults?.bytes.hex == results)
        if results == "3F0001" {
            expectEqual(facts.terminalVerificationResults?.contains(.cardholderVerificationNotSuccessful), true)
        }
    }
}
