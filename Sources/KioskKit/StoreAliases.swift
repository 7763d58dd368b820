import Synchronization

// What integration guides call the things of Apple's store.

extension PaymentCardReaderStore {
    /// That of this process's reader.  Where nothing may be stored, and nothing ever was, it has nothing.
    public init() { self.init(terminal: .shared) }

    /// The batch that there is, or one of all that is stored; nothing if nothing is.
    ///
    /// Whoever has it may send it: from now on it is one that the payment service may have seen.
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

    /// As `PaymentCardReaderStore.resolveBatch(batchDeletionToken:)`.
    @discardableResult public func delete(using token: StoreAndForwardBatchDeletionToken) async throws -> Int {
        try await resolveBatch(batchDeletionToken: token)
    }

    /// How much is stored.
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
        /// The payments that are not resolved, those of the batch among them.
        public let totalTransactionCount: Int
    }
}

extension StoreAndForwardBatch {
    /// As JSON, which payment services take.
    public var data: Data {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            return try encoder.encode(self)
        }
    }

    /// What the payment service has answered in this process to ``PaymentServiceProvider/submitBatch(_:)`` with this batch.
    ///
    /// Nobody else makes one.  If the program ended in between, the batch is sent again.
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

    /// By the batch's `id`.  One batch is on its way at a time; what was before needs no token any more.
    fileprivate static let deletionTokens = Mutex<[String: String]>([:])
}

extension PaymentServiceProvider {
    /// Sends `StoreAndForwardBatch.data` of the batch of this process's reader.  The batch's `id` is the key,
    /// `StoreAndForwardBatch.deletionToken` what is answered.
    ///
    /// ``PaymentForwarder`` does this and what belongs to it: it asks again, and notes each decision in the ledger.
    ///
    /// - Throws: ``PaymentServiceError``, `StoreError`; `DecodingError` for data of something else.
    @discardableResult public func submitBatch(_ batch: Data) async throws -> BatchResult {
        let id = try JSONDecoder().decode(Identified.self, from: batch).id
        let ledger = ProximityReaderSystem.Ledger(of: PaymentCardReaderStore())
        let result = try await submitBatch(
            batch, from: try await ledger.readerIdentifier() ?? "", idempotencyKey: id)
        var answers: [String: ProximityReaderSystem.Ledger.Answer] = [:]
        for payment in try await ledger.payments(Array(result.payments.keys)) {
            // What is no final answer about this payment tells nothing.
            guard let decision = result.payments[payment.id], decision.objection(of: payment) == nil else { continue }
            answers[payment.id] = decision.status == .approved ? .approved : .declined
        }
        try await ledger.record(answers, deletionToken: result.deletionToken.map { .init(rawValue: $0) })
        if let token = result.deletionToken { StoreAndForwardBatch.deletionTokens.withLock { $0 = [id: token] } }
        return result
    }
}

private struct Identified: Decodable { let id: String }
