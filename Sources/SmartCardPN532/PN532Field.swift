public import SmartCard
import Waiting

/// The field of a PN532, which detects more than one card.
///
///     try await ACR122U(over: reader).withChip { chip in
///         let report = try await terminal.perform(transaction, in: PN532Field(chip)) { print($0) }
///     }
///
/// Use it within ``ACR122U/withChip(_:)`` or ``PN532Reader/withChip(_:)``.  It looks for cards of types A and B, the two
/// that EMV supports, and does not detect other technologies.
///
/// With a ``BroadcastFrame``, the wait for a card sends it between the polls, so that phones know what the terminal is
/// for.  Once a card is found, nothing is sent but the commands of its channel, and the card stays in one session until
/// ``release()``, ``deactivate(for:)``, ``waitForRemoval()`` or the next ``activate()``: a pass and a payment can follow each
/// other on the same channel.
public actor PN532Field: ContactlessField {
    private let chip: PN532
    private let patience: Duration
    private let broadcast: BroadcastFrame?
    private let onBroadcast: (@Sendable (Broadcast) -> Void)?
    /// True if the last look found more than one card.
    private var isColliding = false
    /// The last card found, present or not.
    private var last: PN532Target?
    /// True if a card was used since the field was switched on.
    private var isUsed = false

    /// - Parameters:
    ///   - chip: the chip whose field is used.
    ///   - patience: the longest wait for a card, or for all cards but one to leave; nil: no limit.
    ///   - broadcast: the frame to send while waiting for a card; nil for none.
    ///   - onBroadcast: called for every frame sent.
    public init(
        _ chip: PN532, patience: Duration? = nil, broadcast: BroadcastFrame? = nil,
        onBroadcast: (@Sendable (Broadcast) -> Void)? = nil
    ) {
        self.chip = chip
        (self.broadcast, self.onBroadcast) = (broadcast, onBroadcast)
        self.patience = patience ?? .seconds(1_000_000_000)
    }

    public nonisolated var capabilities: FieldCapabilities { [.collisionDetection, .broadcast] }

    /// The time from the end of a round to the next.  Phones answer from the third round on if frames are sent, and want
    /// one every 100 to 250 ms or faster (kormax).
    private var interval: Duration { .milliseconds(broadcast == nil ? 100 : 50) }

    /// - Throws: `CardError` of kind `cardAbsent` after the `patience` of the field; other kinds if the
    ///   reader is unusable.
    public func activate() async throws -> FieldEvent {
        if isColliding { return try await endOfCollision() }
        if isUsed { try await chip.cycleField() }
        isUsed = false
        let event = try await chip.poll(
            [.typeA, .typeB], within: patience, every: interval, broadcast: broadcast, onBroadcast: onBroadcast)
        switch event {
        case .found(let target, _):
            (last, isUsed) = (target, true)
            guard target.speaksISODEP else { return .communicationError(.protocol) }
            return .card(chip.channel(to: target))
        case .collision:
            isColliding = true
            return .collision
        case .lost, nil:
            throw CardError(.cardAbsent)
        }
    }

    /// EMV Contactless Book B, 3.2.1.5: the collision also ends if no card is left.
    private func endOfCollision() async throws -> FieldEvent {
        let deadline = Time.now + patience
        while case .collision = try await chip.poll([.typeA, .typeB], within: .zero) {
            guard Time.now < deadline else {
                throw CardError(.cardAbsent, "there is still more than one", hint: "Put one card alone on the reader.")
            }
            try await Time.sleep(for: .milliseconds(100))
        }
        isColliding = false
        return .collisionOver
    }

    public func deactivate(for duration: Duration) async throws {
        isUsed = false
        try await chip.configure(.field(isOn: false))
        try await Time.sleep(for: duration)
    }

    /// Ends the session with the last card found by S(DESELECT) (ISO/IEC 14443-4, 8), and switches the field off.  The
    /// field is off for at least 10 ms, even if the task is canceled.
    public func release() async throws {
        isUsed = false
        let chip = chip
        try await toTheEnd {
            // A card that has left cannot be told.
            _ = try? await chip.release()
            try await chip.configure(.field(isOn: false))
            try await Time.sleep(for: .milliseconds(10))
        }
    }

    /// Waits until the last card found leaves.  A different card in its place does not count.
    public func waitForRemoval() async throws {
        isUsed = false
        // A silent card may answer after a cold start.
        var silences = 0
        while silences < 2 {
            switch try await chip.poll([.typeA, .typeB], within: .zero) {
            case .found(let target, _) where target.lasting != last?.lasting: return
            case nil:
                silences += 1
                try await Time.sleep(for: .milliseconds(10))
            default:
                silences = 0
                try await Time.sleep(for: .milliseconds(100))
            }
        }
    }
}
