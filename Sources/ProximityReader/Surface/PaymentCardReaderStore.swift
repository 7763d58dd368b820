/// The payments that are stored on this machine until they are forwarded.
public struct PaymentCardReaderStore: Sendable {
    package let terminal: PaymentTerminal

    package init(terminal: PaymentTerminal) { self.terminal = terminal }

    /// Returns the number of payments that are not resolved, including those of the batch.
    ///
    /// - Throws: ``StoreError``.
    public func fetchStoredPaymentCardReadResultCount() async throws -> Int {
        try await terminal.inStore { try await $0.count() }
    }

    /// Makes a batch of the oldest payments that are not set aside.  There is one batch at a time, which stays the
    /// same until it is resolved or reset.
    ///
    /// - Parameter size: the number of payments, which are all in memory; 0 for all.
    /// - Throws: ``StoreError/storeAndForwardBatchAlreadyExists``, ``StoreError/storeAndForwardResultsNotFound``,
    ///   ``StoreError/storeAndForwardBatchSizeInvalid`` for a size that is negative or exceeds the number of stored
    ///   payments.
    public func fetchStoredPaymentCardReadResultBatch(size: Int = 0) async throws -> StoreAndForwardBatch {
        try await terminal.inStore { try await $0.makeBatch(size: size) }
    }

    /// Dissolves the batch: its payments are stored as before.
    ///
    /// - Throws: ``StoreError/storeAndForwardBatchNotFound``; ``StoreError/notAllowed`` if the payment service may
    ///   have seen the batch: the same payments in another batch might be charged twice.
    public func resetBatchState() async throws { try await terminal.inStore { try await $0.reset() } }

    /// Deletes the payments that the payment service has taken.
    ///
    /// - Returns: the number of remaining payments.
    /// - Throws: ``StoreError/storeAndForwardDeletionTokenInvalid`` for a token that is forged, foreign, used, or does
    ///   not match the batch, and for one that contradicts ``ProximityReaderSystem/Ledger``: one that deletes a
    ///   payment whose answer is unknown, or leaves one that is approved or declined;
    ///   ``StoreError/storeAndForwardDeletionTokenExpired``; ``StoreError/storeAndForwardBatchNotFound`` if there is
    ///   no batch, or if the token is for another one.
    public func resolveBatch(batchDeletionToken: StoreAndForwardBatchDeletionToken) async throws -> Int {
        try await terminal.resolveBatch(batchDeletionToken)
    }
}
