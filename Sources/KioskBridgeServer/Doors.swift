import ContactlessMetrics
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
    private let visits = Lock(Visits())
    /// The most connections at a time.
    static let mostConnections = 64
    /// Event loops have no task.
    private let time = Time.current
    private let start = Time.now

    private struct Visits {
        var channels: [ObjectIdentifier: any Channel] = [:]
        var errands = 0
        /// The pages that the host has taken in.
        var pages = 0
        var areOver = false
        var waiter: CheckedContinuation<Void, Never>?

        var areNone: Bool { channels.isEmpty && errands == 0 }
    }

    init(_ admission: Admission, _ pages: PageRequests) {
        self.admission = Lock(admission)
        self.pages = pages
    }

    private var now: Duration { time.now - start }

    /// Makes a token for a page of `origin`.
    func issueToken(to origin: String) -> String {
        var random = SystemRandomNumberGenerator()
        return admission.withLock { $0.tokens.issue(to: origin, at: now, random: &random) }
    }

    func answer(_ request: PageRequests.Request, on channel: any Channel) -> PageRequests.Answer {
        if let refusal = refusals.withLock({ $0.removeValue(forKey: ObjectIdentifier(channel)) }) {
            return PageRequests.Answer(refusal.status, "The connection is refused.")
        }
        let admission = admission.withLock { $0 }
        let isOccupied = visits.withLock { $0.pages > 0 }
        return pages.answer(request, admission, isOccupied: isOccupied) { issueToken(to: $0) }
    }

    /// Judges a request for a WebSocket.
    ///
    /// - Returns: the token; nil if the request is refused, which the connection's HTTP handler answers.
    func admit(_ head: HTTPRequestHead, on channel: any Channel) -> String? {
        // `Upgrade` elsewhere is ignored (RFC 9110, 7.8).
        guard head.uri == "/bridge", head.method == .GET else { return nil }
        let request = Admission.Request(
            isFromLoopback: channel.remoteAddress?.isLoopback ?? false, hosts: head.headers["Host"],
            origins: head.headers["Origin"], isHandshake: Self.opensSocket(head),
            subprotocols: head.headers[canonicalForm: "Sec-WebSocket-Protocol"].map(String.init))
        do throws(Admission.Refusal) {
            return try admission.withLock { admission throws(Admission.Refusal) in
                try admission.admit(request, at: now)
            }
        } catch {
            refuse(error, on: channel)
            return nil
        }
    }

    /// NIO does not look at these.  Bytes behind such a request could be taken for requests and for frames.
    private static func opensSocket(_ head: HTTPRequestHead) -> Bool {
        head.version == .http1_1 && head.headers[canonicalForm: "Connection"].contains { $0.lowercased() == "upgrade" }
            && !head.headers.contains(name: "Content-Length") && !head.headers.contains(name: "Transfer-Encoding")
    }

    func refuse(_ refusal: Admission.Refusal, on channel: any Channel) {
        logger.notice("a page is refused", metadata: ["reason": "\(refusal)"])
        metrics.refusedPages.add(refusal.label)
        let id = ObjectIdentifier(channel)
        refusals.withLock { $0[id] = refusal }
        channel.closeFuture.whenComplete { [weak self] _ in self?.forget(id) }
    }

    private func forget(_ id: ObjectIdentifier) { _ = refusals.withLock { $0.removeValue(forKey: id) } }

    // MARK: Connections

    /// Keeps a connection until it closes.
    ///
    /// - Returns: false if there are too many, or it does not come from this machine.
    func enter(_ channel: any Channel) -> Bool {
        guard let address = channel.localAddress, address.isLoopback, channel.remoteAddress?.isLoopback == true else {
            return false
        }
        // systemd starts the program when somebody has connected, before the server knows its port.
        admission.withLock { $0.port = address.port ?? 0 }
        let id = ObjectIdentifier(channel)
        let isAdmitted = visits.withLock { visits in
            guard !visits.areOver, visits.channels.count < Self.mostConnections else { return false }
            visits.channels[id] = channel
            return true
        }
        if isAdmitted { channel.closeFuture.whenComplete { [weak self] _ in self?.leave { $0.channels[id] = nil } } }
        return isAdmitted
    }

    /// Counts what the host does for a page: it comes back to the event loop, which lives as long.
    func hostBegins() { visits.withLock { $0.errands += 1 } }

    func hostEnds() { leave { $0.errands -= 1 } }

    /// Counts a page that the host has taken in, or that has gone.
    func count(_ pages: Int) { visits.withLock { $0.pages += pages } }

    private func leave(_ change: (inout Visits) -> Void) {
        let waiter = visits.withLock { visits -> CheckedContinuation<Void, Never>? in
            change(&visits)
            guard visits.areNone else { return nil }
            defer { visits.waiter = nil }
            return visits.waiter
        }
        waiter?.resume()
    }

    /// Closes all connections, and returns when the host knows that their pages are gone.
    func close() async {
        let channels = visits.withLock { visits in
            visits.areOver = true
            return Array(visits.channels.values)
        }
        for channel in channels { channel.close(promise: nil) }
        await withCheckedContinuation { waiter in
            let isDone = visits.withLock { visits in
                if !visits.areNone { visits.waiter = waiter }
                return visits.areNone
            }
            if isDone { waiter.resume() }
        }
    }

    /// The connections, and what the host does for pages, at this time.
    var counts: (connections: Int, errands: Int) { visits.withLock { ($0.channels.count, $0.errands) } }
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
