import Foundation

/// What the entries of the book come to.
struct StoreLedger: Sendable {
    typealias State = ProximityReaderSystem.Ledger.State

    struct Payment: Sendable {
        let id: String
        let time: Date
        let amount: Decimal
        let currency: String
        let issuer: String
        let merchant: String
        let content: String
        let canonicalHash: String
        /// What the payment service has said of it.  It only grows: nothing, unknown, approved or declined.
        var answer: ProximityReaderSystem.Ledger.Answer?
        /// Why it is set aside.
        var reason: String?
        var place = Place.waiting

        var state: State {
            switch (answer, place) {
            case (.approved, _): .approved
            case (.declined, _): .declined
            case (.unknown, _): .unknown
            case (nil, .waiting): .stored
            case (nil, .aside): .setAside
            case (nil, .batch(let isSent)): isSent ? .sent : .batched
            }
        }
    }

    /// Where a payment is.
    enum Place: Hashable, Sendable {
        case waiting
        /// Set aside: it comes into no batch.
        case aside
        /// In the batch, which a payment service may have seen.
        case batch(isSent: Bool)
    }

    struct Batch: Sendable {
        let id: String
        let detail: StoreDetail.Batched
        /// Whether a payment service may have seen it.
        var isSent = false
    }

    /// What the payments of one currency in one state come to.
    struct Total: Hashable, Sendable {
        var count = 0
        var amount = Decimal()
    }

    /// Those that are not resolved.
    private(set) var payments = StoredPayments()
    private(set) var batch: Batch?
    private(set) var preparation: Preparation?
    private(set) var certificates: StoreDetail.Opened?
    /// The deletion tokens that were used.
    private(set) var usedTokens: Set<String> = []
    /// The payment that was stored last, unless it was taken back.
    private(set) var last: String?
    /// By currency and state.
    private(set) var totals: [String: [State: Total]] = [:]

    /// - Throws: ``StoreFailure/damaged(_:)`` for what cannot have happened.
    mutating func apply(_ entry: StoreEntry) throws {
        func detail<Value: Decodable>(_ type: Value.Type) throws -> Value {
            do { return try JSONDecoder().decode(type, from: entry.detail) } catch { throw Self.impossible(entry) }
        }
        func check(_ isPossible: Bool) throws { if !isPossible { throw Self.impossible(entry) } }
        switch entry.kind {
        case .opened: certificates = try detail(StoreDetail.Opened.self)
        case .prepared: preparation = try detail(Preparation.self)
        case .stored:
            try check(add(try detail(StoreDetail.Stored.self), entry))
            last = entry.subject
        case .withdrawn:
            try check(last == entry.subject && payments[entry.subject]?.state == .stored)
            remove(entry.subject)
            last = nil
        case .setAside:
            try check(payments[entry.subject]?.state == .stored)
            let reason = try detail(StoreDetail.SetAside.self).reason
            update(entry.subject) { ($0.place, $0.reason) = (.aside, reason) }
        case .putBack:
            try check(payments[entry.subject]?.state == .setAside)
            update(entry.subject) { ($0.place, $0.reason) = (.waiting, nil) }
        case .batched:
            let batched = try detail(StoreDetail.Batched.self)
            try check(batch == nil && batched.payments.allSatisfy { payments[$0]?.state == .stored })
            batch = Batch(id: entry.subject, detail: batched)
            move(.batch(isSent: false))
        case .reset:
            try check(batch?.id == entry.subject && batch?.isSent == false)
            move(.waiting)
            batch = nil
        case .sent:
            try check(batch?.id == entry.subject)
            batch?.isSent = true
            move(.batch(isSent: true))
        case .refused:
            try check(batch?.id == entry.subject && !batched.contains { $0.answer?.isFinal == true })
            batch?.isSent = false
            move(.batch(isSent: false))
            for payment in batched { update(payment.id) { $0.answer = nil } }
        case .answered:
            let answer = try detail(StoreDetail.Answered.self).answer
            try check(payments[entry.subject].map { $0.place == .batch(isSent: true) && $0.allows(answer) } ?? false)
            update(entry.subject) { $0.answer = answer }
        case .resolved:
            let resolved = try detail(StoreDetail.Resolved.self)
            let gone = resolved.payments.map(Set.init) ?? Set(batch?.detail.payments ?? [])
            try check(batch?.id == entry.subject && leaves(gone))
            for id in gone { remove(id) }
            // The payment service has not taken the rest.
            move(.waiting)
            for payment in batched { update(payment.id) { $0.answer = nil } }
            usedTokens.insert(resolved.token)
            batch = nil
        }
    }

    /// Whether the batch may be resolved by the deletion of `gone`: what is known to have been taken goes with it, and what
    /// nobody knows of stays.
    func leaves(_ gone: Set<String>) -> Bool {
        !gone.isEmpty && gone.isSubset(of: batch?.detail.payments ?? [])
            && batched.allSatisfy { gone.contains($0.id) ? $0.answer != .unknown : $0.answer?.isFinal != true }
    }

    /// The batch's payments that are not resolved.
    var batched: [Payment] { batch?.detail.payments.compactMap { payments[$0] } ?? [] }

    /// The oldest that are in no batch and not set aside.
    func next(_ count: Int) -> [Payment] { Array(payments.lazy.filter { $0.state == .stored }.prefix(count)) }

    /// The number of payments that may come into a batch.
    var waiting: Int { totals.values.reduce(0) { $0 + ($1[.stored]?.count ?? 0) } }

    func total(in currency: String) -> Decimal { totals[currency]?.values.reduce(0) { $0 + $1.amount } ?? 0 }

    // MARK: Changing

    private mutating func add(_ stored: StoreDetail.Stored, _ entry: StoreEntry) -> Bool {
        guard let amount = Decimal(string: stored.amount) else { return false }
        let payment = Payment(
            id: entry.subject, time: Date(timeIntervalSince1970: Double(entry.time) / 1000), amount: amount,
            currency: stored.currency, issuer: stored.issuer, merchant: stored.merchant, content: stored.content,
            canonicalHash: stored.payment)
        guard payments.append(payment) else { return false }
        count(payment, 1)
        return true
    }

    private mutating func remove(_ id: String) {
        if let payment = payments.remove(id) { count(payment, -1) }
    }

    private mutating func update(_ id: String, _ body: (inout Payment) -> Void) {
        guard let before = payments[id] else { return }
        payments.update(id, body)
        guard let after = payments[id] else { return }
        count(before, -1)
        count(after, 1)
    }

    /// The batch's payments.
    private mutating func move(_ place: Place) {
        for id in batch?.detail.payments ?? [] { update(id) { $0.place = place } }
    }

    private mutating func count(_ payment: Payment, _ sign: Int) {
        totals[payment.currency, default: [:]][payment.state, default: Total()].count += sign
        totals[payment.currency, default: [:]][payment.state, default: Total()].amount += payment.amount * Decimal(sign)
    }

    private static func impossible(_ entry: StoreEntry) -> StoreFailure {
        .damaged("entry \(entry.sequence), \(entry.kind.rawValue), cannot follow those before it")
    }
}

extension StoreLedger.Payment {
    /// Whether the payment service may say this after what it has said.
    func allows(_ next: ProximityReaderSystem.Ledger.Answer) -> Bool { answer?.isFinal != true || answer == next }
}

extension ProximityReaderSystem.Ledger.Answer {
    var isFinal: Bool { self != .unknown }
}
