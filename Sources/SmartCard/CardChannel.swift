/// A channel to a card: a command APDU goes in, a response APDU comes out.
///
/// Readers, recorded traces, virtual cards and the layers over them conform.  Code that uses a card needs nothing more.
public protocol CardChannel: Sendable {
    /// Sends `command` and waits for the response.
    ///
    /// A status word other than 9000 is a response, not an error.
    ///
    /// - Throws: ``CardError`` if no response came: the card or the reader is gone, mute, or sends a malformed answer.
    ///   `CancellationError` if the task was cancelled; the card may have executed the command.
    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU
}

/// A connection to a powered card.  It lasts until it is disconnected, the card is removed or another program takes it
/// over.
public protocol CardConnection: CardChannel {
    /// The answer to reset.  For a contactless card, the reader makes it up (PC/SC part 3, 3.1.3.2.3).
    var atr: ATR { get }
    /// The transmission protocol in use.
    var transmissionProtocol: TransmissionProtocol { get }

    /// Powers the card off and on again.  The card loses its selection and security state.
    func reset() async throws

    /// Releases the card in the state that `disposition` names.  Later calls throw; a second call does nothing.
    func disconnect(_ disposition: CardDisposition) async
}

/// The transmission protocol between reader and card (ISO/IEC 7816-3).
public enum TransmissionProtocol: String, Hashable, Sendable {
    case t0 = "T=0"
    case t1 = "T=1"
    /// None of the above: a proprietary protocol of the reader, or no card at all.
    case raw
}

/// The state in which a connection leaves its card.
public enum CardDisposition: Hashable, Sendable {
    /// The card is left as it is.
    case leave
    /// The card is reset and loses its selection and security state.
    case reset
    /// The card is powered off.
    case powerOff
}
