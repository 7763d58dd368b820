public import Foundation

extension ProximityReaderSystem.Ledger {
    /// Figures about the stored payments: for a display, a monitor, or a person in charge.
    public struct Summary: Codable, Hashable, Sendable {
        /// The total of the payments of one currency in one state.
        public struct Total: Codable, Hashable, Sendable {
            public let currency: String
            public let state: State
            public let count: Int
            /// The amount in the currency's major unit.
            public let amount: Decimal
        }

        /// The used part of a limit.
        public struct LimitUse: Codable, Hashable, Sendable {
            public let limit: Limit
            public let used: Decimal
            public let allowed: Decimal

            /// The alarm for the used part; nil below half of the limit.
            public var alarm: Alarm? { Alarm.allCases.last { used * 100 >= allowed * Decimal($0.rawValue) } }
        }

        public enum Limit: Codable, Hashable, Sendable {
            /// The number of payments.
            case count
            /// The sum of the payments in a currency, in its major unit.
            case total(currency: String)
            /// The age of the oldest payment, in seconds.
            case age
            /// The number of outcomes that the application has not acknowledged.
            case unacknowledged
        }

        /// An alarm, by the percentage of the limit that is reached.
        public enum Alarm: Int, Codable, Hashable, Sendable, CaseIterable {
            case half = 50
            case most = 80
            case all = 100
        }

        /// The number of payments that are not resolved.
        public let count: Int
        /// The nonzero totals by currency and state.
        public let totals: [Total]
        /// The time at which the oldest payment was stored.
        public let oldest: Date?
        /// The time from which the oldest payment is too old for another one to be stored; nil without payments or
        /// without a policy.
        public let expiration: Date?
        /// The limits of the policy, including one for each currency; empty without a policy.
        public let limits: [LimitUse]
        /// The number of outcomes that the application has not acknowledged: see
        /// ``ProximityReaderSystem/Ledger/outcomes()``.
        public let unacknowledged: Int
        /// The reason for which forwarding pauses; nil while it runs, and without a forwarder.
        public let pause: Pause?

        /// A pause of forwarding, because the payment service refuses the merchant or does not answer.
        public struct Pause: Codable, Hashable, Sendable {
            /// The reason for people; without card data.
            public let reason: String
            public let since: Date
            /// The time at which the forwarder automatically asks again.
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
