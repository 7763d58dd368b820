import SmartCard
import SmartCardPN532
import SmartCardSimulator
import TestSupport
import Testing

/// ISO-DEP in InDataExchange, with more than a frame of the host's in both directions.
@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct ChainedExchangeTests {
    /// A card that answers by the length of what it got and by as much as it is asked for.
    private final class Echo: VirtualCard {
        let radio = VirtualCardRadio.typeA(
            uid: [1, 2, 3, 4], atqa: [0x00, 0x04], sak: 0x20, ats: [0x05, 0x78, 0x80, 0x70, 0x02])

        func reset() {}

        func exchange(_ command: [UInt8]) -> [UInt8]? {
            guard let command = try? CommandAPDU(command) else { return [0x67, 0x00] }
            let sum = command.data.reduce(UInt8(0)) { $0 &+ $1 }
            return [UInt8](repeating: sum, count: command.ne ?? 0) + [0x90, 0x00]
        }
    }

    /// 256 bytes and a status word, which a CCID message of an ACR122U does not hold; commands up to the longest short one,
    /// and an extended one.
    @Test(arguments: [(0, 256), (0, 254), (245, 256), (246, 0), (247, 256), (255, 256), (255, 0), (700, 1000)])
    func throughAnACR122U(_ length: Int, _ expected: Int) async throws {
        let reader = virtualReader(Echo())
        let sent = SentCommands(reader)
        let data = (0..<length).map { UInt8(truncatingIfNeeded: $0) }
        let command = try CommandAPDU(
            cla: 0x80, ins: 0xCA, p1: 0, p2: 0, data: data, ne: expected == 0 ? nil : expected)
        let response = try await ACR122U(over: sent).withChip { chip in
            guard case .found(let target, _)? = try await chip.poll([.typeA], within: .zero) else {
                throw CardError(.cardAbsent)
            }
            return try await chip.channel(to: target).transmit(command)
        }
        #expect(response.status == .success && response.data.count == expected)
        #expect(response.data.allSatisfy { $0 == data.reduce(0, &+) })
        // Direct transmit of no more than 254 bytes, D4 to the end.
        #expect(sent.all.allSatisfy { $0.split(separator: " ").count <= 5 + 254 })
        let parts = sent.all.count { $0.contains("D4 40 41") }
        #expect(parts == (command.bytes.count - 1) / 251)
    }
}
