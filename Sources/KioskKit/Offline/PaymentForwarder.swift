public import Foundation
public import ProximityReader

/// Sends the payments that are stored to their payment service, and deletes them here when that allows it.
///
/// Each payment is charged once, and none is lost, whenever and however often the program is ended: every step is in the
/// ledger before it is taken, a batch that was sent is sent again as it was, under the same key, and nothing is deleted but
/// with the payment service's token.
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
        /// How often the payment service may fail to decide one payment before it is set aside.
        public var failures = 3

        public init() {}

        /// - Parameter chance: 0 to 1.
        func pause(after attempt: Int, chance: Double) -> Duration {
            // Beyond 2^30 times any pause is the longest.
            let pause = min(longestPause, pause * (1 << min(attempt - 1, 30)))
            return pause * (1 - chance / 2)
        }
    }

    /// What became of the payments that were deleted or set aside.
    public struct Report: Hashable, Sendable {
        public var approved = 0
        public var declined = 0
        /// Their `id`s.  They stay stored, and go into no batch until somebody takes them back.
        public var setAside: [String] = []

        public init() {}
    }

    /// A batch that nobody but a person can go on with: the payment service has decided some of it, and now contradicts that
    /// or refuses it.  Nothing behind it is forwarded meanwhile.
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

    private let store: PaymentCardReaderStore
    private let ledger: ProximityReaderSystem.Ledger
    private let psp: any PaymentServiceProvider
    private let pace: Pace
    private let clock: any Clock<Duration>
    private let chance: @Sendable () -> Double
    private let renewCredentials: (@Sendable () async throws -> Void)?
    private let decided: @Sendable (ProximityReaderSystem.Ledger.Payment, PaymentResult) async -> Void

    private var running: Task<Report, any Error>?
    /// Returns when the payment service may be called again.
    private var interval: @Sendable () async throws -> Void = {}
    /// How often each payment was not decided.
    private var failures: [String: Int] = [:]
    /// The size of the next batch: smaller, while one is looked for that the payment service refuses.
    private var size: Int
    /// The last deletion token that was of no use.
    private var uselessToken: String?
    /// The last batch whose decisions were told.
    private var told: String?

    /// - Parameters:
    ///   - clock: what pauses are measured with.
    ///   - chance: a random number from 0 to 1.
    ///   - renewCredentials: called once when the payment service says that it does not know this terminal; nil: that ends
    ///     ``forward()``.
    ///   - decided: told of each decision when it is in the ledger, and before the payment is deleted: at least once, and
    ///     again after the program was ended in between.  Where the ledger alone knows it then, the result's `id` is the
    ///     payment's.
    public init(
        _ store: PaymentCardReaderStore, to psp: any PaymentServiceProvider, pace: Pace = Pace(),
        clock: any Clock<Duration> = ContinuousClock(),
        chance: @escaping @Sendable () -> Double = { .random(in: 0...1) },
        renewCredentials: (@Sendable () async throws -> Void)? = nil,
        decided: @escaping @Sendable (ProximityReaderSystem.Ledger.Payment, PaymentResult) async -> Void = { _, _ in }
    ) {
        self.store = store
        ledger = ProximityReaderSystem.Ledger(of: store)
        self.psp = psp
        self.pace = pace
        self.clock = clock
        self.chance = chance
        self.renewCredentials = renewCredentials
        self.decided = decided
        size = pace.batchSize
    }

    /// Forwards what is stored, the oldest first, until nothing is left but what was set aside.
    ///
    /// A payment service that does not answer is asked again; one that refuses a batch gets smaller ones, until the payment
    /// is found that it refuses, which is set aside when it is refused again and again.  Called while it is under way, it
    /// waits for the end of that.  Cancelling the task ends it after the call under way; everything goes on with the next
    /// call, also of another program.
    ///
    /// - Throws: ``PaymentServiceError`` if the payment service did not answer as often as the pace has it, does not know this
    ///   terminal, or refuses one payment after the other; ``HeldUp``; `PaymentCardReaderStore.StoreError`; `CancellationError`.
    @discardableResult public func forward() async throws -> Report {
        if let running { return try await running.value }
        let task = Task { try await forwardAll() }
        running = task
        defer { running = nil }
        return try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }

    private func forwardAll() async throws -> Report {
        var report = Report()
        var round = Round()
        while let batch = try await nextBatch() {
            try Task.checkCancellation()
            // Of a program that was ended before it used it: the payment service may give no other.
            if let token = try await ledger.deletionToken()?.rawValue, token != uselessToken {
                try await tell(batch)
                try await delete(batch, token, &round, &report)
            } else if let token = try await submit(batch, &round) {
                try await delete(batch, token, &round, &report)
            } else {
                try await divide(batch, &round, &report)
            }
        }
        return report
    }

    /// What is remembered for as long as ``forward()`` lasts.
    private struct Round {
        var hasRenewedCredentials = false
        /// Why the last payment was not decided, and how many were set aside since one was.
        var failure = PaymentServiceError.noAnswer("nothing was asked")
        var setAside = 0
        /// How many deletion tokens in a row were of no use.
        var uselessTokens = 0
    }

    /// - Returns: the batch that there is, or a new one; nil if nothing is left.
    private func nextBatch() async throws -> StoreAndForwardBatch? {
        typealias StoreError = PaymentCardReaderStore.StoreError
        while true {
            if let batch = try await ledger.batch() { return batch }
            let count = try await ledger.count(.stored)
            guard count > 0 else { return nil }
            do {
                return try await store.fetchStoredPaymentCardReadResultBatch(size: min(size, count))
            } catch StoreError.storeAndForwardBatchAlreadyExists {
            } catch StoreError.storeAndForwardBatchSizeInvalid {
                // The last one was taken back meanwhile.
            } catch StoreError.unknown(code: Self.diskIsFull) where size > 1 {
                size = max(1, size / 2)
            } catch StoreError.storeAndForwardResultsNotFound {}
        }
    }

    /// SQLite's SQLITE_FULL.
    private static let diskIsFull = 13

    // MARK: Sending

    /// Sends a batch until it is answered, and notes what was decided.
    ///
    /// - Returns: the deletion token; nil if the payment service has taken nothing of the batch.
    private func submit(_ batch: StoreAndForwardBatch, _ round: inout Round) async throws -> String? {
        let data = try batch.data
        // By a program that was ended before it knew the answer, or by this one.
        var wasSent = try await payments(of: batch).contains { $0.state != .batched }
        var attempt = 0
        while true {
            attempt += 1
            var failure = PaymentServiceError.noAnswer("it has not decided yet")
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
                case .refused:
                    round.failure = error
                    guard wasSent else { return nil }
                    // What refuses this call tells nothing of one before it, whose answer was lost.
                    do { if try await isUntouched(batch) { return nil } } catch let error as PaymentServiceError {
                        failure = error
                    }
                case .notAuthorised:
                    guard let renewCredentials, !round.hasRenewedCredentials else { throw error }
                    round.hasRenewedCredentials = true
                    try await renewCredentials()
                    continue
                case .noAnswer:
                    wasSent = true
                    try await note([:], of: batch)
                }
            }
            guard attempt < pace.attempts else {
                // It was not believed: the payment service knows one of the payments.
                if case .refused = failure {
                    throw HeldUp(batch: batch.id, reason: "\(failure), and has decided some of it")
                }
                throw failure
            }
            try await rest(after: attempt)
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
            throw PaymentServiceError.noAnswer("\(error)")
        }
    }

    private func rest(after attempt: Int) async throws {
        try await clock.sleep(for: pace.pause(after: attempt, chance: chance()))
    }

    private func payments(of batch: StoreAndForwardBatch) async throws -> [ProximityReaderSystem.Ledger.Payment] {
        try await ledger.payments(batch.payments.map(\.id))
    }

    /// Notes what was decided, by the payments' `id`, and of what it is not known.
    private func note(
        _ decisions: [String: PaymentResult], of batch: StoreAndForwardBatch, deletionToken: String? = nil
    ) async throws {
        let payments = try await payments(of: batch)
        var answers: [String: ProximityReaderSystem.Ledger.Answer] = [:]
        for payment in payments {
            if let decision = decisions[payment.id] {
                answers[payment.id] = decision.status == .approved ? .approved : .declined
            } else if payment.state != .approved, payment.state != .declined {
                answers[payment.id] = .unknown
            }
        }
        do {
            try await ledger.record(answers, deletionToken: deletionToken.map { .init(rawValue: $0) })
        } catch PaymentCardReaderStore.StoreError.notAllowed {
            throw HeldUp(batch: batch.id, reason: "the payment service says otherwise than before what it has decided")
        }
        for payment in payments {
            if let decision = decisions[payment.id] { await decided(payment, decision) }
        }
        if deletionToken != nil { told = batch.id }
    }

    /// Tells of the decisions that are in the ledger, unless this program has.
    private func tell(_ batch: StoreAndForwardBatch) async throws {
        guard told != batch.id else { return }
        for payment in try await payments(of: batch) where payment.answer == .approved || payment.answer == .declined {
            let status: PaymentResult.Status = payment.answer == .approved ? .approved : .declined
            await decided(payment, PaymentResult(id: payment.id, status: status))
        }
        told = batch.id
    }

    /// Whether the payment service has decided nothing of a batch; what it has is noted.
    private func isUntouched(_ batch: StoreAndForwardBatch) async throws -> Bool {
        var decisions: [String: PaymentResult] = [:]
        for payment in batch.payments {
            decisions[payment.id] = try await call { psp in try await psp.result(for: payment.id) }
        }
        if !decisions.isEmpty { try await note(decisions, of: batch) }
        return decisions.isEmpty
    }

    // MARK: After the answer

    /// Dissolves a batch that the payment service refuses.  Half of it is next; what is refused alone has failed.
    private func divide(
        _ batch: StoreAndForwardBatch, _ round: inout Round, _ report: inout Report
    ) async throws {
        do {
            try await ledger.wasRefused(batch: batch.id)
        } catch PaymentCardReaderStore.StoreError.notAllowed {
            throw HeldUp(batch: batch.id, reason: "the payment service does not know what it has decided of it before")
        }
        try await store.resetBatchState()
        size = max(1, batch.count / 2)
        guard batch.count == 1, let payment = batch.payments.first else { return }
        try await fail(payment.id, because: "\(round.failure)", &round, &report)
    }

    /// Deletes what the payment service allows.  What fails of that is tried again, and nothing else; a token that is of no use
    /// is replaced, by sending the batch again.
    private func delete(
        _ batch: StoreAndForwardBatch, _ token: String, _ round: inout Round, _ report: inout Report
    ) async throws {
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
                    guard round.uselessTokens < pace.attempts else { throw error }
                    return try await rest(after: round.uselessTokens)
                default:
                    guard attempt < pace.attempts else { throw error }
                    try await rest(after: attempt)
                }
            }
        }
        round.uselessTokens = 0
        let left = Set(try await self.payments(of: batch).map(\.id))
        for payment in payments where !left.contains(payment.id) {
            failures[payment.id] = nil
            if payment.state == .approved { report.approved += 1 } else { report.declined += 1 }
        }
        if left.count < batch.count {
            size = min(pace.batchSize, size * 2)
            round.setAside = 0
        }
        for payment in payments where left.contains(payment.id) {
            round.failure = .noAnswer("payment \(payment.id) is not decided")
            try await fail(payment.id, because: "the payment service does not decide it", &round, &report)
        }
    }

    /// Counts a failure of a payment that is in no batch, and sets it aside after so many.
    private func fail(
        _ payment: String, because reason: String, _ round: inout Round, _ report: inout Report
    ) async throws {
        let count = failures[payment, default: 0] + 1
        failures[payment] = count
        guard count >= pace.failures else { return try await rest(after: count) }
        // Where it is all of them, it is not the payments that are wrong.
        guard round.setAside < 3 else { throw round.failure }
        try await ledger.setAside(payment: payment, reason: reason)
        failures[payment] = nil
        round.setAside += 1
        report.setAside.append(payment)
        size = pace.batchSize
    }
}

extension Clock where Duration == Swift.Duration {
    /// - Returns: what returns when `duration` is over from now.
    fileprivate func timer(_ duration: Duration) -> @Sendable () async throws -> Void {
        let end = now.advanced(by: duration)
        return { try await sleep(until: end, tolerance: nil) }
    }
}
