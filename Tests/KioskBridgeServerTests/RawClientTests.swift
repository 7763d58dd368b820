import Foundation
import KioskBridge
import KioskBridgeServer
import TestSupport
import Testing

/// The server over real sockets, with clients of Python's standard library that keep to no rule.
@Suite(.timeLimit(.minutes(5))) struct RawClientTests {
    /// The answers by the names of the cases in Judges/socket_clients.py: HTTP status, close code, or what was seen.
    private static let expected = [
        "good": "success", "good over ::1": "success", "token once": "success", "token twice": "401",
        "no token": "401", "token of another origin": "401", "foreign origin": "403", "null origin": "403",
        "two origins": "403", "foreign name": "421", "two names": "421", "second page": "409, first success",
        "binary": "1003", "bad UTF-8": "1007", "half a character": "1007", "unmasked": "1002",
        "reserved bit": "1002", "reserved opcode": "1002", "reserved control opcode": "1002", "long frame": "1009",
        "announced gigabytes": "1009", "long message in fragments": "1009", "many fragments": "1009",
        "continuation of nothing": "1002", "text within a message": "1002", "long ping": "1002",
        "ping in fragments": "1002", "no JSON": "1007", "no message": "1008", "deep JSON": "1007", "ping": "pong hi",
        "close": "1000", "close without a code": "empty", "bytes behind the request": "success",
        "150 requests at once": "success, held", "slow page": "cut off", "good afterward": "success",
        "two lengths": "400", "length and chunks": "400", "no HTTP": "400", "long field": "400", "HTTP/1.0": "200",
        "no name": "421", "half a request": "end cut off", "connections": "64", "good at the end": "success",
    ]

    @Test("C2, C4, C11 Each client that breaks a rule gets its answer, and the next one is served")
    func clients() async throws {
        let host = await Self.host()
        let page = BridgeServer.File(contentType: "text/html; charset=utf-8", bytes: Array("page".utf8))
        let server = BridgeServer(host, .init(files: ["/": page], admitsOwnPages: true))
        try await server.start()
        let judge = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "Judges/socket_clients.py").path
        let outcome = try await Program.run(
            ["/usr/bin/python3", judge, "\(await server.port)"], timeout: .seconds(200))
        #expect(outcome.status == 0, "\(outcome)")
        var seen: [String: String] = [:]
        for line in outcome.output.split(separator: "\n") {
            guard let colon = line.range(of: ": ", options: .backwards) else { continue }
            seen[String(line[..<colon.lowerBound])] = String(line[colon.upperBound...])
        }
        for (name, answer) in Self.expected { #expect(seen[name] == answer, "\(name)") }
        #expect(Set(seen.keys) == Set(Self.expected.keys))
        #expect(await !host.isConnected)
        await server.stop()
    }

    /// A host whose action `big` gives more than a slow page takes off.
    @MainActor private static func host() -> BridgeHost {
        var configuration = BridgeHost.Configuration(hostVersion: "1")
        configuration.limits.unsentBytes = 1_000_000
        let host = BridgeHost(configuration: configuration)
        let text = JSONValue.string(String(repeating: "a", count: 500_000))
        host.registerCustomCapability("big", version: "1.0") { _, responder in
            responder.respond(status: .success, data: ["text": text])
        }
        return host
    }

    @Test("C3 It listens on both loopback addresses and on no other, and a port that is in use is an error")
    func addresses() async throws {
        let host = await Self.host()
        let server = BridgeServer(host, .init())
        try await server.start()
        let port = await server.port
        let sockets = try await Program.run(["ss", "-Hltn", "sport = :\(port)"])
        let addresses = sockets.output.split(separator: "\n").compactMap {
            $0.split(whereSeparator: \.isWhitespace).dropFirst(3).first.map(String.init)
        }
        #expect(Set(addresses) == ["127.0.0.1:\(port)", "[::1]:\(port)"], "\(sockets)")
        let other = BridgeServer(host, .init(port: port))
        await #expect(throws: BridgeServer.StartError.portInUse(port)) { try await other.start() }
        await other.stop()
        await server.stop()
        #expect(try await Program.run(["curl", "-s", "-m", "20", "http://127.0.0.1:\(port)/"]).status == 7)
    }

    @Test("C1 A server that nobody opened admits no page")
    func closed() async throws {
        let host = await Self.host()
        let server = BridgeServer(host, .init())
        try await server.start()
        let port = await server.port
        let token = await server.issueToken(to: "http://127.0.0.1:\(port)")
        let outcome = try await Program.run([
            "curl", "-s", "-m", "20", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Upgrade: websocket", "-H",
            "Connection: Upgrade", "-H", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "-H",
            "Sec-WebSocket-Version: 13", "-H", "Origin: http://127.0.0.1:\(port)", "-H",
            "Sec-WebSocket-Protocol: kiosk.bridge.v1, auth.\(token)", "http://127.0.0.1:\(port)/bridge",
        ])
        #expect(outcome.output == "403", "\(outcome)")
        await server.stop()
    }
}
