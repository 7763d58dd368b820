public import EMVContactless
public import Foundation
import Logging
public import SmartCard

extension ProximityReaderSystem {
    /// What may be paid while there is no network, at the merchant's risk.
    ///
    /// Purchases only, and by default never with a card that has expired, is not good yet or has failed to prove that it is
    /// genuine, nor where the cardholder has to be verified by a PIN or a signature.
    public struct StoreAndForwardPolicy: Sendable {
        /// Amounts in the currency's major unit.
        public struct Limit: Sendable {
            /// What one payment may come to.
            public var perPayment: Decimal
            /// What all payments may come to that are not resolved.
            public var total: Decimal
            /// What a card's payments that are not resolved have to stay below, the new one among them (EMV Book 3, 10.6.1);
            /// nil: `total` alone counts.
            public var floorLimit: Decimal?

            public init(perPayment: Decimal, total: Decimal, floorLimit: Decimal? = nil) {
                self.perPayment = perPayment
                self.total = total
                self.floorLimit = floorLimit
            }
        }

        /// What one card may pay in a time, whether it was forwarded meanwhile or not.
        public struct CardVelocity: Sendable {
            public var maximumCount: Int
            /// In each currency's major unit; nil: any amount.
            public var maximumAmount: Decimal?
            /// Of at most 30 days, for which payments are remembered.
            public var window: Duration

            public init(maximumCount: Int, maximumAmount: Decimal? = nil, window: Duration) {
                self.maximumCount = maximumCount
                self.maximumAmount = maximumAmount
                self.window = window
            }
        }

        /// By the currency's code of ISO 4217.  Another currency is not taken.
        public var limits: [String: Limit]
        /// How many payments may be stored that are not resolved.
        public var maximumCount: Int
        /// How many outcomes may wait for the application to acknowledge them before the summary's alarm says that nobody does:
        /// see ``ProximityReaderSystem/Ledger/acknowledge(_:)``.  They are kept all the same.
        public var maximumUnacknowledged = 1000
        /// How old the oldest of them may be for another one to be stored.
        public var maximumAge: Duration
        /// The applications that are taken, by the beginning of their AID; nil: all that the terminal takes.
        public var applications: [AID]?
        /// How long after an online preparation payments may be stored.
        public var sessionLifetime: Duration
        /// How cardholders may be verified.  An online PIN cannot be verified later.
        public var cardholderVerification: Set<Outcome.CVM> = [.none, .deviceCVM]
        /// The terminal's action code for denial (EMV Book 3, 10.7): findings that keep a payment from being stored.
        ///
        /// Beside what the kernel has found out they are: dates, ``exceptionFile``, ``Limit/floorLimit`` (byte 4 bit 8),
        /// ``cardVelocity`` (byte 4 bit 6), and an account number that the card did not give (byte 1 bit 6).  By default a
        /// card need not have been authenticated offline; insert `offlineDataAuthenticationNotPerformed` where each has to,
        /// which takes a terminal that asks for it also of payments that go online.
        public var denial = TerminalVerificationResults([
            .sdaFailed, .ddaFailed, .cdaFailed, .iccDataMissing, .cardOnExceptionFile, .expiredApplication,
            .applicationNotYetEffective, .serviceNotAllowed, .cardholderVerificationNotSuccessful,
            .pinTryLimitExceeded, .floorLimitExceeded, .upperConsecutiveOfflineLimitExceeded,
            .relayResistanceThresholdExceeded, .relayResistanceTimeLimitsExceeded,
        ])
        /// Cards that are not taken; see ``ProximityReaderSystem/KeyedExceptionFile``.
        public var exceptionFile: any ExceptionFile = NoExceptionFile()
        /// nil: a card may pay as often as the limits allow.
        public var cardVelocity: CardVelocity?

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
    /// - Parameter findings: what is known of the card beside its dates.
    /// - Throws: `ReadError`
    package func admit(
        _ result: PaymentCardReadResult, _ cvm: Outcome.CVM?, _ findings: TerminalVerificationResults
    ) throws {
        var findings = findings
        // EMV Book 3, 10.4.3: a card that does not tell has expired; one that tells no first day is good.
        if result.cardExpirationState != .notExpired { findings.insert(.expiredApplication) }
        if ![nil, .active].contains(result.cardEffectiveState) { findings.insert(.applicationNotYetEffective) }
        let denied = findings.intersection(denial)
        let name = (try? [UInt8](hex: result.applicationTypeIdentifier ?? "")) ?? []
        guard applications.map({ $0.contains { name.starts(with: $0.bytes) } }) ?? true,
            cvm != .onlinePIN, cvm.map(cardholderVerification.contains) ?? true, denied.isEmpty
        else {
            let method = cvm.map { "\($0)" } ?? "not told"
            logger.notice("a payment is not stored: findings \(denied.bytes.hex), cardholder verification \(method)")
            throw PaymentCardReaderSession.ReadError.readNotAllowed
        }
    }

    /// What is known of a card by its number.
    ///
    /// - Parameter earlier: what it has paid.
    package func findings(
        on number: PAN, sequenceNumber: UInt8?, paying amount: Decimal, _ currency: String,
        after earlier: [ProximityReaderSystem.Ledger.Payment], at now: Date
    ) -> TerminalVerificationResults {
        var findings: TerminalVerificationResults = []
        if exceptionFile.contains(number, sequenceNumber: sequenceNumber) { findings.insert(.cardOnExceptionFile) }
        func sum(_ payments: some Sequence<ProximityReaderSystem.Ledger.Payment>) -> Decimal {
            payments.reduce(0) { $1.currency == currency ? $0 + $1.amount : $0 }
        }
        if let limit = limits[currency]?.floorLimit {
            let open = earlier.lazy.filter { $0.state != .resolved }
            findings.formUnion(
                TerminalRiskManagement.floorLimit(
                    amount: Self.units(amount), earlier: Self.units(sum(open)), limit: Self.units(limit)))
        }
        if let cardVelocity {
            let start = now.addingTimeInterval(-(cardVelocity.window / .seconds(1)))
            let recent = earlier.filter { $0.time > start }
            if recent.count >= cardVelocity.maximumCount
                || cardVelocity.maximumAmount.map({ sum(recent) + amount > $0 }) ?? false
            {
                findings.insert(.upperConsecutiveOfflineLimitExceeded)
            }
        }
        return findings
    }

    /// In ten-thousandths, which is the smallest unit of any currency (ISO 4217).
    private static func units(_ amount: Decimal) -> UInt64 {
        UInt64(max(0, min(NSDecimalNumber(decimal: amount * 10_000).doubleValue, 1e15)))
    }

    /// Whether payments may be stored after `preparation`.
    ///
    /// - Parameters:
    ///   - latest: the latest time that is known.
    ///   - uptime: seconds since the machine was started.
    func admits(
        _ preparation: Preparation, at now: Date, latest: Date, uptime: Double, boot: String
    ) -> Admission {
        // A machine that does not tell may have been.
        guard uptime > 0, !boot.isEmpty, preparation.boot == boot, uptime >= preparation.uptime else {
            return .restarted
        }
        let elapsed = uptime - preparation.uptime
        // A clock is slewed by a ten-thousandth or so; anything else is a step.
        guard now.timeIntervalSince(preparation.time) >= elapsed - 60, now.timeIntervalSince(latest) >= -60 else {
            return .clockWentBack
        }
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
