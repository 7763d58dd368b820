public import Foundation

extension PaymentCardReaderStore {
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
}

extension PaymentCardReaderStore.StoreError: CustomNSError {
    private var hint: String {
        switch self {
        case .notAllowed:
            "The payment service may have seen the batch. Send the same batch again, or ask the payment service."
        case .busy: "Another program uses the store. Stop it; only one program can use the store at a time."
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
