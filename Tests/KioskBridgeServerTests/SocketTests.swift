import Foundation
import KioskBridge
import NIOCore
import TestSupport
import Testing

@testable import KioskBridgeServer

/// A server on a real socket, and clients that do what no browser does.
struct SocketTests {
    @Test("C1 each refusal reaches the page with its status; C2 a token counts once, over the wire")
    func admission() async throws {
        try await Served.run { try await $0.meets("admission") }
    }

    @Test("C3 both loopback addresses answer, and the token in the page admits it")
    func pages() async throws {
        try await Served.run { try await $0.meets("pages") }
    }

    @Test("C2 a page of another origin comes in with a token that the application handed to it")
    func foreign() async throws {
        try await Served.run(foreignOrigins: ["https://kiosk.example"]) { served in
            let token = await served.server.issueToken(to: "https://kiosk.example")
            try await served.meets("foreign", "https://kiosk.example", token)
        }
    }

    @Test("C4 a frame that is no message ends its connection with the code for it, and the next page is served")
    func frames() async throws {
        try await Served.run { try await $0.meets("frames") }
    }

    @Test("C4 messages at the edge of the limits are taken")
    func messages() async throws {
        try await Served.run { try await $0.meets("messages") }
    }

    @Test("C4 bytes of chance harm nothing", arguments: Tier.first([1], then: [2]))
    func noise(seed: Int) async throws {
        try await Served.run { try await $0.meets("noise", "\(seed)") }
    }

    @Test("C11 requests over HTTP: methods, files, keeping a connection, several at once")
    func http() async throws {
        try await Served.run { try await $0.meets("http") }
    }

    @Test("C11 requests whose end is unclear, and headers without end")
    func smuggling() async throws {
        try await Served.run { try await $0.meets("smuggling") }
    }

    @Test("C11 slow requests lose their connection")
    func slow() async throws {
        try await Served.run(patience: .init(request: .seconds(1))) { try await $0.meets("slow") }
    }

    @Test("C11 64 connections at a time")
    func many() async throws {
        try await Served.run { try await $0.meets("many") }
    }

    @Test("C11 early frames, pings, pages that go without a word: their requests are given up")
    func life() async throws {
        try await Served.run { served in
            try await served.meets("life")
            try await wait(for: "end of the request") { await served.log.abandoned == 1 }
        }
    }

    @Test("C11 pages that vanish while the host takes them in leave it free")
    func vanish() async throws {
        try await Served.run { served in
            let blocking = Task {
                while !Task.isCancelled {
                    await MainActor.run { _ = usleep(10_000) }
                    // The other tests of this process need the main actor, too.
                    try? await Task.sleep(for: .milliseconds(10))
                }
            }
            defer { blocking.cancel() }
            try await served.meets("vanish")
        }
    }

    @Test("C11 a page that answers no ping is gone")
    func silent() async throws {
        try await Served.run(patience: .init(heartbeat: .milliseconds(200))) { try await $0.meets("silent") }
    }

    @Test("C11 a page that sends 10,000 messages a second is held back, alone")
    func flood() async throws {
        try await Served.run { served in
            let messages = await served.host.messages
            let events = Task {
                var count = 0
                for await message in messages where message.type == .event { count += 1 }
                return count
            }
            // The host's own work goes on: each turn comes, and few messages between two.
            let turns = Task { @MainActor in
                var count = 0
                while !Task.isCancelled {
                    try? await Task.sleep(for: .milliseconds(5))
                    count += 1
                }
                return count
            }
            let start = ContinuousClock.now
            try await served.meets("flood", "50")
            let passed = (ContinuousClock.now - start) / .seconds(1)
            turns.cancel()
            events.cancel()
            let (turn, count) = await (turns.value, events.value)
            print("\(count) of 10,150 messages were taken in \(passed) s, and \(turn) turns of the host")
            // The first 150 are waited for; no more than 50 for each second of the present page are taken.
            #expect(count >= 150)
            #expect(Double(count) <= 50 + 50 * passed)
            #expect(turn >= 1)
            #expect(await served.host.receivedMessages.count <= 100)
        }
    }

    @Test("C11 a page that is held back is not taken for one that is gone")
    func held() async throws {
        try await Served.run(patience: .init(heartbeat: .milliseconds(500))) { try await $0.meets("held") }
    }

    @Test("C11 a page that takes nothing off loses its connection; one that does gets everything in order")
    func unread() async throws {
        var limits = BridgeLimits()
        limits.unsentBytes = 1_000_000
        try await Served.run(limits: limits, patience: .init(farewell: .milliseconds(300))) {
            try await $0.meets("unread")
        }
    }

    @Test("C11 a page whose first message is already too much is let go")
    func unready() async throws {
        var limits = BridgeLimits()
        limits.unsentBytes = 10
        try await Served.run(limits: limits, patience: .init(farewell: .milliseconds(300))) {
            try await $0.meets("unready")
        }
    }

    private static let websockets = Served.judge.deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: ".build/websockets").path

    @Test(
        "C4 PyPI's websockets agrees",
        .enabled(if: FileManager.default.fileExists(atPath: websockets), "websockets is not installed from PyPI"))
    func library() async throws {
        try await Served.run { try await $0.meets("library", path: Self.websockets) }
    }
}
