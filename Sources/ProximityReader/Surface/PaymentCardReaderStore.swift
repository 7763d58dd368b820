public import Foundation

/// The payments that this machine has stored, and that wait to be forwarded.
public struct PaymentCardReaderStore: Sendable {
    /// Why the store did not do what it was asked.
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

    /// The number of payments that are not resolved, those of the batch among them.
    ///
    /// - Throws: ``StoreError``.
    public func fetchStoredPaymentCardReadResultCount() async throws -> Int {
        try await terminal.inStore { try await $0.count() }
    }

    /// Makes the oldest payments the batch, but for those that are set aside.  There is one at a time, and it stays as it is
    /// until it is resolved or reset.
    ///
    /// - Parameter size: the number of payments, which need memory all at once; 0: all.
    /// - Throws: ``StoreError/storeAndForwardBatchAlreadyExists``, ``StoreError/storeAndForwardResultsNotFound``,
    ///   ``StoreError/storeAndForwardBatchSizeInvalid`` for a negative size and one beyond what is stored.
    public func fetchStoredPaymentCardReadResultBatch(size: Int = 0) async throws -> StoreAndForwardBatch {
        try await terminal.inStore { try await $0.makeBatch(size: size) }
    }

    /// Dissolves the batch: its payments are stored as before.
    ///
    /// - Throws: ``StoreError/storeAndForwardBatchNotFound``; ``StoreError/notAllowed`` if the payment service may have seen
    ///   the batch, since the same payments in another batch might be charged twice.
    public func resetBatchState() async throws { try await terminal.inStore { try await $0.reset() } }

    /// Deletes what the payment service has taken.
    ///
    /// - Returns: the number of payments that are left.
    /// - Throws: ``StoreError/storeAndForwardDeletionTokenInvalid`` for a token that is forged, foreign, used, or not for
    ///   what is in the batch, and for one that contradicts ``ProximityReaderSystem/Ledger``: that deletes a payment whose
    ///   answer is unknown, or leaves one that is approved or declined; ``StoreError/storeAndForwardDeletionTokenExpired``;
    ///   ``StoreError/storeAndForwardBatchNotFound`` if there is no batch, or the token is for another.
    public func resolveBatch(batchDeletionToken: StoreAndForwardBatchDeletionToken) async throws -> Int {
        try await terminal.resolveBatch(batchDeletionToken)
    }
}

extension PaymentCardReaderStore.StoreError: CustomNSError {
    private var hint: String {
        switch self {
        case .notAllowed:
            "The payment service may have seen the batch. Send the same batch again, or ask the payment service."
        case .busy: "Another program uses the store. Stop it: one at a time can."
        case .unknown(let code): "The store failed (SQLite's code \(code)). The log tells more."
        case .networkError: "The payment service cannot be reached. Check the network, and try again."
        case .passcodeDisabled:
            "The store's key cannot be read. Check the file's owner and mode, and the key it is wrapped by."
        case .storeAndForwardResultsNotFound: "Nothing is stored that is not in the batch."
        case .storeAndForwardBatchNotFound: "There is no such batch. Fetch one first."
        case .storeAndForwardBatchSizeInvalid:
            "The size is negative, or beyond what is stored. Give a smaller one, or 0 for all."
        case .storeAndForwardBatchAlreadyExists: "There is a batch already. Forward it and resolve it, or reset it."
        case .storeAndForwardDeletionTokenInvalid:
            "The deletion token is not this batch's, or was used. Ask the payment service for the batch's state."
        case .storeAndForwardDeletionTokenExpired: "The deletion token has expired. Fetch a new one."
        }
    }

    /// What `localizedDescription` gives on Linux.
    public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: hint] }
}
