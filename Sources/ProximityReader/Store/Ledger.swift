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
        public enum Answer: String, Hashable, Sendable {
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
        }

        private let terminal: PaymentTerminal

        public init(of store: PaymentCardReaderStore) { terminal = store.terminal }

        /// The payments that are not resolved, the oldest first.
        public func payments() async throws -> [Payment] { try await terminal.inStore { try await $0.payments() } }

        /// Also of a payment that is resolved; nil for one that was never stored, or was taken back.
        public func state(of payment: String) async throws -> State? {
            try await terminal.inStore { try await $0.state(of: payment) }
        }

        /// The batch, the same each time; nil if there is none.
        public func batch() async throws -> StoreAndForwardBatch? {
            try await terminal.inStore { try await $0.batch() }
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

        /// What the payment service has said, or that it did not, by the payments' `id`.
        ///
        /// - Throws: ``PaymentCardReaderStore/StoreError/storeAndForwardResultsNotFound`` for a payment that is not in a
        ///   batch that was sent; nothing is recorded then.
        public func record(_ answers: [String: Answer]) async throws {
            try await terminal.inStore { try await $0.record(answers) }
        }
    }
}
