public import Foundation

extension ProximityReaderSystem {
    /// What becomes of each stored payment: for who forwards them.
    ///
    /// Apple's store knows payments that are stored, and a batch.  The ledger knows in between whether the batch was sent,
    /// and what the payment service said, and so keeps a payment from being charged twice.  Each call is on the disk before
    /// it returns; call it before the step that it tells of, and each payment is charged once whatever is switched off.
    public struct Ledger: Sendable {
        public enum State: String, Codable, Hashable, Sendable, CaseIterable {
            /// In no batch.
            case stored
            /// In no batch, and it comes into none.
            case setAside
            /// In the batch, which nobody has seen.
            case batched
            /// In the batch, which may have been seen.
            case sent
            case approved
            case declined
            /// The payment service did not answer.
            case unknown
            /// Deleted, with the payment service's leave.
            case resolved
        }

        /// What a person has found out of a payment: see ``release(batch:_:by:reason:)``.
        public enum Finding: String, Codable, Hashable, Sendable {
            case approved, declined
            /// The payment service has not taken it, and will not take it of that batch any more.
            case notTaken
        }

        /// A batch that a person has dissolved.
        public struct Release: Codable, Hashable, Sendable {
            public let batch: String
            public let time: Date
            /// Who it was.
            public let person: String
            public let reason: String
            /// By the payments' `id`.
            public let payments: [String: Finding]
            /// What the payment service had said of them before, by the payments' `id`.
            public let answers: [String: Answer]
        }

        /// What the payment service says of a payment.
        public enum Answer: String, Codable, Hashable, Sendable {
            case approved, declined, unknown
        }

        /// The payment service's own words for what it has decided.
        public struct Reference: Codable, Hashable, Sendable {
            /// Its name for the payment.
            public let id: String
            /// Field 39 of ISO 8583; nil if it does not tell.
            public let responseCode: String?
            /// For a person; nil if it does not tell.
            public let message: String?

            public init(id: String, responseCode: String? = nil, message: String? = nil) {
                (self.id, self.responseCode, self.message) = (id, responseCode, message)
            }
        }

        /// The decision about a stored payment, kept until the application has acknowledged it.
        public struct Outcome: Codable, Hashable, Sendable, Identifiable {
            /// The payment's.
            public var id: String { payment.id }
            /// As it was decided: approved or declined.
            public let payment: Payment
            public let time: Date
            /// nil if it is not known: a person has found it out.
            public let reference: Reference?
            /// What the application has stored with the payment.
            public let attachment: Data?
        }

        /// A stored payment.
        public struct Payment: Codable, Hashable, Sendable, Identifiable {
            /// The idempotency key, as well.
            public let id: String
            public let time: Date
            /// In the currency's major unit.
            public let amount: Decimal
            public let currency: String
            public let merchant: String
            public let state: State
            /// What the payment service has said of it; nil: nothing yet.
            public let answer: Answer?
            /// The card's number, masked: `476173******0010`; nil if the card did not give it.
            public let card: String?
            /// Why it is set aside.
            public let reason: String?

            init(_ payment: StoreLedger.Payment) { self.init(payment, payment.state) }

            init(resolved payment: StoreLedger.Payment) { self.init(payment, .resolved) }

            private init(_ payment: StoreLedger.Payment, _ state: State) {
                self.state = state
                answer = payment.answer
                card = payment.card?.masked
                id = payment.id
                time = payment.time
                amount = payment.amount
                currency = payment.currency
                merchant = payment.merchant
                reason = payment.reason
            }
        }

        private let terminal: PaymentTerminal

        public init(of store: PaymentCardReaderStore) { terminal = store.terminal }

        /// The certificates of this device's key, as each batch carries them (``StoreAndForwardBatch``), each DER in Base64.
        public struct Certificates: Codable, Hashable, Sendable {
            public let leafCertificate: String
            public let intermediateCertificate: [String]
        }

        /// What a payment service takes in when the terminal is set up, to believe batches with no other signature than this
        /// device's.  The first call makes the key.
        public func certificates() async throws -> Certificates {
            try await terminal.inStore { try await $0.certificates() }
        }

        /// The payments that are not resolved, the oldest first.
        public func payments() async throws -> [Payment] { try await terminal.inStore { try await $0.payments() } }

        /// Those of `ids` that are not resolved, in that order.
        public func payments(_ ids: [String]) async throws -> [Payment] {
            try await terminal.inStore { try await $0.payments(ids) }
        }

        /// The payment; also one that is resolved, for 30 days.
        package func payment(_ id: String) async throws -> Payment? {
            try await terminal.inStore { try await $0.payment(id) }
        }

        /// The number of payments that are in a state other than ``State/resolved``.
        public func count(_ state: State) async throws -> Int {
            try await terminal.inStore { try await $0.count(state) }
        }

        /// Also of a payment that is resolved, for 30 days; nil for one that was never stored, or was taken back.
        public func state(of payment: String) async throws -> State? {
            try await terminal.inStore { try await $0.state(of: payment) }
        }

        /// The batch, the same each time; nil if there is none.
        public func batch() async throws -> StoreAndForwardBatch? {
            try await terminal.inStore { try await $0.batch() }
        }

        /// The reader that the batch was made with: who its deletion token is for; nil if there is no batch.
        public func readerIdentifier() async throws -> String? {
            try await terminal.inStore { try await $0.batchReader() }
        }

        /// To be called before the batch is sent, each time.
        ///
        /// - Throws: ``PaymentCardReaderStore/StoreError/storeAndForwardBatchNotFound``
        public func willSend(batch: String) async throws {
            try await terminal.inStore { try await $0.willSend(batch: batch) }
        }

        /// The payment service has said that it took nothing of the batch, which may be reset from then on.
        public func wasRefused(batch: String) async throws {
            try await terminal.inStore { try await $0.wasRefused(batch: batch) }
        }

        /// What the payment service has said, or that it did not, by the payments' `id`.  Where it said something before,
        /// ``Answer/unknown`` changes nothing.
        ///
        /// Each decision is an outcome from then on: see ``outcomes()``.
        ///
        /// - Parameters:
        ///   - references: by the payments' `id`.
        ///   - deletionToken: what the payment service has given for the batch; ``deletionToken()`` has it from then on.  One
        ///     of more than 1 MiB, which is none, is not kept.
        /// - Throws: ``PaymentCardReaderStore/StoreError/storeAndForwardBatchNotFound`` if no batch was sent;
        ///   ``PaymentCardReaderStore/StoreError/storeAndForwardResultsNotFound`` for a payment that is not in it;
        ///   ``PaymentCardReaderStore/StoreError/notAllowed`` for one that is approved now and was declined before, or the
        ///   other way round.  Nothing is recorded then.
        public func record(
            _ answers: [String: Answer], references: [String: Reference] = [:],
            deletionToken: StoreAndForwardBatchDeletionToken? = nil
        ) async throws {
            try await terminal.inStore {
                try await $0.record(answers, references: references, deletionToken: deletionToken?.rawValue)
            }
        }

        /// What was decided of stored payments: first all that nobody has acknowledged, also of earlier runs of the program,
        /// then each when it is on the disk.  An approval that nobody acknowledges is told at every start.
        ///
        /// Whoever takes note of a decision acknowledges it: a forwarder that was told whom to tell does so itself, and the reader
        /// of this stream with ``acknowledge(_:)`` otherwise.  What nobody acknowledges stays on the disk for ever, and raises an
        /// alarm in ``summary()`` (``Summary/Limit/unacknowledged``).
        ///
        /// Each stream has each of them once, as fast as it is read.  It fails with `PaymentCardReaderStore.StoreError`.
        public func outcomes() -> AsyncThrowingStream<Outcome, any Error> {
            let cursor = OutcomeCursor(terminal)
            return AsyncThrowingStream { try await cursor.next() }
        }

        /// The application has taken note of a payment's outcome, which is not told again.  Nothing for one that there is
        /// not.
        public func acknowledge(_ payment: String) async throws {
            try await terminal.inStore { try await $0.acknowledge(payment) }
        }

        /// The outcomes that nobody has acknowledged, the oldest first.
        package func openOutcomes(limit: Int = .max) async throws -> [Outcome] {
            try await terminal.inStore { try await $0.outcomes(limit: limit) }.map(\.outcome)
        }

        /// What a receipt of a stored payment says: stored, not yet authorized.  nil when it is no longer stored.
        public func receipt(of payment: String) async throws -> Receipt? {
            try await terminal.inStore { try await $0.receipt(of: payment) }
        }

        /// Takes a payment back that no payment service may have seen.
        ///
        /// - Returns: false for one that a payment service may have seen, which stays, and for one that is not stored.
        public func withdraw(payment: String, reason: String) async throws -> Bool {
            try await terminal.inStore { try await $0.withdraw(payment, reason: reason) }
        }

        package func pause(_ reason: String?, for duration: Duration = .zero) async {
            await terminal.store.pause(reason, for: duration)
        }

        /// The number of payments that may come into a batch.
        package func waiting(without others: Set<String>) async throws -> Int {
            try await terminal.inStore { try await $0.waiting(without: others) }
        }

        package func makeBatch(size: Int, without others: Set<String>) async throws -> StoreAndForwardBatch {
            try await terminal.inStore { try await $0.makeBatch(size: size, without: others) }
        }

        /// The last deletion token that was recorded for the batch: where the program ended before it was used, this is.
        public func deletionToken() async throws -> StoreAndForwardBatchDeletionToken? {
            try await terminal.inStore { try await $0.deletionToken() }.map { .init(rawValue: $0) }
        }

        /// Dissolves a batch that the payment service gives no deletion token for, though it has decided some of it: after a
        /// person has compared it with the payment service's books.
        ///
        /// What is approved or declined is deleted, and remembered as what is resolved; what was not taken goes into the next
        /// batch.  The book has an entry with all of this: see ``releases()``.  A payment that was charged and is said not to
        /// have been taken is charged once more.
        ///
        /// - Parameters:
        ///   - findings: of each of the batch's payments, by its `id`.
        ///   - references: what the payment service says of those that it has decided, by their `id`.
        ///   - person: who has found it out, and answers for it; not empty.
        ///   - reason: not empty; without card data.
        /// - Throws: ``PaymentCardReaderStore/StoreError/storeAndForwardBatchNotFound``;
        ///   ``PaymentCardReaderStore/StoreError/storeAndForwardResultsNotFound`` for findings that are not of each of the
        ///   batch's payments and no other; ``PaymentCardReaderStore/StoreError/notAllowed`` for a batch that was not sent, which
        ///   can be reset, without a person or a reason, and for a payment that the payment service has approved or declined and
        ///   that is said not to have been taken.  Nothing is changed then.
        public func release(
            batch: String, _ findings: [String: Finding], references: [String: Reference] = [:], by person: String,
            reason: String
        ) async throws {
            try await terminal.inStore {
                try await $0.release(batch, findings, references: references, by: person, reason: reason)
            }
        }

        /// The batches that were dissolved so, the oldest first; they stay.
        public func releases() async throws -> [Release] { try await terminal.inStore { try await $0.releases() } }

        /// Keeps a payment out of the next batches, so that one that fails again and again holds up no other.  It still
        /// counts for what may be stored.
        ///
        /// - Parameter reason: for people; without card data.
        /// - Throws: ``PaymentCardReaderStore/StoreError/storeAndForwardResultsNotFound`` for a payment that is not in state
        ///   ``State/stored``: one of a batch comes out of it when the batch is refused and reset, or resolved without it.
        public func setAside(payment: String, reason: String) async throws {
            try await terminal.inStore { try await $0.setAside(payment, reason: reason) }
        }

        /// Lets a payment that was set aside come into the next batch again, in its old place.
        ///
        /// - Throws: ``PaymentCardReaderStore/StoreError/storeAndForwardResultsNotFound`` for a payment that is not set aside.
        public func putBack(payment: String) async throws {
            try await terminal.inStore { try await $0.putBack(payment) }
        }

        /// What is stored, and how near that is to the limits of the configuration's
        /// ``ProximityReaderSystem/StoreAndForwardPolicy``.
        public func summary() async throws -> Summary {
            let policy = terminal.configuration.storeAndForward
            return try await terminal.inStore { try await $0.summary(under: policy) }
        }

        /// The payments of a store that is damaged, as far as they can still be read: for the payment service, which knows by
        /// their `id` what it has taken before.  The store stays as it is, and can be used as little as before.
        public func salvage() async throws -> [StoredPaymentCardReadResult] {
            try await terminal.inStore { try await $0.salvage() }
        }

        /// The payments, those among them that were resolved in the last 30 days, for who compares them with what the
        /// payment service has: without card data.
        public func export(_ format: ExportFormat) async throws -> String {
            try format.text(of: await terminal.inStore { try await $0.history() })
        }
    }
}

/// Where one reader of the outcomes is.
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
