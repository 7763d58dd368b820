import Crypto
import EMVContactless
import Foundation
import Glibc

/// The simulated service: it performs each payment once, under its key.
actor Sandbox {
    enum Kind: String, Codable, Sendable {
        case payment
        case refund
    }

    struct BatchAnswer: Encodable, Sendable {
        let deletionToken: String
        /// The decided payments.
        let payments: [Payment]
    }

    /// Why nothing was done; with the status 409: by this call.
    struct Refusal: Error {
        let status: Int
        let code: String
        let message: String
    }

    /// An answer and its delivery: only the first answer to a key is late or lost.
    struct Reply<Body: Encodable & Sendable>: Sendable {
        let body: Body
        let delivery: AmountRule.Delivery
    }

    /// A fault of the next calls that move money, of any kind.
    struct Fault: Codable, Sendable {
        enum Kind: String, Codable, Sendable {
            /// The merchant is: also where it asks for tokens, decisions and reversals.
            case refused
            case declined
            case late
            /// The call is performed late, and answered then, even if its caller has left.
            case delayed
            /// Carried out; the connection is closed without an answer.
            case lost
        }

        let kind: Kind
        /// The number of calls left.
        var calls: Int
        /// The status of a refusal; nil: 403.
        let status: Int?
    }

    let keys: SandboxKeys
    let books: Books
    /// By idempotency key: the batch's hash.
    private var batches: [String: SHA256Digest] = [:]
    private var terminals = Terminals()
    /// True if only enrolled terminals may send batches.
    private let needsEnrollment: Bool
    /// The sessions of checkouts, and the cards that they were given.
    var desk: CheckoutDesk

    init(
        keys: SandboxKeys, books: sending Books, needsEnrollment: Bool, checkout: CheckoutConfiguration = .standard
    ) {
        self.keys = keys
        self.books = books
        self.needsEnrollment = needsEnrollment
        desk = CheckoutDesk(configuration: checkout)
    }

    // MARK: Faults

    private var fault: Fault?

    /// - Throws: ``Refusal`` for an invalid fault.
    func set(_ fault: Fault) throws {
        guard (0...1_000_000).contains(fault.calls), (400...599).contains(fault.status ?? 403) else {
            throw Refusal(
                status: 422, code: "invalid_fault", message: "calls is 0 to 1000000, status is 400 to 599.")
        }
        self.fault = fault
    }

    /// The last argument of ``set(_:)``, and the number of calls that wait to be performed late.
    struct Faults: Encodable, Sendable {
        let fault: Fault?
        let delayed: Int
    }

    var faults: Faults { Faults(fault: fault, delayed: delayed.count) }

    /// A call of ``Fault/Kind/delayed``: its wait, and all of it.
    private var delayed: [UUID: (wait: Task<Void, Never>, call: Task<Void, Never>)] = [:]

    /// Performs a call of ``Fault/Kind/delayed`` after `lateness`, even if no caller waits for it.
    func carryOut<Answer: Sendable>(
        after lateness: Duration, _ call: @escaping @Sendable () async throws -> Answer
    ) async throws -> Answer {
        let id = UUID()
        let wait = Task { _ = try? await Task.sleep(for: lateness) }
        let work = Task {
            defer { delayed[id] = nil }
            await wait.value
            return try await call()
        }
        delayed[id] = (wait, Task { _ = await work.result })
        return try await work.value
    }

    /// Performs the calls that wait, at once.
    ///
    /// - Returns: their number, when they are done.
    func performDelayed() async -> Int {
        let calls = Array(delayed.values)
        for call in calls { call.wait.cancel() }
        for call in calls { await call.call.value }
        return calls.count
    }

    /// Counts one call.
    ///
    /// - Parameter movesMoney: false for a call that only a refusal concerns.
    /// - Throws: ``Refusal`` while the merchant is refused.
    func takeFault(movesMoney: Bool = true) throws -> Fault.Kind? {
        guard let fault, fault.calls > 0, movesMoney || fault.kind == .refused else { return nil }
        self.fault?.calls -= 1
        guard fault.kind == .refused else { return fault.kind }
        throw Refusal(
            status: fault.status ?? 403, code: "merchant_refused",
            message: "This merchant is refused for now, as was asked for with POST /faults.")
    }

    // MARK: Terminals

    func enrol(_ reader: String, with certificates: Terminals.Certificates) async throws {
        var terminals = terminals
        try await terminals.enrol(reader, with: certificates)
        self.terminals = terminals
    }

    func enrol(_ reader: String, request: String) throws -> Terminals.Certificates {
        try terminals.enrol(reader, request: request)
    }

    /// Every payment and refund, the first first.
    var all: [Payment] { books.payments }

    func payment(under key: String) -> Payment? { books[key]?.payment }

    // MARK: Payments

    /// - Parameter declines: true to decline it, regardless of its amount.
    func decide(_ kind: Kind, key: String, _ charge: Charge, declines: Bool = false) throws -> Reply<Payment> {
        guard let currency = Currency[charge.currency], let units = Self.minorUnits(charge.amount, of: currency) else {
            throw Self.invalidAmount
        }
        let cardData = Self.hash(charge.cardData)
        let request = Self.hash(kind.rawValue, cardData, String(units), currency.code)
        if let known = books[key] {
            guard known.request ?? request == request else { throw Self.reusedKey }
            if known.request == nil {
                let payment = known.payment.about(charge.amount, currency.code, nil)
                try books.add(Books.Entry(payment: payment, request: request, cardData: nil))
                return Reply(body: payment, delivery: .now)
            }
            return Reply(body: known.payment, delivery: .now)
        }
        guard books.key(ofCardData: cardData) == nil else {
            throw Refusal(
                status: 409, code: "card_data_reused",
                message: "These card data came under another Idempotency-Key: one read is one payment, and has one key."
            )
        }
        let card: Card
        do {
            card = try Card(opening: charge.cardData, with: keys.cardDataKey)
        } catch Card.Failure.unreadable(let reason) {
            throw Refusal(status: 422, code: "card_data", message: reason)
        } catch {
            throw Refusal(
                status: 422, code: "card_data", message: "The card data is sealed for another key than this service's."
            )
        }
        guard card.kind == kind, card.units == units, card.currency == currency else {
            throw Refusal(
                status: 422, code: "mismatch",
                message: "The card has agreed to another amount, currency or type: read it again for this one.")
        }
        let rule = declines ? .declined : AmountRule.forAmount(units)
        guard !rule.isRefusal else { throw Self.refusal(by: rule) }
        let payment = try book(
            kind, card, rule, key: key, request: request, cardData: cardData, facts: charge.receiptFacts)
        return Reply(body: payment, delivery: rule.delivery)
    }

    /// Reverses the approval under a key; under an unknown key, no payment will be approved.
    ///
    /// - Parameter reversal: the original request, for an unknown key.
    func reverse(_ key: String, _ reversal: Reversal) throws -> Payment {
        let known = books[key]
        if known == nil, let amount = reversal.amount {
            guard let currency = reversal.currency.flatMap({ Currency[$0] }),
                Self.minorUnits(amount, of: currency) != nil
            else { throw Self.invalidAmount }
        }
        let before =
            known?.payment
            ?? Payment(
                id: UUID().uuidString, kind: .payment, status: "declined", responseCode: "17", message: "Reversed",
                amount: reversal.amount, currency: reversal.amount == nil ? nil : reversal.currency, card: nil,
                idempotencyKey: key, time: Date(), receiptFacts: nil, checkout: nil)
        guard known == nil || ["approved", "pending"].contains(before.status) else { return before }
        try books.add(Books.Entry(payment: before.reversed, request: known?.request, cardData: known?.cardData))
        return before.reversed
    }

    private func book(
        _ kind: Kind, _ card: Card?, _ rule: AmountRule, key: String, request: String, cardData: String,
        facts: ReceiptFacts? = nil
    ) throws -> Payment {
        let payment = Payment(
            id: UUID().uuidString, kind: kind, status: rule.isApproval ? "approved" : "declined",
            responseCode: rule.responseCode, message: rule.message, amount: card?.amount, currency: card?.currency.code,
            card: card?.account, idempotencyKey: key, time: Date(), receiptFacts: facts, checkout: nil)
        try record(Books.Entry(payment: payment, request: request, cardData: cardData), rule.delivery)
        return payment
    }

    /// Books a decision, and ends after it if its rule says so.
    func record(_ entry: Books.Entry, _ delivery: AmountRule.Delivery) throws {
        try books.add(entry)
        // Nothing is tidied up in a crash.
        if case .crash = delivery { kill(getpid(), SIGKILL) }
    }

    // MARK: Batches

    /// Decides each payment of a batch under its own identifier as key: one that comes in two batches is made once.
    ///
    /// - Parameter reader: the one that stored them, which the deletion token is for.
    /// - Throws: ``Refusal``, with a status other than 409 only if nothing of the batch has ever been done.
    func take(
        _ batch: Batch, from reader: String?, key: String?, declines: Bool = false
    ) async throws -> Reply<BatchAnswer> {
        do {
            guard let key, let reader, !reader.isEmpty else {
                throw Refusal(
                    status: 400, code: "header_missing",
                    message: "Send the headers Idempotency-Key and Reader-Identifier, of 1 to 255 bytes.")
            }
            try batch.check()
            guard !needsEnrollment || terminals[reader] != nil else {
                throw Refusal(
                    status: 422, code: "not_enrolled", message: "This reader is not enrolled: POST /terminals first.")
            }
            try await batch.verify(terminals[reader])
            let hash = SHA256.hash(data: Data(batch.canonicalForm.utf8))
            guard batches[key] ?? hash == hash else { throw Self.reusedKey }
            let (payments, delivery) = try decide(batch, declines)
            batches[key] = hash
            let token = try await keys.deletionToken(
                for: reader, batch: batch.id, count: batch.count, hash: Data(hash).base64URL,
                ids: payments.count == batch.count ? nil : payments.map(\.idempotencyKey))
            return Reply(body: BatchAnswer(deletionToken: token, payments: payments), delivery: delivery)
        } catch let refusal as Refusal {
            guard batch.payments.contains(where: { books[$0.id] != nil }) else { throw refusal }
            throw Refusal(
                status: 409, code: refusal.code,
                message: "Payments of this batch came before, and what was decided of them stays: \(refusal.message)")
        }
    }

    /// - Returns: the decided payments, in the batch's order.  Payments that this service can never decide are omitted:
    ///   card
    ///   data sealed for another key, or under another identifier; an identifier with other card data; a refund.
    private func decide(_ batch: Batch, _ declines: Bool) throws -> ([Payment], AmountRule.Delivery) {
        var isFirst = true
        let plans = batch.payments.map { stored -> (Batch.Stored, Plan) in
            let plan = plan(for: stored, declines)
            switch plan {
            case .known, .reversed: isFirst = false
            case .book, .undecidable: break
            }
            return (stored, plan)
        }
        for case (_, .book(_, let rule, _)) in plans where rule.isRefusal && isFirst { throw Self.refusal(by: rule) }
        var payments: [Payment] = []
        var delivery = AmountRule.Delivery.now
        for (stored, plan) in plans {
            switch plan {
            case .known(let payment): payments.append(payment)
            case .reversed(let known, let card):
                let payment = known.payment.about(card.amount, card.currency.code, card.account)
                try books.add(Books.Entry(payment: payment, request: known.request, cardData: known.cardData))
                payments.append(payment)
            case .book(let card, let rule, let cardData) where !rule.isRefusal:
                if rule.delivery.rawValue > delivery.rawValue { delivery = rule.delivery }
                let request = Self.hash(
                    Kind.payment.rawValue, cardData, card.map { String($0.units) } ?? "", card?.currency.code ?? "")
                payments.append(
                    try book(.payment, card, rule, key: stored.id, request: request, cardData: cardData))
            case .book, .undecidable: break
            }
        }
        guard !payments.isEmpty else {
            throw Refusal(
                status: 422, code: "card_data",
                message: "None of the card data is for this service, or all of it came under other identifiers.")
        }
        return (payments, delivery)
    }

    private enum Plan {
        case known(Payment)
        /// Reversed before the payment arrived.
        case reversed(Books.Entry, Card)
        /// - Parameter cardData: hashed.
        case book(Card?, AmountRule, cardData: String)
        case undecidable
    }

    private func plan(for stored: Batch.Stored, _ declines: Bool) -> Plan {
        let cardData = Self.hash(stored.paymentCardData)
        if let known = books[stored.id] {
            // A payment that was reversed before it arrived has no card data.
            guard known.cardData ?? cardData == cardData else { return .undecidable }
            if known.payment.card == nil, known.payment.responseCode == "17",
                let card = try? Card(opening: stored.paymentCardData, with: keys.cardDataKey)
            {
                return .reversed(known, card)
            }
            return .known(known.payment)
        }
        guard books.key(ofCardData: cardData) == nil else { return .undecidable }
        do {
            let card = try Card(opening: stored.paymentCardData, with: keys.cardDataKey)
            return card.kind == .payment
                ? .book(card, declines ? .declined : AmountRule.forAmount(card.units), cardData: cardData)
                : .undecidable
        } catch Card.Failure.unreadable {
            return .book(nil, .formatError, cardData: cardData)
        } catch {
            return .undecidable
        }
    }

    static let invalidAmount = Refusal(
        status: 422, code: "invalid_amount",
        message: "No amount of a currency: send amount as “12.34”, currency as “EUR”.")

    static let reusedKey = Refusal(
        status: 422, code: "idempotency_key_reused",
        message: "This Idempotency-Key came with another request: use a new one for each payment.")

    static func refusal(by rule: AmountRule) -> Refusal {
        Refusal(status: 422, code: "amount_refused", message: "\(rule.message): amounts that end so are refused.")
    }

    // MARK: Values

    /// - Returns: nil for text that is not an amount of the currency.
    static func minorUnits(_ text: String, of currency: Currency) -> UInt64? {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        let (exponent, decimals) = (currency.exponent ?? 0, parts.count == 2 ? parts[1] : "")
        guard parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }),
            decimals.count <= exponent
        else { return nil }
        return UInt64(parts[0] + decimals + String(repeating: "0", count: exponent - decimals.count))
    }

    /// SHA-256 of the texts, each preceded by its length, in hexadecimal digits.
    static func hash(_ texts: String...) -> String {
        var hash = SHA256()
        for text in texts { hash.update(data: Data("\(text.utf8.count):\(text)".utf8)) }
        return hash.finalize().map { String(format: "%02x", $0) }.joined()
    }
}

extension Data {
    /// RFC 4648, section 5, without padding.
    fileprivate var base64URL: String {
        base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}
