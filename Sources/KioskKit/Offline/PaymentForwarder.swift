import ContactlessMetrics
public import Foundation
import Logging
public import ProximityReader
import Waiting

/// A forwarder that sends stored payments to their payment service, and deletes them with its permission.
///
/// Each payment is charged once, and none is lost, whenever and however often the program ends.  Every step is
/// recorded in the ledger before it is taken.  A batch that was sent is sent again unchanged, under the same key.  A
/// payment is deleted only after the payment service's final answer about it.
///
/// An answer counts if it names the payment, its amount, its currency and a final status.  A refusal of the merchant,
/// or no answer, says nothing about a payment: forwarding then pauses, longer each time, and continues automatically
/// (``run()``).  See <doc:Answers>.
public actor PaymentForwarder {
    /// The batch size, the speed, and the patience of a forwarder.
    public struct Pace: Sendable {
        /// The maximum number of payments in a batch.
        public var batchSize = 50
        /// The least interval between two calls of the payment service.
        public var interval = Duration.seconds(1)
        /// The pause before a failed step is retried.  It doubles each time, and is reduced at random by up to one
        /// half, which keeps many terminals from retrying at once.
        public var pause = Duration.seconds(1)
        /// The maximum pause.
        public var longestPause = Duration.seconds(300)
        /// The number of attempts at a step before ``PaymentForwarder/forward()`` gives up.
        public var attempts = 8
        /// The number of failures, each followed by the decision of another payment, after which a payment is set
        /// aside.
        public var failures = 3
        /// The interval at which ``PaymentForwarder/run()`` looks for stored payments.
        public var look = Duration.seconds(30)

        public init() {}

        /// Returns the pause after an attempt.
        ///
        /// - Parameter chance: 0 to 1.
        func pause(after attempt: Int, chance: Double) -> Duration {
            // Beyond 2^30 times any pause is the longest.
            let pause = min(longestPause, pause * (1 << min(attempt - 1, 30)))
            return pause * (1 - chance / 2)
        }
    }

    /// A report on the payments that were deleted, set aside or not decided.
    public struct Report: Hashable, Sendable {
        public var approved = 0
        public var declined = 0
        /// The `id`s of the payments that were set aside.  They stay stored, and out of further batches until somebody
        /// puts them back.
        public var setAside: [String] = []
        /// The reasons for undecided payments, by `id`.  They stay stored, and are submitted again after the others.
        public var undecided: [String: String] = [:]

        public init() {}
    }

    /// A batch that requires a person: the payment service has decided some of its payments, and now contradicts that.
    /// Nothing after it is forwarded in the meantime.
    public struct HeldUp: Error, Hashable, Sendable, LocalizedError, CustomStringConvertible {
        /// The `id` of the batch.
        public let batch: String
        public let reason: String

        public var description: String {
            """
            Batch \(batch) holds up all others: \(reason). Compare its payments with the payment service's books, and release \
            it with what was found (ProximityReaderSystem.Ledger.release).
            """
        }
        public var errorDescription: String? { description }
    }

    /// The result of canceling a stored payment.
    public enum Cancellation: Hashable, Sendable {
        /// Nobody is charged for the payment, nor will be.
        case cancelled
        /// The payment service had already decided the payment.
        case approved, declined
        /// The payment may have been charged, or may yet be, with the reason.
        case unknown(String)
    }

    private let store: PaymentCardReaderStore
    private let ledger: ProximityReaderSystem.Ledger
    private let psp: MeasuredService
    private let pace: Pace
    private let chance: @Sendable () -> Double
    private let renewCredentials: (@Sendable () async throws -> Void)?
    private let decided: (@Sendable (ProximityReaderSystem.Ledger.Payment, PaymentResult) async -> Void)?
    private let logger = Logger(label: "KioskKit")

    /// The report of the last ``forward()``, which may have ended, failed or still be under way.
    public private(set) var lastReport = Report()

    private var running: Task<Void, any Error>?
    private var callers: [UUID: Delivery<Report>] = [:]
    /// The callers that wait for the end of a canceled run, so that another may begin.
    private var next: [UUID: Delivery<Report>] = [:]
    /// The earliest time of the next call of the payment service.
    private var nextCall: Time.Instant?
    /// The size of the next batch, reduced while the forwarder isolates a payment that the payment service refuses.
    private var size: Int
    /// The maximum batch size that the payment service accepts, as far as it is known.
    private var largest: Int
    /// The last deletion token that was of no use.
    private var uselessToken: String?
    /// Payments that have failed alone; they are submitted after the others, and alone.
    private var suspects: Set<String> = []
    /// The reasons of those of them after whose failure no other payment has been decided yet.
    private var pending: [String: String] = [:]
    /// The number of failures of each payment, each followed by the decision of another one.
    private var failures: [String: Int] = [:]
    /// The number of consecutive pauses, with the last reason and length.
    private var pauses: (count: Int, reason: String, length: Duration) = (0, "", .zero)

    /// Creates a forwarder.
    ///
    /// - Parameters:
    ///   - store: the stored payments.
    ///   - psp: the payment service.
    ///   - pace: the pauses between requests, and the size of a batch.
    ///   - chance: returns a random number from 0 to 1.
    ///   - renewCredentials: called once when the payment service does not know this terminal; nil ends ``forward()``
    ///     instead.
    ///   - decided: receives each decision when it is on the disk: at least once, and again if the program ended before
    ///     it returned.  Its return acknowledges the outcome (`ProximityReaderSystem.Ledger.outcomes()`).  If only the
    ///     ledger knows the decision, the result's `id` is the payment's.  With nil the reader of the outcomes
    ///     acknowledges them.
    public init(
        _ store: PaymentCardReaderStore, to psp: any PaymentServiceProvider, pace: Pace = Pace(),
        chance: @escaping @Sendable () -> Double = { .random(in: 0...1) },
        renewCredentials: (@Sendable () async throws -> Void)? = nil,
        decided: (@Sendable (ProximityReaderSystem.Ledger.Payment, PaymentResult) async -> Void)? = nil
    ) {
        self.store = store
        ledger = ProximityReaderSystem.Ledger(of: store)
        self.psp = MeasuredService(service: psp)
        self.pace = pace
        self.chance = chance
        self.renewCredentials = renewCredentials
        self.decided = decided
        (size, largest) = (pace.batchSize, pace.batchSize)
    }

    // MARK: Calls

    /// Forwards payments, present and future, until the task is canceled.
    ///
    /// If the payment service refuses the merchant or does not answer, forwarding pauses: `Ledger.summary()` returns
    /// the reason and the end of the pause.  The log has it once.
    ///
    /// - Throws: `CancellationError`.
    public func run() async throws {
        while true {
            var pause = pace.look
            do {
                try await forward()
            } catch {
                try Task.checkCancellation()
                pause = pauses.length
            }
            try await Time.sleep(for: pause)
        }
    }

    /// Forwards the stored payments, the oldest first, until only those remain that were set aside or are undecided.
    ///
    /// If the payment service does not answer, the call is repeated; if it refuses a batch, smaller ones follow until
    /// the refused payment is isolated.  The other payments continue.  A call during another one waits for its end.
    /// Canceling the task ends the wait; when nobody else waits, forwarding ends after the present call, and this
    /// returns then.  The next call continues, even in another program.
    ///
    /// - Throws: ``PaymentServiceError`` if the payment service did not answer within the pace's attempts, does not
    ///   know this terminal, or decides nothing; ``HeldUp``; `PaymentCardReaderStore.StoreError`; `CancellationError`.
    ///   ``lastReport`` covers everything before.
    @discardableResult public func forward() async throws -> Report {
        try Task.checkCancellation()
        let caller = UUID()
        let report = Delivery<Report>()
        // A run that its last caller canceled ends before another begins.
        if running?.isCancelled == true { next[caller] = report } else { callers[caller] = report }
        if running == nil { start() }
        return try await report.receiveToTheEnd { Task { await self.leave(caller) } }
    }

    private func start() {
        running = Task {
            do {
                try await forwardAll()
                end(.success(lastReport))
            } catch {
                if !(error is CancellationError) { await pause(because: error) }
                end(.failure(error))
                throw error
            }
        }
    }

    private func end(_ result: Result<Report, any Error>) {
        running = nil
        let waiting = callers.values
        (callers, next) = (next, [:])
        if !callers.isEmpty { start() }
        for caller in waiting { caller.deliver(result) }
    }

    /// The last one waits for the end.
    private func leave(_ caller: UUID) {
        if let waiting = next.removeValue(forKey: caller) {
            waiting.deliver(.failure(CancellationError()))
            return
        }
        guard callers[caller] != nil else { return }
        if callers.count == 1 {
            running?.cancel()
        } else {
            callers.removeValue(forKey: caller)?.deliver(.failure(CancellationError()))
        }
    }

    /// Cancels a stored payment.
    ///
    /// If the payment service may have seen the payment, it is asked for its decision, and, without one, told not to
    /// charge.
    ///
    /// - Returns: the state after that.  After ``Cancellation/unknown(_:)`` do not take another payment in its place.
    /// - Throws: `StoreError.storeAndForwardResultsNotFound` for a payment that was never stored, or is already
    ///   withdrawn; other `PaymentCardReaderStore.StoreError`.
    public func cancel(_ payment: String) async throws -> Cancellation {
        if try await ledger.withdraw(payment: payment, reason: "cancelled by the application") { return .cancelled }
        guard let known = try await ledger.payment(payment) else {
            throw PaymentCardReaderStore.StoreError.storeAndForwardResultsNotFound
        }
        switch known.answer {
        case .approved: return .approved
        case .declined: return .declined
        case .unknown, nil: break
        }
        do {
            if let result = try await call({ try await $0.result(for: payment) }) {
                if let objection = result.objection(of: known) { return .unknown(objection) }
                return result.status == .approved ? .approved : .declined
            }
            // Nothing is approved under this key, now or later: a call still on its way is declined.
            try await call {
                try await $0.reverse(idempotencyKey: payment, amount: known.amount, currency: known.currency)
            }
            return .cancelled
        } catch let error as PaymentServiceError {
            return .unknown(error.description)
        }
    }

    // MARK: A round

    /// The state of one ``forward()``.
    private struct Round {
        var hasRenewedCredentials = false
        /// The number of decided payments, and of those that failed alone since.
        var decided = 0
        var failedInRow = 0
        /// The payments that failed alone, and the reason of the last.
        var failed: Set<String> = []
        var failure: PaymentServiceError?
        /// The number of consecutive deletion tokens that were of no use.
        var uselessTokens = 0
    }

    private func forwardAll() async throws {
        lastReport = Report()
        var round = Round()
        await tell()
        while let batch = try await nextBatch(round) {
            try Task.checkCancellation()
            // A program may have ended before it used the token: the payment service may give no other.
            if let token = try await ledger.deletionToken()?.rawValue, token != uselessToken {
                try await delete(batch, token, &round)
            } else if let token = try await submit(batch, &round) {
                try await delete(batch, token, &round)
            }
        }
        // If nothing was decided at all, the payments are not at fault.
        if round.decided == 0, let failure = round.failure { throw failure }
        await resume()
    }

    /// Returns the next batch.
    ///
    /// - Returns: the present batch, or a new one; nil if nothing is left.
    private func nextBatch(_ round: Round) async throws -> StoreAndForwardBatch? {
        typealias StoreError = PaymentCardReaderStore.StoreError
        while true {
            if let batch = try await ledger.batch() { return batch }
            var (others, size) = (round.failed.union(suspects), size)
            var count = try await ledger.waiting(without: others)
            if count == 0 {
                (others, size) = (round.failed, 1)
                count = try await ledger.waiting(without: others)
            }
            guard count > 0 else { return nil }
            do {
                return try await ledger.makeBatch(size: min(size, count), without: others)
            } catch StoreError.storeAndForwardBatchAlreadyExists {
            } catch StoreError.storeAndForwardBatchSizeInvalid {
                // The last one was withdrawn in the meantime.
            } catch StoreError.unknown(code: Self.diskIsFull) where size > 1 {
                self.size = max(1, size / 2)
            } catch StoreError.storeAndForwardResultsNotFound {}
        }
    }

    /// SQLite's SQLITE_FULL.
    private static let diskIsFull = 13

    // MARK: Sending

    /// Submits a batch until it is answered, and records the decisions.
    ///
    /// - Returns: the deletion token; nil if the batch is dissolved.
    private func submit(_ batch: StoreAndForwardBatch, _ round: inout Round) async throws -> String? {
        let data = try batch.data
        // Sent by a program that ended before it knew the answer, or by this one.
        var wasSent = try await payments(of: batch).contains { $0.state != .batched }
        var attempt = 0
        while true {
            attempt += 1
            var failure = PaymentServiceError.noAnswer("it has not decided yet")
            var isAboutBatch = false
            do {
                try await ledger.willSend(batch: batch.id)
                let reader = try await ledger.readerIdentifier() ?? ""
                let result = try await call { psp in
                    try await psp.submitBatch(data, from: reader, idempotencyKey: batch.id)
                }
                try await note(result.payments, of: batch, deletionToken: result.deletionToken)
                if let token = result.deletionToken { return token }
                wasSent = true
            } catch let error as PaymentServiceError {
                failure = error
                switch error {
                case .refused, .tooLarge:
                    if case .tooLarge = error { largest = max(1, min(largest, batch.count / 2)) }
                    guard wasSent else {
                        try await divide(batch, error, &round)
                        return nil
                    }
                    // A refusal of this call says nothing about an earlier one whose answer was lost.
                    isAboutBatch = true
                case .notAuthorized:
                    guard let renewCredentials, !round.hasRenewedCredentials else { throw error }
                    round.hasRenewedCredentials = true
                    try await renewCredentials()
                    continue
                case .unavailable: break
                case .noAnswer:
                    wasSent = true
                    try await note([:], of: batch)
                }
            }
            let isLast = attempt >= pace.attempts
            // The batch is never answered, although the payment service answers inquiries about each payment.
            if isAboutBatch || (isLast || size < min(pace.batchSize, largest)) && failure.isNoAnswer {
                do {
                    try await inquire(batch, failure, &round)
                    return nil
                } catch let error as PaymentServiceError {
                    if isLast { throw error }
                }
            }
            if isLast { throw failure }
            try await rest(after: attempt, because: failure)
        }
    }

    /// Calls the payment service, after the interval.
    ///
    /// - Throws: ``PaymentServiceError`` for any error of the call; `CancellationError` before it.
    private func call<Value: Sendable>(
        _ body: @escaping @Sendable (any PaymentServiceProvider) async throws -> Value
    ) async throws -> Value {
        if let nextCall { try await Time.sleep(until: nextCall) }
        try Task.checkCancellation()
        nextCall = Time.now + pace.interval
        do {
            // A call that moves money is not interrupted.
            return try await toTheEnd { [psp] in try await body(psp) }
        } catch let error as PaymentServiceError {
            throw error
        } catch {
            throw PaymentServiceError.noAnswer("\(type(of: error))")
        }
    }

    private func payments(of batch: StoreAndForwardBatch) async throws -> [ProximityReaderSystem.Ledger.Payment] {
        try await ledger.payments(batch.payments.map(\.id))
    }

    /// Records and delivers the decisions, and the reasons for undecided payments, by the payments' `id`.
    private func note(
        _ decisions: [String: PaymentResult], of batch: StoreAndForwardBatch, deletionToken: String? = nil
    ) async throws {
        var answers: [String: ProximityReaderSystem.Ledger.Answer] = [:]
        var references: [String: ProximityReaderSystem.Ledger.Reference] = [:]
        for payment in try await payments(of: batch) {
            if let decision = decisions[payment.id] {
                guard let objection = decision.objection(of: payment) else {
                    answers[payment.id] = decision.status == .approved ? .approved : .declined
                    references[payment.id] = .init(
                        id: decision.id, responseCode: decision.responseCode, message: decision.message)
                    lastReport.undecided[payment.id] = nil
                    continue
                }
                logger.warning("what the payment service says of payment \(payment.id) does not count: \(objection)")
                lastReport.undecided[payment.id] = objection
            }
            if payment.state != .approved, payment.state != .declined { answers[payment.id] = .unknown }
        }
        do {
            try await ledger.record(
                answers, references: references, deletionToken: deletionToken.map { .init(rawValue: $0) })
        } catch PaymentCardReaderStore.StoreError.notAllowed {
            throw HeldUp(batch: batch.id, reason: "the payment service says otherwise than before what it has decided")
        }
        await tell()
    }

    /// Delivers the decisions that nobody has acknowledged.
    private func tell() async {
        guard let decided else { return }
        do {
            for outcome in try await ledger.openOutcomes() {
                await decided(outcome.payment, PaymentResult(outcome))
                try await ledger.acknowledge(outcome.id)
            }
        } catch {
            // They are delivered again.
            logger.warning("outcomes are not acknowledged: \(type(of: error))")
        }
    }

    // MARK: After the answer

    /// Asks the payment service about each payment of a batch for which it gives no valid answer, and dissolves the
    /// batch: decided payments are deleted, the rest goes into smaller batches.
    ///
    /// - Throws: ``PaymentServiceError`` if it does not answer that either; the batch stays.
    private func inquire(
        _ batch: StoreAndForwardBatch, _ failure: PaymentServiceError, _ round: inout Round
    ) async throws {
        var results: [String: PaymentResult] = [:]
        for payment in batch.payments {
            results[payment.id] = try await call { try await $0.result(for: payment.id) }
        }
        if !results.isEmpty { try await note(results, of: batch) }
        let payments = try await payments(of: batch)
        let findings = Dictionary(
            uniqueKeysWithValues: payments.map { payment in
                let finding: ProximityReaderSystem.Ledger.Finding =
                    switch payment.answer {
                    case .approved: .approved
                    case .declined: .declined
                    case .unknown, nil: .notTaken
                    }
                return (payment.id, finding)
            })
        guard findings.values.contains(where: { $0 != .notTaken }) else {
            return try await divide(batch, failure, &round)
        }
        try await ledger.release(
            batch: batch.id, findings, by: "PaymentForwarder",
            reason: "the payment service was asked about each payment, since it does not answer for the batch")
        await count(payments.filter { findings[$0.id] != .notTaken }, &round)
        let left = payments.filter { findings[$0.id] == .notTaken }
        size = max(1, batch.count / 2)
        if batch.count == 1, let payment = left.first { try failAlone(payment.id, failure, &round) }
    }

    /// Dissolves a batch of which the payment service has taken nothing.  Half of it is next; a payment that was alone
    /// in it has failed.
    private func divide(
        _ batch: StoreAndForwardBatch, _ failure: PaymentServiceError, _ round: inout Round
    ) async throws {
        do {
            try await ledger.wasRefused(batch: batch.id)
        } catch PaymentCardReaderStore.StoreError.notAllowed {
            throw HeldUp(batch: batch.id, reason: "the payment service does not know what it has decided of it before")
        }
        try await store.resetBatchState()
        size = max(1, batch.count / 2)
        guard batch.count == 1, let payment = batch.payments.first else { return }
        try failAlone(payment.id, failure, &round)
    }

    /// Deletes the payments that the payment service permits to delete.  A failed deletion is retried by itself; a
    /// useless token is replaced by sending the batch again.
    private func delete(_ batch: StoreAndForwardBatch, _ token: String, _ round: inout Round) async throws {
        typealias StoreError = PaymentCardReaderStore.StoreError
        var payments: [ProximityReaderSystem.Ledger.Payment] = []
        var attempt = 0
        while true {
            attempt += 1
            do {
                payments = try await self.payments(of: batch)
                _ = try await store.resolveBatch(batchDeletionToken: .init(rawValue: token))
                break
            } catch let error as StoreError {
                switch error {
                case .storeAndForwardBatchNotFound where try await ledger.batch()?.id != batch.id:
                    // Another process has deleted it.
                    return
                case .storeAndForwardBatchNotFound, .storeAndForwardDeletionTokenInvalid,
                    .storeAndForwardDeletionTokenExpired:
                    uselessToken = token
                    round.uselessTokens += 1
                    let failure = PaymentServiceError.noAnswer("its deletion tokens are of no use")
                    guard round.uselessTokens < pace.attempts else {
                        round.uselessTokens = 0
                        return try await inquire(batch, failure, &round)
                    }
                    return try await rest(after: round.uselessTokens, because: failure)
                default:
                    guard attempt < pace.attempts else { throw error }
                    try await rest(after: attempt, because: error)
                }
            }
        }
        round.uselessTokens = 0
        let left = Set(try await self.payments(of: batch).map(\.id))
        await count(payments.filter { !left.contains($0.id) }, &round)
        for payment in payments where left.contains(payment.id) {
            fail(
                payment.id, .noAnswer(lastReport.undecided[payment.id] ?? "it does not decide this payment"), &round)
        }
        // Other payments of the batch are decided.
        if left.count < batch.count { await confirm(&round) }
        size = min(pace.batchSize, largest, max(1, size) * 2)
    }

    /// Counts payments that are decided and deleted.
    private func count(_ payments: [ProximityReaderSystem.Ledger.Payment], _ round: inout Round) async {
        guard !payments.isEmpty else { return }
        for payment in payments {
            if payment.state == .approved { lastReport.approved += 1 } else { lastReport.declined += 1 }
            metrics.forwardedPayments.add(payment.state == .approved ? .approved : .declined)
            (pending[payment.id], failures[payment.id], lastReport.undecided[payment.id]) = (nil, nil, nil)
            suspects.remove(payment.id)
        }
        round.decided += payments.count
        await resume()
        await confirm(&round)
    }

    /// Records that a payment failed in its own batch.  If three do so one after the other, the payments are not at
    /// fault.
    private func failAlone(_ payment: String, _ failure: PaymentServiceError, _ round: inout Round) throws {
        fail(payment, failure, &round)
        round.failedInRow += 1
        if round.failedInRow >= 3 { throw failure }
    }

    /// Records that a payment outside a batch failed: the others now precede it.  The next decision shows whether the
    /// payment or the payment service is at fault.
    private func fail(_ payment: String, _ failure: PaymentServiceError, _ round: inout Round) {
        round.failed.insert(payment)
        round.failure = failure
        suspects.insert(payment)
        pending[payment] = failure.description
        lastReport.undecided[payment] = failure.description
        size = min(pace.batchSize, largest)
    }

    /// Records that another payment is decided: the payment service works, so payments that failed before are at fault
    /// themselves.
    private func confirm(_ round: inout Round) async {
        round.failedInRow = 0
        for (payment, reason) in pending {
            failures[payment, default: 0] += 1
            guard failures[payment, default: 0] >= pace.failures else { continue }
            do {
                try await ledger.setAside(payment: payment, reason: reason)
                (failures[payment], lastReport.undecided[payment]) = (nil, nil)
                suspects.remove(payment)
                lastReport.setAside.append(payment)
                metrics.forwardedPayments.add(.setAside)
            } catch {
                // It is not stored any more, or is tried once more.
                logger.warning("payment \(payment) is not set aside: \(type(of: error))")
            }
        }
        pending = [:]
    }

    // MARK: Pausing

    private func rest(after attempt: Int, because error: any Error) async throws {
        let pause = pace.pause(after: attempt, chance: chance())
        await tell(pause, error)
        try await Time.sleep(for: pause)
    }

    private func pause(because error: any Error) async {
        pauses.count += 1
        pauses.length = pace.pause(after: pauses.count, chance: chance())
        await tell(pauses.length, error)
    }

    private func tell(_ pause: Duration, _ error: any Error) async {
        let reason =
            switch error {
            case let error as PaymentServiceError: error.description
            case let error as HeldUp: error.description
            default: "\(type(of: error))"
            }
        if pauses.reason != reason { logger.warning("forwarding pauses: \(reason)") }
        pauses.reason = reason
        await ledger.pause(reason, for: pause)
    }

    private func resume() async {
        if !pauses.reason.isEmpty { logger.notice("forwarding goes on") }
        pauses = (0, "", .zero)
        await ledger.pause(nil)
    }
}

extension PaymentResult {
    /// Returns the reason for which this does not settle a payment; nil if it does.
    func objection(of payment: ProximityReaderSystem.Ledger.Payment) -> String? {
        objection(of: payment.id, payment.amount, payment.currency)
    }

    fileprivate init(_ outcome: ProximityReaderSystem.Ledger.Outcome) {
        self.init(
            id: outcome.reference?.id ?? outcome.id,
            status: outcome.payment.answer == .approved ? .approved : .declined, idempotencyKey: outcome.id,
            amount: outcome.payment.amount, currency: outcome.payment.currency,
            responseCode: outcome.reference?.responseCode, message: outcome.reference?.message)
    }
}

extension PaymentServiceError {
    fileprivate var isNoAnswer: Bool { if case .noAnswer = self { true } else { false } }
}
