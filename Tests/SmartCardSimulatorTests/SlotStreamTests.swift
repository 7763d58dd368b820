import SmartCard
import SmartCardSimulator
import Testing

/// The streams of a slot, whose consumers come and go while cards do.
@Suite(.timeLimit(.minutes(2))) struct SlotStreamTests {
    @Test("A consumer that is cancelled at the moment of a change ends, and blocks nobody")
    func cancelledWhileCardsChange() async throws {
        let device = SoftwareACR122U(profile: .instant)
        let reader = VirtualReader(device)
        let card = try #require(VirtualCards.named("visa"))
        let changes = Task.detached {
            while !Task.isCancelled {
                device.insert(card)
                await Task.yield()
                device.remove(card)
                await Task.yield()
            }
        }
        for _ in 0..<3000 {
            let consumers = (0..<4).map { _ in
                Task.detached { for try await _ in reader.slotStates() {} }
            }
            await Task.yield()
            for consumer in consumers { consumer.cancel() }
            for consumer in consumers { _ = await consumer.result }
        }
        changes.cancel()
        await changes.value
    }
}

extension ACR122UProfile {
    /// Cards are noticed at once.
    fileprivate static var instant: ACR122UProfile {
        var profile = ACR122UProfile.firmware216
        profile.detectionDelay = .zero
        return profile
    }
}
