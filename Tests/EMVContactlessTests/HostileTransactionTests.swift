import EMVContactless
import SmartCard
import TestSupport
import Testing

/// Whatever a card says, a transaction comes to an end, within a bounded number of commands and with an outcome.
@Suite(.computing) struct HostileTransactionTests {
    /// Strings that are mostly plausible, mostly nonsense, and in between; the same ones in each run.
    @Test(arguments: [0x00, 0x10, 0x40, 0x80, 0xFF] as [UInt8])
    func everyCardComesToAnEnd(_ wildness: UInt8) throws {
        let entryPoint = EntryPoint(configuration: .test, keys: .published)
        var random = SplitMix(state: UInt64(wildness) &+ 42)
        var outcomes: [Outcome.Kind: Int] = [:]
        for _ in 0..<Tier.rounds(40, thorough: 400) {
            let amount = ([0, 1, 100, 4_999, 5_000, 999_999, 1_000_000] as [UInt64]).randomElement(using: &random) ?? 1
            let string = (0..<2_000).map { _ -> UInt8 in
                let byte = UInt8.random(in: 0...255, using: &random)
                return UInt8.random(in: 0...255, using: &random) <= wildness ? byte : byte & 0x0B
            }
            var card = HostileCard(string)
            let result = card.play(entryPoint, try purchase(amount))
            let final = try #require(result.final, "no end")
            #expect(result.commands <= 600)
            outcomes[final.outcome.kind, default: 0] += 1
            #expect(!"\(final)".contains("4761739001010010"))
        }
        #expect(outcomes.count > Tier.rounds(0, thorough: 1), "\(outcomes)")
    }
}
