public import Foundation

extension ProximityReaderSystem.Ledger {
    /// What is stored, in figures: for a display, a monitor, or a person who has to see to it.
    public struct Summary: Codable, Hashable, Sendable {
        /// What the payments of one currency in one state come to.
        public struct Total: Codable, Hashable, Sendable {
            public let currency: String
            public let state: State
            public let count: Int
            /// In the currency's major unit.
            public let amount: Decimal
        }

        /// How much of a limit is used.
        public struct LimitUse: Codable, Hashable, Sendable {
            public let limit: Limit
            public let used: Decimal
            public let allowed: Decimal

            /// nil below half of what is allowed.
            public var alarm: Alarm? { Alarm.allCases.last { used * 100 >= allowed * Decimal($0.rawValue) } }
        }

        public enum Limit: Codable, Hashable, Sendable {
            /// The number of payments.
            case count
            /// Their sum in a currency, in its major unit.
            case total(currency: String)
            /// The age of the oldest, in seconds.
            case age
            /// The number of outcomes that the application has not acknowledged.
            case unacknowledged
        }

        /// By the percentage of the limit that is reached.
        public enum Alarm: Int, Codable, Hashable, Sendable, CaseIterable {
            case half = 50
            case most = 80
            case all = 100
        }

        /// The number of payments that are not resolved.
        public let count: Int
        /// By currency and state, those that there are.
        public let totals: [Total]
        /// When the oldest was stored.
        public let oldest: Date?
        /// When the oldest is too old for another one to be stored; nil if nothing is stored or there is no policy.
        public let expiration: Date?
        /// Of the policy, each currency's among them; none if there is no policy.
        public let limits: [LimitUse]
        /// How many outcomes the application has not acknowledged: see ``ProximityReaderSystem/Ledger/outcomes()``.
        public let unacknowledged: Int
        /// Why nothing is forwarded for now; nil while it is, and where nobody does.
        public let pause: Pause?

        /// A time in which the payment service is not asked, since it refuses the merchant or does not answer.
        public struct Pause: Codable, Hashable, Sendable {
            /// For people; without card data.
            public let reason: String
            public let since: Date
            /// When it is asked again, by itself.
            public let until: Date
        }
    }
}

extension ProximityReaderSystem.Ledger.Summary {
    init(
        of ledger: StoreLedger, under policy: ProximityReaderSystem.StoreAndForwardPolicy?, at now: Date,
        outcomes: Int, pause: Pause?
    ) {
        (unacknowledged, self.pause) = (outcomes, pause)
        count = ledger.payments.count
        totals = ledger.totals.sorted { $0.key < $1.key }.flatMap { currency, totals in
            ProximityReaderSystem.Ledger.State.allCases.compactMap { state in
                totals[state].flatMap { total in
                    guard total.count > 0 else { return nil }
                    return Total(currency: currency, state: state, count: total.count, amount: total.amount)
                }
            }
        }
        oldest = ledger.payments.first?.time
        guard let policy else {
            (expiration, limits) = (nil, [])
            return
        }
        let age = policy.maximumAge / .seconds(1)
        expiration = oldest?.addingTimeInterval(age)
        let oldestAge = max(0, oldest.map { now.timeIntervalSince($0) } ?? 0)
        limits =
            [
                LimitUse(limit: .count, used: Decimal(count), allowed: Decimal(policy.maximumCount)),
                LimitUse(limit: .age, used: Decimal(oldestAge), allowed: Decimal(age)),
            ]
            + policy.limits.sorted { $0.key < $1.key }.map { currency, limit in
                LimitUse(limit: .total(currency: currency), used: ledger.total(in: currency), allowed: limit.total)
            }
            + [
                LimitUse(
                    limit: .unacknowledged, used: Decimal(outcomes), allowed: Decimal(policy.maximumUnacknowledged))
            ]
    }
}
