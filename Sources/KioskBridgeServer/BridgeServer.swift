public import Foundation
import Glibc
public import KioskBridge
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOWebSocket

/// A server on the loopback addresses: the page's files, and the WebSocket between page and host.
///
///     let server = BridgeServer(host, .init(port: 8780, files: files, admitsOwnPages: true))
///     try await server.start()
///     print(await server.address)
///
/// A page is admitted if its request comes from a loopback address, names this server, comes from an admitted origin, and
/// has a token that this server gave to that origin at most 30 seconds before; and if no other page is connected.  The
/// present page stays: a second one is refused until the first has gone.
///
/// It blocks on nothing: it has a thread of its own.
public actor BridgeServer {
    /// The settings of a server.
    public struct Configuration: Sendable {
        /// The port of both loopback addresses, 127.0.0.1 and ::1; 0 for any that is free.
        public var port: Int
        /// The files by their paths, with the page as `/`.
        public var files: [String: File]
        /// True if the pages that this server sends may connect.
        public var admitsOwnPages: Bool
        /// The origins of other pages that may connect, as browsers write them: `https://kiosk.example`.  They need a token
        /// of ``BridgeServer/issueToken(to:)``.  An empty set admits none.
        public var foreignOrigins: Set<String>

        public init(
            port: Int = 0, files: [String: File] = [:], admitsOwnPages: Bool = false, foreignOrigins: Set<String> = []
        ) {
            (self.port, self.files) = (port, files)
            (self.admitsOwnPages, self.foreignOrigins) = (admitsOwnPages, foreignOrigins)
        }
    }

    /// A server that cannot start.
    public enum StartError: Error, Hashable, Sendable, CustomStringConvertible {
        /// Another program listens on the port.
        case portInUse(Int)
        /// The sockets that systemd passed are no listening sockets of a loopback address.
        case unusableSockets
        /// Neither loopback address can be listened on; the error of the system.
        case notListening(errno: Int32)

        public var description: String {
            switch self {
            case .portInUse(let port): "port \(port) is in use. Name another one, or 0 for any that is free."
            case .unusableSockets:
                "the sockets of systemd are not of a loopback address. Set ListenStream=127.0.0.1:PORT."
            case .notListening(let errno): "no loopback address can be listened on: \(String(cString: strerror(errno)))"
            }
        }
    }

    private let host: BridgeHost
    private let configuration: Configuration
    private let patience: Patience
    nonisolated let doors: Doors
    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    private var listeners: [any Channel] = []
    /// The port; 0 before ``start()``.
    public private(set) var port = 0

    /// The time limits for others.
    struct Patience: Sendable {
        /// For a request over HTTP, and between two.
        var request = TimeAmount.seconds(10)
        /// Between two pings; a page that has not answered by the next one is gone.
        var heartbeat = TimeAmount.seconds(20)
        /// For the page's half of the closing handshake (RFC 6455, 7.1.1).
        var farewell = TimeAmount.seconds(2)
    }

    public init(_ host: BridgeHost, _ configuration: Configuration) {
        self.init(host, configuration, patience: Patience())
    }

    init(_ host: BridgeHost, _ configuration: Configuration, patience: Patience) {
        (self.host, self.configuration, self.patience) = (host, configuration, patience)
        var files = configuration.files
        for (path, file) in Self.ownFiles { files[path] = file }
        doors = Doors(
            Admission(
                foreignOrigins: configuration.foreignOrigins, admitsOwnPages: configuration.admitsOwnPages,
                tokens: TokenBook()), PageRequests(files: files))
    }

    /// The module for pages, and its declarations.
    private static let ownFiles: [String: File] = [
        "/kiosk-bridge.js": File(
            contentType: "text/javascript; charset=utf-8", bytes: PackageResources.kiosk_bridge_js),
        "/kiosk-bridge.d.ts": File(contentType: "text/plain; charset=utf-8", bytes: PackageResources.kiosk_bridge_d_ts),
    ]

    /// The address of the page.
    public var address: URL { URL(string: "http://127.0.0.1:\(port)/") ?? URL(filePath: "/") }

    /// Listens, on the sockets that systemd passed (sd_listen_fds(3)) or on those of the configuration.
    ///
    /// After an error it can be tried again.  While the server listens, it does nothing.
    public func start() async throws(StartError) { try await start(on: SystemdSockets.take()) }

    /// - Parameter passed: the sockets of systemd; empty to use the configuration.
    func start(on passed: [CInt]) async throws(StartError) {
        guard listeners.isEmpty else { return }
        let limits = await host.limits
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 32)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { [doors, host, patience] channel in
                guard doors.enter(channel) else { return channel.close() }
                return Self.configure(channel, doors, host, limits, patience)
            }
        listeners = try await passed.isEmpty ? bind(bootstrap) : adopt(passed, bootstrap)
        port = listeners.first?.localAddress?.port ?? 0
    }

    private func adopt(_ sockets: [CInt], _ bootstrap: ServerBootstrap) async throws(StartError) -> [any Channel] {
        var listeners: [any Channel] = []
        for socket in sockets where SystemdSockets.isStream(socket) {
            if let listener = try? await bootstrap.withBoundSocket(socket).get() { listeners.append(listener) }
        }
        // One port: it is part of the origin of pages.
        guard listeners.count == sockets.count, listeners.allSatisfy({ $0.localAddress?.isLoopback == true }),
            Set(listeners.map { $0.localAddress?.port }).count == 1
        else {
            for listener in listeners { try? await listener.close() }
            throw .unusableSockets
        }
        return listeners
    }

    /// - Parameter tries: how many ports are tried if any will do.
    private func bind(_ bootstrap: ServerBootstrap, tries: Int = 8) async throws(StartError) -> [any Channel] {
        let first = try await listen(bootstrap, "127.0.0.1", configuration.port)
        do throws(StartError) {
            return [first, try await listen(bootstrap, "::1", first.localAddress?.port ?? 0)]
        } catch .portInUse(let port) {
            // Another program has the port there, and would get who asks for localhost.
            try? await first.close()
            guard configuration.port == 0, tries > 1 else { throw .portInUse(port) }
            return try await bind(bootstrap, tries: tries - 1)
        } catch {
            // A machine without IPv6 has no ::1.
            return [first]
        }
    }

    private func listen(_ bootstrap: ServerBootstrap, _ address: String, _ port: Int) async throws(StartError)
        -> any Channel
    {
        guard (0...65_535).contains(port) else { throw .notListening(errno: EINVAL) }
        do {
            return try await bootstrap.bind(host: address, port: port).get()
        } catch {
            let errno = (error as? IOError)?.errnoCode ?? ESHUTDOWN
            throw errno == EADDRINUSE ? .portInUse(port) : .notListening(errno: errno)
        }
    }

    /// Makes a token for a page of another origin, which the application hands to it.
    public func issueToken(to origin: String) -> String { doors.issueToken(to: origin) }

    /// Listens no more, and ends all connections: when it returns, the host has no page.  It cannot be started again.
    public func stop() async {
        for listener in listeners { try? await listener.close() }
        listeners = []
        await doors.close()
        try? await group.shutdownGracefully()
    }

    // MARK: Connections

    private static func configure(
        _ channel: any Channel, _ doors: Doors, _ host: BridgeHost, _ limits: BridgeLimits, _ patience: Patience
    ) -> EventLoopFuture<Void> {
        let socket = SocketHandler(channel, doors, limits, patience)
        let upgrader = NIOWebSocketServerUpgrader(
            maxFrameSize: limits.message, automaticErrorHandling: false,
            shouldUpgrade: { channel, head in
                guard let token = doors.admit(head, on: channel) else {
                    return channel.eventLoop.makeSucceededFuture(nil)
                }
                let decision = channel.eventLoop.makePromise(of: HTTPHeaders?.self)
                doors.hostBegins()
                Task { @MainActor in
                    guard let connection = host.connect(token: token, send: socket.put) else {
                        doors.refuse(.anotherPage, on: channel)
                        decision.succeed(nil)
                        return doors.hostEnds()
                    }
                    channel.eventLoop.execute {
                        // If the page has gone in between, its end is told at once.  Nothing is written to it before
                        // the answer to its request.
                        socket.begin(with: connection)
                        decision.succeed(HTTPHeaders([("Sec-WebSocket-Protocol", Admission.subprotocol)]))
                    }
                }
                return decision.futureResult
            },
            upgradePipelineHandler: { channel, _ in
                channel.setOption(.autoRead, value: false).flatMapThrowing { try socket.takeFrames() }
            })
        return channel.eventLoop.makeCompletedFuture {
            let handler = HTTPHandler(doors, patience: patience.request)
            try channel.pipeline.syncOperations.configureHTTPServerPipeline(
                withServerUpgrade: (
                    upgraders: [upgrader],
                    completionHandler: { context in
                        context.pipeline.syncOperations.removeHandler(handler, promise: nil)
                    }
                ))
            try channel.pipeline.syncOperations.addHandler(handler)
        }
    }
}
