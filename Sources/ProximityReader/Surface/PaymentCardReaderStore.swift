public import Foundation

/// The payments that are stored on this machine until they are forwarded.
public struct PaymentCardReaderStore: Sendable {
    /// An error of the store.
    public enum StoreError: Error {
        case notAllowed
        case busy
        case unknown(code: Int)
        case networkError
        case passcodeDisabled
        case storeAndForwardResultsNotFound
        case storeAndForwardBatchNotFound
        case storeAndForwardBatchSizeInvalid
        case storeAndForwardBatchAlreadyExists
        case storeAndForwardDeletionTokenInvalid
        case storeAndForwardDeletionTokenExpired
    }

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

extension PaymentCardReaderStore.StoreError: CustomNSError {
    private var hint: String {
        switch self {
        case .notAllowed:
            "The payment service may have seen the batch. Send the same batch again, or ask the payment service."
        case .busy: "Another program uses the store. Stop it: only one program at a time can."
        case .unknown(let code): "The store failed (SQLite's code \(code)). See the log."
        case .networkError: "The payment service cannot be reached. Check the network, and try again."
        case .passcodeDisabled:
            "The store's key cannot be read. Check the file's owner and mode, and its wrapping key."
        case .storeAndForwardResultsNotFound: "Nothing is stored that is not in the batch."
        case .storeAndForwardBatchNotFound: "There is no such batch. Fetch one first."
        case .storeAndForwardBatchSizeInvalid:
            "The size is negative, or larger than the number of stored payments. Give a smaller one, or 0 for all."
        case .storeAndForwardBatchAlreadyExists: "There is already a batch. Forward it and resolve it, or reset it."
        case .storeAndForwardDeletionTokenInvalid:
            "The deletion token is not this batch's, or was used. Ask the payment service for the batch's state."
        case .storeAndForwardDeletionTokenExpired: "The deletion token has expired. Fetch a new one."
        }
    }

    /// The text for `localizedDescription` on Linux.
    public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: hint] }
}
