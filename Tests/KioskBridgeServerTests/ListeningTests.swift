import Foundation
import Glibc
import KioskBridge
import NIOCore
import TestSupport
import Testing

@testable import KioskBridgeServer

/// Where a server listens, and how it ends.
@MainActor struct ListeningTests {
    private let host = BridgeHost(hostVersion: "1.0.0")

    /// A socket as systemd would pass it, which `take` closes in the end.  No program that other tests start meanwhile has it.
    private static func socket(_ address: SocketAddress, _ type: __socket_type = SOCK_STREAM) throws -> CInt {
        let socket = Glibc.socket(CInt(address.protocol.rawValue), CInt(type.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { throw IOError(errnoCode: errno, reason: "socket") }
        var yes: CInt = 1
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, 4)
        if case .v6 = address { setsockopt(socket, CInt(IPPROTO_IPV6), IPV6_V6ONLY, &yes, 4) }
        guard address.withSockAddr({ bind(socket, $0, socklen_t($1)) }) == 0 else {
            let reason = errno
            close(socket)
            throw IOError(errnoCode: reason, reason: "bind")
        }
        return socket
    }

    /// Sockets of one port on both loopback addresses: whoever has one of them has the other, too.
    private static func sockets() throws -> (v4: CInt, v6: CInt, port: Int) {
        let v4 = try socket(SocketAddress(ipAddress: "127.0.0.1", port: 0))
        let port = try Int(localPort(of: v4))
        return (v4, try socket(SocketAddress(ipAddress: "::1", port: port)), port)
    }

    @Test("C3 sockets of systemd on the loopback addresses are used")
    func systemd() async throws {
        let (v4, v6, port) = try Self.sockets()
        let server = BridgeServer(host, .init(port: 1, admitsOwnPages: true))
        try await server.start(on: [v4, v6])
        #expect(await server.port == port)
        let served = Served(host: host, server: server, port: port, log: Served.Log())
        try await served.meets("pages", "module")
        await server.stop()
    }

    @Test("C3 who connected before the program was started is served")
    func connectedBefore() async throws {
        let listening = try Self.socket(SocketAddress(ipAddress: "127.0.0.1", port: 0))
        let port = try Int(localPort(of: listening))
        let address = try SocketAddress(ipAddress: "127.0.0.1", port: port)
        try #require(listen(listening, 8) == 0)
        let client = Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        defer { close(client) }
        try #require(address.withSockAddr { connect(client, $0, socklen_t($1)) } == 0)
        let request = "GET /kiosk-bridge.js HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: close\r\n\r\n"
        try #require(write(client, request, request.utf8.count) == request.utf8.count)
        let server = BridgeServer(host, .init(admitsOwnPages: true))
        try await server.start(on: [listening])
        let answer = await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                var bytes = [UInt8](repeating: 0, count: 15)
                let count = read(client, &bytes, bytes.count)
                continuation.resume(returning: String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self))
            }
        }
        #expect(answer == "HTTP/1.1 200 OK")
        await server.stop()
    }

    @Test(
        "C3 a socket of systemd on another address is refused, also beside a good one",
        arguments: ["0.0.0.0", "::"])
    func otherAddress(address: String) async throws {
        for isAlone in [true, false] {
            var sockets = [try Self.socket(SocketAddress(ipAddress: address, port: 0))]
            if !isAlone { sockets.insert(try Self.socket(SocketAddress(ipAddress: "127.0.0.1", port: 0)), at: 0) }
            let server = BridgeServer(host, .init())
            await #expect(throws: BridgeServer.StartError.unusableSockets) { try await server.start(on: sockets) }
            // It can then listen by itself.
            try await server.start(on: [])
            #expect(await server.port > 0)
            await server.stop()
        }
    }

    @Test("C3 what is no listening socket is refused")
    func noSocket() async throws {
        var pipes: [CInt] = [0, 0]
        try #require(pipe(&pipes) == 0)
        let datagrams = try Self.socket(SocketAddress(ipAddress: "127.0.0.1", port: 0), SOCK_DGRAM)
        let folder = open("/", O_RDONLY)
        for socket in [pipes[0], datagrams, folder, 9_999] {
            let server = BridgeServer(host, .init())
            await #expect(throws: BridgeServer.StartError.unusableSockets) { try await server.start(on: [socket]) }
            await server.stop()
        }
    }

    @Test("C3 a port that another program has, on either address, is an error")
    func portInUse() async throws {
        let first = BridgeServer(host, .init())
        try await first.start()
        let port = await first.port
        let second = BridgeServer(host, .init(port: port))
        await #expect(throws: BridgeServer.StartError.portInUse(port)) { try await second.start() }
        await first.stop()
        await second.stop()
        // Only ::1 is taken: a program there would get the pages that ask for localhost.  Nobody listens at the other one, which
        // keeps the port from the other tests.
        let (v4, v6, other) = try Self.sockets()
        defer { close(v4) }
        listen(v6, 1)
        let third = BridgeServer(host, .init(port: other))
        await #expect(throws: BridgeServer.StartError.portInUse(other)) { try await third.start() }
        close(v6)
        try await third.start()
        #expect(await third.port == other)
        await third.stop()
    }

    @Test("C3 a port that is none is an error", arguments: [-1, 65_536, 70_000, Int.max, Int.min])
    func noPort(port: Int) async throws {
        let server = BridgeServer(host, .init(port: port))
        await #expect(throws: BridgeServer.StartError.notListening(errno: EINVAL)) { try await server.start() }
        await server.stop()
        await #expect(throws: BridgeServer.StartError.self) { try await server.start() }
    }

    @Test("C11 a server that stops has told the host that its page is gone", .timeLimit(.minutes(2)))
    func stop() async throws {
        for round in Tier.few(0..<20, 5) {
            let server = BridgeServer(host, .init(admitsOwnPages: true))
            try await server.start()
            let client = try Program(["/usr/bin/python3", Served.judge.path, "\(await server.port)", "stay"])
            // Some are stopped while their page is on its way.
            if round < 5 { try await wait(for: "page") { host.isConnected } }
            if round > 9 { try await wait(for: "connection") { server.doors.counts.connections > 0 } }
            await server.stop()
            #expect(!host.isConnected)
            client.signal(SIGKILL)
        }
    }
}
