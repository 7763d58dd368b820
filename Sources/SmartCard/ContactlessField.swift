import Waiting

/// A reader's field: switch it on, find one card, switch it off, see the card leave.
public protocol ContactlessField: Sendable {
    /// Switches the field on if it is off, and waits until something enters it.
    ///
    /// - Throws: ``CardError`` if the reader is unusable, or the time limit has passed.  A card that cannot be
    ///   activated is not an error, but a ``FieldEvent/communicationError(_:)``.
    func activate() async throws -> FieldEvent

    /// Switches the field off for `duration`.  The card in it loses its state.
    func deactivate(for duration: Duration) async throws

    /// Releases the last card found and waits until the field is empty.  A departed reader counts as empty.
    func waitForRemoval() async throws

    /// Ends a tap: the card is told that the exchange is over, where the reader can say so, and loses the field.
    ///
    /// A phone then shows that it is done.  Until this call, everything sent to the card of ``activate()`` belongs to one
    /// session of the card.
    ///
    /// - Throws: ``CardError`` if the reader is unusable.
    func release() async throws

    /// The functions of the field beyond those of every field.
    nonisolated var capabilities: FieldCapabilities { get }
}

extension ContactlessField {
    /// Switches the field off for 10 ms.
    public func release() async throws { try await deactivate(for: .milliseconds(10)) }

    /// None.
    public nonisolated var capabilities: FieldCapabilities { [] }
}

/// The functions of a field that only some readers have.
public struct FieldCapabilities: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The field detects more than one card.
    public static let collisionDetection = FieldCapabilities(rawValue: 0x01)
    /// The field sends frames to all cards between its polls, by which phones learn what a terminal is for.  Without it,
    /// a terminal reads only phones that answer any reader.
    public static let broadcast = FieldCapabilities(rawValue: 0x02)

    /// Checks that the field has all these functions.
    ///
    /// - Throws: ``CardError`` of kind `unsupported`, which names the first missing function and the remedy.
    public func require(_ functions: FieldCapabilities) throws(CardError) {
        guard let row = Self.table.first(where: { functions.contains($0.function) && !contains($0.function) }) else {
            return
        }
        throw CardError(.unsupported, row.detail, hint: row.hint)
    }

    private static let table: [(function: FieldCapabilities, detail: String, hint: String)] = [
        (
            .broadcast, "the reader sends no frames of the host's between its polls",
            "Use an ACR122U or a PN532 board; on other readers, hold a phone that shows its card or pass already."
        ),
        (
            .collisionDetection, "the reader does not detect more than one card",
            "Put one card alone on the reader, or use an ACR122U or a PN532 board."
        ),
    ]
}

/// An event in a field.
public enum FieldEvent: Sendable {
    /// One card, activated.
    case card(any CardChannel)
    /// More than one card.
    case collision
    /// The collision ended: at most one card is left.
    case collisionOver
    case communicationError(CommunicationError)
}

/// The reason for a missing response of a contactless card (ISO/IEC 14443-4).
public enum CommunicationError: Hashable, Sendable {
    case timeout, transmission, `protocol`
}

/// The field of any ``CardReader``.
///
/// Such a reader activates cards by itself and reports only one of several cards.  ``FieldEvent/collision`` never
/// occurs.
public actor CardReaderField: ContactlessField {
    private let reader: any CardReader
    private let patience: Duration?
    private var card: (any CardConnection)?

    /// - Parameters:
    ///   - reader: the reader whose field is used.
    ///   - patience: the longest wait for a card; nil: no limit.
    public init(_ reader: any CardReader, patience: Duration? = nil) {
        self.reader = reader
        self.patience = patience
    }

    /// - Throws: ``CardError`` of kind `cardAbsent` after the `patience` of ``init(_:patience:)``; other kinds if the
    ///   reader is unusable.
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
        try await Time.sleep(for: duration)
    }

    public func waitForRemoval() async throws {
        await release(.powerOff)
        try await reader.waitForRemoval()
    }

    public func release() async throws { await release(.powerOff) }

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
    /// - Returns: nil for an error that did not occur between reader and card.
    public init?(_ error: CardError) {
        switch error.kind {
        case .cardRemoved, .cardAbsent, .cardMute, .noAnswer, .readerTimeout: self = .timeout
        case .notTransacted, .cardReset: self = .transmission
        // Includes cards without ISO/IEC 14443-4, and cards that the reader has no protocol for.
        case .malformedAnswer, .protocolMismatch, .unsupported, .tooLong: self = .protocol
        default: return nil
        }
    }
}
