public import Foundation

/// An error of preparing a reader, of its account, or of its store.
public enum PaymentCardReaderError: Error, Sendable {
    case notAllowed
    case backgroundRequestNotAllowed
    case unsupported
    case osVersionNotSupported
    case modelNotSupported
    case passcodeDisabled
    case networkError
    case networkAuthenticationError
    case serviceConnectionError
    case notReady
    case emptyReaderToken
    case invalidReaderToken(String?)
    case prepareFailed(String?)
    case prepareExpired
    case tokenExpired
    case deviceBanned(Date?)
    case readerMemoryFull
    case readerBusy
    case accountNotLinked
    case accountAlreadyLinked
    case accountLinkingFailed
    case accountLinkingRequiresiCloudSignIn
    case accountLinkingCancelled
    case accountLinkingCheckFailed
    case merchantBlocked
    case accountDeactivated
    case invalidMerchant
    case storeAndForwardNotAllowed
    case storeAndForwardSessionExpired
    case storeAndForwardSessionInvalidated
    case storeAndForwardTokenIssuerChanged
    case unknown(code: Int)
    case requestInterrupted

    /// A sentence that says what is wrong and what to do next.
    public var errorDescription: String {
        switch self {
        case .notAllowed:
            "Access to the reader is denied. Install the udev and polkit rules of this package, and log in again."
        case .backgroundRequestNotAllowed: "The machine is asleep or locked. Prepare the reader again afterward."
        case .unsupported: "No reader is attached. Plug one in, and check that lsusb shows it."
        case .osVersionNotSupported: "This system is not supported. Linux with libusb or pcscd is."
        case .modelNotSupported: "This reader is not supported. Run reader-probe doctor to see why."
        case .passcodeDisabled:
            "The key of this machine's store cannot be read. Check the file's owner and mode, and its wrapping key."
        case .networkError: "The payment service cannot be reached. Check the network, and try again."
        case .networkAuthenticationError: "The payment service did not accept this machine. Check its credentials."
        case .serviceConnectionError: "pcscd or libusb does not answer. Run reader-probe doctor to see why."
        case .notReady: "The reader is not ready. Prepare it first."
        case .emptyReaderToken: "The reader token is empty. Fetch one from the payment service."
        case .invalidReaderToken(let reason):
            "The reader token is not valid\(reason.map { ": \($0)" } ?? ""). Fetch a new one from the payment service."
        case .prepareFailed(let reason):
            "The reader could not be made ready\(reason.map { ": \($0)" } ?? ""). Run reader-probe doctor to see why."
        case .prepareExpired: "The session is over. Prepare the reader again."
        case .tokenExpired: "The reader token has expired. Fetch a new one from the payment service."
        case .deviceBanned(let end):
            "The payment service has barred this machine\(end.map { " until \($0.formatted(.iso8601))" } ?? ""). Ask the payment service."
        case .readerMemoryFull: "The store is full. Forward the stored payments, and try again."
        case .readerBusy: "The reader is in use by another call or program. Wait, or close the other program."
        case .accountNotLinked: "The merchant has not accepted the terms. Link the account first."
        case .accountAlreadyLinked: "The merchant has already accepted the terms."
        case .accountLinkingFailed: "The acceptance of the terms could not be recorded. Check the store's folder."
        case .accountLinkingRequiresiCloudSignIn: "No account is signed in to. Sign in first."
        case .accountLinkingCancelled: "The terms were not accepted. Accept them to continue."
        case .accountLinkingCheckFailed: "The acceptance of the terms could not be read. Check the store's folder."
        case .merchantBlocked: "The payment service has blocked the merchant. Ask the payment service."
        case .accountDeactivated: "The merchant's account is no longer active. Ask the payment service."
        case .invalidMerchant: "The token names no merchant that this terminal knows. Ask the payment service."
        case .storeAndForwardNotAllowed:
            "Payments cannot be stored now. Prepare the reader online first: within 24 hours, and since the last start."
        case .storeAndForwardSessionExpired: "The time for storing payments is over. Prepare the reader online."
        case .storeAndForwardSessionInvalidated:
            "The machine's clock went back or it was restarted. Prepare the reader online."
        case .storeAndForwardTokenIssuerChanged:
            "The token is from another payment service than the stored payments. Forward those first."
        case .unknown(let code): "Something else went wrong (\(code)). See the log."
        case .requestInterrupted: "The call was interrupted. Try again."
        }
    }

    /// The name of the case.
    public var errorName: String { caseName(of: self) }
}

/// Returns the name of an enumeration's case, without its payload.
func caseName(of value: some Error) -> String { String("\(value)".prefix { $0 != "(" }) }

extension PaymentCardReaderError: CustomNSError {
    /// The text for `localizedDescription` on Linux.
    public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: errorDescription] }
}
