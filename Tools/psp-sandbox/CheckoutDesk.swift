import Foundation

/// A session of a checkout: one sum that is paid once.
struct CheckoutSession: Sendable {
    struct Request: Decodable, Sendable {
        /// In the currency's major unit: `12.34`.
        let amount: String
        let currency: String
        let country: String?
        /// The merchant's own name for it.
        let reference: String?
    }

    struct Token: Sendable {
        /// The request's hash.
        let request: String
        let id: String
        let card: CheckoutCard
    }

    let id: String
    let units: UInt64
    let request: Request
    /// By idempotency key.
    var tokens: [String: Token] = [:]
    /// The idempotency keys of its payments.
    var payments: [String] = []
}

/// The request for a token.
struct CheckoutTokenRequest: Decodable, Sendable {
    let session: String
    /// A JWE in compact form.
    let cardData: String
}

/// The request for a payment in a checkout.
struct CheckoutCharge: Decodable, Sendable {
    let session: String
    /// The identifier of the method.
    let method: String
    let token: String?
    let voucher: String?
    let network: String?
    /// With the surcharge, in the currency's major unit.
    let amount: String
    let currency: String
    /// The billing address by field, which is checked and forgotten.
    let billing: [String: String]?
}

/// The outcome of a challenge.
struct ChallengeOutcome: Decodable, Sendable {
    enum Outcome: String, Decodable, Sendable {
        case passed
        case failed
    }

    let outcome: Outcome
}

/// The open sessions.
struct CheckoutDesk: Sendable {
    /// The greatest number of sessions; a new one then replaces the oldest.
    private static let maximumSessions = 1_000
    /// The greatest number of cards in a session.
    static let maximumTokens = 100

    let configuration: CheckoutConfiguration
    private var sessions: [String: CheckoutSession] = [:]
    /// From the oldest on.
    private var order: [String] = []
    /// The session of each token.
    private var owners: [String: String] = [:]

    init(configuration: CheckoutConfiguration) { self.configuration = configuration }

    mutating func add(_ session: CheckoutSession) {
        sessions[session.id] = session
        order.append(session.id)
        guard order.count > Self.maximumSessions else { return }
        let oldest = order.removeFirst()
        for token in sessions.removeValue(forKey: oldest)?.tokens.values ?? [:].values { owners[token.id] = nil }
    }

    mutating func add(_ token: CheckoutSession.Token, to session: String, key: String) {
        sessions[session]?.tokens[key] = token
        owners[token.id] = session
    }

    mutating func addPayment(_ key: String, to session: String) { sessions[session]?.payments.append(key) }

    /// - Throws: ``Sandbox/Refusal``.
    func session(_ id: String) throws -> CheckoutSession {
        guard let session = sessions[id] else {
            throw Sandbox.Refusal(
                status: 404, code: "unknown_session", message: "No such session: POST /checkout-sessions first.")
        }
        return session
    }

    /// - Throws: ``Sandbox/Refusal`` for a token of another session, or of none.
    func card(_ token: String?, in session: CheckoutSession) throws -> CheckoutCard {
        guard let token, let owner = owners[token] else {
            throw Sandbox.Refusal(
                status: 422, code: "unknown_token", message: "No such token: POST /checkout-tokens first.")
        }
        guard owner == session.id, let found = session.tokens.values.first(where: { $0.id == token }) else {
            throw Sandbox.Refusal(
                status: 422, code: "wrong_session", message: "The token was given in another session.")
        }
        return found.card
    }
}
