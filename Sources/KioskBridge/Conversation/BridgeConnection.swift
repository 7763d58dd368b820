import ContactlessMetrics
import Waiting

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

    /// A request, for the metrics.
    struct Request {
        let action: MetricTable.Action
        let start = Time.now

        init(_ action: MetricTable.Action) { self.action = action }
    }

    private weak var host: BridgeHost?
    /// The secret that admitted the page.
    let token: String
    var conversation: BridgeConversation
    /// The requests that are being carried out.
    var tasks: [String: Task<Void, Never>] = [:]
    /// The requests that are not answered.
    var requests: [String: Request] = [:]
    private let send: @Sendable (Output) -> Void
    private let start = Time.now

    init(_ host: BridgeHost, token: String, send: @escaping @Sendable (Output) -> Void) {
        self.host = host
        self.token = token
        self.send = send
        conversation = BridgeConversation(limits: host.limits)
    }

    /// Takes one text message of the page.
    ///
    /// - Returns: when the next one may come.  A page that sends too many waits for it, and nobody else does.
    public func receive(_ text: String) async {
        let pause = conversation.count(at: Time.now - start)
        if pause > .zero { try? await Time.sleep(for: pause) }
        guard let host else { return send(.close(code: 1001, reason: "the host is gone")) }
        host.carryOut(conversation.receive(text), of: self)
    }

    /// Ends the page's requests and the operations behind them.
    public func close() { host?.disconnect(self) }

    func put(_ output: Output) { send(output) }

    /// Counts a request that has ended.
    func count(_ correlationId: String, _ status: MetricTable.Status) {
        guard let request = requests.removeValue(forKey: correlationId) else { return }
        metrics.requests.add(request.action, status)
        metrics.requestTime.add(request.action, since: request.start)
    }
}

extension MetricTable.Status {
    init(_ status: BridgeResponseStatus) {
        self =
            switch status {
            case .success: .success
            case .unsupported: .unsupported
            case .cancelled: .cancelled
            case .error: .error
            }
    }
}
