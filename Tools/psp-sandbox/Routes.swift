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

    /// The longest body of a request, in bytes: of a batch, and of anything else.
    private static let maximumLength = (batch: 32 << 20, other: 64 << 10)

    func handleRequest(_ request: HTTPRequest) async throws -> HTTPResponse {
        do {
            // Read the whole body before any answer: a rest would be taken for the next request.
            guard let body = try await body(of: request) else { return HTTPResponse(webSocket: NoAnswer()) }
            return try await answer(request, body)
        } catch let refusal as Sandbox.Refusal {
            log("\(request.method.rawValue) \(request.path)  refused: \(refusal.message)")
            return try json(Failure(error: .init(code: refusal.code, message: refusal.message)), status: refusal.status)
        } catch is CheckoutPaymentAnswer.NotOfACheckout {
            return try json(
                Failure(error: .init(code: "unknown_payment", message: "No payment of a checkout.")), status: 404)
        } catch is DecodingError {
            log("\(request.method.rawValue) \(request.path)  refused: not the JSON it must be")
            let message = "The body is not the JSON that is documented: see psp-sandbox --help."
            return try json(Failure(error: .init(code: "invalid_request", message: message)), status: 400)
        } catch let failure as Books.Failure {
            log("\(failure)")
            return try json(Failure(error: .init(code: "books", message: failure.description)), status: 500)
        }
    }

    /// - Returns: nil for one that is so long that the connection is closed.
    private func body(of request: HTTPRequest) async throws -> Data? {
        let maximum = request.path == "/batches" ? Self.maximumLength.batch : Self.maximumLength.other
        var body = Data()
        var length = 0
        for try await part in request.bodySequence {
            length += part.count
            if length <= maximum { body.append(part) }
            if length > maximum + Self.maximumLength.batch { return nil }
        }
        guard length <= maximum else {
            throw Sandbox.Refusal(status: 413, code: "too_long", message: "Send at most \(maximum) bytes.")
        }
        return body
    }

    private func answer(_ request: HTTPRequest, _ body: Data) async throws -> HTTPResponse {
        switch (request.method, request.path) {
        case (.GET, "/keys"):
            return HTTPResponse(
                statusCode: .ok, headers: [.contentType: "application/jwk-set+json"],
                body: Data(SandboxKeys.keySet.utf8))
        case (.GET, "/payments"):
            return try json(await sandbox.all)
        case (.GET, "/decision"):
            _ = try await sandbox.takeFault(movesMoney: false)
            return try json(Decision(payment: await sandbox.payment(under: try key(of: request))))
        case (.POST, "/faults"):
            let fault = try decode(Sandbox.Fault.self, body)
            try await sandbox.set(fault)
            log("the next \(fault.calls) calls: \(fault.kind.rawValue)")
            return try json(fault)
        case (.GET, "/faults"):
            return try json(await sandbox.faults)
        case (.POST, "/delayed"):
            return try json(Performed(performed: await sandbox.performDelayed()))
        case (.POST, "/reader-tokens"):
            let merchant = try decode(TokenRequest.self, body).merchant ?? merchant
            guard (1...64).contains(merchant.utf8.count) else {
                throw Sandbox.Refusal(status: 422, code: "invalid_merchant", message: "1 to 64 bytes.")
            }
            _ = try await sandbox.takeFault(movesMoney: false)
            let token = try await keys.readerToken(merchant: merchant, lifetime: tokenLifetime)
            log("reader token for \(merchant)")
            return try json(TokenAnswer(token: token))
        case (.POST, "/payments"), (.POST, "/refunds"):
            let kind: Sandbox.Kind = request.path == "/payments" ? .payment : .refund
            let key = try key(of: request)
            let charge = try decode(Sandbox.Charge.self, body)
            let fault = try await sandbox.takeFault()
            let reply = try await carryOut(fault) {
                try await $0.decide(kind, key: key, charge, declines: fault == .declined)
            }
            return try await deliver(reply, fault) { note($0) }
        case (.POST, "/reversals"):
            _ = try await sandbox.takeFault(movesMoney: false)
            let reversal = try body.isEmpty ? .init(amount: nil, currency: nil) : decode(Sandbox.Reversal.self, body)
            let payment = try await sandbox.reverse(try key(of: request), reversal)
            log("reversal of \(payment.idempotencyKey)")
            return try json(Decision(payment: payment))
        case (.POST, "/terminals"):
            let reader = request.headers[HTTPHeader("Reader-Identifier")] ?? ""
            guard (1...255).contains(reader.utf8.count) else {
                throw Sandbox.Refusal(
                    status: 400, code: "header_missing",
                    message: "Send the header Reader-Identifier, of 1 to 255 bytes.")
            }
            let enrollment = try decode(Enrollment.self, body)
            let certificates: Terminals.Certificates
            if let request = enrollment.certificateRequest {
                certificates = try await sandbox.enrol(reader, request: request)
            } else {
                certificates = Terminals.Certificates(
                    leafCertificate: enrollment.leafCertificate ?? "",
                    intermediateCertificate: enrollment.intermediateCertificate ?? [])
                try await sandbox.enrol(reader, with: certificates)
            }
            log("reader \(reader) is enrolled")
            return try json(certificates)
        case (.POST, "/batches"):
            let batch = try decode(Batch.self, body)
            let reader = request.headers[HTTPHeader("Reader-Identifier")]
            let key = try? key(of: request)
            let fault = try await sandbox.takeFault()
            let reply = try await carryOut(fault) {
                try await $0.take(batch, from: reader, key: key, declines: fault == .declined)
            }
            return try await deliver(reply, fault) { answer in
                log("batch of \(batch.count), decided: \(answer.payments.count)")
                answer.payments.forEach(note)
            }
        default:
            if let answer = try await answerCheckout(request, body) { return answer }
            throw Sandbox.Refusal(status: 404, code: "not_found", message: "No such resource: see psp-sandbox --help.")
        }
    }

    func note(_ payment: Sandbox.Payment) {
        let what = [payment.amount, payment.currency, payment.card].compactMap { $0 }.joined(separator: " ")
        log("\(payment.kind.rawValue)  \(what)  \(payment.status) \(payment.responseCode) \(payment.message)")
    }

    func carryOut<Answer: Sendable>(
        _ fault: Sandbox.Fault.Kind?, _ call: @escaping @Sendable (Sandbox) async throws -> Answer
    ) async throws -> Answer {
        guard fault == .delayed else { return try await call(sandbox) }
        log("  … it is carried out in \(lateness)")
        return try await sandbox.carryOut(after: lateness) { try await call(sandbox) }
    }

    func deliver<Body>(
        _ reply: Sandbox.Reply<Body>, _ fault: Sandbox.Fault.Kind?, _ note: (Body) -> Void
    ) async throws -> HTTPResponse {
        note(reply.body)
        let delivery: AmountRule.Delivery =
            switch fault {
            case .late: .late
            case .lost: .never
            case .refused, .declined, .delayed, nil: reply.delivery
            }
        switch delivery {
        case .now: return try json(reply.body)
        case .late:
            log("  … the answer comes in \(lateness)")
            try await Task.sleep(for: lateness)
            return try json(reply.body)
        case .never, .crash:
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

    func key(of request: HTTPRequest) throws -> String {
        let key = request.headers[HTTPHeader("Idempotency-Key")] ?? ""
        guard (1...255).contains(key.utf8.count) else {
            throw Sandbox.Refusal(
                status: 400, code: "no_idempotency_key",
                message: "Send the header Idempotency-Key, of 1 to 255 bytes, another for each payment.")
        }
        return key
    }

    func decode<Body: Decodable>(_ type: Body.Type, _ body: Data) throws -> Body {
        try JSONDecoder().decode(type, from: body)
    }

    func json(_ body: some Encodable, status: Int = 200) throws -> HTTPResponse {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        return HTTPResponse(
            statusCode: status == 200 ? .ok : HTTPStatusCode(status, phrase: "Refused"),
            headers: [.contentType: "application/json"], body: try encoder.encode(body))
    }

    private struct TokenRequest: Decodable { let merchant: String? }
    private struct Enrollment: Decodable {
        let certificateRequest: String?
        let leafCertificate: String?
        let intermediateCertificate: [String]?
    }
    private struct Decision: Encodable {
        let payment: Sandbox.Payment?
        enum CodingKeys: CodingKey { case payment }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            // Also null.
            try container.encode(payment, forKey: .payment)
        }
    }
    private struct Performed: Encodable { let performed: Int }
    private struct TokenAnswer: Encodable { let token: String }
    private struct Failure: Encodable {
        struct Reason: Encodable { let code: String, message: String }
        let error: Reason
    }
}
