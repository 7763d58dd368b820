import Foundation
import Glibc
import KioskBridge
import KioskBridgeServer

extension Benchmarks {
    /// Measures the way of a page's request and of its answer, and of an event, over the WebSocket on the loopback address;
    /// and how often a process wakes up that has a page and nothing to do.
    static func bridge() async throws {
        let host = await makeHost()
        let server = BridgeServer(host, .init(foreignOrigins: [RawPage.origin]))
        try await server.start()
        let page = try RawPage(port: UInt16(await server.port), token: await server.issueToken(to: RawPage.origin))
        try page.receive()

        let rounds = Limit.isGate ? 500 : 10_000
        var answers: [Double] = []
        for round in 0..<rounds {
            let payload = #"{"action":"capability.query"}"#
            let request = #"{"v":1,"type":"request","correlationId":"\#(round)","payload":\#(payload)}"#
            answers.append(
                try await time {
                    try page.send(request)
                    try page.receive()
                })
        }
        var events: [Double] = []
        for _ in 0..<rounds {
            events.append(
                try await time {
                    await host.send(event: "journey.cancel", data: ["reason": "none"])
                    try page.receive()
                })
        }
        let requests = try await Allocations(rounds: 200) {
            try page.send(#"{"v":1,"type":"request","correlationId":"1","payload":{"action":"capability.query"}}"#)
            try page.receive()
        }
        // What a busy machine does to this process, and what the rounds have left to do, passes; the end of a wait is one or two.
        var woken: [Int] = []
        while woken.count < 6, woken.last.map({ $0 > idleWakeUps }) ?? true {
            woken.append(try await wakeUps(in: .seconds(Limit.isGate ? 1 : 5)))
        }
        page.leave()
        await server.stop()
        print(
            """
            bridge: from a request to its answer \(microseconds(median(answers))), p99 \
            \(microseconds(quantile(answers, 0.99))), \(requests.verdict(atMost: 300, unoptimized: 455)); from an event to \
            the page \(microseconds(median(events))), p99 \(microseconds(quantile(events, 0.99))); \
            \(woken.last ?? 0) wake-ups in \(Limit.isGate ? 1 : 5) idle s\(Limit.verdict(atMost: idleWakeUps, woken.last ?? 0))
            """)
    }

    private static let idleWakeUps = 20

    @MainActor private static func makeHost() -> BridgeHost {
        var configuration = BridgeHost.Configuration(hostVersion: "1.0.0")
        configuration.limits.messagesPerSecond = 1_000_000
        return BridgeHost(configuration: configuration)
    }

    static func quantile(_ times: [Double], _ part: Double) -> Double {
        let sorted = times.sorted()
        return sorted[min(Int(Double(sorted.count) * part), sorted.count - 1)]
    }
}

/// A page with nothing in between: a socket whose calls block.
private struct RawPage {
    static let origin = "https://page.example"

    struct Fault: Error {}

    private let socket: CInt

    /// Connects to 127.0.0.1.
    init(port: UInt16, token: String) throws {
        socket = Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else { throw Fault() }
        var yes: CInt = 1
        setsockopt(socket, CInt(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<CInt>.size))
        // The key is that of RFC 6455, 1.3.
        let request = [
            "GET /bridge HTTP/1.1", "Host: 127.0.0.1:\(port)", "Upgrade: websocket", "Connection: Upgrade",
            "Origin: \(Self.origin)", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Protocol: kiosk.bridge.v1, auth.\(token)", "", "",
        ]
        try write(Array(request.joined(separator: "\r\n").utf8))
        var answer: [UInt8] = []
        while !answer.suffix(4).elementsEqual("\r\n\r\n".utf8) { answer += try read(1) }
        guard answer.starts(with: "HTTP/1.1 101".utf8) else { throw Fault() }
    }

    func leave() { close(socket) }

    /// Sends a text of less than 126 bytes, masked with zeros.
    func send(_ text: String) throws {
        let bytes = Array(text.utf8)
        try write([0x81, 0x80 | UInt8(bytes.count), 0, 0, 0, 0] + bytes)
    }

    /// Takes a frame off.
    func receive() throws {
        let head = try read(2)
        let length = head[1] < 126 ? Int(head[1]) : try read(2).reduce(0) { $0 << 8 | Int($1) }
        _ = try read(length)
    }

    private func write(_ bytes: [UInt8]) throws {
        guard Glibc.write(socket, bytes, bytes.count) == bytes.count else { throw Fault() }
    }

    private func read(_ count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let part = bytes[done...].withUnsafeMutableBytes { recv(socket, $0.baseAddress, $0.count, 0) }
            guard part > 0 else { throw Fault() }
            done += part
        }
        return bytes
    }
}
