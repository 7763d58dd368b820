/// The seam: a command APDU goes in, a response APDU comes out.
///
/// Readers, recorded traces, virtual cards and the layers over them all conform; whatever works on a card asks for
/// nothing more than this.
public protocol CardChannel: Sendable {
    /// Sends `command` and waits for the response.
    ///
    /// A status word other than 9000 is a response, not an error.
    ///
    /// - Throws: ``CardError`` when no response came: the card or the reader is gone, mute, or answers nonsense.
    ///   `CancellationError` when the task was cancelled; the card may then have carried out the command.
    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU
}

/// A card that is powered and connected, until it is disconnected, removed or taken over.
public protocol CardConnection: CardChannel {
    /// The answer to reset, for a contactless card the one that the reader made up (PC/SC part 3, 3.1.3.2.3).
    var atr: ATR { get }
    /// The transmission protocol in use.
    var transmissionProtocol: TransmissionProtocol { get }

    /// Powers the card off and on again, so that it forgets selection and security state.
    func reset() async throws

    /// Gives the card back, in the state that `disposition` says.  Afterwards every call throws; a second call
    /// does nothing.
    func disconnect(_ disposition: CardDisposition) async
}

/// The transmission protocol between reader and card (ISO/IEC 7816-3).
public enum TransmissionProtocol: String, Hashable, Sendable {
    case t0 = "T=0"
    case t1 = "T=1"
    /// None of the above: a protocol of the reader's own, or no card at all.
    case raw
}

/// What becomes of a card when its connection ends.
public enum CardDisposition: Hashable, Sendable {
    /// It stays as it is.
    case leave
    /// It is reset: selection and security state are gone.
    case reset
    /// It is powered off.
    case powerOff
}
