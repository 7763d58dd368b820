import Foundation
import KioskBridge
import NIOCore
import TestSupport
import Testing

@testable import KioskBridgeServer

/// A server of this process, which clients outside are let loose on.
struct Served: Sendable {
    let host: BridgeHost
    let server: BridgeServer
    let port: Int
    /// What was done for pages.
    let log: Log

    @MainActor final class Log {
        var abandoned = 0
    }

    /// Starts a server on a free port, and looks after `body` that nothing is left of its clients.
    static func run(
        limits: BridgeLimits = BridgeLimits(), patience: BridgeServer.Patience = patience,
        foreignOrigins: Set<String> = [], _ body: (Served) async throws -> Void
    ) async throws {
        let (host, log) = await makeHost(limits)
        let page = BridgeServer.File(
            contentType: "text/html; charset=utf-8",
            bytes: Array(#"<!doctype html><meta name="kiosk-token" content="">"#.utf8))
        let server = BridgeServer(
            host, .init(files: ["/": page], admitsOwnPages: true, foreignOrigins: foreignOrigins), patience: patience)
        try await server.start()
        let served = Served(host: host, server: server, port: await server.port, log: log)
        do {
            try await body(served)
            try await served.isEmpty()
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
        #expect(await !host.isConnected)
    }

    /// On a busy machine clients are slow, too.
    static let patience = BridgeServer.Patience(request: .seconds(120), heartbeat: .seconds(120))

    /// Waits until no connection and no page is left.
    func isEmpty() async throws {
        try await wait(for: "end of all connections") { server.doors.counts == (0, 0) }
        #expect(await !host.isConnected)
        #expect(await host.pendingRequests.isEmpty)
    }

    /// Runs a case of the clients.
    func meets(_ arguments: String..., path: String = "") async throws {
        let outcome = try await Program.run(
            ["/usr/bin/python3", Self.judge.path, "\(port)"] + arguments, environment: ["PYTHONPATH": path])
        #expect(outcome.status == 0, "\(arguments): \(outcome)")
        for line in outcome.output.split(separator: "\n") where line != "ok" { print(line) }
    }

    static let judge = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Judges/server_clients.py")

    @MainActor private static func makeHost(_ limits: BridgeLimits) -> (BridgeHost, Log) {
        var configuration = BridgeHost.Configuration(hostVersion: "1.2.3")
        configuration.limits = limits
        let host = BridgeHost(configuration: configuration)
        let log = Log()
        // Never answers.
        host.registerCustomCapability("test.hold", version: "1.0") { [weak host] _, _ in
            host?.send(event: "test.held", data: [:])
            try? await Task.sleep(for: .seconds(100))
            log.abandoned += 1
        }
        // Sends `count` events of `size` bytes, one after the other.
        host.registerCustomCapability("test.send", version: "1.0") { [weak host] request, responder in
            let number = { (name: String) in Int(request.payload.data?[name]?.wholeNumber ?? 0) }
            let text = JSONValue.string(String(repeating: "x", count: number("size")))
            for index in 0..<number("count") {
                host?.send(event: "test.event", data: ["text": text, "index": JSONValue(Int64(index))])
            }
            responder.respond(status: .success, data: [:])
        }
        return (host, log)
    }
}
