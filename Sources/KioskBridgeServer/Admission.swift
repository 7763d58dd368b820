import ContactlessMetrics

/// The decision who may talk with the host, made in one place and without I/O.
///
/// The checks come in a fixed order, and the first that fails decides: address, host, origin, handshake, token.
struct Admission {
    /// A request for a connection, as far as it matters here.
    struct Request: Hashable, Sendable {
        /// True if the peer's address is one of loopback.
        var isFromLoopback = true
        /// The fields `Host` of the request.
        var hosts: [String]
        /// The fields `Origin` of the request.
        var origins: [String]
        /// True if the request, but for its subprotocols, opens a WebSocket (RFC 6455, 4.2.1).
        var isHandshake = true
        /// The names of subprotocols that the page offers, in their order.
        var subprotocols: [String]
    }

    /// The reason why a request is refused.
    enum Refusal: Error, Hashable, Sendable {
        case address, host, origin, handshake, token, anotherPage

        /// The status of the answer (RFC 9110, 15.5).
        var status: UInt {
            switch self {
            case .handshake: 400
            case .token: 401
            case .address, .origin: 403
            case .anotherPage: 409
            case .host: 421
            }
        }

        var label: MetricTable.Refusal {
            switch self {
            case .address: .address
            case .host: .host
            case .origin: .origin
            case .handshake: .handshake
            case .token: .token
            case .anotherPage: .anotherPage
            }
        }
    }

    /// The version of the bridge's protocol, as a name of a subprotocol.
    static let subprotocol = "kiosk.bridge.v1"

    /// The port that pages name, which is that of their connections; 0 before the first one.
    var port = 0
    /// Origins besides the server's own.
    var foreignOrigins: Set<String> = []
    /// True if the pages that this server sends may connect.
    var admitsOwnPages = false
    var tokens: TokenBook

    /// The values of `Host` that name this server (RFC 9110, 7.2).  Any other one is a name of somebody else that leads
    /// here: DNS rebinding.
    var hosts: Set<String> { ["127.0.0.1:\(port)", "[::1]:\(port)", "localhost:\(port)"] }

    private var origins: Set<String> {
        foreignOrigins.union(admitsOwnPages ? Set(hosts.map { "http://\($0)" }) : [])
    }

    /// Checks the host of a request.
    func names(_ hosts: [String]) -> Bool { hosts.count == 1 && self.hosts.contains(hosts.first ?? "") }

    /// Judges a request for a connection.  A token counts once, even if the request is then refused.
    ///
    /// - Parameter now: only grows.
    /// - Returns: the token.
    mutating func admit(_ request: Request, at now: Duration) throws(Refusal) -> String {
        guard request.isFromLoopback else { throw .address }
        guard names(request.hosts) else { throw .host }
        // An origin is compared as it is written: no case, no port that is left out, no dot at the end (RFC 6454, 6.1).
        guard request.origins.count == 1, let origin = request.origins.first, origins.contains(origin) else {
            throw .origin
        }
        guard request.isHandshake, request.subprotocols.contains(Self.subprotocol) else { throw .handshake }
        let offered = request.subprotocols.filter { $0.hasPrefix("auth.") }.map { String($0.dropFirst(5)) }
        guard offered.count == 1, let token = offered.first, tokens.take(token, from: origin, at: now) else {
            throw .token
        }
        return token
    }
}
