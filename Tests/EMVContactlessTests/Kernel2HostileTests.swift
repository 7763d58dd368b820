import EMVContactless
import SmartCard
import TestSupport
import Testing

/// Whatever a card says to Kernel 2, in whatever state, comes to an outcome, within a bounded number of commands.
@Suite(.computing) struct Kernel2HostileTests {
    @Test(arguments: [0x00, 0x10, 0x40, 0x80, 0xFF] as [UInt8])
    func everyMastercardLeadsToAnOutcome(_ wildness: UInt8) throws {
        var random = SplitMix(state: UInt64(wildness) &+ 2)
        var states: Set<Kernel2.State> = []
        var outcomes: [Outcome.Kind: Int] = [:]
        let torn = try Kernel2Bench().torn.tornTransactions
        for round in 0..<Tier.rounds(64, thorough: 800) {
            var bench = try Kernel2Bench.signing
            if round & 0x01 != 0 { bench.data["DF8110"] = "" }
            if round & 0x02 != 0 { bench.data["DF8112"] = "9F709F755F24" }
            if round & 0x04 != 0 {
                bench.data.merge(["DF810D": "02", "9F5C": "1011121314151617"]) { $1 }
                bench.discretionary = "9F 5D 03 01 02 00  9F 5E 09 54 13 33 00 89 01 04 34 01"
            }
            if round & 0x08 != 0 {
                bench.data.merge(["DF8104": "", "DF8105": "", "FF8102": "9F7501AA", "FF8103": "9F7701CC"]) { $1 }
                bench.discretionary = "9F 5D 03 01 02 00"
            }
            if round & 0x10 != 0 { bench.data["9F53"] = "" }
            if round & 0x10 != 0 { bench.fci = "9F 38 03  9F 53 01" }
            if round & 0x20 != 0 { bench.tornTransactions = torn }
            let string = (0..<1_000).map { _ -> UInt8 in
                let byte = UInt8.random(in: 0...255, using: &random)
                return UInt8.random(in: 0...255, using: &random) <= wildness ? byte : byte & 0x7B
            }
            var card = HostileCard(string)
            let result = card.play(Kernel2(try bench.activation())) { states.insert($0.state) }
            let outcome = try #require(result.outcome, "no end")
            #expect(result.count <= 600)
            outcomes[outcome.kind, default: 0] += 1
            #expect(!"\(outcome)".contains("5413330089010434"))
            expectEqual(outcome.discretionaryData?[0xDF8115]?.count, 6)
        }
        print("Kernel 2, hostile cards of wildness \(wildness): \(outcomes)")
        #expect(outcomes.count > Tier.rounds(1, thorough: 2))
        // Where the card is mostly plausible it comes to every state but the first, in time.
        if wildness == 0x10, Tier.isThorough {
            let missing = Set(Kernel2.State.allCases).subtracting(states).subtracting([.idle])
            expectEqual(missing, [])
        }
    }
}
