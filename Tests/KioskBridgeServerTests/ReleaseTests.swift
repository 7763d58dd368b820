import KioskBridge
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import KioskBridgeServer

/// What is left of a page that has gone.
struct ReleaseTests {
    private struct Remains: Sendable {
        weak var handler: SocketHandler?
        weak var connection: BridgeConnection?
    }

    @Test("Nothing is left of a page that has gone: each customer has a page of its own")
    func page() async throws {
        let host = await BridgeHost(hostVersion: "1.0.0")
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let doors = Doors(Admission(tokens: TokenBook()), PageRequests(files: [:]))
        let remains = try await Self.visit(host, doors, group)
        try await wait(for: "end of the handler and of the connection") {
            remains.handler == nil && remains.connection == nil
        }
        #expect(await !host.isConnected)
        try await group.shutdownGracefully()
    }

    /// A page that comes, asks and goes, on a channel that needs no peer.
    private static func visit(_ host: BridgeHost, _ doors: Doors, _ group: any EventLoopGroup) async throws -> Remains {
        let channel = try await DatagramBootstrap(group: group).bind(host: "127.0.0.1", port: 0).get()
        let handler = SocketHandler(channel, doors, await host.limits, BridgeServer.Patience())
        let connection = try #require(await host.connect(token: "", send: handler.put))
        try await channel.eventLoop.submit {
            doors.hostBegins()
            handler.begin(with: connection)
        }.get()
        try await channel.close()
        return Remains(handler: handler, connection: connection)
    }
}
