/// A device that may hold a card: one slot of a reader.
public protocol CardReader: Sendable {
    /// The reader's identity.
    var identity: ReaderIdentity { get }

    /// The states of the slot: the present state first, then each change as it happens, without polling.
    ///
    /// Each call makes an independent stream.  It ends when the reader is gone for good.  It throws ``CardError`` if
    /// the reader cannot be watched.  Cancelling the waiting task ends the wait within 50 ms.
    func slotStates() -> any AsyncSequence<SlotState, any Error> & Sendable

    /// Powers the card in the slot and connects to it.
    ///
    /// - Throws: ``CardError`` of kind `cardAbsent`, `cardMute`, `sharing`, … .
    func connect() async throws -> any CardConnection

    /// Sends a command to the reader itself, such as `FF 00 48 00 00`, and returns the unmodified answer.  Some readers
    /// omit the status word.  Works with and without a card.
    ///
    /// - Throws: ``CardError``, of kind `unsupported` if no route to the reader exists.
    func transmitToReader(_ command: [UInt8]) async throws -> [UInt8]

    /// Opens a connection to the reader itself, for several commands.
    ///
    /// - Parameter exclusively: if true, commands of other programs wait until the link is closed.  No effect on
    ///   readers that only this process drives.
    /// - Throws: ``CardError``, of kind `sharing` while another program holds the reader.
    func open(exclusively: Bool) async throws -> any ReaderLink
}

/// The identity of a reader, as far as the reader reveals it.
public struct ReaderIdentity: Hashable, Sendable {
    /// The path of commands to a reader.
    public enum Backend: String, Hashable, Sendable {
        case pcsc
        case usb
        case serial
        case replay
        case virtual
    }

    /// The reader's name in the backend, unique among the readers present: `ACS ACR122U PICC Interface 00 00`.
    public var name: String
    public var backend: Backend
    public var vendor: String?
    /// The serial number; nil for the many readers that have none.
    public var serialNumber: String?

    public init(name: String, backend: Backend, vendor: String? = nil, serialNumber: String? = nil) {
        self.name = name
        self.backend = backend
        self.vendor = vendor
        self.serialNumber = serialNumber
    }
}

/// The content of a reader's slot.
public enum SlotState: Hashable, Sendable {
    case empty
    /// A card, with its answer to reset.  `exclusivelyHeld` is true while another program holds it exclusively.
    case card(ATR, exclusivelyHeld: Bool)
    /// A card that does not answer.
    case muteCard
    /// The driver cannot tell the state.
    case unknown

    /// True if the slot contains a card that answered its reset.
    public var hasCard: Bool {
        if case .card = self { true } else { false }
    }
}

extension CardReader {
    /// Waits until the slot contains a card that answers, and returns the answer to reset.
    ///
    /// A driver that powers a card only when it comes, as pcscd does, is asked once to power a mute one again: a card that
    /// left the field while it was powered, and returned, would stay mute until it is taken away.
    ///
    /// pcscd does not see that a card takes another one's place between two of its looks: the answer to reset is then the
    /// first card's, until a connection powers the card that is there.
    ///
    /// - Throws: ``CardError`` of kind `readerGone` if the reader leaves first.
    public func waitForCard() async throws -> ATR { try await waitForCard { _ in true } }

    /// Waits for a card whose answer to reset `matches`; see ``waitForCard()``.
    package func waitForCard(where matches: (ATR) -> Bool) async throws -> ATR {
        var wasMute = false
        for try await state in slotStates() {
            switch state {
            case .card(let atr, _) where matches(atr): return atr
            // If the card answers, that is the next state.
            case .muteCard where !wasMute: await (self as? any MuteCardReader)?.powerMuteCard()
            default: break
            }
            wasMute = state == .muteCard
        }
        try Task.checkCancellation()
        throw CardError(.readerGone, identity.name)
    }

    /// Waits until the slot is empty.  A departed reader counts as empty.
    public func waitForRemoval() async throws {
        for try await state in slotStates() where state == .empty { return }
        try Task.checkCancellation()
    }
}

/// A reader whose driver powers a card only when it comes, or a layer over a reader.
package protocol MuteCardReader: CardReader {
    /// Powers the mute card in the slot once more.  If it answers, the slot's states tell.
    ///
    /// Recordings do not contain the attempt: the driver makes it, not the program.
    func powerMuteCard() async
}
