/// The kind of a message.
public enum BridgeMessageType: String, Hashable, Sendable, CaseIterable {
    /// A question of the page, which the host answers once.
    case request
    /// The host's answer to a request.
    case response
    /// A notice, in either direction, without an answer.
    case event
}

/// The action of a message, and its data.
public struct BridgePayload: Hashable, Sendable {
    /// The name, of words with dots: `nfc.read`.
    public var action: String
    public var data: [String: JSONValue]?

    public init(action: String, data: [String: JSONValue]? = nil) {
        self.action = action
        self.data = data
    }
}

/// The result of a request, in general.
public enum BridgeResponseStatus: String, Hashable, Sendable, CaseIterable {
    case success
    /// The host cannot do this, now or ever.
    case unsupported
    case cancelled
    case error
}

/// The reason why a request did not succeed.
public struct BridgeErrorPayload: Error, Hashable, Sendable {
    /// The reason for programs: one of ``BridgeErrorCode``, or one of the capability.
    public var code: String
    /// The reason for developers, in English, without data of a customer.
    public var message: String
    /// True if the same request can succeed when the customer or the page tries again.
    public var recoverable: Bool

    public init(code: String, message: String, recoverable: Bool) {
        self.code = code
        self.message = message
        self.recoverable = recoverable
    }

    public init(_ code: BridgeErrorCode, _ message: String) {
        self.init(code: code.rawValue, message: message, recoverable: code.isRecoverable)
    }
}

/// The codes that every capability shares.
public enum BridgeErrorCode: String, Hashable, Sendable, CaseIterable {
    case unsupportedAction = "UNSUPPORTED_ACTION"
    case unsupported = "UNSUPPORTED"
    case permissionDenied = "PERMISSION_DENIED"
    case cancelled = "CANCELLED"
    case timeout = "TIMEOUT"
    case busy = "BUSY"
    case invalidRequest = "INVALID_REQUEST"
    case internalError = "INTERNAL_ERROR"
    case versionMismatch = "VERSION_MISMATCH"

    /// True if the same request can succeed when it is tried again.
    public var isRecoverable: Bool {
        switch self {
        case .permissionDenied, .cancelled, .timeout, .busy: true
        case .unsupportedAction, .unsupported, .invalidRequest, .internalError, .versionMismatch: false
        }
    }
}

/// One message of the bridge, in either direction.
public struct BridgeMessage: Hashable, Sendable {
    /// The version of the protocol that this host speaks.
    public static let protocolVersion = 1

    /// The name that connects a response with its request: 1 to 64 letters, digits, `-` and `_`.
    public var correlationId: String
    public var type: BridgeMessageType
    public var payload: BridgePayload
    /// The result; nil unless the message is a response.
    public var status: BridgeResponseStatus?
    /// The reason; nil unless the message is a response without success.
    public var error: BridgeErrorPayload?

    public init(
        correlationId: String, type: BridgeMessageType, payload: BridgePayload, status: BridgeResponseStatus? = nil,
        error: BridgeErrorPayload? = nil
    ) {
        self.correlationId = correlationId
        self.type = type
        self.payload = payload
        self.status = status
        self.error = error
    }

    /// The message with every string and number of its data masked.
    public var masked: BridgeMessage {
        var masked = self
        masked.payload.data = payload.data?.mapValues(\.masked)
        return masked
    }
}

extension BridgeMessage: CustomStringConvertible {
    /// The kind and the action, without data.
    public var description: String { "\(type.rawValue) \(payload.action)\(status.map { ": \($0.rawValue)" } ?? "")" }
}
