import Foundation
import KioskBridge
import NIOCore
import TestSupport
import Testing

@testable import KioskBridgeServer

/// A server on a real socket, and clients that do what no browser does.
struct SocketTests {
    @Test("C4 a frame that is no message ends its connection with the code for it, and the next page is served")
    func frames() async throws {
        try await Served.run { try await $0.meets("frames") }
    }

    @Test("C4 messages at the edge of the limits are taken")
    func messages() async throws {
        try await Served.run { try await $0.meets("messages") }
    }
}
