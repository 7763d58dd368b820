import Foundation

extension ProximityReaderSystem {
    /// The state of each stored payment, for the program that forwards payments.
    ///
    /// Apple's store knows stored payments and a batch.  The ledger also knows whether the batch was sent and what the
    /// payment service answered, and so prevents a second charge.  Each call is on the disk before it returns.  Call
    /// it before the step that it announces; then each payment is charged once even if the power fails at any moment.
    public struct Ledger: Sendable {
        private let terminal: PaymentTerminal

        public init(of store: PaymentCardReaderStore) { terminal = store.terminal }

        /// Returns the certificates that a payment service imports when the terminal is set up.  It can then require
        /// that batches are signed with this device's key.  The first call creates the key.
        public func certificates() async throws -> Certificates {
            try await terminal.inStore { try await $0.certificates() }
        }

        /// Returns the payments that are not resolved, the oldest first.
        public func payments() async throws -> [Payment] { try await terminal.inStore { try await $0.payments() } }

        /// Returns those of the payments `ids` that are not resolved, in the given order.
        public func payments(_ ids: [String]) async throws -> [Payment] {
            try await terminal.inStore { try await $0.payments(ids) }
        }

        /// Returns a payment; resolved ones are available for 30 days.
        package func payment(_ id: String) async throws -> Payment? {
            try await terminal.inStore { try await $0.payment(id) }
        }

        /// Returns the number of payments in a state other than ``State/resolved``.
        public func count(_ state: State) async throws -> Int {
            try await terminal.inStore { try await $0.count(state) }
        }

        /// Returns the state of a payment, for 30 days after it was resolved; nil if it was never stored or was
        /// withdrawn.
        public func state(of payment: String) async throws -> State? {
            try await terminal.inStore { try await $0.state(of: payment) }
        }

        /// Returns the batch, identical each time; nil if there is none.
        public func batch() async throws -> StoreAndForwardBatch? {
            try await terminal.inStore { try await $0.batch() }
        }

        /// Returns the identifier of the reader with which the batch was made, the audience of its deletion token; nil
        /// without a batch.
        public func readerIdentifier() async throws -> String? {
            try await terminal.inStore { try await $0.batchReader() }
        }

        /// Records that the batch is about to be sent.  Call it before each attempt.
        ///
        /// - Throws: ``PaymentCardReaderStore/StoreError/storeAndForwardBatchNotFound``
        public func willSend(batch: String) async throws {
            try await terminal.inStore { try await $0.willSend(batch: batch) }
        }

        /// Records that the payment service took nothing of the batch, which may then be reset.
        public func wasRefused(batch: String) async throws {
            try await terminal.inStore { try await $0.wasRefused(batch: batch) }
        }

        /// Records the payment service's answers, or the lack of them, by the payments' `id`.
        ///
        /// After an earlier answer, ``Answer/unknown`` changes nothing.  Each decision becomes an outcome: see
        /// ``outcomes()``.
        ///
        /// - Parameters:
        ///   - answers: the answers by payment.
        ///   - references: the references by the payments' `id`.
        ///   - deletionToken: the payment service's token for the batch, which ``deletionToken()`` then returns.  A
        ///     token of more than 1 MiB is invalid and not kept.
        /// - Throws: ``PaymentCardReaderStore/StoreError/storeAndForwardBatchNotFound`` if no batch was sent;
        ///   ``PaymentCardReaderStore/StoreError/storeAndForwardResultsNotFound`` for a payment that is not in it;
        ///   ``PaymentCardReaderStore/StoreError/notAllowed`` for an approval after a decline, or the reverse.  Then
        ///   nothing is recorded.
        public func record(
            _ answers: [String: Answer], references: [String: Reference] = [:],
            deletionToken: StoreAndForwardBatchDeletionToken? = nil
        ) async throws {
            try await terminal.inStore {
                try await $0.record(answers, references: references, deletionToken: deletionToken?.rawValue)
            }
        }

        /// Returns a stream of the decisions about stored payments: first those that nobody has acknowledged,
        /// including those of earlier runs of the program, then each new one when it is on the disk.
        ///
        /// Acknowledge each decision that you have handled.  A forwarder with a recipient for decisions does so
        /// itself; otherwise the reader of this stream calls ``acknowledge(_:)``.  An unacknowledged decision is
        /// delivered at every start, stays on the disk indefinitely, and raises an alarm in ``summary()``
        /// (``Summary/Limit/unacknowledged``).
        ///
        /// Each stream delivers each decision once, at the pace of its reader.  It fails with
        /// `PaymentCardReaderStore.StoreError`.
        public func outcomes() -> AsyncThrowingStream<Outcome, any Error> {
            let cursor = OutcomeCursor(terminal)
            return AsyncThrowingStream { try await cursor.next() }
        }

        /// Acknowledges the outcome of a payment, which is then not delivered again.  Does nothing if there is no such
        /// outcome.
        public func acknowledge(_ payment: String) async throws {
            try await terminal.inStore { try await $0.acknowledge(payment) }
        }

        /// Returns the outcomes that nobody has acknowledged, the oldest first.
        package func openOutcomes(limit: Int = .max) async throws -> [Outcome] {
            try await terminal.inStore { try await $0.outcomes(limit: limit) }.map(\.outcome)
        }

        /// Returns the data for the receipt of a stored payment, which is not yet authorized; nil if the payment is no
        /// longer stored.
        public func receipt(of payment: String) async throws -> Receipt? {
            try await terminal.inStore { try await $0.receipt(of: payment) }
        }

        /// Withdraws a payment that no payment service can have seen.
        ///
        /// - Returns: false for a payment that a payment service may have seen, which stays, and for one that is not
        ///   stored.
        public func withdraw(payment: String, reason: String) async throws -> Bool {
            try await terminal.inStore { try await $0.withdraw(payment, reason: reason) }
        }

        package func pause(_ reason: String?, for duration: Duration = .zero) async {
            await terminal.store.pause(reason, for: duration)
        }

        /// Returns the number of payments that may go into a batch.
        package func waiting(without others: Set<String>) async throws -> Int {
            try await terminal.inStore { try await $0.waiting(without: others) }
        }

        package func makeBatch(size: Int, without others: Set<String>) async throws -> StoreAndForwardBatch {
            try await terminal.inStore { try await $0.makeBatch(size: size, without: others) }
        }

        /// Returns the last deletion token recorded for the batch, for a program that ended before it used the token.
        public func deletionToken() async throws -> StoreAndForwardBatchDeletionToken? {
            try await terminal.inStore { try await $0.deletionToken() }.map { .init(rawValue: $0) }
        }

        /// Dissolves a batch that the payment service has partly decided without giving a deletion token.  First a
        /// person has to compare the batch with the payment service's records.
        ///
        /// Approved and declined payments are deleted, and remembered like resolved ones.  Payments that were not
        /// taken go into the next batch.  An entry of the book records all of this: see ``releases()``.  If a payment
        /// was charged and is reported as not taken, it is charged again.
        ///
        /// - Parameters:
        ///   - batch: the identifier of the batch.
        ///   - findings: a finding for each of the batch's payments, by its `id`.
        ///   - references: the payment service's references for decided payments, by their `id`.
        ///   - person: the person who found this out and answers for it; not empty.
        ///   - reason: not empty; without card data.
        /// - Throws: ``PaymentCardReaderStore/StoreError/storeAndForwardBatchNotFound``;
        ///   ``PaymentCardReaderStore/StoreError/storeAndForwardResultsNotFound`` unless there is a finding for
        ///   exactly each of the batch's payments; ``PaymentCardReaderStore/StoreError/notAllowed`` for a batch that
        ///   was not sent (reset it instead), without a person or a reason, and for a finding that a payment was not
        ///   taken although the payment service has approved or declined it.  Then nothing changes.
        public func release(
            batch: String, _ findings: [String: Finding], references: [String: Reference] = [:], by person: String,
            reason: String
        ) async throws {
            try await terminal.inStore {
                try await $0.release(batch, findings, references: references, by: person, reason: reason)
            }
        }

        /// Returns the batches that were dissolved in this way, the oldest first.  They are kept indefinitely.
        public func releases() async throws -> [Release] { try await terminal.inStore { try await $0.releases() } }

        /// Keeps a payment out of the next batches, so that a payment that fails repeatedly does not delay the others.
        /// It still counts toward the limits of the store.
        ///
        /// - Parameters:
        ///   - payment: the identifier of the payment.
        ///   - reason: for people; without card data.
        /// - Throws: ``PaymentCardReaderStore/StoreError/storeAndForwardResultsNotFound`` for a payment that is not in
        ///   state ``State/stored``.  A payment leaves a batch when the batch is refused and reset, or resolved
        ///   without it.
        public func setAside(payment: String, reason: String) async throws {
            try await terminal.inStore { try await $0.setAside(payment, reason: reason) }
        }

        /// Returns a payment that was set aside to its old place, so that it goes into the next batch.
        ///
        /// - Throws: ``PaymentCardReaderStore/StoreError/storeAndForwardResultsNotFound`` for a payment that is not
        ///   set aside.
        public func putBack(payment: String) async throws {
            try await terminal.inStore { try await $0.putBack(payment) }
        }

        /// Returns figures about the stored payments, and how close they are to the limits of the configuration's
        /// ``ProximityReaderSystem/StoreAndForwardPolicy``.
        public func summary() async throws -> Summary {
            let policy = terminal.configuration.storeAndForward
            return try await terminal.inStore { try await $0.summary(under: policy) }
        }

        /// Returns the payments of a damaged store, as far as they are readable.  The payment service recognizes by
        /// their `id` which ones it has already taken.  The store itself is unchanged, and remains unusable.
        public func salvage() async throws -> [StoredPaymentCardReadResult] {
            try await terminal.inStore { try await $0.salvage() }
        }

        /// Returns the payments, including those resolved in the last 30 days, for comparison with the payment
        /// service's records: without card data.
        public func export(_ format: ExportFormat) async throws -> String {
            try format.text(of: await terminal.inStore { try await $0.history() })
        }
    }
}

/// The position of one reader of the outcomes.
private actor OutcomeCursor {
    private let terminal: PaymentTerminal
    private var last: Int64 = 0
    private var news: AsyncStream<Void>.Iterator?

    init(_ terminal: PaymentTerminal) { self.terminal = terminal }

    func next() async throws -> ProximityReaderSystem.Ledger.Outcome? {
        if news == nil { news = terminal.store.newOutcomes().makeAsyncIterator() }
        while !Task.isCancelled {
            let last = last
            let next = try await terminal.inStore { try await $0.outcomes(after: last, limit: 1) }
            if let (number, outcome) = next.first {
                self.last = number
                return outcome
            }
            var news = news
            guard await news?.next(isolation: self) != nil else { break }
        }
        return nil
    }
}
