public import EMVContactless
public import Foundation
import Logging
public import SmartCard

extension ProximityReaderSystem {
    /// The rules for storing payments while there is no network, at the merchant's risk.
    ///
    /// Only purchases can be stored.  By default a payment is not stored if the card has expired, is not yet valid or
    /// has failed its offline data authentication, or if the cardholder has to enter a PIN or sign.
    public struct StoreAndForwardPolicy: Sendable {
        /// The limits of a currency.  Amounts are in its major unit.
        public struct Limit: Sendable {
            /// The maximum amount of one payment.
            public var perPayment: Decimal
            /// The maximum sum of all payments that are not resolved.
            public var total: Decimal
            /// The floor limit: the sum of a card's unresolved payments, including the new one, must stay below it
            /// (EMV Book 3, 10.6.1); nil applies `total` alone.
            public var floorLimit: Decimal?

            public init(perPayment: Decimal, total: Decimal, floorLimit: Decimal? = nil) {
                self.perPayment = perPayment
                self.total = total
                self.floorLimit = floorLimit
            }
        }

        /// The payments that one card may make within a period, forwarded or not.
        public struct CardVelocity: Sendable {
            public var maximumCount: Int
            /// The maximum sum in each currency's major unit; nil for any amount.
            public var maximumAmount: Decimal?
            /// The period, at most 30 days: payments are remembered for that time.
            public var window: Duration

            public init(maximumCount: Int, maximumAmount: Decimal? = nil, window: Duration) {
                self.maximumCount = maximumCount
                self.maximumAmount = maximumAmount
                self.window = window
            }
        }

        /// The limits by ISO 4217 currency code.  Other currencies are not accepted.
        public var limits: [String: Limit]
        /// The maximum number of payments that are not resolved.
        public var maximumCount: Int
        /// The number of unacknowledged outcomes at which the summary raises its alarm: see
        /// ``ProximityReaderSystem/Ledger/acknowledge(_:)``.  Further outcomes are still kept.
        public var maximumUnacknowledged = 1000
        /// The maximum age of the oldest unresolved payment for another one to be stored.
        public var maximumAge: Duration
        /// The accepted applications, by the beginning of their AID; nil accepts all that the terminal accepts.
        public var applications: [AID]?
        /// The time after an online preparation in which payments may be stored.
        public var sessionLifetime: Duration
        /// The accepted cardholder verification methods.  An online PIN cannot be verified later.
        public var cardholderVerification: Set<Outcome.CVM> = [.none, .deviceCVM]
        /// The terminal action code for denial (EMV Book 3, 10.7): findings that keep a payment from being stored.
        ///
        /// The findings are those of the kernel and these: the card's dates, ``exceptionFile``, ``Limit/floorLimit``
        /// (byte 4 bit 8), ``cardVelocity`` (byte 4 bit 6), and an account number that the card did not supply (byte 1
        /// bit 6).  By default a card need not be authenticated offline.  To require that, insert
        /// `offlineDataAuthenticationNotPerformed`; the terminal must then request offline authentication also for
        /// payments that go online.
        public var denial = TerminalVerificationResults([
            .sdaFailed, .ddaFailed, .cdaFailed, .iccDataMissing, .cardOnExceptionFile, .expiredApplication,
            .applicationNotYetEffective, .serviceNotAllowed, .cardholderVerificationNotSuccessful,
            .pinTryLimitExceeded, .floorLimitExceeded, .upperConsecutiveOfflineLimitExceeded,
            .relayResistanceThresholdExceeded, .relayResistanceTimeLimitsExceeded,
        ])
        /// Cards that are not accepted; see ``ProximityReaderSystem/KeyedExceptionFile``.
        public var exceptionFile: any ExceptionFile = NoExceptionFile()
        /// The limit on a card's frequency; nil lets a card pay as often as the other limits allow.
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
    /// Applies the rules that do not depend on the card.
    ///
    /// - Throws: `ReadError` for a payment that is never stored; `PaymentCardReaderError` if the store is full.
    func admit(_ amount: Decimal, _ currency: String, to ledger: StoreLedger, at now: Date) throws {
        guard let limit = limits[currency], amount <= limit.perPayment else {
            throw PaymentCardReaderSession.ReadError.readNotAllowed
        }
        let oldest = ledger.payments.first.map { now.timeIntervalSince($0.time) } ?? 0
        guard ledger.payments.count < maximumCount, ledger.total(in: currency) + amount <= limit.total,
            oldest <= maximumAge / .seconds(1)
        else { throw PaymentCardReaderError.readerMemoryFull }
    }

    /// Applies the rules to the result of the read.
    ///
    /// - Parameter findings: the findings about the card other than its dates.
    /// - Throws: `ReadError`
    package func admit(
        _ result: PaymentCardReadResult, _ cvm: Outcome.CVM?, _ findings: TerminalVerificationResults
    ) throws {
        var findings = findings
        // EMV Book 3, 10.4.3: a card without an expiration date has expired; a card without an effective date is
        // valid.
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

    /// Returns the findings about a card's number.
    ///
    /// - Parameter earlier: the card's earlier payments.
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

    /// The amount in ten-thousandths, the smallest unit of any currency (ISO 4217).
    private static func units(_ amount: Decimal) -> UInt64 {
        UInt64(max(0, min(NSDecimalNumber(decimal: amount * 10_000).doubleValue, 1e15)))
    }

    /// Returns true if payments may be stored after `preparation`.
    ///
    /// - Parameters:
    ///   - latest: the latest known time.
    ///   - uptime: the seconds since boot.
    func admits(
        _ preparation: Preparation, at now: Date, latest: Date, uptime: Double, boot: String
    ) -> Admission {
        // A machine that does not report its uptime may have been restarted.
        guard uptime > 0, !boot.isEmpty, preparation.boot == boot, uptime >= preparation.uptime else {
            return .restarted
        }
        let elapsed = uptime - preparation.uptime
        // Clocks are slewed by about one ten-thousandth; any larger difference is a step.
        guard now.timeIntervalSince(preparation.time) >= elapsed - 60, now.timeIntervalSince(latest) >= -60 else {
            return .clockWentBack
        }
        // The clock that has seen more time pass decides.
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
