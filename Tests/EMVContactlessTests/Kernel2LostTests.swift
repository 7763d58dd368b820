import EMVContactless
import SmartCard
import SmartCardSimulator
import TestSupport
import Testing

/// Mastercards that leave the field at one command or another (EMV Contactless Book C-2, 6: L1RSP in every state).
@Suite struct Kernel2LostTests {
    private struct Play: Sendable, CustomTestStringConvertible {
        let name: String
        let bench: @Sendable () throws -> Kernel2Bench
        let responses: @Sendable () throws -> [String]
        /// With which command the card has given its cryptogram, counted from 0.
        let last: Int

        var testDescription: String { name }
    }

    private static let relay = "80 0A  AA BB CC DD  00 0A  00 50  00 18 90 00"
    private static let balance = "9F 50 06 00 00 00 01 23 45 90 00"

    private static let plays: [Play] = [
        Play(
            name: "plain", bench: { Kernel2Bench() },
            responses: { try ShortCard().read + [MChipCard.cryptogram("80")] }, last: 2),
        Play(
            name: "all there is",
            bench: {
                var bench = Kernel2Bench.writing(before: 2, after: 2)
                bench.discretionary = "9F 5D 03 01 02 00"
                bench.data.merge(["DF8104": "", "DF8105": "", "DF8112": "9F709F71"]) { $1 }
                return bench
            },
            responses: {
                // RRP, GET DATA twice, the record, the balance, PUT DATA twice, GENERATE AC, the balance, PUT DATA twice
                try [
                    template(0x77, "82 02 18 81  94 04 10 01 01 00"), relay, "6A 88", "6A 88", ShortCard().record,
                    balance,
                ]
                    + ["90 00", "90 00", MChipCard.cryptogram("80"), balance, "90 00", "90 00"]
            }, last: 8),
        Play(
            name: "recovered", bench: { try Kernel2Bench().torn },
            responses: { try ShortCard().read + [MChipCard.cryptogram("80")] }, last: 2),
        Play(
            name: "not recovered", bench: { try Kernel2Bench().torn },
            responses: { try ShortCard().read + ["69 85", MChipCard.cryptogram("80")] }, last: 3),
        Play(
            name: "mag-stripe mode", bench: { Kernel2Bench() },
            responses: { try MagStripeCard().read + [MagStripeCard.checksum()] }, last: 2),
        Play(
            name: "mag-stripe mode on a device", bench: { Kernel2Bench() },
            responses: {
                var card = MagStripeCard()
                card.aip = "02 00"
                return try card.read + [MagStripeCard.checksum("DF 4B 03 00 10 00")]
            }, last: 2),
    ]

    /// Before it has given its cryptogram the card is asked for once more, and nothing has been paid; after it, it has paid.
    @Test(arguments: plays) private func everyMastercardThatIsLost(_ play: Play) throws {
        let responses = try play.responses()
        try expectEqual(play.bench().run(responses).outcome.kind, .onlineRequest)
        for index in responses.indices {
            // Without the balance that follows the cryptogram, PUT DATA is tried all the same.
            let tries = index == play.last + 1 && index + 1 < responses.count ? 2 : 1
            let run = try play.bench().run(responses[..<index] + [String](repeating: "-", count: tries))
            expectEqual(run.commands.count, index + tries)
            if index > play.last {
                #expect(run.outcome.kind == .onlineRequest && run.outcome.dataRecord != nil, "\(index)")
                expectEqual(run.error, "0000000000FF")
            } else {
                expectEqual(run.outcome.kind, index == 0 ? .tryAgain : .endApplication, "\(index)")
                #expect(run.outcome.start == .b && run.outcome.dataRecord == nil, "\(index)")
                expectEqual(
                    run.outcome.userInterfaceRequestOnRestart?.message, index == 0 ? nil : .presentCardAgain)
                expectEqual(run.error, index == 0 ? "0100000000FF" : "010000000021")
            }
            // What was lost with GENERATE AC can be recovered, and what RECOVER AC has not given, too.
            let before = try play.bench().tornTransactions.count
            let isLost = run.commands.last.map { $0.hasPrefix("80AE") } == true
            let isRecovered = run.commands.contains { $0.hasPrefix("80D0") } && index >= play.last && before == 1
            let isRecovering = run.commands.last.map { $0.hasPrefix("80D0") } == true
            expectEqual(
                run.outcome.tornTransactions?.count, isLost || isRecovering ? 1 : isRecovered ? 0 : before,
                "\(index)")
        }
    }

    /// A virtual card that signs, which was written apart from the kernel: it approves up to 25.00, and asks to go online
    /// above.
    @Test(arguments: [(12_34, .approved), (25_01, .onlineRequest)] as [(UInt64, Outcome.Kind)])
    func mastercardSigns(_ amount: UInt64, _ kind: Outcome.Kind) async throws {
        var configuration = ReaderConfiguration.test
        for index in configuration.combinations.indices { configuration.combinations[index].floorLimit = nil }
        let keys = CAPublicKeys(
            try VirtualCards.certificationAuthorityKeys.map {
                try CAPublicKey(
                    environment: .test, rid: $0.rid, index: $0.index, modulus: $0.modulus, exponent: $0.exponent,
                    checksum: $0.checksum)
            })
        let terminal = ContactlessTerminal(
            EntryPoint(configuration: try configuration.validated(), keys: keys))
        let card = try #require(VirtualCards.named("emv-cda"))
        let report = try await terminal.perform(
            purchase(amount), in: LosingKernel2Field(card, lost: -1, hasRecovery: false)
        ) { _ in }
        #expect(report.outcome.kind == kind && report.outcome.isAuthentic == true, "\(report.outcome.reason)")
        expectEqual(report.outcome.dataRecord?[0x95]?.hex, "0000000001")
    }
}
