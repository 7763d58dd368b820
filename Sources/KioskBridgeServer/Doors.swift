import Foundation
import KioskBridge
import Logging
import NIOCore
import NIOHTTP1
import Waiting

let logger = Logger(label: "KioskBridgeServer")

/// The rules and the files that all connections of a server share.
final class Doors: Sendable {
    private let admission: Lock<Admission>
    private let pages: PageRequests
    private let refusals = Lock<[ObjectIdentifier: Admission.Refusal]>([:])
    private let connections = Lock(0)
    /// The most connections at a time.
    static let mostConnections = 64
    private static let start = ContinuousClock.now

    init(_ admission: Admission, _ pages: PageRequests) {
        self.admission = Lock(admission)
        self.pages = pages
    }

    private static var now: Duration { ContinuousClock.now - start }

    func listen(on port: Int) { admission.withLock { $0.port = port } }

    /// Makes a token for a page of `origin`.
    func issueToken(to origin: String) -> String {
        var random = SystemRandomNumberGenerator()
        return admission.withLock { $0.tokens.issue(to: origin, at: Self.now, random: &random) }
    }

    func answer(_ request: PageRequests.Request, on channel: any Channel) -> PageRequests.Answer {
        if let refusal = refusals.withLock({ $0.removeValue(forKey: ObjectIdentifier(channel)) }) {
            return PageRequests.Answer(refusal.rawValue, "The connection is refused.")
        }
        let admission = admission.withLock { $0 }
        return pages.answer(request, admission) { issueToken(to: $0) }
    }

    /// Judges a request for a WebSocket.
    ///
    /// - Returns: the token; nil if the request is refused, which the connection's HTTP handler answers.
    func admit(_ head: HTTPRequestHead, on channel: any Channel) -> String? {
        let request = Admission.Request(
            isFromLoopback: channel.remoteAddress?.isLoopback ?? false, hosts: head.headers["Host"],
            origins: head.headers["Origin"],
            subprotocols: head.headers[canonicalForm: "Sec-WebSocket-Protocol"].map(String.init))
        do throws(Admission.Refusal) {
            guard head.uri == "/bridge", head.method == .GET else { throw .subprotocol }
            return try admission.withLock { admission throws(Admission.Refusal) in
                try admission.admit(request, at: Self.now)
            }
        } catch {
            refuse(error, on: channel)
            return nil
        }
    }

    func refuse(_ refusal: Admission.Refusal, on channel: any Channel) {
        logger.notice("a page is refused", metadata: ["reason": "\(refusal)"])
        let id = ObjectIdentifier(channel)
        refusals.withLock { $0[id] = refusal }
        channel.closeFuture.whenComplete { [weak self] _ in self?.forget(id) }
    }

    private func forget(_ id: ObjectIdentifier) { _ = refusals.withLock { $0.removeValue(forKey: id) } }

    /// Counts a connection until it closes.
    ///
    /// - Returns: false if there are too many.
    func enter(_ channel: any Channel) -> Bool {
        let isAdmitted = connections.withLock { count in
            guard count < Self.mostConnections else { return false }
            count += 1
            return true
        }
        if isAdmitted { channel.closeFuture.whenComplete { [weak self] _ in self?.leave() } }
        return isAdmitted
    }

    private func leave() { connections.withLock { $0 -= 1 } }
}

extension SocketAddress {
    /// True for an address of 127.0.0.0/8, and ::1.
    var isLoopback: Bool {
        switch self {
        case .v4(let address): UInt32(bigEndian: address.address.sin_addr.s_addr) >> 24 == 127
        case .v6: ipAddress == "::1"
        case .unixDomainSocket: false
        }
    }
}
