public import Foundation
import Logging
public import ProximityReader

/// Sends the payments that are stored to their payment service, and deletes them here when that allows it.
///
/// Each payment is charged once, and none is lost, whenever and however often the program is ended: every step is in the
/// ledger before it is taken, a batch that was sent is sent again as it was, under the same key, and nothing is deleted but
/// after the payment service's final answer about that payment.
///
/// An answer counts if it names the payment, its amount, its currency and a final state.  What refuses the merchant, and what
/// is no answer at all, is none about a payment: forwarding pauses then, longer each time, and goes on by itself (``run()``).
/// See <doc:Answers>.
public actor PaymentForwarder {
    /// How much at once, how fast, and how patiently.
    public struct Pace: Sendable {
        /// The payments of a batch, at most.
        public var batchSize = 50
        /// From one call of the payment service to the next, at least.
        public var interval = Duration.seconds(1)
        /// Before what has failed is tried again.  Each time twice as long as the time before, less up to a half by chance, so
        /// that not all terminals come back at once.
        public var pause = Duration.seconds(1)
        /// What pauses do not grow beyond.
        public var longestPause = Duration.seconds(300)
        /// How often one step is tried before ``PaymentForwarder/forward()`` gives up.
        public var attempts = 8
        /// How often a payment may fail, where others are decided after it, before it is set aside.
        public var failures = 3
        /// How often ``PaymentForwarder/run()`` looks whether something is stored.
        public var look = Duration.seconds(30)

        public init() {}

        /// - Parameter chance: 0 to 1.
        func pause(after attempt: Int, chance: Double) -> Duration {
            // Beyond 2^30 times any pause is the longest.
            let pause = min(longestPause, pause * (1 << min(attempt - 1, 30)))
            return pause * (1 - chance / 2)
        }
    }

    /// What became of the payments that were deleted, set aside or not decided.
    public struct Report: Hashable, Sendable {
        public var approved = 0
        public var declined = 0
        /// Their `id`s.  They stay stored, and go into no batch until somebody puts them back.
        public var setAside: [String] = []
        /// Those that were asked for and are not decided, and why, by their `id`.  They stay stored, and are asked for again,
        /// behind the others.
        public var undecided: [String: String] = [:]

        public init() {}
    }

    /// A batch that nobody but a person can go on with: the payment service has decided some of it, and now contradicts that.
    /// Nothing behind it is forwarded meanwhile.
    public struct HeldUp: Error, Hashable, Sendable, LocalizedError, CustomStringConvertible {
        /// Its `id`.
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

    /// What cancelling a stored payment has come to.
    public enum Cancellation: Hashable, Sendable {
        /// Nobody is charged for it, nor will be.
        case cancelled
        /// The payment service had decided it before.
        case approved, declined
        /// It may have been charged, or may be: why.
        case unknown(String)
    }

    private let store: PaymentCardReaderStore
    private let ledger: ProximityReaderSystem.Ledger
    private let psp: any PaymentServiceProvider
    private let pace: Pace
    private let clock: any Clock<Duration>
    private let chance: @Sendable () -> Double
    private let renewCredentials: (@Sendable () async throws -> Void)?
    private let decided: (@Sendable (ProximityReaderSystem.Ledger.Payment, PaymentResult) async -> Void)?
    private let logger = Logger(label: "KioskKit")

    /// What the last call of ``forward()`` has come to so far, whether it has ended, failed or goes on.
    public private(set) var lastReport = Report()

    private var running: Task<Void, any Error>?
    private var callers: [UUID: CheckedContinuation<Report, any Error>] = [:]
    /// Those who wait for the end of one that is cancelled, so that another may begin.
    private var next: [UUID: CheckedContinuation<Report, any Error>] = [:]
    /// Returns when the payment service may be called again.
    private var interval: @Sendable () async throws -> Void = {}
    /// The size of the next batch: smaller, while one is looked for that the payment service refuses.
    private var size: Int
    /// What the payment service takes at once, as far as it is known.
    private var largest: Int
    /// The last deletion token that was of no use.
    private var uselessToken: String?
    /// Payments that have failed alone; they are tried behind the others, and alone.
    private var suspects: Set<String> = []
    /// Of these, those after which nothing else has been decided yet, and why they have failed.
    private var pending: [String: String] = [:]
    /// How often each payment has failed where others were decided after it.
    private var failures: [String: Int] = [:]
    /// How often in a row forwarding has paused, why the last time, and for how long.
    private var pauses: (count: Int, reason: String, length: Duration) = (0, "", .zero)

    /// - Parameters:
    ///   - clock: what pauses are measured with.
    ///   - chance: a random number from 0 to 1.
    ///   - renewCredentials: called once when the payment service says that it does not know this terminal; nil: that ends
    ///     ``forward()``.
    ///   - decided: told of each decision when it is on the disk: at least once, and again after the program was ended before
    ///     it returned, which acknowledges the outcome (`ProximityReaderSystem.Ledger.outcomes()`).  Where the ledger alone
    ///     knows it then, the result's `id` is the payment's.  nil: whoever reads the outcomes acknowledges them.
    public init(
        _ store: PaymentCardReaderStore, to psp: any PaymentServiceProvider, pace: Pace = Pace(),
        clock: any Clock<Duration> = ContinuousClock(),
        chance: @escaping @Sendable () -> Double = { .random(in: 0...1) },
        renewCredentials: (@Sendable () async throws -> Void)? = nil,
        decided: (@Sendable (ProximityReaderSystem.Ledger.Payment, PaymentResult) async -> Void)? = nil
    ) {
        self.store = store
        ledger = ProximityReaderSystem.Ledger(of: store)
        self.psp = psp
        self.pace = pace
        self.clock = clock
        self.chance = chance
        self.renewCredentials = renewCredentials
        self.decided = decided
        (size, largest) = (pace.batchSize, pace.batchSize)
    }

    // MARK: Calls

    /// Forwards what is stored now and later, until the task is cancelled.
    ///
    /// Where the payment service refuses the merchant or does not answer, it pauses: `Ledger.summary()` has why, and until
    /// when.  The log tells it once.
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
            try await clock.sleep(for: pause)
        }
    }

    /// Forwards what is stored, the oldest first, until nothing is left but what was set aside or is not decided.
    ///
    /// A payment service that does not answer is asked again; one that refuses a batch gets smaller ones, until the payment
    /// is found that it refuses.  The others go on around that.  Called while it is under way, it waits for the end of that.
    /// Cancelling the task ends its wait; if nobody else waits, it ends forwarding after the call under way, and returns then.
    /// Everything goes on with the next call, also of another program.
    ///
    /// - Throws: ``PaymentServiceError`` if the payment service did not answer as often as the pace has it, does not know this
    ///   terminal, or decides nothing; ``HeldUp``; `PaymentCardReaderStore.StoreError`; `CancellationError`.
    ///   ``lastReport`` has what was done before.
    @discardableResult public func forward() async throws -> Report {
        try Task.checkCancellation()
        let caller = UUID()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                // One that was cancelled by its last caller ends before another begins.
                if running?.isCancelled == true { next[caller] = continuation } else { callers[caller] = continuation }
                if running == nil { start() }
                if Task.isCancelled { leave(caller) }
            }
        } onCancel: {
            Task { await self.leave(caller) }
        }
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
        for caller in waiting { caller.resume(with: result) }
    }

    /// The last one waits for the end.
    private func leave(_ caller: UUID) {
        if let waiting = next.removeValue(forKey: caller) { return waiting.resume(throwing: CancellationError()) }
        guard callers[caller] != nil else { return }
        if callers.count == 1 {
            running?.cancel()
        } else {
            callers.removeValue(forKey: caller)?.resume(throwing: CancellationError())
        }
    }

    /// Takes a stored payment back.
    ///
    /// One that the payment service may have seen is not forgotten here: the payment service is asked, and where it has
    /// decided nothing, told not to.
    ///
    /// - Returns: what is known then.  After ``Cancellation/unknown(_:)`` no other payment is to be taken in its place.
    /// - Throws: `StoreError.storeAndForwardResultsNotFound` for a payment that was never stored, or is taken back already;
    ///   other `PaymentCardReaderStore.StoreError`.
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
            // Nothing was approved under this key, nor will be: what is still on its way is declined.
            try await call {
                try await $0.reverse(idempotencyKey: payment, amount: known.amount, currency: known.currency)
            }
            return .cancelled
        } catch let error as PaymentServiceError {
            return .unknown(error.description)
        }
    }

    // MARK: A round

    /// What is remembered for as long as ``forward()`` lasts.
    private struct Round {
        var hasRenewedCredentials = false
        /// How many payments were decided, and how many have failed alone since one was.
        var decided = 0
        var failedInRow = 0
        /// Those that have failed alone, and why the last one did.
        var failed: Set<String> = []
        var failure: PaymentServiceError?
        /// How many deletion tokens in a row were of no use.
        var uselessTokens = 0
    }

    private func forwardAll() async throws {
        lastReport = Report()
        var round = Round()
        await tell()
        while let batch = try await nextBatch(round) {
            try Task.checkCancellation()
            // Of a program that was ended before it used it: the payment service may give no other.
            if let token = try await ledger.deletionToken()?.rawValue, token != uselessToken {
                try await delete(batch, token, &round)
            } else if let token = try await submit(batch, &round) {
                try await delete(batch, token, &round)
            }
        }
        // Where nothing was decided at all, it is not the payments that are wrong.
        if round.decided == 0, let failure = round.failure { throw failure }
        await resume()
    }

    /// - Returns: the batch that there is, or a new one; nil if nothing is left.
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
                // The last one was taken back meanwhile.
            } catch StoreError.unknown(code: Self.diskIsFull) where size > 1 {
                self.size = max(1, size / 2)
            } catch StoreError.storeAndForwardResultsNotFound {}
        }
    }

    /// SQLite's SQLITE_FULL.
    private static let diskIsFull = 13

    // MARK: Sending

    /// Sends a batch until it is answered, and notes what was decided.
    ///
    /// - Returns: the deletion token; nil if the batch is dissolved.
    private func submit(_ batch: StoreAndForwardBatch, _ round: inout Round) async throws -> String? {
        let data = try batch.data
        // By a program that was ended before it knew the answer, or by this one.
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
                    // What refuses this call tells nothing of one before it, whose answer was lost.
                    isAboutBatch = true
                case .notAuthorised:
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
            // A batch that is never answered, of a payment service that answers what it is asked of each payment.
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

    /// Calls the payment service, not before the interval is over.
    ///
    /// - Throws: ``PaymentServiceError``, whatever the call has thrown; `CancellationError` before it.
    private func call<Value: Sendable>(
        _ body: @escaping @Sendable (any PaymentServiceProvider) async throws -> Value
    ) async throws -> Value {
        try await interval()
        try Task.checkCancellation()
        interval = clock.timer(pace.interval)
        do {
            // A task of its own: a call that moves money is not broken off.
            return try await Task { [psp] in try await body(psp) }.value
        } catch let error as PaymentServiceError {
            throw error
        } catch {
            throw PaymentServiceError.noAnswer("\(type(of: error))")
        }
    }

    private func payments(of batch: StoreAndForwardBatch) async throws -> [ProximityReaderSystem.Ledger.Payment] {
        try await ledger.payments(batch.payments.map(\.id))
    }

    /// Notes what was decided, by the payments' `id`, and of what it is not known; and tells it.
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

    /// Tells of the decisions that nobody has acknowledged.
    private func tell() async {
        guard let decided else { return }
        do {
            for outcome in try await ledger.openOutcomes() {
                await decided(outcome.payment, PaymentResult(outcome))
                try await ledger.acknowledge(outcome.id)
            }
        } catch {
            // They are told again.
            logger.warning("outcomes are not acknowledged: \(type(of: error))")
        }
    }

    // MARK: After the answer

    /// Asks the payment service about each payment of a batch that it does not answer as it must, and dissolves the batch:
    /// what it has decided is deleted, the rest comes into smaller ones.
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

    /// Dissolves a batch that the payment service has taken nothing of.  Half of it is next; what fails alone has failed.
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

    /// Deletes what the payment service allows.  What fails of that is tried again, and nothing else; a token that is of no use
    /// is replaced, by sending the batch again.
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
                    // Somebody else has deleted it.
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
        // Others of the same batch are decided.
        if left.count < batch.count { await confirm(&round) }
        size = min(pace.batchSize, largest, max(1, size) * 2)
    }

    /// Counts payments that are decided and deleted.
    private func count(_ payments: [ProximityReaderSystem.Ledger.Payment], _ round: inout Round) async {
        guard !payments.isEmpty else { return }
        for payment in payments {
            if payment.state == .approved { lastReport.approved += 1 } else { lastReport.declined += 1 }
            (pending[payment.id], failures[payment.id], lastReport.undecided[payment.id]) = (nil, nil, nil)
            suspects.remove(payment.id)
        }
        round.decided += payments.count
        await resume()
        await confirm(&round)
    }

    /// A payment has failed in a batch of its own.  Where three do so one after the other, it is not the payments that are
    /// wrong.
    private func failAlone(_ payment: String, _ failure: PaymentServiceError, _ round: inout Round) throws {
        fail(payment, failure, &round)
        round.failedInRow += 1
        if round.failedInRow >= 3 { throw failure }
    }

    /// A payment that is in no batch has failed: the others go first from now on.  Whether it is wrong, or the payment
    /// service, the next decision tells.
    private func fail(_ payment: String, _ failure: PaymentServiceError, _ round: inout Round) {
        round.failed.insert(payment)
        round.failure = failure
        suspects.insert(payment)
        pending[payment] = failure.description
        lastReport.undecided[payment] = failure.description
        size = min(pace.batchSize, largest)
    }

    /// Another payment is decided: so the payment service is well, and what has failed before is to blame for that itself.
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
        try await clock.sleep(for: pause)
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
    /// Why this does not settle a payment; nil if it does.
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

extension Clock where Duration == Swift.Duration {
    /// - Returns: what returns when `duration` is over from now.
    fileprivate func timer(_ duration: Duration) -> @Sendable () async throws -> Void {
        let end = now.advanced(by: duration)
        return { try await sleep(until: end, tolerance: nil) }
    }
}
