import SmartCard
import SmartCardSimulator
import Testing

@testable import EMVContactless

/// A reader advertises only what its configuration can do (EMV Contactless Book A, table 5-4; EMV Book 4, Annex A2; Book C-2,
/// A.1).
@Suite struct ReaderAbilitiesTests {
    private static func configuration(_ abilities: Set<ReaderConfiguration.Ability>) -> ReaderConfiguration {
        var configuration = ReaderConfiguration.unattendedTest
        configuration.abilities = abilities
        return configuration
    }

    @Test(
        arguments: [
            // Abilities; TTQ; 9F33 of Kernel 3 and of Kernel 2; DF8118, DF8119, DF811E, DF812C
            ([], "3000C000", "000800", "E00808", "00 08 F0 00"),
            ([.pinPad], "3400C000", "004800", "E04808", "40 08 20 00"),
            ([.paper], "3200C000", "002800", "E02808", "20 08 10 00"),
            ([.screen], "3200C000", "002800", "E02808", "20 08 10 00"),
            ([.pinPad, .paper, .screen], "3600C000", "006800", "E06808", "60 08 10 00"),
        ] as [(Set<ReaderConfiguration.Ability>, String, String, String, String)])
    func whatFollows(
        _ abilities: Set<ReaderConfiguration.Ability>, _ qualifiers: String, _ ofKernel3: String, _ ofKernel2: String,
        _ methods: String
    ) throws {
        let configuration = Self.configuration(abilities)
        try configuration.validate()
        let advertised = configuration.advertised
        try advertised.validate()
        for combination in advertised.combinations where combination.kernel == 3 {
            #expect(combination.terminalTransactionQualifiers?.bytes.hex == qualifiers)
            #expect(combination.data[0x9F33]?.hex == ofKernel3)
        }
        for combination in advertised.combinations where combination.kernel == 2 {
            #expect(combination.data[0x9F33]?.hex == ofKernel2)
            let values = [0xDF8118, 0xDF8119, 0xDF811E, 0xDF812C].flatMap {
                combination.data[TLVTag(rawValue: $0)] ?? []
            }
            #expect(values == (try wire(methods)))
        }
    }

    /// What is set to less stays.
    @Test func lessMayBeAdvertised() throws {
        var configuration = Self.configuration([.pinPad, .paper])
        configuration.terminal[0xDF8118] = [0x40]
        configuration.terminal[0x9F33] = [0x20, 0x08, 0x08]
        try configuration.validate()
        let combination = try #require(configuration.advertised.combinations.first { $0.kernel == 2 })
        #expect(combination.data[0xDF8118] == nil && combination.data[0x9F33] == nil)
    }

    @Test(
        arguments: [
            ([], 0x9F33, "E0 40 08", "pinPad"), ([.paper], 0x9F33, "E0 80 08", "pinPad"),
            ([.screen], 0x9F33, "E0 10 08", "pinPad"), ([.pinPad], 0x9F33, "E0 20 08", "paper"),
            ([], 0xDF8118, "40", "pinPad"), ([.pinPad], 0xDF8118, "60", "paper"), ([], 0xDF8119, "20", "paper"),
            ([], 0xDF811E, "10", "paper"), ([.paper], 0xDF811E, "20", "pinPad"), ([], 0xDF812C, "10", "paper"),
        ] as [(Set<ReaderConfiguration.Ability>, TLVTag, String, String)])
    func contradictions(
        _ abilities: Set<ReaderConfiguration.Ability>, _ tag: TLVTag, _ value: String, _ hint: String
    ) throws {
        var configuration = Self.configuration(abilities)
        configuration.terminal[tag] = try wire(value)
        var error = #expect(throws: ConfigurationError.self) { try configuration.validate() }
        #expect(error?.path == "terminal.\(tag)" && error?.reason.contains("add “\(hint)”") == true)
        configuration.terminal[tag] = nil
        configuration.combinations[1].data[tag] = try wire(value)
        error = #expect(throws: ConfigurationError.self) { try configuration.validate() }
        #expect(error?.path == "combinations[1].data.\(tag)")
    }

    @Test(
        arguments: [
            (.onlinePIN, "pinPad"), (.contactChipOfflinePIN, "pinPad"), (.signature, "screen"),
        ] as [(TerminalTransactionQualifiers, String)])
    func contradictionsOfTheQualifiers(_ bit: TerminalTransactionQualifiers, _ hint: String) throws {
        var configuration = Self.configuration([])
        configuration.combinations[0].terminalTransactionQualifiers?.insert(bit)
        let error = #expect(throws: ConfigurationError.self) { try configuration.validate() }
        #expect(error?.path == "combinations[0].terminalTransactionQualifiers")
        #expect(error?.reason.contains("“\(hint)”") == true)
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
            EntryPoint(configuration: .unattendedTest, kernels: Kernels.all, keys: FuzzTargets.keys))
        let field = LosingKernel2Field(try #require(VirtualCards.named(name)), lost: -1, hasRecovery: false)
        let report = try await terminal.perform(purchase(amount), in: field) { _ in }
        #expect(report.outcome.kind == kind, "\(report.outcome.reason)")
        let facts = try #require(report.receiptFacts)
        #expect(facts.cardholderVerification == cvm && facts.cvmResults?.bytes.hex == results)
        if results == "3F0001" {
            #expect(facts.terminalVerificationResults?.contains(.cardholderVerificationNotSuccessful) == true)
        }
    }
}
