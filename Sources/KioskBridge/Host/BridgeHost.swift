/// The kiosk's side of the bridge: answers the page's requests, and tells it what happens.
@MainActor public final class BridgeHost {
    public let hostVersion: String
    public let limits: BridgeLimits
    var connection: BridgeConnection?

    public init(hostVersion: String, limits: BridgeLimits = BridgeLimits()) {
        self.hostVersion = hostVersion
        self.limits = limits
    }

    /// Connects a page, if there is none.
    ///
    /// - Parameters:
    ///   - token: the secret that admitted the page, in the letters in which it sent it; proves the host to the page.
    ///   - send: carries out an order of the host, in the order of the calls; must not block.
    /// - Returns: nil while another page is connected.
    public func connect(token: String, send: @escaping @Sendable (BridgeConnection.Output) -> Void) -> BridgeConnection? {
        guard connection == nil else { return nil }
        let new = BridgeConnection(self, send)
        connection = new
        return new
    }

    func receive(_ text: String, from connection: BridgeConnection) {}

    func disconnect(_ connection: BridgeConnection) {
        if self.connection === connection { self.connection = nil }
    }
}
