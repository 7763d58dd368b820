public import SmartCard

/// The field of a PN532, which detects more than one card.
///
///     try await ACR122U(over: reader).withChip { chip in
///         let report = try await terminal.perform(transaction, in: PN532Field(chip)) { print($0) }
///     }
///
/// Use it within ``ACR122U/withChip(_:)``.  It looks for cards of types A and B, the two that EMV supports, and does
/// not detect other technologies.
public actor PN532Field: ContactlessField {
    private let chip: PN532
    private let patience: Duration
    /// True if the last look found more than one card.
    private var isColliding = false
    /// The last card found, present or not.
    private var last: PN532Target?
    /// True if a card was used since the field was switched on.
    private var isUsed = false

    /// - Parameters:
    ///   - chip: the chip whose field is used.
    ///   - patience: the longest wait for a card, or for all cards but one to leave; nil: no limit.
    public init(_ chip: PN532, patience: Duration? = nil) {
        self.chip = chip
        self.patience = patience ?? .seconds(1_000_000_000)
    }

    /// - Throws: `CardError` of kind `cardAbsent` after the `patience` of ``init(_:patience:)``; other kinds if the
    ///   reader is unusable.
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

    /// EMV Contactless Book B, 3.2.1.5: the collision also ends if no card is left.
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
                try await Task.sleep(for: .milliseconds(10))
            default:
                silences = 0
                try await Task.sleep(for: .milliseconds(100))
            }
        }
    }
}
