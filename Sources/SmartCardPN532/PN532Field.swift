public import SmartCard

/// The field of a PN532, which tells when there is more than one card in it.
///
///     try await ACR122U(over: reader).withChip { chip in
///         let report = try await terminal.perform(transaction, in: PN532Field(chip)) { print($0) }
///     }
///
/// For use within ``ACR122U/withChip(_:)``.  It looks for cards of types A and B, the two that EMV has; a card of another
/// technology is not seen.
public actor PN532Field: ContactlessField {
    private let chip: PN532
    private let patience: Duration
    /// Whether there was more than one card last.
    private var isColliding = false
    /// The card that was found last, whether or not it is there.
    private var last: PN532Target?
    /// Whether a card has been used since the field came up.
    private var isUsed = false

    /// - Parameter patience: how long to wait for a card, or for all cards but one to leave; nil: for ever.
    public init(_ chip: PN532, patience: Duration? = nil) {
        self.chip = chip
        self.patience = patience ?? .seconds(1_000_000_000)
    }

    /// - Throws: `CardError` of kind `cardAbsent` after ``init(_:patience:)``'s patience, and whatever says that the
    ///   reader cannot be used.
    public func activate() async throws -> FieldEvent {
        if isColliding { return try await endOfCollision() }
        if isUsed { try await chip.cycleField() }
        isUsed = false
        switch try await chip.poll([.typeA, .typeB], within: patience) {
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

    /// EMV Contactless Book B, 3.2.1.5: no card is a collision that is over, too.
    private func endOfCollision() async throws -> FieldEvent {
        let deadline = ContinuousClock.now + patience
        while case .collision = try await chip.poll([.typeA, .typeB], within: .zero) {
            guard ContinuousClock.now < deadline else {
                throw CardError(.cardAbsent, "there is still more than one", hint: "Put one card alone on the reader.")
            }
            try await Task.sleep(for: .milliseconds(100))
        }
        isColliding = false
        return .collisionOver
    }

    public func deactivate(for duration: Duration) async throws {
        isUsed = false
        try await chip.configure(.field(isOn: false))
        try await Task.sleep(for: duration)
    }

    /// Another card in its place is none that was left there.
    public func waitForRemoval() async throws {
        isUsed = false
        // A card that does not answer once may do so from a cold start.
        var silences = 0
        while silences < 2 {
            switch try await chip.poll([.typeA, .typeB], within: .zero) {
            case .found(let target, _) where target.lasting != last?.lasting: return
            case nil:
                silences += 1
                try await Task.sleep(for: .milliseconds(10))
            default:
                silences = 0
                try await Task.sleep(for: .milliseconds(100))
            }
        }
    }
}
