import Waiting

/// A slot for a capture: the host encodes the result, and refuses a second request while one is active.
@MainActor public final class CaptureCapability {
    /// The name of the capability: `camera.document`.
    public let id: String
    /// The action of its requests: `camera.document.capture`.
    public let action: String
    /// Carries out a request: often shows a view and calls ``awaitCompletion()``.  With nil the slot is not supported.
    public var handler: (@MainActor (BridgeMessage) async -> CaptureResult)? { didSet { changed() } }
    /// False to refuse requests for the time being.
    public var isEnabled = true { didSet { changed() } }
    /// The permission for the device behind the slot, which pages are told.
    public var permissionState = PermissionState.granted { didSet { changed() } }
    /// The request that is being carried out.
    public private(set) var activeRequest: BridgeMessage?
    private var completion = Delivery<CaptureResult>()
    private let changed: @MainActor () -> Void

    init(id: String, changed: @escaping @MainActor () -> Void) {
        self.id = id
        action = "\(id).capture"
        self.changed = changed
    }

    /// True if a request would be carried out.
    public var isSupported: Bool { handler != nil && isEnabled }

    /// Waits until ``complete(_:)`` is called, or the page goes away.
    ///
    /// - Returns: the result that was passed; `.cancelled` if the page is gone, or if there is no request.
    public func awaitCompletion() async -> CaptureResult {
        guard activeRequest != nil else { return .cancelled(reason: "no active request") }
        do { return try await completion.receive() } catch { return .cancelled(reason: "the page is gone") }
    }

    /// Ends the wait for the active request.  Without one it does nothing.
    public func complete(_ result: CaptureResult) {
        guard activeRequest != nil else { return }
        completion.deliver(.success(result))
    }

    var state: CapabilityState {
        CapabilityState(isSupported: isSupported, version: "1.0", permissionState: permissionState)
    }

    func handle(_ request: BridgeMessage, _ responder: BridgeResponder) async {
        guard let handler, isEnabled else { return responder.fail(.init(.unsupported, "\(id) is not supported")) }
        guard permissionState != .denied else {
            return responder.fail(.init(.permissionDenied, "the host may not use the device behind \(id)"))
        }
        guard activeRequest == nil else { return responder.fail(.init(.busy, "\(id) is in use")) }
        activeRequest = request
        completion = Delivery()
        let response = await handler(request).response
        activeRequest = nil
        responder.respond(status: response.status, data: response.data, error: response.error)
    }
}
