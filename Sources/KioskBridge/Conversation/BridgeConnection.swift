/// The host's end of one page's connection, which a transport feeds.
///
/// The transport calls ``receive(_:)`` once per text message, in order, and ``close()`` when the page has gone.
@MainActor public final class BridgeConnection {
    /// An order to the transport.
    public enum Output: Hashable, Sendable {
        /// A text message for the page.
        case text(String)
        /// The end of the connection, with a close code of RFC 6455, section 7.4, and a reason of at most 123 bytes.
        case close(code: UInt16, reason: String)
    }

    private weak var host: BridgeHost?
    let send: @Sendable (Output) -> Void

    init(_ host: BridgeHost, _ send: @escaping @Sendable (Output) -> Void) {
        self.host = host
        self.send = send
    }

    /// Takes one text message of the page.
    public func receive(_ text: String) { host?.receive(text, from: self) }

    /// Ends the page's requests and the operations behind them.
    public func close() { host?.disconnect(self) }
}
