package import EMVContactless
public import Foundation
public import SmartCard

extension ProximityReaderSystem {
    /// What may be paid while there is no network, at the merchant's risk.
    ///
    /// Purchases only; never with a card that has expired or is not good yet, nor where a PIN has to be verified online.
    public struct StoreAndForwardPolicy: Sendable {
        /// Amounts in the currency's major unit.
        public struct Limit: Sendable {
            /// What one payment may come to.
            public var perPayment: Decimal
            /// What all payments may come to that are not resolved.
            public var total: Decimal

            public init(perPayment: Decimal, total: Decimal) {
                self.perPayment = perPayment
                self.total = total
            }
        }

        /// By the currency's code of ISO 4217.  Another currency is not taken.
        public var limits: [String: Limit]
        /// How many payments may be stored that are not resolved.
        public var maximumCount: Int
        /// How old the oldest of them may be for another one to be stored.
        public var maximumAge: Duration
        /// The applications that are taken, by the beginning of their AID; nil: all that the terminal takes.
        public var applications: [AID]?
        /// How long after an online preparation payments may be stored.
        public var sessionLifetime: Duration

        public init(
            limits: [String: Limit], maximumCount: Int = 500, maximumAge: Duration = .seconds(7 * 24 * 3600),
            applications: [AID]? = nil, sessionLifetime: Duration = .seconds(24 * 3600)
        ) {
            self.limits = limits
            self.maximumCount = maximumCount
            self.maximumAge = maximumAge
            self.applications = applications
            self.sessionLifetime = sessionLifetime
        }
    }
}

extension ProximityReaderSystem.StoreAndForwardPolicy {
    /// What is known before a card is read.
    ///
    /// - Throws: `ReadError` for what is never stored; `PaymentCardReaderError` for a store that is full.
    func admit(_ amount: Decimal, _ currency: String, to ledger: StoreLedger, at now: Date) throws {
        guard let limit = limits[currency], amount <= limit.perPayment else {
            throw PaymentCardReaderSession.ReadError.readNotAllowed
        }
        let oldest = ledger.payments.first.map { now.timeIntervalSince($0.time) } ?? 0
        guard ledger.payments.count < maximumCount, ledger.total(in: currency) + amount <= limit.total,
            oldest <= maximumAge / .seconds(1)
        else { throw PaymentCardReaderError.readerMemoryFull }
    }

    /// What the card has made of it.
    ///
    /// - Throws: `ReadError`
    package func admit(_ result: PaymentCardReadResult, _ cvm: Outcome.CVM?) throws {
        let name = (try? [UInt8](hex: result.applicationTypeIdentifier ?? "")) ?? []
        guard applications.map({ $0.contains { name.starts(with: $0.bytes) } }) ?? true, cvm != .onlinePIN,
            result.cardExpirationState != .expired, result.cardExpirationState != .invalid,
            result.cardEffectiveState != .inactive, result.cardEffectiveState != .invalid
        else { throw PaymentCardReaderSession.ReadError.readNotAllowed }
    }

    /// Whether payments may be stored after `preparation`.
    ///
    /// - Parameter uptime: seconds since the machine was started.
    func admits(_ preparation: Preparation, at now: Date, uptime: Double, boot: String) -> Admission {
        guard preparation.boot == boot, uptime >= preparation.uptime else { return .restarted }
        let elapsed = uptime - preparation.uptime
        // A clock is slewed by a ten-thousandth or so; anything else is a step.
        guard now.timeIntervalSince(preparation.time) >= elapsed - 60 else { return .clockWentBack }
        // Whichever clock has seen more time pass.
        let end = end(of: preparation)
        guard now < end, elapsed < end.timeIntervalSince(preparation.time) else { return .expired }
        return .good
    }

    enum Admission { case good, restarted, clockWentBack, expired }

    func end(of preparation: Preparation) -> Date {
        min(
            preparation.time.addingTimeInterval(sessionLifetime / .seconds(1)), preparation.tokenExpiration)
    }
}
