import ContactlessMetrics
import Crypto
public import Foundation
import Logging
import ProximityReader
import Waiting

/// The observer of a host.
@MainActor public protocol BridgeHostDelegate: AnyObject {
    /// The page sent a request or an event.
    func bridgeHost(_ host: BridgeHost, didReceive message: BridgeMessage)
    /// The page sent a request that nothing of the host carries out.  Answer it with
    /// ``BridgeHost/respond(to:status:data:error:)``.
    func bridgeHost(_ host: BridgeHost, unhandledRequest message: BridgeMessage)
}

extension BridgeHostDelegate {
    public func bridgeHost(_ host: BridgeHost, didReceive message: BridgeMessage) {}
    public func bridgeHost(_ host: BridgeHost, unhandledRequest message: BridgeMessage) {
        host.refuseUnknown(message)
    }
}

/// The kiosk's side of the bridge: answers the page's requests, and tells it what happens.
///
///     let host = BridgeHost(hostVersion: "1.0.0")
///     host.registerCustomCapability("door.open", version: "1.0") { request, responder in
///         responder.respond(status: .success, data: ["opened": true])
///     }
///
/// One page is connected at a time.  A request is answered once; when the page goes away its requests are canceled.
@MainActor public final class BridgeHost {
    /// The settings of a host.
    public struct Configuration: Sendable {
        /// The version of the application, which pages are told.
        public var hostVersion: String
        /// Capabilities that something else than this host provides.  A slot with a handler takes precedence over them,
        /// and they over a custom capability.
        public var capabilities: [String: CapabilityState] = [:]
        public var limits = BridgeLimits()
        /// The number of messages that ``BridgeHost/receivedMessages`` keeps.
        public var keptMessages = 100

        public init(hostVersion: String) { self.hostVersion = hostVersion }
    }

    public let configuration: Configuration
    public weak var delegate: (any BridgeHostDelegate)?
    /// The slot for pictures of documents.
    public private(set) lazy var documentCapture = CaptureCapability(id: "camera.document") { [weak self] in
        self?.capabilitiesChanged()
    }
    /// The slot for pictures of persons.
    public private(set) lazy var selfieCapture = CaptureCapability(id: "camera.selfie") { [weak self] in
        self?.capabilitiesChanged()
    }
    /// The last messages of the page, oldest first, their data masked.
    public private(set) var receivedMessages: [BridgeMessage] = []
    /// The last error that the page was answered with.
    public private(set) var lastError: BridgeErrorPayload?
    /// False while customers cannot be served.
    public private(set) var isInService = true
    /// True while nobody stands in front of the kiosk: between ``enterBackground()`` and ``enterForeground()``, while the
    /// machine sleeps, and while its screen is locked.
    public var isInBackground: Bool { !absences.isEmpty }
    /// The reasons why the kiosk is in the background.
    var absences: Set<Absence> = []
    /// The language of the kiosk, in which pages are told amounts; nil before ``setLocale(_:)``.
    public private(set) var locale: Locale?

    private var custom: [String: CustomCapability] = [:]
    private var handlers: [any BridgeRequestHandler] = []
    private var connection: BridgeConnection? { didSet { metrics.pageConnected.set(to: isConnected) } }
    private var toldCapabilities: [String: CapabilityState] = [:]
    private let received = Multicast<BridgeMessage>(keeping: .newest(64))
    /// The tasks that end with the host.
    var watches: [Task<Void, Never>] = []
    private var departures: [@MainActor () async -> Void] = []
    private var preparations: [@MainActor () async -> Void] = []

    public convenience init(hostVersion: String) { self.init(configuration: Configuration(hostVersion: hostVersion)) }

    public init(configuration: Configuration) {
        self.configuration = configuration
        metrics.pageConnected.set(to: false)
    }

    deinit { for watch in watches { watch.cancel() } }

    public var limits: BridgeLimits { configuration.limits }

    // MARK: Capabilities

    /// Adds a capability: requests whose action is its name.
    ///
    /// - Parameters:
    ///   - id: the capability's name.
    ///   - version: what pages are told of it.
    ///   - handler: carries out a request; its task is canceled when the page goes away.
    /// - Returns: the capability, whose state can change.
    @discardableResult public func registerCustomCapability(
        _ id: String, version: String, handler: @escaping @MainActor (BridgeMessage, BridgeResponder) async -> Void
    ) -> CustomCapability {
        let capability = CustomCapability(
            id: id, state: CapabilityState(isSupported: true, version: version),
            changed: { [weak self] in self?.capabilitiesChanged() }, handler: handler)
        custom[id] = capability
        capabilitiesChanged()
        return capability
    }

    /// Adds a component that answers requests.  Of two with the same action, the first one answers.
    public func register(_ handler: any BridgeRequestHandler) {
        handlers.append(handler)
        handler.attach(to: self)
        capabilitiesChanged()
    }

    /// Returns true if a component takes a payment, besides one.
    func isTakingPayment(besides component: any BridgeRequestHandler) async -> Bool {
        for handler in handlers where handler !== component {
            if await handler.isTakingPayment() { return true }
        }
        return false
    }

    /// The present states of all capabilities, by name.
    public var capabilities: [String: CapabilityState] {
        var all = custom.mapValues(\.state)
        for handler in handlers { all.merge(handler.capabilities) { first, _ in first } }
        all.merge(configuration.capabilities) { _, configured in configured }
        for slot in [documentCapture, selfieCapture] where slot.handler != nil || all[slot.id] == nil {
            all[slot.id] = slot.state
        }
        return all
    }

    /// Tells the page if a capability is not as it was told.  Components call it after a change.
    public func capabilitiesChanged() {
        guard connection != nil else { return }
        let capabilities = capabilities
        guard capabilities != toldCapabilities else { return }
        toldCapabilities = capabilities
        send(event: "host.capabilitiesChanged", data: ["capabilities": .object(capabilities.mapValues(\.json))])
    }

    // MARK: Messages

    /// Sends an event to the page.  Without a page it does nothing: the next one gets a snapshot.
    public func send(event: String, data: [String: JSONValue]) {
        guard let connection else { return }
        carryOut(connection.conversation.send(event: event, data: data), of: connection)
    }

    /// Answers a request of the page.  A second answer does nothing, and neither does one to a page that is gone.
    public func respond(
        to correlationId: String, status: BridgeResponseStatus, data: [String: JSONValue]? = nil,
        error: BridgeErrorPayload? = nil
    ) {
        guard let connection else { return }
        respond(on: connection, to: correlationId, status: status, data: data, error: error)
    }

    private func respond(
        on connection: BridgeConnection, to correlationId: String, status: BridgeResponseStatus,
        data: [String: JSONValue]?, error: BridgeErrorPayload?
    ) {
        let actions = connection.conversation.answer(correlationId, status, data: data, error: error)
        if !actions.isEmpty {
            connection.count(correlationId, MetricTable.Status(status))
            if status != .success { lastError = error }
        }
        carryOut(actions, of: connection)
    }

    /// The messages of pages as they come, for each caller from now on.
    public var messages: AsyncStream<BridgeMessage> { received.stream() }

    /// The requests of the page that are not answered, their data masked.
    public var pendingRequests: [BridgeMessage] {
        (connection?.conversation.open.values.map(\.masked) ?? []).sorted { $0.correlationId < $1.correlationId }
    }

    // MARK: Pages

    /// Connects a page, if there is none, and tells it the state of the kiosk.
    ///
    /// - Parameters:
    ///   - token: the secret that admitted the page, in the letters in which it sent it; proves the host to the page.
    ///   - send: carries out an order of the host, in the order of the calls; must not block.
    /// - Returns: nil while another page is connected.
    public func connect(
        token: String, send: @escaping @Sendable (BridgeConnection.Output) -> Void
    ) -> BridgeConnection? {
        guard connection == nil else { return nil }
        let new = BridgeConnection(self, token: token, send: send)
        connection = new
        toldCapabilities = capabilities
        self.send(
            event: "host.ready",
            data: [
                "hostVersion": .string(configuration.hostVersion),
                "protocolVersion": JSONValue(Int64(BridgeMessage.protocolVersion)),
                "timestamp": .string(Date.now.ISO8601Format()), "snapshot": .object(snapshot),
            ])
        tellLocale()
        for handler in handlers { handler.pageConnected() }
        return new
    }

    /// True while a page is connected.
    public var isConnected: Bool { connection != nil }

    private var snapshot: [String: JSONValue] {
        var snapshot: [String: JSONValue] = [
            "inService": .bool(isInService), "background": .bool(isInBackground), "order": nil, "payment": nil,
            "capabilities": .object(capabilities.mapValues(\.json)),
        ]
        for handler in handlers { snapshot.merge(handler.snapshot) { _, own in own } }
        return snapshot
    }

    func disconnect(_ connection: BridgeConnection) {
        carryOut(connection.conversation.end(), of: connection)
        guard self.connection === connection else { return }
        self.connection = nil
        for handler in handlers { handler.pageLeft() }
    }

    func carryOut(_ actions: [BridgeConversation.Action], of connection: BridgeConnection) {
        for action in actions {
            switch action {
            case .send(let text): connection.put(.text(text))
            case .close(let code, let reason):
                logger.notice("closing a page's connection", metadata: ["code": "\(code)", "reason": "\(reason)"])
                connection.put(.close(code: code, reason: reason))
            case .refused(let error):
                lastError = error
                metrics.refusedMessages.add()
            case .abandon(let correlationId):
                connection.count(correlationId, .abandoned)
                connection.tasks.removeValue(forKey: correlationId)?.cancel()
            case .notice(let message): observe(message)
            case .perform(let request):
                connection.requests[request.correlationId] = .init(MetricTable.Action(of: request.payload.action))
                observe(request)
                perform(request, of: connection)
            }
        }
    }

    private func observe(_ message: BridgeMessage) {
        logger.debug("\(message)")
        receivedMessages.append(message.masked)
        if receivedMessages.count > configuration.keptMessages {
            receivedMessages.removeFirst(receivedMessages.count - configuration.keptMessages)
        }
        let isSecret = handlers.contains { $0.secretActions.contains(message.payload.action) }
        let shown = isSecret ? message.masked : message
        delegate?.bridgeHost(self, didReceive: shown)
        received.send(shown)
    }

    private func perform(_ request: BridgeMessage, of connection: BridgeConnection) {
        guard let handler = handler(of: request, from: connection) else {
            guard let delegate else { return refuseUnknown(request) }
            return delegate.bridgeHost(self, unhandledRequest: request)
        }
        let id = request.correlationId
        let responder = BridgeResponder(id) { [weak self, weak connection] status, data, error in
            guard let connection else { return }
            self?.respond(on: connection, to: id, status: status, data: data, error: error)
        }
        connection.tasks[id] = Task { [weak connection] in
            await handler(request, responder)
            connection?.tasks[id] = nil
        }
    }

    private typealias Handler = @MainActor (BridgeMessage, BridgeResponder) async -> Void

    /// Slots take precedence over components, and those over custom capabilities.
    private func handler(of request: BridgeMessage, from connection: BridgeConnection) -> Handler? {
        switch request.payload.action {
        case "bridge.hello":
            let token = connection.token
            return { request, responder in Self.prove(token, request, responder) }
        case "capability.query":
            return { [weak self] _, responder in self?.answerQuery(responder) }
        case documentCapture.action: return documentCapture.handle
        case selfieCapture.action: return selfieCapture.handle
        case let action:
            return handlers.first { $0.actions.contains(action) }.map { handler in
                { await handler.handle($0, $1) }
            } ?? custom[action]?.handler
        }
    }

    /// Shows the page that this is the host that issued its token, and not a program that took its port.
    private static func prove(_ token: String, _ request: BridgeMessage, _ responder: BridgeResponder) {
        guard let nonce = request.payload.data?["nonce"]?.text, (16...128).contains(nonce.utf8.count) else {
            return responder.fail(.init(.invalidRequest, "nonce: 16 to 128 characters are due"))
        }
        let proof = HMAC<SHA256>.authenticationCode(
            for: Data(nonce.utf8), using: SymmetricKey(data: Data(token.utf8)))
        responder.respond(status: .success, data: ["proof": .string(proof.map { hex($0) }.joined())])
    }

    private static func hex(_ byte: UInt8) -> String {
        (byte < 0x10 ? "0" : "") + String(byte, radix: 16)
    }

    private func answerQuery(_ responder: BridgeResponder) {
        responder.respond(
            status: .success,
            data: [
                "hostVersion": .string(configuration.hostVersion),
                "protocolVersion": JSONValue(Int64(BridgeMessage.protocolVersion)),
                "capabilities": .object(capabilities.mapValues(\.json)),
            ])
    }

    func refuseUnknown(_ request: BridgeMessage) {
        respond(
            to: request.correlationId, status: .unsupported,
            error: .init(.unsupportedAction, "this host does not know \(request.payload.action)"))
    }

    // MARK: Language

    /// Sets the language of the kiosk, which pages follow until a customer chooses another one.
    public func setLocale(_ locale: Locale) {
        guard locale != self.locale else { return }
        self.locale = locale
        tellLocale()
    }

    private func tellLocale() {
        guard let locale else { return }
        send(event: "host.locale", data: ["locale": .string(locale.identifier(.bcp47))])
    }

    /// The work of ``onBackground(_:)`` and ``onForeground(_:)``.
    func leave() async { for departure in departures { await departure() } }
    func prepare() async { for preparation in preparations { await preparation() } }

    /// Adds work to do whenever the kiosk goes to the background, such as ending the wait for a card.
    public func onBackground(_ leave: @escaping @MainActor () async -> Void) { departures.append(leave) }

    /// Adds work to do whenever the kiosk comes to the foreground, such as preparing the reader again.
    public func onForeground(_ prepare: @escaping @MainActor () async -> Void) { preparations.append(prepare) }

    /// Tells the page whether customers can be served.
    public func setInService(_ isInService: Bool) {
        guard isInService != self.isInService else { return }
        self.isInService = isInService
        send(event: "host.outOfService", data: ["inService": .bool(isInService)])
    }
}
