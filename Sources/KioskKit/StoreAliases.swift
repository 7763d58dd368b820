import Synchronization

// Names that integration guides use for Apple's store.

extension PaymentCardReaderStore {
    /// Creates the store of this process's reader.  If nothing may be stored, and nothing ever was, it is empty.
    public init() { self.init(terminal: .shared) }

    /// Returns the present batch, or a new one of all stored payments; an empty array if nothing is stored.
    ///
    /// The caller may send the batch: from now on it counts as one that the payment service may have seen.
    ///
    /// - Throws: `PaymentCardReaderStore.StoreError`.
    public func allBatches() async throws -> [StoreAndForwardBatch] {
        let ledger = ProximityReaderSystem.Ledger(of: self)
        do {
            var batch = try await ledger.batch()
            if batch == nil { batch = try await fetchStoredPaymentCardReadResultBatch() }
            guard let batch else { return [] }
            try await ledger.willSend(batch: batch.id)
            return [batch]
        } catch StoreError.storeAndForwardResultsNotFound {
            return []
        }
    }

    /// Deletes the payments of a batch, like
    /// `PaymentCardReaderStore.resolveBatch(batchDeletionToken:)`.
    @discardableResult public func delete(using token: StoreAndForwardBatchDeletionToken) async throws -> Int {
        try await resolveBatch(batchDeletionToken: token)
    }

    /// The number of batches and of stored payments.
    public var status: Status {
        get async throws {
            Status(
                batchCount: try await ProximityReaderSystem.Ledger(of: self).batch() == nil ? 0 : 1,
                totalTransactionCount: try await fetchStoredPaymentCardReadResultCount())
        }
    }

    public struct Status: Hashable, Sendable {
        /// 0 or 1: there is one batch at a time.
        public let batchCount: Int
        /// The number of payments that are not resolved, including those of the batch.
        public let totalTransactionCount: Int
    }
}

extension StoreAndForwardBatch {
    /// The batch as JSON, for a payment service.
    public var data: Data {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            return try encoder.encode(self)
        }
    }

    /// The deletion token with which the payment service answered ``PaymentServiceProvider/submitBatch(_:)`` for this
    /// batch, in this process.
    ///
    /// Only that call produces one.  If the program ended in between, send the batch again.
    ///
    /// - Throws: `StoreError.storeAndForwardDeletionTokenInvalid` if there is none.
    public var deletionToken: StoreAndForwardBatchDeletionToken {
        get throws {
            guard let token = Self.deletionTokens.withLock({ $0[id] }) else {
                throw PaymentCardReaderStore.StoreError.storeAndForwardDeletionTokenInvalid
            }
            return .init(rawValue: token)
        }
    }

    /// The tokens by the batch's `id`.  One batch is on its way at a time; earlier ones need no token any more.
    fileprivate static let deletionTokens = Mutex<[String: String]>([:])
}

extension PaymentServiceProvider {
    /// Submits the batch of this process's reader: `StoreAndForwardBatch.data`.  The batch's `id` is
    /// the key; the answer sets `StoreAndForwardBatch.deletionToken`.
    ///
    /// ``PaymentForwarder`` does this and more: it repeats requests, and records each decision in the ledger.
    ///
    /// - Throws: ``PaymentServiceError``, `StoreError`; `DecodingError` for any other data.
    @discardableResult public func submitBatch(_ batch: Data) async throws -> BatchResult {
        let id = try JSONDecoder().decode(Identified.self, from: batch).id
        let ledger = ProximityReaderSystem.Ledger(of: PaymentCardReaderStore())
        let result = try await submitBatch(
            batch, from: try await ledger.readerIdentifier() ?? "", idempotencyKey: id)
        var answers: [String: ProximityReaderSystem.Ledger.Answer] = [:]
        for payment in try await ledger.payments(Array(result.payments.keys)) {
            // Only a final answer about this payment counts.
            guard let decision = result.payments[payment.id], decision.objection(of: payment) == nil else { continue }
            answers[payment.id] = decision.status == .approved ? .approved : .declined
        }
        try await ledger.record(answers, deletionToken: result.deletionToken.map { .init(rawValue: $0) })
        if let token = result.deletionToken { StoreAndForwardBatch.deletionTokens.withLock { $0 = [id: token] } }
        return result
    }
}

private struct Identified: Decodable { let id: String }
