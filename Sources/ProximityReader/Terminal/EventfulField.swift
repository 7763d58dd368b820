import SmartCard
import Synchronization

/// A reader's field that reports its events to the application.
final class EventfulField: ContactlessField {
    private let field: any ContactlessField
    private let tell: @Sendable (PaymentCardReader.Event) async throws -> Void
    private let state = Mutex(State())

    private struct State {
        /// True if a card has been requested.
        var isReady = false
        /// True while there are too many cards.
        var isColliding = false
        /// True if the application was already told that the card is requested again.
        var isRetried = false
    }

    /// Wraps a field.
    ///
    /// - Parameter tell: called before the wait for a card, and when there is one.  Its error ends the transaction.
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

    /// Returns the events before the next wait.  No card is requested while there are too many.
    private static func events(before state: inout State) -> [PaymentCardReader.Event] {
        guard !state.isColliding else { return [] }
        defer { (state.isReady, state.isRetried) = (true, false) }
        return state.isReady && !state.isRetried ? [.readRetry, .readyForTap] : [.readyForTap]
    }

    /// Ends the contact with the card, which has to be removed and presented again.
    func deactivate(for duration: Duration) async throws {
        try await tell(.removeCard)
        try await field.deactivate(for: duration)
    }

    /// Tells the application that the card is requested again, which is then awaited by ``activateQuietly()``.
    func requestAgain() async throws {
        try await tell(.removeCard)
        try await tell(.readRetry)
        try await tell(.readyForTap)
    }

    /// Switches the field off and on again, and waits for a card, without telling the application.
    func activateQuietly() async throws -> FieldEvent {
        try await field.deactivate(for: .milliseconds(100))
        return try await field.activate()
    }

    /// Tells the application of the card that ``activateQuietly()`` found.
    func tellCard() async throws { try await tell(.cardDetected) }

    /// Ends the contact with the card, and waits until it is gone.
    func waitForAnotherCard() async throws {
        try await tell(.removeCard)
        try await field.waitForRemoval()
    }

    func waitForRemoval() async throws { try await field.waitForRemoval() }

    func release() async throws { try await field.release() }

    var capabilities: FieldCapabilities { field.capabilities }
}
