import ProximityReader
import SmartCard
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing

/// A card that is torn from the reader's field in one read, and presented again in the next.
@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct TornReadTests {
    /// EMV Contactless Book C-2, 3.8.
    @Test("a payment that is torn in one read is recovered in the next: the card makes one cryptogram")
    func recovered() async throws {
        let bench = try await Bench()
        let log = await EventLog(bench.reader)
        let session = try await bench.reader.prepare(using: bench.token())
        let card = TornCard(try #require(VirtualCards.named("mastercard-torn")))
        // The customer gives up after GENERATE AC.
        let first = Task { try await session.readPaymentCard(purchase) }
        try await log.wait(for: "readyForTap")
        bench.device.insert(card)
        try await log.wait(for: "readRetry")
        bench.device.remove()
        try await wait(for: "the end of the read") { try await session.cancelRead() }
        await expect("readCancelled") { _ = try await first.value }
        try await log.wait(for: "userInterfaceDismissed")
        #expect(card.instructions.filter { $0 == 0xAE }.count == 1 && !card.instructions.contains(0xD0))
        // And comes back.
        await log.clear()
        card.comeBack()
        bench.present(card)
        let result = try await session.readPaymentCard(purchase)
        #expect(result.outcome == .success)
        #expect(card.instructions.last == 0xD0 && card.instructions.filter { $0 == 0xAE }.count == 1)
        // What it has recovered is forgotten: it may pay again.
        #expect(try await session.readPaymentCard(purchase).outcome == .success)
        #expect(card.instructions.last == 0xAE && card.instructions.filter { $0 == 0xD0 }.count == 1)
    }
}

/// Stays mute from when it was torn until it comes back, and knows the instructions that it was given.
private final class TornCard: VirtualCard {
    private let card: any VirtualCard
    private let state = Mutex((instructions: [UInt8](), isAway: false))

    init(_ card: any VirtualCard) { self.card = card }

    var instructions: [UInt8] { state.withLock { $0.instructions } }
    func comeBack() { state.withLock { $0.isAway = false } }

    var radio: VirtualCardRadio { card.radio }
    func reset() { card.reset() }
    func exchange(_ command: [UInt8]) -> [UInt8]? {
        state.withLock { state in
            guard !state.isAway else { return nil }
            if command.count > 1 { state.instructions.append(command[1]) }
            let answer = card.exchange(command)
            state.isAway = answer == nil
            return answer
        }
    }
}
