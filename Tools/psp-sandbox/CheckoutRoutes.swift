import FlyingFox
import Foundation

/// Checkouts over HTTP.
extension Routes {
    /// - Returns: nil for a request that is about something else.
    func answerCheckout(_ request: HTTPRequest, _ body: Data) async throws -> HTTPResponse? {
        let path = request.path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(String.init)
        guard (1...2).contains(path.count) else { return nil }
        switch (request.method, path[0], path.count == 2 ? path[1] : nil) {
        case (.POST, "checkout-sessions", nil):
            let body = try decode(CheckoutSession.Request.self, body)
            _ = try await sandbox.takeFault(movesMoney: false)
            let session = try await sandbox.openSession(body)
            log("session \(session.id)  \(session.amount) \(session.currency)")
            return try json(session)
        case (.GET, "checkout-sessions", let id?):
            _ = try await sandbox.takeFault(movesMoney: false)
            return try json(await sandbox.session(id))
        case (.POST, "checkout-tokens", nil):
            let (key, body) = (try key(of: request), try decode(CheckoutTokenRequest.self, body))
            let fault = try await sandbox.takeFault()
            let reply = try await carryOut(fault) { try await $0.tokenize(body, key: key) }
            return try await deliver(reply, fault) { log("token of session \($0.session)  \($0.masked)") }
        case (.POST, "checkout-payments", nil):
            let (key, charge) = (try key(of: request), try decode(CheckoutCharge.self, body))
            let fault = try await sandbox.takeFault()
            let reply = try await carryOut(fault) {
                try await $0.pay(charge, key: key, declines: fault == .declined)
            }
            if reply.body.status == "pending", reply.body.checkout?.challenge == nil { settleLate(key) }
            note(reply.body)
            return try await deliver(reply.map { try CheckoutPaymentAnswer($0, host(of: request)) }, fault) { _ in }
        case (.GET, "checkout-payments", nil):
            _ = try await sandbox.takeFault(movesMoney: false)
            let payment = await sandbox.payment(under: try key(of: request))
            return try json(CheckoutDecision(payment: payment.flatMap { try? .init($0, host(of: request)) }))
        case (.GET, "checkout-payments", let id?):
            _ = try await sandbox.takeFault(movesMoney: false)
            return try json(CheckoutPaymentAnswer(await sandbox.payment(id), host(of: request)))
        case (.GET, "challenges", let id?):
            return page(ChallengePage.text(for: try await sandbox.payment(ofChallenge: id)))
        case (.POST, "challenges", let id?):
            let isForm = request.headers[.contentType]?.hasPrefix("application/x-www-form-urlencoded") == true
            let isPlain = isForm && body.first != UInt8(ascii: "{")
            let outcome = try isPlain ? outcome(ofForm: body) : decode(ChallengeOutcome.self, body)
            let fault = try await sandbox.takeFault()
            let reply = try await carryOut(fault) {
                try await $0.complete(challenge: id, outcome, declines: fault == .declined)
            }
            note(reply.body)
            let response = try await deliver(
                reply.map { try CheckoutPaymentAnswer($0, host(of: request)) }, fault
            ) { _ in }
            guard isPlain, case .httpBody = response.payload else { return response }
            return page(ChallengePage.text(for: reply.body))
        default: return nil
        }
    }

    private func settleLate(_ key: String) {
        log("  … it is decided in \(lateness)")
        Task { [sandbox, lateness] in
            try await Task.sleep(for: lateness)
            try await sandbox.settle(key)
        }
    }

    private func outcome(ofForm body: Data) throws -> ChallengeOutcome {
        let text = String(decoding: body, as: UTF8.self)
        guard
            let outcome = text.wholeMatch(of: #/outcome=([a-z]+)/#).flatMap({
                ChallengeOutcome.Outcome(rawValue: String($0.1))
            })
        else {
            throw Sandbox.Refusal(status: 400, code: "invalid_request", message: "outcome is passed or failed.")
        }
        return ChallengeOutcome(outcome: outcome)
    }

    /// The address by which this client knows the service.
    private func host(of request: HTTPRequest) throws -> String {
        let host = request.headers[.host] ?? ""
        guard host.wholeMatch(of: #/[A-Za-z0-9.\-]{1,253}(:[0-9]{1,5})?/#) != nil else {
            throw Sandbox.Refusal(status: 400, code: "header_missing", message: "Send the header Host.")
        }
        return host
    }

    private func page(_ text: String) -> HTTPResponse {
        HTTPResponse(
            statusCode: .ok,
            headers: [
                .contentType: "text/html; charset=utf-8", .cacheControl: "no-store",
                HTTPHeader("Content-Security-Policy"):
                    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'",
                HTTPHeader("Referrer-Policy"): "no-referrer",
            ], body: Data(text.utf8))
    }

    private struct CheckoutDecision: Encodable {
        let payment: CheckoutPaymentAnswer?
        enum CodingKeys: CodingKey { case payment }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            // Also null.
            try container.encode(payment, forKey: .payment)
        }
    }
}

/// A payment as a checkout's client sees it.
struct CheckoutPaymentAnswer: Encodable, Sendable {
    let id: String, status: String, responseCode: String, message: String
    /// The terms; nil for a payment that was reversed before it arrived.
    let session: String?, method: String?, kind: String?, amount: String?, currency: String?
    let masked: String?, network: String?, token: String?
    /// The page on which the customer meets the challenge, while it is not met.
    let challenge: String?
    let idempotencyKey: String
    let time: Date

    struct NotOfACheckout: Error {}

    /// - Throws: ``NotOfACheckout``.
    init(_ payment: Sandbox.Payment, _ host: String) throws {
        let facts = payment.checkout
        guard facts != nil || payment.responseCode == "17" && payment.card == nil else { throw NotOfACheckout() }
        (id, responseCode, message) = (payment.id, payment.responseCode, payment.message)
        status = payment.status == "approved" ? "authorized" : payment.status
        (session, method, kind) = (facts?.session, facts?.method, facts?.methodKind)
        (amount, currency, masked) = (payment.amount, payment.currency, payment.card)
        (network, token) = (facts?.network, facts?.token)
        challenge = payment.status == "pending" ? facts?.challenge.map { "http://\(host)/challenges/\($0)" } : nil
        (idempotencyKey, time) = (payment.idempotencyKey, payment.time)
    }
}

/// The page of a challenge, in place of a bank's.
enum ChallengePage {
    /// - Parameter payment: nothing in it is from a client: amount, currency and card are written by this service.
    static func text(for payment: Sandbox.Payment) -> String {
        let sum = "\(payment.amount ?? "") \(payment.currency ?? "")"
        let content =
            payment.status == "pending"
            ? """
            <p>Do you confirm the payment of <strong>\(sum)</strong> with the card \(payment.card ?? "")?</p>
            <form method="post">
            <button name="outcome" value="passed">Confirm</button>
            <button name="outcome" value="failed">Reject</button>
            </form>
            """
            : "<p role=\"status\">\(payment.status == "approved" ? "The payment is confirmed." : "The payment is declined.")</p>"
        return """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width">
            <title>psp-sandbox: confirm a payment</title>
            <style>body { font: 1.25rem sans-serif; margin: 2rem } button { font: inherit; padding: .5rem 1rem }</style>
            </head>
            <body>
            <h1>Test bank</h1>
            \(content)
            </body>
            </html>

            """
    }
}
