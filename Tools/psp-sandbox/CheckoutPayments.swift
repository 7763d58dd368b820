import CardEncryption
import EMVContactless
import Foundation

/// Checkouts: sessions, tokens, payments and their challenges.
extension Sandbox {
    // MARK: Sessions

    struct CheckoutAnswer: Encodable, Sendable {
        struct Card: Encodable, Sendable {
            let networks: [String], fields: [String], billingFields: [String]
            /// A JWK.
            let recipient: [String: String]
        }

        let id: String, amount: String, currency: String
        let country: String?, reference: String?
        let methods: [CheckoutConfiguration.Method]
        let card: Card?
    }

    func openSession(_ request: CheckoutSession.Request) throws -> CheckoutAnswer {
        guard let currency = Currency[request.currency], currency.code == request.currency,
            let units = Self.minorUnits(request.amount, of: currency), units > 0
        else { throw Self.invalidAmount }
        guard request.country?.wholeMatch(of: #/[A-Z]{2}/#) != nil || request.country == nil,
            (request.reference?.utf8.count ?? 0) <= 255
        else {
            throw Refusal(
                status: 422, code: "invalid_session",
                message: "country is two capital letters (ISO 3166-1), reference at most 255 bytes.")
        }
        let surcharges = desk.configuration.methods.flatMap { method in
            [method.surcharge(for: nil)] + (method.networkSurcharges ?? [:]).values
        }
        guard surcharges.allSatisfy({ Self.minorUnits($0, of: currency) != nil }) else {
            throw Refusal(
                status: 422, code: "invalid_session",
                message: "A configured surcharge has more decimals than \(currency.code).")
        }
        let session = CheckoutSession(id: UUID().uuidString, units: units, request: request)
        desk.add(session)
        return try answer(session)
    }

    func session(_ id: String) throws -> CheckoutAnswer { try answer(desk.session(id)) }

    private func answer(_ session: CheckoutSession) throws -> CheckoutAnswer {
        let configuration = desk.configuration
        return CheckoutAnswer(
            id: session.id, amount: session.request.amount, currency: session.request.currency,
            country: session.request.country, reference: session.request.reference, methods: configuration.methods,
            card: try configuration.card.map { card in
                CheckoutAnswer.Card(
                    networks: card.networks, fields: card.fields, billingFields: card.billingFields,
                    recipient: try JSONDecoder().decode(
                        [String: String].self, from: Data(keys.cardDataKey.publicJWK.utf8)))
            })
    }

    // MARK: Tokens

    struct TokenAnswer: Encodable, Sendable {
        let session: String, token: String
        let network: String?
        let masked: String
    }

    /// Exchanges sealed card data for a token, once under each key.
    func tokenize(_ request: CheckoutTokenRequest, key: String) throws -> Reply<TokenAnswer> {
        let session = try desk.session(request.session)
        let hash = Self.hash(request.session, request.cardData)
        func answer(_ token: CheckoutSession.Token) -> Reply<TokenAnswer> {
            Reply(
                body: TokenAnswer(
                    session: session.id, token: token.id, network: token.card.networks.first, masked: token.card.masked),
                delivery: .now)
        }
        if let known = session.tokens[key] {
            guard known.request == hash else { throw Self.reusedKey }
            return answer(known)
        }
        guard let rules = desk.configuration.card else {
            throw Refusal(status: 422, code: "wrong_method", message: "Cards are not entered by hand here.")
        }
        guard session.tokens.count < CheckoutDesk.maximumTokens else {
            throw Refusal(
                status: 429, code: "too_many_tokens",
                message: "There were \(CheckoutDesk.maximumTokens) cards in this session.")
        }
        let card = try CheckoutCard(
            opening: request.cardData, with: keys.cardDataKey, accepted: rules.networks,
            needsCode: rules.fields.contains("CVV"), now: Date())
        let token = CheckoutSession.Token(request: hash, id: UUID().uuidString, card: card)
        desk.add(token, to: session.id, key: key)
        return answer(token)
    }

    // MARK: Payments

    /// The card or voucher that a payment is made with.
    private struct Means {
        let masked: String
        let network: String?
        /// For the books, so that it is recognized.
        let hash: String
        var needsChallenge = false
        /// The decision that does not depend on the amount; nil: there is none.
        var rule: AmountRule?
    }

    /// Decides a payment, once under each key; a session is paid once.
    ///
    /// - Parameter declines: true to decline it, regardless of its amount.
    func pay(_ charge: CheckoutCharge, key: String, declines: Bool = false) throws -> Reply<Payment> {
        guard let currency = Currency[charge.currency], let units = Self.minorUnits(charge.amount, of: currency) else {
            throw Self.invalidAmount
        }
        let request = Self.hash(
            "checkout", charge.session, charge.method, charge.token ?? "", charge.voucher ?? "", charge.network ?? "",
            String(units), currency.code)
        if let known = books[key], known.request != nil {
            guard known.request == request else { throw Self.reusedKey }
            return Reply(body: known.payment, delivery: .now)
        }
        let session = try desk.session(charge.session)
        guard let method = desk.configuration.methods.first(where: { $0.id == charge.method }) else {
            throw Refusal(status: 422, code: "unknown_method", message: "The session has no such method.")
        }
        let billing = charge.billing ?? [:]
        guard billing.count <= 32, billing.keys.allSatisfy(CheckoutConfiguration.isName),
            billing.values.allSatisfy({ $0.utf8.count <= 255 })
        else {
            throw Refusal(
                status: 422, code: "invalid_billing",
                message: "billing has at most 32 fields, each with at most 255 bytes.")
        }
        try requireUnpaid(session)
        let means = try means(of: charge, method, session, key)
        guard currency.code == session.request.currency,
            let surcharge = Self.minorUnits(method.surcharge(for: means.network), of: currency),
            case let (sum, overflow) = session.units.addingReportingOverflow(surcharge), !overflow, sum == units
        else {
            throw Refusal(
                status: 422, code: "wrong_amount",
                message: "The amount is not the session's with the surcharge of method and network.")
        }
        var rule = declines ? .declined : AmountRule.forAmount(units)
        guard !rule.isRefusal else { throw Self.refusal(by: rule) }
        rule = declines ? rule : means.rule ?? rule
        let hasChallenge = method.kind == "card" && (means.needsChallenge || rule.wait == .challenge)
        let isWaiting = !declines && (hasChallenge || rule.wait == .time)
        let facts = CheckoutFacts(
            session: session.id, method: method.id, methodKind: method.kind, network: means.network,
            token: charge.token, challenge: isWaiting && hasChallenge ? UUID().uuidString : nil)
        let before = books[key]?.payment
        var payment = Payment(
            id: before?.id ?? UUID().uuidString, kind: .payment, status: rule.isApproval ? "approved" : "declined",
            responseCode: rule.responseCode, message: rule.message, amount: currency.text(ofUnits: units),
            currency: currency.code, card: means.masked, idempotencyKey: key, time: Date(), receiptFacts: nil,
            checkout: facts)
        // ISO 8583 has no code for it; 09 is "request in progress".
        if isWaiting { payment = payment.decided("pending", "09", "Pending") }
        // Reversed before it arrived.
        if before != nil { payment = payment.reversed }
        let delivery = isWaiting || before != nil ? .now : rule.delivery
        try record(Books.Entry(payment: payment, request: request, cardData: means.hash), delivery)
        desk.addPayment(key, to: session.id)
        return Reply(body: payment, delivery: delivery)
    }

    private func requireUnpaid(_ session: CheckoutSession) throws {
        switch session.payments.compactMap({ books[$0]?.payment.status }).last(where: { $0 != "declined" }) {
        case "approved":
            throw Refusal(status: 409, code: "already_paid", message: "The session is paid.")
        case .some:
            throw Refusal(
                status: 409, code: "payment_pending", message: "Another payment of the session is not decided.")
        case nil: break
        }
    }

    private func means(
        of charge: CheckoutCharge, _ method: CheckoutConfiguration.Method, _ session: CheckoutSession, _ key: String
    ) throws -> Means {
        switch method.kind {
        case "card":
            guard charge.voucher == nil else { break }
            let card = try desk.card(charge.token, in: session)
            let network = charge.network ?? card.networks.first
            let isAccepted = method.networks.map { $0.isEmpty || $0.contains(network ?? "") } ?? true
            guard isAccepted, charge.network == nil || card.networks.contains(charge.network ?? "") else {
                throw Refusal(
                    status: 422, code: "unsupported_network",
                    message: "The card is not of this network, or the method does not accept it.")
            }
            return Means(
                masked: card.masked, network: network, hash: Self.hash("token", charge.token ?? ""),
                needsChallenge: card.needsChallenge)
        case "voucher":
            guard charge.token == nil, charge.network == nil else { break }
            return try voucher(charge.voucher ?? "", key)
        default: break
        }
        throw Refusal(
            status: 422, code: "wrong_method",
            message: "Send a token for a card, a voucher for a voucher; cards that were read: POST /payments.")
    }

    private func voucher(_ code: String, _ key: String) throws -> Means {
        guard code.wholeMatch(of: #/[A-Z0-9-]{6,64}/#) != nil else {
            throw Refusal(
                status: 422, code: "invalid_voucher",
                message: "A voucher is 6 to 64 capital letters, digits and “-”.")
        }
        let masked = String(repeating: "*", count: code.count - 4) + code.suffix(4)
        let hash = Self.hash("voucher", code)
        let isRedeemed = books.key(ofCardData: hash).flatMap { books[$0]?.payment.status } ?? "declined" != "declined"
        let rule = AmountRule.vouchers.first { $0.beginning.map(code.hasPrefix) ?? isRedeemed }?.rule
        // A declined attempt leaves the entry of the payment that redeemed it.
        return Means(masked: masked, network: nil, hash: rule == nil ? hash : Self.hash("declined", key), rule: rule)
    }

    func payment(_ id: String) throws -> Payment {
        guard let payment = books.payment(id) else {
            throw Refusal(status: 404, code: "unknown_payment", message: "No such payment.")
        }
        return payment
    }

    // MARK: Decisions that come later

    func payment(ofChallenge id: String) throws -> Payment {
        guard let entry = books.entry(ofChallenge: id) else {
            throw Refusal(status: 404, code: "unknown_challenge", message: "No such challenge.")
        }
        return entry.payment
    }

    /// Decides the payment of a challenge, once.
    func complete(challenge id: String, _ outcome: ChallengeOutcome, declines: Bool = false) throws -> Reply<Payment> {
        try settle(
            try payment(ofChallenge: id), declines ? .declined : outcome.outcome == .failed ? .failedChallenge : nil)
    }

    /// Decides a payment that waited for its time, unless it was reversed meanwhile.
    func settle(_ key: String) throws {
        guard let payment = books[key]?.payment, payment.checkout?.challenge == nil else { return }
        _ = try settle(payment, nil)
    }

    /// Decides the payments that an earlier process left without a decision.
    func settleAll() throws {
        for payment in books.payments where payment.status == "pending" { try settle(payment.idempotencyKey) }
    }

    /// - Parameter other: the rule in place of the amount's.
    private func settle(_ payment: Payment, _ other: AmountRule?) throws -> Reply<Payment> {
        guard payment.status == "pending", let entry = books[payment.idempotencyKey],
            let currency = payment.currency.flatMap({ Currency[$0] }),
            let units = payment.amount.flatMap({ Self.minorUnits($0, of: currency) })
        else { return Reply(body: payment, delivery: .now) }
        let rule = other ?? AmountRule.forAmount(units)
        let decided = payment.decided(
            rule.isApproval ? "approved" : "declined", rule.responseCode, rule.message)
        try record(Books.Entry(payment: decided, request: entry.request, cardData: entry.cardData), rule.delivery)
        return Reply(body: decided, delivery: rule.delivery)
    }
}

extension Sandbox.Reply {
    /// Returns the reply with another form of its body.
    func map<Other>(_ form: (Body) throws -> Other) rethrows -> Sandbox.Reply<Other> {
        Sandbox.Reply<Other>(body: try form(body), delivery: delivery)
    }
}
