import CardReaders
import CardReceipts
import KioskKit
import ProximityReader
package import SmartCard
import Waiting

// Maps foreign failures to the app's errors: one table for each list of failures that another module defines.

extension UnderlyingError {
    /// Maps any error; the result is ``unexpectedSDKError`` for an error that is in none of the tables.
    package init(cause error: any Error) {
        switch error {
        case let error as UnderlyingError: self = error
        case let error as CardReaderServiceError: self = error.underlyingError ?? .unexpectedSDKError
        case let error as CardError:
            let refined =
                Self.refinable.contains(error.kind) ? DriverFailure(error.cause).flatMap { Self.ofFailure[$0] } : nil
            self = refined ?? Self.ofKind[error.kind] ?? .unexpectedSDKError
        case let error as PaymentProcessorError: self.init(error.reason)
        case let error as PaymentCardReaderError: self.init(error)
        case let error as PaymentCardReaderSession.ReadError: self.init(error)
        case let error as CardReaderConfigError:
            switch error {
            case .incompleteStoreAddress(let url): self = .incompleteStoreAddress(adminUrl: url)
            case .invalidPostalCode: self = .invalidPostalCode
            }
        case is TimeLimitPassed: self = .requestTimedOut
        case is AnotherInterfaceNeeded: self = .anotherInterfaceNeeded
        case is CancellationError: self = .commandCancelled(from: .app)
        default: self = DriverFailure(error).flatMap { Self.ofFailure[$0] } ?? .unexpectedSDKError
        }
    }

    /// The kinds that are less specific than the driver's code below them.  The other kinds already reflect the
    /// operation that was under way.
    private static let refinable: Set<CardError.Kind> = [
        .other, .readerTimeout, .disconnected, .readerBusy, .notTransacted,
    ]

    package static let ofKind: [CardError.Kind: UnderlyingError] = [
        .noService: .transportDisabled,
        .versionMismatch: .unsupportedSDK,
        .permissionDenied: .transportUnsupported,
        .noReader: .notConnectedToReader,
        .readerGone: .readerDisconnected,
        .readerBusy: .connectFailedReaderIsInUse,
        .sharing: .connectFailedReaderIsInUse,
        .cardAbsent: .cardRemoved,
        .cardRemoved: .cardRemoved,
        .cardReset: .readerCommunicationError,
        .cardMute: .cardInsertNotRead,
        .noAnswer: .readerCommunicationError,
        .notTransacted: .readerCommunicationError,
        .readerTimeout: .readerCommunicationError,
        .malformedAnswer: .readerCommunicationError,
        .unsupported: .featureNotAvailableWithConnectedReader,
        .tooLong: .featureNotAvailableWithConnectedReader,
        .protocolMismatch: .featureNotAvailableWithConnectedReader,
        .disconnected: .readerCommunicationError,
        .other: .unexpectedSDKError,
    ]

    private static let ofFailure: [DriverFailure: UnderlyingError] = [
        .driver: .transportError,
        .cancelled: .commandCancelled(from: .unknown),
        .cancelledByPerson: .commandCancelled(from: .reader),
        .communication: .readerCommunicationError,
        .unexpected: .unexpectedSDKError,
        .readerGone: .readerDisconnected,
        .timeout: .cardReadTimeOut,
        .inUse: .connectFailedReaderIsInUse,
        .busy: .readerBusy,
        .cardGone: .cardRemoved,
        .cardUnreadable: .cardInsertNotRead,
        .unsupported: .featureNotAvailableWithConnectedReader,
        .noService: .transportDisabled,
        .readerUnsupported: .readerIncompatible,
        .noReader: .notConnectedToReader,
        .denied: .transportUnsupported,
    ]

    init(_ error: PaymentCardReaderSession.ReadError) {
        self =
            switch error {
            case .readNotAllowed, .readNotAllowedDuringCall, .vasReadFail, .invalidVASMerchants,
                .invalidVASRequestParameters, .pinNotAllowed:
                .featureNotAvailableWithConnectedReader
            case .readFromBackgroundError: .readerNotAccessibleInBackground
            case .readerServiceConnectionError: .transportDisabled
            case .readerServiceError: .readerCommunicationError
            case .noReaderSession: .notConnectedToReader
            case .readerSessionExpired, .readerTokenExpired, .readerSessionAuthenticationError: .readerSessionExpired
            case .readerSessionNetworkError: .notConnectedToInternet
            case .readerSessionBusy: .readerBusy
            case .readCancelled: .commandCancelled(from: .app)
            case .invalidAmount: .invalidAmount
            case .invalidCurrencyCode: .invalidCurrency
            case .invalidPreferredAID, .unknown: .unexpectedSDKError
            case .nfcDisabled: .nfcDisabled
            case .passcodeDisabled: .passcodeNotEnabled
            case .cardReadFailed: .cardRemoved
            case .paymentReadFailed, .paymentCardDeclined: .paymentDeclinedByCardReader
            case .cardNotSupported: .anotherInterfaceNeeded
            case .pinEntryFailed, .pinTokenInvalid: .readerCommunicationError
            case .pinEntryTimeout: .cardReadTimeOut
            case .pinCancelled: .commandCancelled(from: .reader)
            case .storeAndForwardDeclineFailed, .storeAndForwardResultNotFound: .confirmInvalidPaymentIntent
            case .readerInitializationFailed: .appleBuiltInReaderFailedToPrepare
            case .readerNotAvailable: .readerDisconnected
            }
    }

    init(_ error: PaymentCardReaderError) {
        self =
            switch error {
            case .notAllowed, .osVersionNotSupported: .transportUnsupported
            case .backgroundRequestNotAllowed: .readerNotAccessibleInBackground
            case .unsupported: .readerDisconnected
            case .modelNotSupported: .readerIncompatible
            case .passcodeDisabled: .passcodeNotEnabled
            case .networkError: .notConnectedToInternet
            case .networkAuthenticationError, .emptyReaderToken, .invalidReaderToken, .tokenExpired, .prepareExpired:
                .readerSessionExpired
            case .serviceConnectionError: .transportDisabled
            case .notReady: .notConnectedToReader
            case .prepareFailed: .appleBuiltInReaderFailedToPrepare
            case .deviceBanned: .appleBuiltInReaderDeviceBanned
            case .readerMemoryFull, .storeAndForwardNotAllowed, .storeAndForwardSessionExpired,
                .storeAndForwardSessionInvalidated, .storeAndForwardTokenIssuerChanged:
                .notConnectedToInternet
            case .readerBusy: .connectFailedReaderIsInUse
            case .accountNotLinked: .appleBuiltInReaderTOSNotYetAccepted
            case .accountAlreadyLinked, .unknown: .unexpectedSDKError
            case .accountLinkingFailed, .accountLinkingCheckFailed: .appleBuiltInReaderTOSAcceptanceFailed
            case .accountLinkingRequiresiCloudSignIn: .appleBuiltInReaderTOSAcceptanceRequiresiCloudSignIn
            case .accountLinkingCancelled: .appleBuiltInReaderTOSAcceptanceCanceled
            case .merchantBlocked, .accountDeactivated: .appleBuiltInReaderMerchantBlocked
            case .invalidMerchant: .appleBuiltInReaderInvalidMerchant
            case .requestInterrupted: .commandCancelled(from: .unknown)
            }
    }

    init(_ reason: PaymentProcessorError.Reason) {
        self =
            switch reason {
            case .declined(let reason): .paymentDeclinedByPaymentProcessorAPI(declineReason: reason)
            case .noAnswer: .requestTimedOut
            case .notConnected: .notConnectedToInternet
            case .unknownIntent: .confirmInvalidPaymentIntent
            case .sessionExpired: .readerSessionExpired
            case .invalidAmount: .invalidAmount
            case .invalidCurrency: .invalidCurrency
            case .tooOld: .unsupportedSDK
            case .refused: .processorAPIError
            }
    }
}

extension DisconnectReason {
    /// Maps the error that ended a reader's sequence of states.
    init(_ error: (any Error)?) {
        switch (error as? CardError)?.kind {
        case .noService, .versionMismatch: self = .serviceStopped
        case nil where error == nil: self = .usbDisconnected
        case .readerGone, .noReader: self = .usbDisconnected
        default: self = .unknown
        }
    }
}
