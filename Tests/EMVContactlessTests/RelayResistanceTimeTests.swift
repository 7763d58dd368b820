import EMVContactless
import SmartCard
import SmartCardSimulator
import TestSupport
import Testing

/// EMV Contactless Book C-2, 3.10, with a reader between terminal and card: it is the card's time that counts, not the
/// host's.
@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct RelayResistanceTimeTests {
    /// The card says that it takes 5 to 10 ms; with a grace period of 400 ms, and 4.2 ms for sending, 414.2 ms is in time.
    ///
    /// TVR byte 5: performed; with the limits exceeded, the threshold exceeded.
    @Test(arguments: [
        (11, 0, 1, "02"),
        (11, 1000, 1, "02"),
        (600, 0, 3, "0E"),
        (600, 1000, 3, "0E"),
    ])
    func hostAndCard(card milliseconds: Int, host holdUp: Int, tries: Int, results: String) async throws {
        let host = HeldUpHost()
        let reader = VirtualReader(SoftwareACR122U())
        let advance = try #require(VirtualCards.named("mastercard-advance"))
        reader.device.insert(
            LateCard(advance, instruction: 0xEA, takes: milliseconds) {
                if holdUp > 0 { host.holdUp(for: holdUp) }
            })
        var configuration = ReaderConfiguration.test
        for index in configuration.combinations.indices where configuration.combinations[index].kernel == 2 {
            // Grace period and threshold, in units of 100 µs.
            configuration.combinations[index].data[0xDF8133] = [0x0F, 0xA0]
            configuration.combinations[index].data[0xDF8136] = [0x13, 0x88]
        }
        let terminal = ContactlessTerminal(
            EntryPoint(configuration: try configuration.validated(for: [2: Kernel2.self])))
        let transaction = try purchase(12_34)
        let report = try await withTaskExecutorPreference(host) {
            try await terminal.perform(
                transaction, in: CardReaderField(reader), layers: { WrongLeLayer(GetResponseLayer($0)) }
            ) { _ in }
        }
        let relays = report.exchanges.filter { $0.header[1] == 0xEA }
        expectEqual(relays.count, tries)
        #expect(relays.allSatisfy { $0.duration == .milliseconds(milliseconds) })
        expectEqual(report.outcome.dataRecord?[0x95]?.suffix(1).hex, results, "\(report.outcome.reason)")
    }
}
