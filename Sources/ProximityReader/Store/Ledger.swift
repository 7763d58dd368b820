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

        /// What the payment service says of a payment.
        public enum Answer: String, Codable, Hashable, Sendable {
            case approved, declined, unknown
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

        /// The payments that are not resolved, the oldest first.
        public func payments() async throws -> [Payment] { try await terminal.inStore { try await $0.payments() } }

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
        /// - Throws: ``PaymentCardReaderStore/StoreError/storeAndForwardBatchNotFound`` if no batch was sent;
        ///   ``PaymentCardReaderStore/StoreError/storeAndForwardResultsNotFound`` for a payment that is not in it;
        ///   ``PaymentCardReaderStore/StoreError/notAllowed`` for one that is approved now and was declined before, or the
        ///   other way round.  Nothing is recorded then.
        public func record(_ answers: [String: Answer]) async throws {
            try await terminal.inStore { try await $0.record(answers) }
        }

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
