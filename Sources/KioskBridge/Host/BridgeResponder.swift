import Synchronization

/// The answer to one request, which can be given once.
///
/// If it is released without an answer, the page receives `INTERNAL_ERROR`.
public final class BridgeResponder: Sendable {
    /// The request, for ``BridgeHost/respond(to:status:data:error:)``.
    public let correlationId: String
    private let isAnswered = Atomic(false)
    private let answer: @MainActor @Sendable (BridgeResponseStatus, [String: JSONValue]?, BridgeErrorPayload?) -> Void

    init(
        _ correlationId: String,
        _ answer:
            @escaping @MainActor @Sendable (BridgeResponseStatus, [String: JSONValue]?, BridgeErrorPayload?) -> Void
    ) {
        self.correlationId = correlationId
        self.answer = answer
    }

    deinit {
        guard !isAnswered.load(ordering: .acquiring) else { return }
        Task { @MainActor [answer] in
            answer(.error, nil, BridgeErrorPayload(.internalError, "the host has no answer"))
        }
    }

    /// Answers the request.  Each further call does nothing, and neither does one after the page has gone.
    @MainActor public func respond(
        status: BridgeResponseStatus, data: [String: JSONValue]? = nil, error: BridgeErrorPayload? = nil
    ) {
        // The page may use the name of an answered request again.
        guard !isAnswered.exchange(true, ordering: .acquiringAndReleasing) else { return }
        answer(status, data, error)
    }

    /// Answers the request with an error, or with the status that belongs to its code.
    @MainActor public func fail(_ error: BridgeErrorPayload) {
        let status: BridgeResponseStatus =
            switch BridgeErrorCode(rawValue: error.code) {
            case .unsupported, .unsupportedAction: .unsupported
            case .cancelled: .cancelled
            default: .error
            }
        respond(status: status, error: error)
    }
}
