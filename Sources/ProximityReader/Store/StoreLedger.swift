import Foundation

/// What the entries of the book come to.
struct StoreLedger: Sendable {
    struct Payment: Sendable {
        let id: String
        let time: Date
        let amount: Decimal
        let currency: String
        let issuer: String
        let merchant: String
        let content: String
        let canonicalHash: String
        var state: ProximityReaderSystem.Ledger.State
    }

    struct Batch: Sendable {
        let id: String
        let reader: String
        let issuer: String
        let count: Int
        let hash: String
        /// Whether a payment service may have seen it.
        var isSent = false
    }

    /// Those that are not resolved, the oldest first.
    private(set) var payments: [Payment] = []
    /// The first payments, as many as it counts.
    private(set) var batch: Batch?
    private(set) var preparation: Preparation?
    private(set) var certificates: StoreDetail.Opened?
    /// The deletion tokens that were used.
    private(set) var usedTokens: Set<String> = []
    /// Whether the last payment of all was taken back.
    private(set) var lastIsWithdrawn = false

    /// - Throws: ``StoreFailure/damaged(_:)`` for what cannot have happened.
    mutating func apply(_ entry: StoreEntry) throws {
        func detail<Value: Decodable>(_ type: Value.Type) throws -> Value {
            do { return try JSONDecoder().decode(type, from: entry.detail) } catch { throw Self.impossible(entry) }
        }
        switch entry.kind {
        case .opened: certificates = try detail(StoreDetail.Opened.self)
        case .prepared: preparation = try detail(Preparation.self)
        case .stored:
            let stored = try detail(StoreDetail.Stored.self)
            payments.append(
                Payment(
                    id: entry.subject, time: Date(timeIntervalSince1970: Double(entry.time) / 1000),
                    amount: Decimal(string: stored.amount) ?? 0, currency: stored.currency, issuer: stored.issuer,
                    merchant: stored.merchant, content: stored.content, canonicalHash: stored.payment, state: .stored))
            lastIsWithdrawn = false
        case .withdrawn:
            guard payments.last?.id == entry.subject, payments.last?.state == .stored else {
                throw Self.impossible(entry)
            }
            payments.removeLast()
            lastIsWithdrawn = true
        case .batched:
            let batched = try detail(StoreDetail.Batched.self)
            guard batch == nil, (1...payments.count).contains(batched.count) else { throw Self.impossible(entry) }
            batch = Batch(
                id: entry.subject, reader: batched.reader, issuer: batched.issuer, count: batched.count,
                hash: batched.hash)
            setState(.batched)
        case .reset:
            try check(entry)
            setState(.stored)
            batch = nil
        case .sent:
            try check(entry)
            batch?.isSent = true
            // What is known of a payment stays known when its batch is sent again.
            for index in 0..<(batch?.count ?? 0) where payments[index].state == .batched {
                payments[index].state = .sent
            }
        case .refused:
            try check(entry)
            batch?.isSent = false
            setState(.batched)
        case .approved, .declined, .unknown:
            guard let index = batched.firstIndex(where: { $0.id == entry.subject }), batch?.isSent == true,
                let state = ProximityReaderSystem.Ledger.State(rawValue: entry.kind.rawValue)
            else { throw Self.impossible(entry) }
            payments[index].state = state
        case .resolved:
            try check(entry)
            let resolved = try detail(StoreDetail.Resolved.self)
            let gone = resolved.payments.map(Set.init) ?? Set(batched.map(\.id))
            setState(.stored)
            payments.removeAll { gone.contains($0.id) }
            usedTokens.insert(resolved.token)
            batch = nil
        }
    }

    /// The batch's payments.
    var batched: ArraySlice<Payment> { payments.prefix(batch?.count ?? 0) }

    func total(in currency: String) -> Decimal {
        payments.reduce(0) { $1.currency == currency ? $0 + $1.amount : $0 }
    }

    private mutating func setState(_ state: ProximityReaderSystem.Ledger.State) {
        for index in 0..<(batch?.count ?? 0) { payments[index].state = state }
    }

    private func check(_ entry: StoreEntry) throws {
        guard batch?.id == entry.subject else { throw Self.impossible(entry) }
    }

    private static func impossible(_ entry: StoreEntry) -> StoreFailure {
        .damaged("entry \(entry.sequence), \(entry.kind.rawValue), cannot follow those before it")
    }
}
