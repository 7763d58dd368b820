public import CardReceipts
public import Foundation

/// The error of a ``CardReaderService`` call: the call that failed, and the reason.
public enum CardReaderServiceError: Error, Sendable {
    case discovery(underlyingError: UnderlyingError = .internalServiceError)
    case connection(underlyingError: UnderlyingError = .internalServiceError)
    case disconnection(underlyingError: UnderlyingError = .internalServiceError)
    case intentCreation(underlyingError: UnderlyingError = .internalServiceError)
    case paymentMethodCollection(underlyingError: UnderlyingError = .internalServiceError)
    case paymentCapture(underlyingError: UnderlyingError = .internalServiceError)
    case paymentCaptureWithPaymentMethod(underlyingError: UnderlyingError, paymentMethod: PaymentMethod)
    case paymentCancellation(underlyingError: UnderlyingError = .internalServiceError)
    case refundCreation(underlyingError: UnderlyingError = .internalServiceError)
    case refundPayment(underlyingError: UnderlyingError = .internalServiceError, shouldRetry: Bool = true)
    case refundCancellation(underlyingError: UnderlyingError = .internalServiceError)
    case softwareUpdate(underlyingError: UnderlyingError = .internalServiceError, batteryLevel: Double?)
    case bluetoothDenied
    case retryNotPossibleNoActivePayment
    case retryNotPossibleActivePaymentCancelled
    case retryNotPossibleActivePaymentSucceeded
    case retryNotPossibleProcessingInProgress
    case retryNotPossibleRequiresAction
    case retryNotPossibleUnknownCause

    /// An earlier name of ``paymentMethodCollection(underlyingError:)``.
    public static func paymentMethod(underlyingError: UnderlyingError = .internalServiceError) -> Self {
        .paymentMethodCollection(underlyingError: underlyingError)
    }

    /// An earlier name of ``paymentCapture(underlyingError:)``.
    public static func capturePayment(underlyingError: UnderlyingError = .internalServiceError) -> Self {
        .paymentCapture(underlyingError: underlyingError)
    }

    /// The reason for the failure; nil for cases that need none.
    public var underlyingError: UnderlyingError? {
        switch self {
        case .discovery(let error), .connection(let error), .disconnection(let error), .intentCreation(let error),
            .paymentMethodCollection(let error), .paymentCapture(let error),
            .paymentCaptureWithPaymentMethod(let error, _), .paymentCancellation(let error),
            .refundCreation(let error), .refundPayment(let error, _), .refundCancellation(let error),
            .softwareUpdate(let error, _):
            error
        case .bluetoothDenied, .retryNotPossibleNoActivePayment, .retryNotPossibleActivePaymentCancelled,
            .retryNotPossibleActivePaymentSucceeded, .retryNotPossibleProcessingInProgress,
            .retryNotPossibleRequiresAction, .retryNotPossibleUnknownCause:
            nil
        }
    }

    /// The advice to give to the user of the app.
    public var recovery: RecoveryCategory {
        switch self {
        case .bluetoothDenied: .tryAgain
        case .refundPayment(_, shouldRetry: false): .dontRetry
        default: underlyingError?.recovery ?? .dontRetry
        }
    }
}

/// The advice that an app can offer after an error.
public enum RecoveryCategory: Hashable, Sendable {
    case dontRetry
    case tryAgain
    case tryAnotherPaymentMethod

    /// Classifies any error.  An error from outside this library may not recur, so that a retry is worthwhile.
    public init(_ error: any Error) {
        switch error {
        case let error as CardReaderServiceError: self = error.recovery
        case let error as UnderlyingError: self = error.recovery
        default: self = .tryAgain
        }
    }
}

extension CardReaderServiceError: LocalizedError {
    public var errorDescription: String? {
        switch self {
        case .bluetoothDenied: "Access to the reader is denied. Permit it in the system's settings."
        case .retryNotPossibleNoActivePayment: "There is no payment to try again."
        case .retryNotPossibleActivePaymentCancelled: "The payment has been canceled. Begin a new one."
        case .retryNotPossibleActivePaymentSucceeded: "The payment has been made. It must not be made again."
        case .retryNotPossibleProcessingInProgress: "The payment service is still at work on the payment. Wait for it."
        case .retryNotPossibleRequiresAction: "The customer has to do something else for this payment first."
        case .retryNotPossibleUnknownCause:
            "What has become of the payment is not known. Ask the payment service before the customer pays again."
        default: underlyingError?.errorDescription
        }
    }
}
