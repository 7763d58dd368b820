import SmartCard
import Synchronization

/// A reader's field that tells the application what happens in it.
final class EventfulField: ContactlessField {
    private let field: any ContactlessField
    private let tell: @Sendable (PaymentCardReader.Event) async throws -> Void
    private let state = Mutex(State())

    private struct State {
        /// Whether a card has been asked for.
        var isReady = false
        /// Whether the cards have been too many, and still are.
        var isColliding = false
        /// Whether it has been told, since a card was asked for, that one is asked for again.
        var isRetried = false
    }

    /// - Parameter tell: called before a card is waited for, and when there is one.  What it throws ends the transaction.
    init(_ field: any ContactlessField, tell: @escaping @Sendable (PaymentCardReader.Event) async throws -> Void) {
        self.field = field
        self.tell = tell
    }

    func activate() async throws -> FieldEvent {
        for event in state.withLock({ Self.events(before: &$0) }) { try await tell(event) }
        let event = try await field.activate()
        switch event {
        case .card: try await tell(.cardDetected)
        case .collision:
            state.withLock { ($0.isColliding, $0.isRetried) = (true, true) }
            try await tell(.readRetry)
        case .collisionOver: state.withLock { $0.isColliding = false }
        case .communicationError: break
        }
        return event
    }

    /// Nobody is asked for a card while there are too many.
    private static func events(before state: inout State) -> [PaymentCardReader.Event] {
        guard !state.isColliding else { return [] }
        defer { (state.isReady, state.isRetried) = (true, false) }
        return state.isReady && !state.isRetried ? [.readRetry, .readyForTap] : [.readyForTap]
    }

    /// The card is to be taken away and presented again.
    func deactivate(for duration: Duration) async throws {
        try await tell(.removeCard)
        try await field.deactivate(for: duration)
    }

    func waitForRemoval() async throws { try await field.waitForRemoval() }
}
