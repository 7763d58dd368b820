import Foundation
import TestSupport
import Testing

@testable import KioskBridge

/// A page as a host meets it: text out, text in, read by Foundation's own parser.
@MainActor final class Page {
    struct Answer {
        let status: String
        let data: [String: Any]
        let code: String?
        let isRecoverable: Bool?
    }

    private(set) var texts: [[String: Any]] = []
    private(set) var closed: UInt16?
    private(set) var connection: BridgeConnection?
    private let end: AsyncStream<BridgeConnection.Output>.Continuation
    private var next = 0

    init?(_ host: BridgeHost, token: String = "00112233445566778899aabbccddeeff") {
        let (outputs, continuation) = AsyncStream<BridgeConnection.Output>.makeStream()
        end = continuation
        guard let connection = host.connect(token: token, send: { continuation.yield($0) }) else { return nil }
        self.connection = connection
        Task { [weak self] in
            for await output in outputs { self?.take(output) }
        }
    }

    deinit { end.finish() }

    private func take(_ output: BridgeConnection.Output) {
        switch output {
        case .text(let text):
            let object = try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
            texts.append(object ?? ["unreadable": text])
        case .close(let code, _): closed = code
        }
    }

    func send(_ text: String) async { await connection?.receive(text) }

    func leave() {
        connection?.close()
        connection = nil
        end.finish()
    }

    /// Waits for a text or the end that `condition` accepts.
    func wait(_ what: String, until condition: () -> Bool) async throws {
        try await TestSupport.wait(for: what) { condition() }
    }

    /// The responses to a request.
    func responses(to id: String) -> [Answer] {
        texts.filter { $0["type"] as? String == "response" && $0["correlationId"] as? String == id }.map { text in
            let error = text["error"] as? [String: Any]
            return Answer(
                status: text["status"] as? String ?? "",
                data: (text["payload"] as? [String: Any])?["data"] as? [String: Any] ?? [:],
                code: error?["code"] as? String, isRecoverable: error?["recoverable"] as? Bool)
        }
    }

    func events(_ action: String) -> [[String: Any]] {
        texts.compactMap { text in
            guard text["type"] as? String == "event", let payload = text["payload"] as? [String: Any],
                payload["action"] as? String == action
            else { return nil }
            return payload["data"] as? [String: Any]
        }
    }

    /// Sends a request without a wait.
    ///
    /// - Returns: its name.
    func begin(_ action: String, _ data: String = "{}") async -> String {
        next += 1
        let id = "r\(next)"
        await send(
            #"{"v":1,"type":"request","correlationId":"\#(id)","payload":{"action":"\#(action)","data":\#(data)}}"#)
        return id
    }

    func request(_ action: String, _ data: String = "{}") async throws -> Answer {
        let id = await begin(action, data)
        try await wait("answer to \(action)") { !responses(to: id).isEmpty }
        return try #require(responses(to: id).first)
    }
}
