import FlyingFox
import FlyingSocks
import Foundation

/// The sandbox over HTTP.
struct Routes: HTTPHandler {
    let sandbox: Sandbox
    let keys: SandboxKeys
    let merchant: String
    let tokenLifetime: TimeInterval
    let lateness: Duration
    /// Is given a line for each request.
    let log: @Sendable (String) -> Void

    /// Of a request's body, in bytes.
    private static let maximumLength = 64 << 20

    func handleRequest(_ request: HTTPRequest) async throws -> HTTPResponse {
        do {
            return try await answer(request)
        } catch let refusal as Sandbox.Refusal {
            log("\(request.method.rawValue) \(request.path)  refused: \(refusal.message)")
            return try json(Failure(error: .init(code: refusal.code, message: refusal.message)), status: refusal.status)
        } catch is DecodingError {
            log("\(request.method.rawValue) \(request.path)  refused: not the JSON it must be")
            let message = "The body is not the JSON that is documented: see psp-sandbox --help."
            return try json(Failure(error: .init(code: "invalid_request", message: message)), status: 400)
        }
    }

    private func answer(_ request: HTTPRequest) async throws -> HTTPResponse {
        switch (request.method, request.path) {
        case (.GET, "/keys"):
            return HTTPResponse(
                statusCode: .ok, headers: [.contentType: "application/jwk-set+json"],
                body: Data(SandboxKeys.keySet.utf8))
        case (.GET, "/payments"):
            return try json(await sandbox.all)
        case (.POST, "/reader-tokens"):
            let wish = try await decode(TokenRequest.self, request)
            let token = try await keys.readerToken(merchant: wish.merchant ?? merchant, lifetime: tokenLifetime)
            log("reader token for \(wish.merchant ?? merchant)")
            return try json(TokenAnswer(token: token))
        case (.POST, "/payments"), (.POST, "/refunds"):
            let kind: Sandbox.Kind = request.path == "/payments" ? .payment : .refund
            let key = try key(of: request)
            let charge = try await decode(Sandbox.Charge.self, request)
            return try await deliver(try await sandbox.decide(kind, key: key, charge)) { note($0) }
        case (.POST, "/batches"):
            let key = try key(of: request)
            let batch = try await decode(Sandbox.Batch.self, request)
            let reader = request.headers[HTTPHeader("Reader-Identifier")] ?? SandboxKeys.audience
            return try await deliver(try await sandbox.take(batch, from: reader, key: key)) { answer in
                log("batch of \(answer.payments.count)")
                answer.payments.forEach(note)
            }
        default:
            throw Sandbox.Refusal(status: 404, code: "not_found", message: "No such resource: see psp-sandbox --help.")
        }
    }

    private func note(_ payment: Sandbox.Payment) {
        let what = [payment.amount, payment.currency, payment.card].compactMap { $0 }.joined(separator: " ")
        log("\(payment.kind.rawValue)  \(what)  \(payment.status) \(payment.responseCode) \(payment.message)")
    }

    private func deliver<Body>(
        _ reply: Sandbox.Reply<Body>, _ note: (Body) -> Void
    ) async throws -> HTTPResponse {
        note(reply.body)
        switch reply.delivery {
        case .now: return try json(reply.body)
        case .late:
            log("  … the answer comes in \(lateness)")
            try await Task.sleep(for: lateness)
            return try json(reply.body)
        case .never:
            log("  … the connection is closed without an answer")
            return HTTPResponse(webSocket: NoAnswer())
        }
    }

    /// FlyingFox asks it for frames before it writes anything, and closes the connection where it gets none.
    private struct NoAnswer: WSHandler {
        struct Refused: Error {}
        func makeFrames(for client: AsyncThrowingStream<WSFrame, any Error>) async throws -> AsyncStream<WSFrame> {
            throw Refused()
        }
    }

    private func key(of request: HTTPRequest) throws -> String {
        let key = request.headers[HTTPHeader("Idempotency-Key")] ?? ""
        guard (1...255).contains(key.utf8.count) else {
            throw Sandbox.Refusal(
                status: 400, code: "no_idempotency_key",
                message: "Send the header Idempotency-Key, of 1 to 255 bytes, another for each payment.")
        }
        return key
    }

    private func decode<Body: Decodable>(_ type: Body.Type, _ request: HTTPRequest) async throws -> Body {
        let length = request.headers[.contentLength].flatMap(Int.init) ?? Self.maximumLength + 1
        guard length <= Self.maximumLength else {
            throw Sandbox.Refusal(
                status: 413, code: "too_long", message: "Send a Content-Length of at most \(Self.maximumLength) bytes.")
        }
        return try JSONDecoder().decode(type, from: try await request.bodyData)
    }

    private func json(_ body: some Encodable, status: Int = 200) throws -> HTTPResponse {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return HTTPResponse(
            statusCode: status == 200 ? .ok : HTTPStatusCode(status, phrase: "Refused"),
            headers: [.contentType: "application/json"], body: try encoder.encode(body))
    }

    private struct TokenRequest: Decodable { let merchant: String? }
    private struct TokenAnswer: Encodable { let token: String }
    private struct Failure: Encodable {
        struct Reason: Encodable { let code: String, message: String }
        let error: Reason
    }
}
