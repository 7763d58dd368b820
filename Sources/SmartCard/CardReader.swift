/// A device that may hold a card: one slot of a reader.
public protocol CardReader: Sendable {
    /// Who the reader is.
    var identity: ReaderIdentity { get }

    /// The state of the slot: the present one first, then each change as it happens, without polling.
    ///
    /// Each call makes a stream of its own.  It ends when the reader is gone for good, and throws ``CardError`` when
    /// the reader cannot be watched.  Cancelling the task that waits ends the wait within 50 ms.
    func slotStates() -> any AsyncSequence<SlotState, any Error> & Sendable

    /// Powers the card in the slot and connects to it.
    ///
    /// - Throws: ``CardError`` of kind `cardAbsent`, `cardMute`, `sharing`, … .
    func connect() async throws -> any CardConnection

    /// Sends a command to the reader itself, such as `FF 00 48 00 00`, and returns its answer as it is: readers leave
    /// out the status word at times.  Works with and without a card.
    ///
    /// - Throws: ``CardError``, of kind `unsupported` where no route to the reader exists.
    func transmitToReader(_ command: [UInt8]) async throws -> [UInt8]

    /// Opens a connection to the reader itself, for more than one command.
    ///
    /// - Parameter exclusively: whether commands of other programs wait until it is closed.  Readers that this process drives
    ///   alone are its own anyhow.
    /// - Throws: ``CardError``, of kind `sharing` while somebody else holds the reader.
    func open(exclusively: Bool) async throws -> any ReaderLink
}

/// Who a reader is, as far as it tells.
public struct ReaderIdentity: Hashable, Sendable {
    /// What carries the commands to a reader.
    public enum Backend: String, Hashable, Sendable {
        case pcsc
        case usb
        case serial
        case replay
        case virtual
    }

    /// The name by which the backend knows it, unique among the readers present: `ACS ACR122U PICC Interface 00 00`.
    public var name: String
    public var backend: Backend
    public var vendor: String?
    /// Nil for the many readers that have none.
    public var serialNumber: String?

    public init(name: String, backend: Backend, vendor: String? = nil, serialNumber: String? = nil) {
        self.name = name
        self.backend = backend
        self.vendor = vendor
        self.serialNumber = serialNumber
    }
}

/// What a reader's slot holds.
public enum SlotState: Hashable, Sendable {
    case empty
    /// A card, with its answer to reset, and whether another program holds it for itself.
    case card(ATR, exclusivelyHeld: Bool)
    /// A card that does not answer.
    case muteCard
    /// The driver cannot tell.
    case unknown

    /// Whether a card is there that has answered its reset.
    public var hasCard: Bool {
        if case .card = self { true } else { false }
    }
}

extension CardReader {
    /// Waits until the slot holds a card that answers, and returns its answer to reset.
    ///
    /// - Throws: ``CardError`` of kind `readerGone` if the reader leaves first.
    public func waitForCard() async throws -> ATR {
        for try await state in slotStates() {
            if case .card(let atr, _) = state { return atr }
        }
        try Task.checkCancellation()
        throw CardError(.readerGone)
    }

    /// Waits until the slot is empty.  A reader that leaves takes its card along.
    public func waitForRemoval() async throws {
        for try await state in slotStates() where state == .empty { return }
        try Task.checkCancellation()
    }
}
