public import Foundation

extension PaymentCardReaderSession {
    /// The reason for which a card was not read.
    public enum ReadError: Error, Sendable {
        case readNotAllowed
        case readFromBackgroundError
        case readerServiceConnectionError
        case readerServiceError
        case noReaderSession
        case readerSessionExpired
        case readerTokenExpired
        case readerSessionNetworkError
        case readerSessionAuthenticationError
        case readerSessionBusy
        case readCancelled
        case invalidAmount
        case invalidCurrencyCode
        case invalidPreferredAID
        case nfcDisabled
        case readNotAllowedDuringCall
        case passcodeDisabled
        case cardReadFailed
        case vasReadFail
        case paymentReadFailed
        case paymentCardDeclined
        case invalidVASMerchants(String?)
        case invalidVASRequestParameters(String?)
        case pinEntryFailed
        case pinTokenInvalid
        case pinEntryTimeout
        case pinCancelled
        case pinNotAllowed
        case storeAndForwardDeclineFailed
        case storeAndForwardResultNotFound
        case unknown(code: Int)
        case readerInitializationFailed
        case readerNotAvailable
        case cardNotSupported

        /// A sentence that says what is wrong and what to do next.
        public var errorDescription: String {
            switch self {
            case .readNotAllowed: "This read is not allowed now. Check what the token and the store's policy allow."
            case .readFromBackgroundError: "The machine is asleep or locked. Read again afterward."
            case .readerServiceConnectionError: "pcscd or libusb does not answer. Run reader-probe doctor to see why."
            case .readerServiceError: "The reader failed. Unplug it, plug it in again, and read again."
            case .noReaderSession: "The reader is not ready. Prepare it first."
            case .readerSessionExpired: "The session is over. Prepare the reader again."
            case .readerTokenExpired: "The reader token has expired. Prepare the reader with a new one."
            case .readerSessionNetworkError: "The payment service cannot be reached. Check the network, and read again."
            case .readerSessionAuthenticationError:
                "The payment service did not accept this machine. Check its credentials."
            case .readerSessionBusy: "A read is under way, or another program holds the reader. Wait, or cancel it."
            case .readCancelled: "The read was cancelled."
            case .invalidAmount:
                "The amount is not valid: it is negative or zero, or has more digits than the currency or a card takes. Enter another one."
            case .invalidCurrencyCode: "The currency code is not one of ISO 4217. Give one such as EUR."
            case .invalidPreferredAID: "A preferred AID is not valid. Give up to 4, of 5 to 16 bytes each."
            case .nfcDisabled: "The reader's field cannot be switched on. Unplug it, and plug it in again."
            case .readNotAllowedDuringCall: "Reading is not allowed during a call. Read again afterward."
            case .passcodeDisabled:
                "The key of this machine's store cannot be read. Check the file's owner and mode, and its wrapping key."
            case .cardReadFailed: "The card could not be read. Present it again, and hold it still."
            case .vasReadFail: "The pass could not be read. Present it again."
            case .paymentReadFailed: "The card could not be used for this payment. Try another one."
            case .paymentCardDeclined: "The card declined. Try another one."
            case .invalidVASMerchants(let reason):
                "The merchants are not valid\(reason.map { ": \($0)" } ?? ""). Correct the request."
            case .invalidVASRequestParameters(let reason):
                "The pass request is not valid\(reason.map { ": \($0)" } ?? ""). Correct it."
            case .pinEntryFailed: "The PIN could not be entered. Present the card again."
            case .pinTokenInvalid: "The PIN token is not valid. Fetch a new one from the payment service."
            case .pinEntryTimeout: "The PIN was not entered in time. Present the card again."
            case .pinCancelled: "PIN entry was cancelled."
            case .pinNotAllowed: "A PIN cannot be entered here. Use a card that needs none."
            case .storeAndForwardDeclineFailed:
                "The last stored payment can no longer be withdrawn: a minute has passed, or it is in a batch. Refund it."
            case .storeAndForwardResultNotFound: "There is no stored payment to withdraw."
            case .unknown(let code): "Something else went wrong (\(code)). See the log."
            case .readerInitializationFailed: "The reader could not be made ready. Prepare it again."
            case .readerNotAvailable: "The reader is gone. Plug it in again."
            case .cardNotSupported: "This card cannot be used contactless here. Try another one."
            }
        }

        /// The name of the case.
        public var errorName: String { caseName(of: self) }
    }
}

extension PaymentCardReaderSession.ReadError: CustomNSError {
    /// The text for `localizedDescription` on Linux.
    public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: errorDescription] }
}
