import EMVContactless
import Foundation
import SmartCard
import TestSupport
import Testing

@Suite struct ReaderConfigurationTests {
    private func decode(_ json: String) throws -> ReaderConfiguration {
        try JSONDecoder().decode(ReaderConfiguration.self, from: Data(json.utf8))
    }

    /// One combination that is sound but for `more`, which comes in the place of what it names.
    private static func combination(_ more: String) -> String {
        let sound = [
            #""aid": "A0000000031010""#, #""kernel": "03""#, #""terminalTransactionQualifiers": "36004000""#,
        ]
        let name = more.prefix { $0 != ":" }
        let members = sound.filter { !$0.hasPrefix(name) } + [more]
        return """
            {"environment": "test", "terminal": {"9F1A": "0276", "9F33": "E0F8C8"},
             "abilities": ["pinPad", "screen", "contacts", "magneticStripe", "manualKeyEntry"],
             "combinations": [{\(members.joined(separator: ", "))}]}
            """
    }

    @Test func everythingInJSON() throws {
        let configuration = try decode(
            """
            {
              "environment": "live", "abilities": ["paper", "pinPad", "contacts", "magneticStripe", "manualKeyEntry"],
              "terminal": { "9F1A": "0276", "9F33": "E0F8C8", "9F35": "22", "DF8117": "60" },
              "combinations": [
                { "aid": "a0000000031010", "kernel": "03", "transactionTypes": ["purchase", "refund"],
                  "transactionLimit": 100000, "floorLimit": 0, "cvmRequiredLimit": 5000,
                  "terminalTransactionQualifiers": "36 00 40 00", "statusCheck": true, "zeroAmountAllowed": false,
                  "extendedSelection": true, "data": { "9F1B": "00002710" } },
                { "aid": "A000000333010101", "kernel": "9F0001" }
              ]
            }
            """)
        #expect(
            configuration.environment == .live
                && configuration.abilities == [.pinPad, .paper, .contacts, .magneticStripe, .manualKeyEntry])
        expectEqual(
            configuration.terminal,
            [
                0x9F1A: [0x02, 0x76], 0x9F33: [0xE0, 0xF8, 0xC8], 0x9F35: [0x22], 0xDF8117: [0x60],
            ])
        let first = try #require(configuration.combinations.first)
        #expect(first.aid.bytes == [0xA0, 0, 0, 0, 3, 0x10, 0x10] && first.kernel == 3)
        expectEqual(first.transactionTypes, [.purchase, .refund])
        #expect(first.transactionLimit == 100_000 && first.floorLimit == 0 && first.cvmRequiredLimit == 5_000)
        // qVSDC, contact chip, online PIN, signature; CDCVM (Book A, table 5-4)
        expectEqual(
            first.terminalTransactionQualifiers,
            [
                .emvMode, .emvContactChip, .onlinePIN, .signature, .consumerDeviceCVM,
            ])
        #expect(first.statusCheck == true && first.zeroAmountAllowed == false && first.extendedSelection == true)
        expectEqual(first.data, [0x9F1B: [0, 0, 0x27, 0x10]])
        // Absent is not zero.
        let second = try #require(configuration.combinations.last)
        expectEqual(second.kernel.rawValue, 0x9F0001)
        expectEqual(second.transactionTypes, Set(Transaction.Kind.allCases))
        #expect(second.transactionLimit == nil && second.floorLimit == nil && second.cvmRequiredLimit == nil)
        #expect(second.terminalTransactionQualifiers == nil && second.statusCheck == nil)
        #expect(second.zeroAmountAllowed == nil && second.extendedSelection == nil && second.data.isEmpty)
        try expectEqual(
            JSONDecoder().decode(ReaderConfiguration.self, from: JSONEncoder().encode(configuration)),
            configuration)
    }

    /// That of the documentation comment, as it stands there.
    @Test func theExampleIsSound() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Sources/EMVContactless/EntryPoint/ReaderConfiguration.swift")
        let json = try String(contentsOf: file.standardized, encoding: .utf8).split(separator: "\n")
            .drop { !$0.hasSuffix("///     {") }.prefix { $0.hasPrefix("///     ") }.map { $0.dropFirst(3) }
        let configuration = try decode(json.joined(separator: "\n"))
        let options = try #require(configuration.combinations.first?.options as? Kernel3.Options)
        #expect(options.checksUsageAtATM && options.dynamicReaderLimits.map(\.floorLimit) == [1000])
    }

    @Test func theTestConfigurationIsSound() throws {
        try ReaderConfiguration.test.validated()
        try ReaderConfiguration.unattendedTest.validated()
        expectEqual(ReaderConfiguration.test.environment, .test)
        // Every kernel that a combination can ask for (Book B, table 3-6)
        expectEqual(Set(ReaderConfiguration.test.combinations.map(\.kernel)), [2, 3, 4, 5, 6, 7, 8])
    }

    @Test(arguments: [
        (#"{"terminal": {}, "combinations": []}"#, "environment"),
        (#"{"environment": "test", "terminal": {}, "combinations": []}"#, "there is none"),
        (#"{"environment": "prod", "terminal": {}, "combinations": []}"#, "prod"),
        (#"{"environment": "test", "terminals": {}, "combinations": []}"#, "terminals"),
        (combination(#""aid": "A0""#), "5 to 16 bytes"), (combination(#""kernel": "00""#), "kernel identifier"),
        (combination(#""kernel": "0002""#), "kernel identifier"),
        (combination(#""transactionTypes": ["tip"]"#), "tip"),
        (combination(#""transactionTypes": []"#), "there is none"),
        (combination(#""floorlimit": 1"#), "floorlimit"), (combination(#""floorLimit": -1"#), ""),
        (combination(#""floorLimit": 1000000000000"#), "twelve digits"),
        (combination(#""terminalTransactionQualifiers": "360040""#), "4 bytes"),
        (combination(#""data": {"9F1B": "0"}"#), "odd number"), (combination(#""data": {"9F": "00"}"#), "no tag"),
        (combination(#""data": {"9F1A": "02"}"#), "9F1A"), (combination(#""data": {"9F1A": "02AB"}"#), "decimal"),
        (combination(#""data": {"9F02": "000000000001"}"#), "each transaction"),
        (combination(#""data": {"9F06": "A0000000031010"}"#), "data.9F06: is the AID of the combination"),
        (combination(#""data": {"9F39": "0705"}"#), "data.9F39: 2 bytes"),
        (combination(#""kernel": "04", "options": {}"#), "does not have Kernel 4"),
        (combination(#""kernel": "02", "options": {"checksUsageAtATM": true}"#), "checksUsageAtATM"),
        (combination(#""data": {"E1": "00"}"#), "template"),
        // EMV Book 3, Annex A: what the ICC and the issuer are the source of
        (combination(#""data": {"5A": "4761739001010010"}"#), "data.5A: comes from the card"),
        (combination(#""data": {"9F26": "0000000000000000"}"#), "data.9F26: comes from the card"),
        (combination(#""data": {"8A": "3030"}"#), "data.8A: comes from the issuer"),
        (combination(#""terminalTransactionQualifiers": "B6004000""#), "no mag-stripe mode"),
        (combination(#""options": {"checksAUC": true}"#), "checksAUC"),
        (combination(#""options": {"dynamicReaderLimits": [{}]}"#), "applicationProgramIdentifier"),
        (combination(#""options": {"dynamicReaderLimits": [{"applicationProgramIdentifier": ""}]}"#), "1 to 16 bytes"),
        (
            combination(#""options": {"dynamicReaderLimits": [{"applicationProgramIdentifier": "31", "limit": 1}]}"#),
            "limit"
        ),
        (
            combination(
                """
                "options": { "dynamicReaderLimits": [
                  { "applicationProgramIdentifier": "31" }, { "applicationProgramIdentifier": "31" } ] }
                """),
            "dynamicReaderLimits[1]: the identifier stands there before"
        ),
        (
            combination(
                #""options": {"dynamicReaderLimits": [{"applicationProgramIdentifier": "31", "floorLimit": 1000000000000}]}"#
            ),
            "twelve digits"
        ),
    ])
    func whatCannotBeMeant(_ json: String, _ complaint: String) throws {
        do {
            _ = try decode(json)
            Issue.record("taken")
        } catch {
            #expect(complaint.isEmpty || "\(error)".contains(complaint), "\(error)")
        }
    }

    /// A program can give a combination what JSON cannot: the options of another kernel.
    @Test(arguments: [2, 4] as [KernelIdentifier]) func optionsOfAnotherKernel(_ kernel: KernelIdentifier) throws {
        var configuration = ReaderConfiguration.test
        let index = try #require(configuration.combinations.firstIndex { $0.kernel == kernel })
        configuration.combinations[index].options = Kernel3.Options()
        let found = #expect(throws: ConfigurationError.self) { try configuration.validated() }
        expectEqual(found?.path, "combinations[\(index)].options")
        configuration.combinations[index].options = kernel == 2 ? NoKernelOptions() : nil
        try configuration.validated()
    }

    @Test func theSameCombinationTwice() throws {
        var configuration = ReaderConfiguration.test
        configuration.combinations.append(configuration.combinations[0])
        let found = #expect(throws: ConfigurationError.self) { try configuration.validated() }
        expectEqual(found?.path, "combinations[\(configuration.combinations.count - 1)]")
    }

    /// It has EMV mode and no other.
    @Test(arguments: [nil, [], [.magStripeMode], [.emvMode, .magStripeMode]] as [TerminalTransactionQualifiers?])
    func kernel3NeedsQualifiers(_ qualifiers: TerminalTransactionQualifiers?) throws {
        var configuration = ReaderConfiguration.test
        configuration.combinations[0].terminalTransactionQualifiers = qualifiers
        let found = #expect(throws: ConfigurationError.self) { try configuration.validated() }
        expectEqual(found?.path, "combinations[0].terminalTransactionQualifiers")
    }

    /// Terminal Country Code, and for Kernel 2 Terminal Type; EMV Book 3, table 33, has
    /// them for every terminal.
    @Test(arguments: [(3, 0x9F1A), (2, 0x9F1A), (2, 0x9F35)] as [(KernelIdentifier, TLVTag)])
    func kernelsNeedTheTerminalsData(_ kernel: KernelIdentifier, _ tag: TLVTag) throws {
        var configuration = ReaderConfiguration.test
        configuration.combinations.removeAll { $0.kernel != kernel }
        let removed = configuration.terminal.removeValue(forKey: tag)
        let value = try #require(removed)
        let found = #expect(throws: ConfigurationError.self) { try configuration.validated() }
        #expect(
            found?.path == "combinations[0]" && found?.reason.contains("\(tag)") == true, "\(String(describing: found))"
        )
        // One combination's own data are not the others'.
        configuration.combinations[0].data[tag] = value
        let next = #expect(throws: ConfigurationError.self) { try configuration.validated() }
        expectEqual(next?.path, "combinations[1]")
        configuration.combinations = [configuration.combinations[0]]
        try configuration.validated()
        // What another kernel needs is not known here.
        configuration.combinations = ReaderConfiguration.test.combinations.filter { $0.kernel == 4 }
        try configuration.validated()
    }

    @Test func kernel3Options() throws {
        let configuration = try decode(
            Self.combination(
                """
                "options": { "displaysAvailableOfflineSpendingAmount": true, "checksExceptionFile": false,
                  "checksUsageForCash": false, "checksUsageForCashback": false, "checksUsageAtATM": true,
                  "dynamicReaderLimits": [
                    { "applicationProgramIdentifier": "31 02 68 26 20", "transactionLimit": 100, "floorLimit": 0,
                      "cvmRequiredLimit": 50, "statusCheck": true, "zeroAmountAllowed": false },
                    { "applicationProgramIdentifier": "31" } ] }
                """))
        let options = try #require(configuration.combinations.first?.options as? Kernel3.Options)
        #expect(options.displaysAvailableOfflineSpendingAmount && options.checksUsageAtATM)
        #expect(!options.checksExceptionFile && !options.checksUsageForCash && !options.checksUsageForCashback)
        expectEqual(
            options.dynamicReaderLimits,
            [
                Kernel3.DynamicReaderLimits(
                    applicationProgramIdentifier: [0x31, 0x02, 0x68, 0x26, 0x20], transactionLimit: 100, floorLimit: 0,
                    cvmRequiredLimit: 50, statusCheck: true, zeroAmountAllowed: false),
                Kernel3.DynamicReaderLimits(applicationProgramIdentifier: [0x31]),
            ])
        try expectEqual(
            JSONDecoder().decode(ReaderConfiguration.self, from: JSONEncoder().encode(configuration)),
            configuration)
    }
}
