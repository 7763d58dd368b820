/// The present state of a capability, as `capability.query` answers it.
public struct CapabilityState: Hashable, Sendable {
    /// True if a request would be carried out.
    public var isSupported: Bool
    /// The version of the capability's requests.
    public var version: String
    public var permissionState: PermissionState
    /// The reason why it is not supported, in English, for developers.
    public var reason: String?

    public init(
        isSupported: Bool, version: String = "1.0", permissionState: PermissionState = .granted, reason: String? = nil
    ) {
        self.isSupported = isSupported
        self.version = version
        self.permissionState = permissionState
        self.reason = reason
    }

    var json: JSONValue {
        var members: [String: JSONValue] = [
            "supported": .bool(isSupported), "version": .string(version),
            "permissionState": .string(permissionState.rawValue),
        ]
        members["reason"] = reason.map { .string($0) }
        return .object(members)
    }
}

/// A capability that the application named, whose state it can change.
@MainActor public final class CustomCapability {
    public let id: String
    /// The state that pages are told.
    public var state: CapabilityState { didSet { if state != oldValue { changed() } } }
    let handler: @MainActor (BridgeMessage, BridgeResponder) async -> Void
    private let changed: @MainActor () -> Void

    init(
        id: String, state: CapabilityState, changed: @escaping @MainActor () -> Void,
        handler: @escaping @MainActor (BridgeMessage, BridgeResponder) async -> Void
    ) {
        (self.id, self.state, self.changed, self.handler) = (id, state, changed, handler)
    }
}

/// A component that answers requests, and stands behind capabilities.
@MainActor public protocol BridgeRequestHandler: AnyObject {
    /// The actions that it answers.
    var actions: [String] { get }
    /// The actions whose data only this component receives: observers of the host see them masked.
    var secretActions: Set<String> { get }
    /// The present states of its capabilities, by name.
    var capabilities: [String: CapabilityState] { get }
    /// The state of operations that are under way, by name, for a page that connects or reconnects.
    var snapshot: [String: JSONValue] { get }

    /// Carries out a request.  The task is canceled when the page goes away.
    func handle(_ request: BridgeMessage, _ responder: BridgeResponder) async
    /// Returns true while it takes a payment, or the orders do not know the outcome of one yet: nothing else takes one
    /// meanwhile.
    func isTakingPayment() async -> Bool
    /// Takes the host when it is registered: for events, and to tell that its capabilities changed.
    func attach(to host: BridgeHost)
    /// Tells the page that has connected, after `host.ready`, what a snapshot has no room for.
    func pageConnected()
    /// Ends what was going on for the page that has gone.
    func pageLeft()
}

extension BridgeRequestHandler {
    public var secretActions: Set<String> { [] }
    public func isTakingPayment() async -> Bool { false }
    public var capabilities: [String: CapabilityState] { [:] }
    public var snapshot: [String: JSONValue] { [:] }
    public func attach(to host: BridgeHost) {}
    public func pageConnected() {}
    public func pageLeft() {}
}
