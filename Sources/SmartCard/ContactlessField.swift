/// A reader's field, as far as a transaction needs it: switch it on, find one card, switch it off, see
/// the card go.
public protocol ContactlessField: Sendable {
    /// Switches the field on if it is off, and waits until something is in it.
    ///
    /// - Throws: ``CardError`` when the reader cannot be used, or its owner has waited long enough.  A card that cannot be
    ///   activated is no error, but a ``FieldEvent/communicationError(_:)``.
    func activate() async throws -> FieldEvent

    /// Switches the field off for a time.  The card in it forgets everything.
    func deactivate(for duration: Duration) async throws

    /// Lets go of the card that was found last, and waits until the field is empty.  A reader that leaves takes its card
    /// along.
    func waitForRemoval() async throws
}

/// What was found in a field.
public enum FieldEvent: Sendable {
    /// One card, activated.
    case card(any CardChannel)
    /// More than one card.
    case collision
    /// No longer more than one card.
    case collisionOver
    case communicationError(CommunicationError)
}

/// Why a card gave no response (EMV Contactless Book C-2, A.1.64, L1).
public enum CommunicationError: UInt8, Hashable, Sendable {
    case timeout = 1
    case transmission = 2
    case `protocol` = 3
}

/// The field of any ``CardReader``.
///
/// Such a reader activates cards by itself and does not tell when there are two: of several cards it takes one, so that
/// ``FieldEvent/collision`` never comes.
public actor CardReaderField: ContactlessField {
    private let reader: any CardReader
    private let patience: Duration?
    private var card: (any CardConnection)?

    /// - Parameter patience: how long to wait for a card; nil: for ever.
    public init(_ reader: any CardReader, patience: Duration? = nil) {
        self.reader = reader
        self.patience = patience
    }

    /// - Throws: ``CardError`` of kind `cardAbsent` after ``init(_:patience:)``'s patience, and whatever says that the
    ///   reader cannot be used.
    public func activate() async throws -> FieldEvent {
        await release(.reset)
        do {
            try await waitForCard()
        } catch let error as CardError where error.kind == .readerTimeout {
            throw CardError(.cardAbsent)
        }
        do {
            let card = try await reader.connect()
            self.card = card
            return .card(card)
        } catch let error as CardError {
            guard let communicationError = CommunicationError(error) else { throw error }
            return .communicationError(communicationError)
        }
    }

    public func deactivate(for duration: Duration) async throws {
        await release(.powerOff)
        try await Task.sleep(for: duration)
    }

    public func waitForRemoval() async throws {
        await release(.powerOff)
        try await reader.waitForRemoval()
    }

    /// Ends the connection to the card, if there is one.
    public func release(_ disposition: CardDisposition) async {
        await card?.disconnect(disposition)
        card = nil
    }

    private func waitForCard() async throws {
        guard let patience else {
            _ = try await reader.waitForCard()
            return
        }
        let reader = reader
        _ = try await withTimeLimit(patience) { try await reader.waitForCard() }
    }
}

extension CommunicationError {
    /// - Returns: nil for an error that is not between reader and card.
    public init?(_ error: CardError) {
        switch error.kind {
        case .cardRemoved, .cardAbsent, .cardMute, .noAnswer, .readerTimeout: self = .timeout
        case .notTransacted, .cardReset: self = .transmission
        // Also of a card that is not one of ISO/IEC 14443-4, or that the reader has no protocol for.
        case .malformedAnswer, .protocolMismatch, .unsupported, .tooLong: self = .protocol
        default: return nil
        }
    }
}
