import Foundation

/// The state that the entries of the book produce.
struct StoreLedger: Sendable {
    typealias State = ProximityReaderSystem.Ledger.State

    struct Payment: Sendable {
        let id: String
        /// The number of the entry that stored the payment.
        let number: Int64
        /// The entry that now contains the payment: the same one, or the one that carried it past a checkpoint.
        var entry: Int64
        let time: Date
        let amount: Decimal
        let currency: String
        let issuer: String
        let merchant: String
        /// The hash of its canonical form.
        let hash: PaymentHash
        let card: StoredCard?
        /// The payment service's answer.  It only advances: none, unknown, approved or declined.
        var answer: ProximityReaderSystem.Ledger.Answer?
        /// The reason for which the payment is set aside.
        var reason: String?
        var place = Place.waiting
        /// True if a payment service may ever have seen the payment.
        var wasSent = false

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

    /// The place of a payment: waiting, set aside, or in the batch.
    enum Place: Codable, Hashable, Sendable {
        case waiting
        /// The payment is set aside, out of further batches.
        case aside
        /// The payment is in the batch, which a payment service may have seen.
        case batch(isSent: Bool)
    }

    struct Batch: Sendable {
        let id: String
        let detail: StoreDetail.Batched
        /// True if a payment service may have seen the batch.
        var isSent = false
        /// The payment service's last deletion token for the batch.
        var deletionToken: String?
    }

    /// The total of the payments of one currency in one state.
    struct Total: Hashable, Sendable {
        var count = 0
        var amount = Decimal()
    }

    /// The payments that are not resolved.
    private(set) var payments = StoredPayments()
    private(set) var batch: Batch?
    private(set) var preparation: Preparation?
    private(set) var certificates: StoreDetail.Opened?
    /// The used deletion tokens, with their expirations.
    private(set) var usedTokens: [String: Date] = [:]
    /// The payment stored last, unless it was withdrawn.
    private(set) var last: String?
    /// The totals by currency and state.
    private(set) var totals: [String: [State: Total]] = [:]
    /// The latest known time: that of the last online preparation or of a later entry.
    private(set) var latest = Date.distantPast
    /// The batches that people released, the oldest first.
    private(set) var releases: [ProximityReaderSystem.Ledger.Release] = []
    /// The number of entries, and the number of payments removed since the first of them.
    private(set) var entries = 0
    private(set) var removed = 0
    /// The names, each stored once: thousands of payments share them.
    private var names: Set<String> = []

    /// Applies an entry.
    ///
    /// - Parameter stored: the decoded detail, if known.
    /// - Throws: ``StoreFailure/damaged(_:)`` for an impossible event.
    mutating func apply(_ entry: StoreEntry, stored: StoreDetail.Stored? = nil) throws {
        func detail<Value: Decodable>(_ type: Value.Type) throws -> Value {
            do { return try JSONDecoder().decode(type, from: entry.detail) } catch { throw Self.impossible(entry) }
        }
        func check(_ isPossible: Bool) throws { if !isPossible { throw Self.impossible(entry) } }
        let time = Date(timeIntervalSince1970: Double(entry.time) / 1000)
        entries += 1
        latest = max(latest, time)
        switch entry.kind {
        case .opened: certificates = try detail(StoreDetail.Opened.self)
        case .prepared:
            preparation = try detail(Preparation.self)
            // The payment service's token is new: its time counts, whatever the clock said before.
            latest = time
        case .stored:
            guard let stored = stored ?? StoreDetail.Stored(fields: entry.detail) else { throw Self.impossible(entry) }
            try check(add(entry.subject, stored, number: entry.sequence, entry: entry.sequence, time))
            last = entry.subject
        case .withdrawn:
            try check(payments[entry.subject]?.canBeWithdrawn == true)
            remove(entry.subject)
            if last == entry.subject { last = nil }
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
            for payment in batched { update(payment.id) { $0.wasSent = true } }
        case .refused:
            try check(batch?.id == entry.subject && !batched.contains { $0.answer?.isFinal == true })
            batch?.isSent = false
            move(.batch(isSent: false))
            for payment in batched { update(payment.id) { $0.answer = nil } }
        case .answered:
            let answered = try detail(StoreDetail.Answered.self)
            try check(batch?.id == entry.subject && batch?.isSent == true)
            let members = Set(batch?.detail.payments ?? [])
            for (id, answer) in answered.answers {
                try check(members.contains(id) && payments[id]?.allows(answer) == true)
                update(id) { $0.answer = answer }
            }
            if let token = answered.deletionToken { batch?.deletionToken = token }
        case .resolved:
            let resolved = try detail(StoreDetail.Resolved.self)
            let gone = resolved.payments.map(Set.init) ?? Set(batch?.detail.payments ?? [])
            try check(batch?.id == entry.subject && leaves(gone))
            for id in gone { remove(id) }
            // The payment service has not taken the rest.
            move(.waiting)
            for payment in batched { update(payment.id) { $0.answer = nil } }
            usedTokens[resolved.token] = resolved.expiration
            batch = nil
        case .released:
            let released = try detail(StoreDetail.Released.self)
            try check(batch?.id == entry.subject && batch?.isSent == true && fits(released.payments))
            releases.append(
                .init(
                    batch: entry.subject, time: time, person: released.person, reason: released.reason,
                    payments: released.payments, answers: released.answers))
            move(.waiting)
            for (id, finding) in released.payments {
                if finding == .notTaken { update(id) { $0.answer = nil } } else { remove(id) }
            }
            batch = nil
        case .checkpoint:
            let checkpoint = try detail(StoreDetail.Checkpoint.self)
            try check(entries == 1)
            certificates = checkpoint.certificates
            preparation = checkpoint.preparation
            batch = checkpoint.batch.map {
                Batch(id: $0.id, detail: $0.detail, isSent: $0.isSent, deletionToken: $0.deletionToken)
            }
            releases = checkpoint.releases
            usedTokens = checkpoint.usedTokens
            last = checkpoint.last
            latest = checkpoint.latest
        case .carried:
            let carried = try detail(StoreDetail.Carried.self)
            guard let stored = StoreDetail.Stored(fields: carried.stored) else { throw Self.impossible(entry) }
            try check(add(entry.subject, stored, number: carried.number, entry: entry.sequence, carried.time))
            update(entry.subject) {
                ($0.answer, $0.reason, $0.place) = (carried.answer, carried.reason, carried.place)
                $0.wasSent = carried.wasSent
            }
        }
    }

    /// Returns the entry with which a compacted book of this state begins.
    ///
    /// - Parameter hash: the hash of the last entry.
    func checkpoint(after hash: Data, at now: Date) -> StoreDetail.Checkpoint {
        StoreDetail.Checkpoint(
            follows: hash, certificates: certificates, preparation: preparation,
            batch: batch.map {
                StoreDetail.Batch(id: $0.id, detail: $0.detail, isSent: $0.isSent, deletionToken: $0.deletionToken)
            },
            usedTokens: usedTokens.filter { $0.value > now }, last: last, latest: latest, releases: releases)
    }

    /// Takes the state that a checkpoint and the entries after it produce, which carry each payment in its order.
    ///
    /// - Parameters:
    ///   - checkpoint: the entry of ``checkpoint(after:at:)``.
    ///   - last: the last entry: the checkpoint itself, or that of the youngest payment.
    mutating func carry(past checkpoint: StoreEntry, to last: StoreEntry) {
        let time = Date(timeIntervalSince1970: Double(last.time) / 1000)
        usedTokens = usedTokens.filter { $0.value > time }
        if last.sequence > checkpoint.sequence, time > latest { latest = time }
        payments.renumber(from: checkpoint.sequence + 1)
        (entries, removed) = (1 + payments.count, 0)
    }

    /// Returns true if the batch may be resolved by deleting `gone`: all payments known to be taken are deleted, and
    /// none whose state is unknown.
    func leaves(_ gone: Set<String>) -> Bool {
        !gone.isEmpty && gone.isSubset(of: batch?.detail.payments ?? [])
            && batched.allSatisfy { gone.contains($0.id) ? $0.answer != .unknown : $0.answer?.isFinal != true }
    }

    /// Returns true if the batch may be dissolved with these findings: there is one for each payment, and no decided
    /// payment goes into another batch.
    func fits(_ findings: [String: ProximityReaderSystem.Ledger.Finding]) -> Bool {
        Set(findings.keys) == Set(batch?.detail.payments ?? [])
            && batched.allSatisfy { findings[$0.id] != .notTaken || $0.answer?.isFinal != true }
    }

    /// The payments of the batch that are not resolved.
    var batched: [Payment] { batch?.detail.payments.compactMap { payments[$0] } ?? [] }

    /// Returns the oldest payments that are in no batch and not set aside.
    func next(_ count: Int, without others: Set<String> = []) -> [Payment] {
        Array(payments.lazy.filter { $0.state == .stored && !others.contains($0.id) }.prefix(count))
    }

    /// Returns the number of payments that may go into a batch.
    func waiting(without others: Set<String> = []) -> Int {
        count(.stored) - others.count { payments[$0]?.state == .stored }
    }

    func count(_ state: State) -> Int { totals.values.reduce(0) { $0 + ($1[state]?.count ?? 0) } }

    func total(in currency: String) -> Decimal { totals[currency]?.values.reduce(0) { $0 + $1.amount } ?? 0 }

    // MARK: Changing

    /// Adds a payment.
    ///
    /// - Returns: false if that is impossible.
    private mutating func add(
        _ id: String, _ stored: StoreDetail.Stored, number: Int64, entry: Int64, _ time: Date
    ) -> Bool {
        let payment = Payment(
            id: id, number: number, entry: entry, time: time, amount: stored.amount,
            currency: names.insert(stored.currency).memberAfterInsert,
            issuer: names.insert(stored.issuer).memberAfterInsert,
            merchant: names.insert(stored.merchant).memberAfterInsert, hash: stored.payment, card: stored.card)
        guard payments.append(payment) else { return false }
        count(payment, 1)
        return true
    }

    private mutating func remove(_ id: String) {
        guard let payment = payments.remove(id) else { return }
        count(payment, -1)
        removed += 1
    }

    private mutating func update(_ id: String, _ body: (inout Payment) -> Void) {
        guard let before = payments[id] else { return }
        payments.update(id, body)
        guard let after = payments[id] else { return }
        count(before, -1)
        count(after, 1)
    }

    /// Moves the payments of the batch.
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
    /// Returns true if the payment service may give this answer after its earlier one.
    func allows(_ next: ProximityReaderSystem.Ledger.Answer) -> Bool { answer?.isFinal != true || answer == next }

    /// True if the payment can be withdrawn here, so that nobody charges it.
    var canBeWithdrawn: Bool { !wasSent && (state == .stored || state == .setAside) }

    /// The entry that carries the payment past a checkpoint.
    var carried: StoreDetail.Carried {
        let stored = StoreDetail.Stored(
            amount: amount, currency: currency, issuer: issuer, merchant: merchant, payment: hash, card: card)
        return StoreDetail.Carried(
            stored: stored.fields, number: number, time: time, answer: answer, reason: reason, place: place,
            wasSent: wasSent)
    }
}

extension ProximityReaderSystem.Ledger.Answer {
    var isFinal: Bool { self != .unknown }
}

extension ProximityReaderSystem.Ledger.Finding {
    /// The answer; nil for a payment that was not taken.
    var answer: ProximityReaderSystem.Ledger.Answer? {
        switch self {
        case .approved: .approved
        case .declined: .declined
        case .notTaken: nil
        }
    }
}

extension StoreAndForwardBatch {
    static func canonicalForm(id: String, payments: [StoreLedger.Payment]) -> Data {
        Data(
            ("swift-contactless batch 1\n\(id)\n\(payments.count)\n"
                + payments.map { "\($0.id) \($0.hash)\n" }.joined()).utf8)
    }
}
