import EMVContactless
import SmartCard
import TestSupport
import Testing

/// A card that is presented again must not have been told before what it is going to be asked.
@Suite struct UnpredictableNumberTests {
    /// 01010101, 02020202, and so on.
    private struct Counting: RandomNumberGenerator {
        private var value: UInt64 = 0
        mutating func next() -> UInt64 {
            value += 0x0101_0101_0000_0000
            return value
        }
    }

    /// What the card is sent that leaves at `instruction` and comes back, up to that same command.
    private func commands(
        _ aid: String, pdol: String, _ answers: [UInt8: String], lostAt instruction: UInt8,
        random: any RandomNumberGenerator & Sendable
    ) throws -> [CommandAPDU] {
        let entry = try template(0x61, "4F 07 \(aid)  87 01 01", status: "")
        let ppse = try template(
            0x6F, "84 0E 32 50 41 59 2E 53 59 53 2E 44 44 46 30 31",
            template(0xA5, template(0xBF0C, entry, status: ""), status: ""))
        let list = try TLVTag(0x9F38).encode(wire(pdol)).hex
        let fci = try template(0x6F, "84 07 \(aid)", template(0xA5, list, status: ""))
        var entryPoint = EntryPoint(configuration: .test, random: random)
        var event = EntryPoint.Event.startA(try purchase(12_34))
        var commands: [CommandAPDU] = []
        while true {
            switch entryPoint.next(event).action {
            case .activateField: event = .cardPresent
            case .exchange: event = .terminalData(DataRecord())
            case .switchFieldOff: event = .fieldIsOff
            case .finish(let final):
                Issue.record("\(final.outcome.reason)")
                return commands
            case .send(let command):
                commands.append(command)
                let answer: String
                switch command.ins {
                case instruction:
                    if commands.filter({ $0.ins == instruction }).count == 2 { return commands }
                    event = .communicationError(.timeout)
                    continue
                case 0xA4: answer = command.data.starts(with: Array("2PAY".utf8)) ? ppse : fci
                default: answer = try #require(answers[command.ins])
                }
                event = .response(try ResponseAPDU(wire(answer)), after: .milliseconds(5))
            }
        }
    }

    /// 9F37 of the first activation is the transaction's; the next one is drawn.
    @Test(arguments: [
        ("A0 00 00 00 04 10 10", "9F 37 04", "8304"), ("A0 00 00 00 03 10 10", "9F 37 04  9F 66 04", "8308"),
    ])
    func secondTap(_ aid: String, _ pdol: String, _ header: String) throws {
        let taps = try commands(aid, pdol: pdol, [:], lostAt: 0xA8, random: Counting()).filter { $0.ins == 0xA8 }
        expectEqual(taps.map { String($0.data.hex.prefix(12)) }, [header + "01020304", header + "01010101"])
        let random = try commands(aid, pdol: pdol, [:], lostAt: 0xA8, random: Seed.generator())
            .filter { $0.ins == 0xA8 }
        #expect(random.count == 2 && random.first?.data != random.last?.data)
    }

    /// 9F6A is drawn for each tap, behind 9F37: 01010101 is 16843009, and 03030303 50529027.
    @Test func secondTapOfMagStripe() throws {
        let card = MagStripeCard()
        let taps = try commands(
            "A0 00 00 00 04 10 10", pdol: "9F 37 04", [0xA8: card.processingOptions, 0xB2: card.record], lostAt: 0x2A,
            random: Counting()
        ).filter { $0.ins == 0x2A }
        expectEqual(taps.map(\.data.hex), ["00000009", "00000027"])
    }
}
