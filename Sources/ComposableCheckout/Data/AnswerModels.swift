import CardEncryption
import Foundation

extension CheckoutConfiguration {
    /// The session as the service describes it.
    ///
    /// - Throws: ``Answer/Malformed``; ``CheckoutError/configuration(_:)`` for a session that this package cannot serve.
    init(_ answer: Answer) throws {
        let methods = try answer.objects("methods", atMost: 64).map(PaymentMethod.init)
        guard Set(methods.map(\.id)).count == methods.count else {
            throw Answer.Malformed(description: "“methods” has an identifier twice")
        }
        self.init(
            session: try answer.name("id"), amount: try answer.amount("amount"),
            currency: try answer.currency("currency"),
            country: answer.has("country") ? try answer.country("country") : nil, methods: methods,
            card: answer.has("card") ? try CardConfiguration(answer.object("card")) : nil)
        guard amount > 0 else { throw Answer.Malformed(description: "“amount” should be more than 0") }
        guard card != nil || !methods.contains(where: { $0.kind == .card }) else {
            throw CheckoutError.configuration("the session accepts cards by hand, and has no fields for them")
        }
    }
}

extension PaymentMethod {
    init(_ answer: Answer) throws {
        let surcharges = answer.has("networkSurcharges") ? try answer.object("networkSurcharges") : nil
        var networkSurcharges: [CardNetwork: Decimal] = [:]
        for name in surcharges?.names ?? [] {
            guard Answer.isName(name), networkSurcharges.count < 32 else {
                throw Answer.Malformed(description: "“networkSurcharges” should have at most 32 networks")
            }
            networkSurcharges[CardNetwork(rawValue: name)] = try surcharges?.amount(name)
        }
        self.init(
            id: try answer.name("id"), kind: Kind(rawValue: try answer.name("kind")),
            networks: answer.has("networks") ? try answer.names("networks").map(CardNetwork.init) : [],
            surcharge: answer.has("surcharge") ? try answer.amount("surcharge") : nil,
            networkSurcharges: networkSurcharges)
    }
}

extension CardConfiguration {
    init(_ answer: Answer) throws {
        func fields(_ name: String) throws -> [ComposableInputElementType] {
            try answer.names(name).map { name in
                guard let field = ComposableInputElementType(rawValue: name) else {
                    throw CheckoutError.configuration("the session requires the field \(name), which is unknown")
                }
                return field
            }
        }
        let recipient = try answer.written("recipient")
        do {
            _ = try JWERecipient(jwk: recipient)
        } catch {
            throw CheckoutError.configuration("the session's key cannot be used: \(error)")
        }
        self.init(
            networks: try answer.names("networks").map(CardNetwork.init), fields: try fields("fields"),
            billingFields: try fields("billingFields"), recipient: recipient)
    }
}

/// A payment as the service describes it.
struct PaymentAnswer {
    let result: PaymentResult
    /// The session; nil for a payment that was reversed before it arrived.
    let session: String?
    let method: String?
    let idempotencyKey: String

    /// The service's words for states.
    private static let states: [String: PaymentResult.Status] = [
        "authorized": .success, "declined": .failed, "pending": .pending,
    ]

    init(_ answer: Answer) throws(Answer.Malformed) {
        guard let status = Self.states[try answer.name("status")] else {
            throw Answer.Malformed(description: "“status” should be authorized, declined or pending")
        }
        // A payment that was reversed before it arrived is declined, and nothing more is known of it.
        let isKnown = status != .failed || answer.has("session")
        session = isKnown ? try answer.name("session") : nil
        method = isKnown ? try answer.name("method") : nil
        idempotencyKey = try answer.text("idempotencyKey", 1...255)
        let masked = answer.has("masked") ? try answer.masked("masked") : nil
        let network = answer.has("network") ? CardNetwork(rawValue: try answer.name("network")) : nil
        let token: PaymentToken?
        if answer.has("token"), let masked {
            token = PaymentToken(id: try answer.name("token"), network: network, masked: masked)
        } else {
            token = nil
        }
        result = PaymentResult(
            paymentID: try answer.name("id"), status: status, token: token,
            challenge: status == .pending && answer.has("challenge") ? try answer.page("challenge") : nil,
            errorMessage: status == .failed ? try answer.text("message", 0...1024) : nil,
            amount: isKnown || answer.has("amount") ? try answer.amount("amount") : 0,
            currency: isKnown || answer.has("currency") ? try answer.currency("currency") : "",
            method: PaymentMethod.Kind(rawValue: isKnown ? try answer.name("kind") : ""))
    }
}
