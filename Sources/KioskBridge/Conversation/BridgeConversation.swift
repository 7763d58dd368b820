/// The host's part of the conversation with one page, without I/O: text in, actions out.
///
/// It answers each request once, keeps the number of open requests within the limits, and numbers the events.
@_spi(Fuzzing)
public struct BridgeConversation {
    /// An order of the conversation.
    public enum Action: Hashable, Sendable {
        /// A text for the page.
        case send(String)
        /// Close codes of RFC 6455, section 7.4.1: 1007 for a text that is no JSON, 1008 for one that is no message.
        case close(code: UInt16, reason: String)
        /// A request of the page to carry out.
        case perform(BridgeMessage)
        /// An event of the page.
        case notice(BridgeMessage)
        /// The error that a message of the page was answered with, or that ends the connection.
        case refused(BridgeErrorPayload)
        /// The page waits no longer for this request.
        case abandon(correlationId: String)
    }

    let limits: BridgeLimits
    /// The requests that are not answered.
    public private(set) var open: [String: BridgeMessage] = [:]
    private var sequence: Int64 = 0
    /// True after the conversation has ended: nothing more is said.
    public private(set) var isEnded = false
    /// The messages that may still come at once.
    private var allowance: Double
    private var counted: Duration = .zero

    /// Begins with no request.
    public init(limits: BridgeLimits) {
        self.limits = limits
        allowance = Double(limits.messagesPerSecond)
    }

    /// Counts a message that came at `now`, which only grows.
    ///
    /// - Returns: the time for which the message has to wait, so that no more than ``BridgeLimits/messagesPerSecond`` are
    ///   carried out; zero for a page that keeps to it.
    public mutating func count(at now: Duration) -> Duration {
        let rate = Double(max(limits.messagesPerSecond, 1))
        let passed = max(now - counted, .zero)
        counted = max(now, counted)
        allowance = min(rate, allowance + passed / .seconds(1) * rate) - 1
        return allowance >= 0 ? .zero : .seconds(-allowance / rate)
    }

    /// Takes one text of the page.
    public mutating func receive(_ text: String) -> [Action] {
        guard !isEnded else { return [] }
        let message: BridgeMessage
        do throws(BridgeMessage.Malformed) {
            guard text.utf8.count <= limits.message else {
                throw BridgeMessage.Malformed(error: .init(.invalidRequest, "more than \(limits.message) bytes"))
            }
            message = try BridgeMessage(parsing: text, depth: limits.depth)
        } catch {
            return refuse(error)
        }
        guard message.type == .request else { return [.notice(message)] }
        guard open[message.correlationId] == nil else {
            return refuse(message, .init(.invalidRequest, "correlationId: used by a request that is not answered"))
        }
        guard open.count < limits.requestsInFlight else {
            return refuse(message, .init(.busy, "\(limits.requestsInFlight) requests are not answered"))
        }
        open[message.correlationId] = message
        return [.perform(message)]
    }

    private mutating func refuse(_ malformed: BridgeMessage.Malformed) -> [Action] {
        guard let request = malformed.request else {
            isEnded = true
            let isJSON = !malformed.error.message.hasPrefix("no JSON:")
            return [.refused(malformed.error), .close(code: isJSON ? 1008 : 1007, reason: malformed.error.code)]
                + abandonAll()
        }
        let payload = BridgePayload(action: request.action)
        return refuse(
            BridgeMessage(correlationId: request.correlationId, type: .request, payload: payload), malformed.error)
    }

    private func refuse(_ request: BridgeMessage, _ error: BridgeErrorPayload) -> [Action] {
        [.refused(error), .send(Self.response(to: request, .error, nil, error).written)]
    }

    /// Answers a request.  A second answer, and one to a request of nobody, does nothing.
    public mutating func answer(
        _ correlationId: String, _ status: BridgeResponseStatus, data: [String: JSONValue]? = nil,
        error: BridgeErrorPayload? = nil
    ) -> [Action] {
        guard !isEnded, let request = open.removeValue(forKey: correlationId) else { return [] }
        return [.send(Self.response(to: request, status, data, error).written)]
    }

    /// Sends an event: with the next number as `sequence`, from which a page learns that it missed none.
    public mutating func send(event: String, data: [String: JSONValue]) -> [Action] {
        guard !isEnded else { return [] }
        sequence += 1
        var data = data
        data["sequence"] = JSONValue(sequence)
        let payload = BridgePayload(action: event, data: data)
        return [.send(BridgeMessage(correlationId: "event-\(sequence)", type: .event, payload: payload).written)]
    }

    /// Ends the conversation: the page is gone.
    public mutating func end() -> [Action] {
        guard !isEnded else { return [] }
        isEnded = true
        return abandonAll()
    }

    private mutating func abandonAll() -> [Action] {
        defer { open = [:] }
        return open.keys.sorted().map { .abandon(correlationId: $0) }
    }

    private static func response(
        to request: BridgeMessage, _ status: BridgeResponseStatus, _ data: [String: JSONValue]?,
        _ error: BridgeErrorPayload?
    ) -> BridgeMessage {
        // Whatever is no success has a reason.
        let error = status == .success ? nil : error ?? .init(status.usualCode, "no reason given")
        return BridgeMessage(
            correlationId: request.correlationId, type: .response,
            payload: BridgePayload(action: request.payload.action, data: data), status: status, error: error)
    }
}

extension BridgeResponseStatus {
    fileprivate var usualCode: BridgeErrorCode {
        switch self {
        case .success, .error: .internalError
        case .unsupported: .unsupported
        case .cancelled: .cancelled
        }
    }
}
