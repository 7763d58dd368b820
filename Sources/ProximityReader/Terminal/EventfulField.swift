import EMVContactless
import SmartCard

/// A reader's field that tells the application what happens in it.
struct EventfulField: ContactlessField {
    let field: CardReaderField
    /// Called before the field is on, and when a card is there.
    let tell: @Sendable (PaymentCardReader.Event) async -> Void

    func activate() async throws -> FieldEvent {
        await tell(.readyForTap)
        let event = try await field.activate()
        if case .card = event { await tell(.cardDetected) }
        return event
    }

    func deactivate(for duration: Duration) async throws { try await field.deactivate(for: duration) }
}
