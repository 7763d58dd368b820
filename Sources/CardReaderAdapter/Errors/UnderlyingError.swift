import CardReceipts
public import Foundation

/// The reason for which a call of a ``CardReaderService`` failed.
///
/// The case names are the contract's, even where they mention Bluetooth.  Neutral names stand beside those.
public enum UnderlyingError: Error, Hashable, Sendable {
    case notConnectedToReader
    case alreadyConnectedToReader
    case confirmInvalidPaymentIntent
    case unsupportedSDK
    case featureNotAvailableWithConnectedReader
    case commandCancelled(from: CancellationSource)
    /// Never thrown by this library.
    case locationServicesDisabled
    /// The contract's name of ``transportDisabled``.
    case bluetoothDisabled
    /// The contract's name of ``transportError``.
    case bluetoothError
    /// The contract's name of ``discoveryTimedOut``.
    case bluetoothScanTimedOut
    /// The contract's name of ``connectTimedOut``.
    case bluetoothConnectTimedOut
    /// The contract's name of ``readerDisconnected``.
    case bluetoothDisconnected
    /// The contract's name of ``batteryCriticallyLow``.
    case bluetoothConnectionFailedBatteryCriticallyLow
    /// The contract's name of ``transportUnsupported``.
    case bluetoothLowEnergyUnsupported
    case readerSoftwareUpdateFailedBatteryLow
    case readerSoftwareUpdateFailedInterrupted
    case readerSoftwareUpdateFailed
    case readerSoftwareUpdateFailedReader
    case readerSoftwareUpdateFailedServer
    /// Never thrown for a reader with a field and no slot.
    case cardInsertNotRead
    /// Never thrown by this library: no supported reader has a magnetic-stripe slot.
    case cardSwipeNotRead
    case cardReadTimeOut
    case cardRemoved
    case cardLeftInReader
    case readerBusy
    case readerIncompatible
    case readerCommunicationError
    case unsupportedReaderVersion
    case connectFailedReaderIsInUse
    case unexpectedSDKError
    case paymentDeclinedByPaymentProcessorAPI(declineReason: DeclineReason)
    case paymentDeclinedByCardReader
    case notConnectedToInternet
    case requestTimedOut
    case processorAPIError
    case internalServiceError
    case readerSessionExpired
    case incompleteStoreAddress(adminUrl: URL?)
    case invalidPostalCode
    case noRefundInProgress
    case connectionAttemptInvalidated
    case noActivePaymentIntent
    case passcodeNotEnabled
    case appleBuiltInReaderTOSAcceptanceRequiresiCloudSignIn
    case appleBuiltInReaderFailedToPrepare
    case appleBuiltInReaderTOSAcceptanceCanceled
    case appleBuiltInReaderTOSNotYetAccepted
    case appleBuiltInReaderTOSAcceptanceFailed
    case readerNotAccessibleInBackground
    /// Never thrown by this library.
    case commandNotAllowedDuringCall
    case nfcDisabled
    case appleBuiltInReaderMerchantBlocked
    case appleBuiltInReaderInvalidMerchant
    case appleBuiltInReaderDeviceBanned
    case unsupportedMobileDeviceConfiguration
    case invalidAmount
    case invalidCurrency
    /// An addition to the contract: it is not known whether the previous payment or refund was made.
    case paymentOutcomeUnknown
    /// An addition to the contract: the payment or refund could not be recorded, so the payment service was not asked.
    case notRecorded
    /// An addition to the contract: the card cannot be tapped.  It has declined nothing; the customer may insert or
    /// swipe it elsewhere.
    case anotherInterfaceNeeded

    // MARK: Neutral names

    /// pcscd is not running.
    public static let transportDisabled = bluetoothDisabled
    public static let transportError = bluetoothError
    public static let discoveryTimedOut = bluetoothScanTimedOut
    public static let connectTimedOut = bluetoothConnectTimedOut
    public static let readerDisconnected = bluetoothDisconnected
    public static let batteryCriticallyLow = bluetoothConnectionFailedBatteryCriticallyLow
    /// Neither PC/SC nor USB is available.
    public static let transportUnsupported = bluetoothLowEnergyUnsupported
}

/// The party that canceled a call.
public enum CancellationSource: Hashable, Sendable, CaseIterable {
    case unknown, app, reader
}

extension UnderlyingError {
    /// The advice to give to the user of the app.
    public var recovery: RecoveryCategory { advice.recovery }

    /// True if the update of a reader's software failed.
    public var isSoftwareUpdateError: Bool {
        switch self {
        case .readerSoftwareUpdateFailedBatteryLow, .readerSoftwareUpdateFailedInterrupted,
            .readerSoftwareUpdateFailed, .readerSoftwareUpdateFailedReader, .readerSoftwareUpdateFailedServer:
            true
        default: false
        }
    }

    private var advice: (recovery: RecoveryCategory, text: String) {
        switch self {
        case .notConnectedToReader: (.tryAgain, "No reader is connected. Connect one, and try again.")
        case .alreadyConnectedToReader: (.dontRetry, "A reader is already connected. Disconnect it first.")
        case .confirmInvalidPaymentIntent:
            (.tryAgain, "The payment service does not know this payment in its present state. Try again.")
        case .unsupportedSDK: (.dontRetry, "This program is too old for the payment service. Update it.")
        case .featureNotAvailableWithConnectedReader:
            (.dontRetry, "The connected reader cannot do this. Use another one.")
        case .commandCancelled(from: .app): (.dontRetry, "The call was cancelled.")
        case .commandCancelled(from: .reader): (.dontRetry, "The customer canceled at the reader.")
        case .commandCancelled(from: .unknown): (.dontRetry, "The call was canceled by the system.")
        case .locationServicesDisabled:
            (.tryAgain, "The machine's location is not available. Switch it on, and try again.")
        case .bluetoothDisabled: (.tryAgain, "pcscd does not answer. Start its pcscd.socket, and try again.")
        case .bluetoothError: (.tryAgain, "The link to the reader failed. Run reader-probe doctor to see why.")
        case .bluetoothScanTimedOut: (.tryAgain, "No reader was found in time. Plug one in, and try again.")
        case .bluetoothConnectTimedOut:
            (.tryAgain, "The reader could not be connected in time. Unplug it, plug it in again, and try again.")
        case .bluetoothDisconnected: (.tryAgain, "The reader is gone. Plug it in again, and try again.")
        case .bluetoothConnectionFailedBatteryCriticallyLow:
            (.tryAgain, "The reader's battery is empty. Charge it, and try again.")
        case .bluetoothLowEnergyUnsupported:
            (.dontRetry, "This machine cannot use a reader. Install pcscd, or permit access to USB.")
        case .readerSoftwareUpdateFailedBatteryLow:
            (.tryAgain, "The reader's battery is too low for the update. Charge it, and try again.")
        case .readerSoftwareUpdateFailedInterrupted: (.tryAgain, "The update of the reader was interrupted. Try again.")
        case .readerSoftwareUpdateFailed: (.tryAgain, "The reader could not be updated. Try again.")
        case .readerSoftwareUpdateFailedReader: (.tryAgain, "The reader did not accept the update. Try again.")
        case .readerSoftwareUpdateFailedServer:
            (.tryAgain, "The update could not be fetched. Check the network, and try again.")
        case .cardInsertNotRead: (.tryAgain, "The chip could not be read. Insert the card again.")
        case .cardSwipeNotRead: (.tryAgain, "The stripe could not be read. Swipe the card again.")
        case .cardReadTimeOut: (.tryAgain, "No card was read in time. Try again.")
        case .cardRemoved: (.tryAgain, "The card was removed too early. Present it again, and hold it still.")
        case .cardLeftInReader: (.tryAgain, "The card is still on the reader. Remove it, and try again.")
        case .readerBusy: (.tryAgain, "The reader is busy with another call. Wait for it, and try again.")
        case .readerIncompatible: (.dontRetry, "This reader is not supported. Use another one.")
        case .readerCommunicationError: (.tryAgain, "The reader failed. Unplug it, plug it in again, and try again.")
        case .unsupportedReaderVersion: (.tryAgain, "The reader's software is too old. Update it, and try again.")
        case .connectFailedReaderIsInUse: (.tryAgain, "Another program holds the reader. Close it, and try again.")
        case .unexpectedSDKError:
            (.tryAgain, "An unexpected error occurred. Try again; see the log.")
        case .paymentDeclinedByPaymentProcessorAPI(let reason): (.tryAnotherPaymentMethod, reason.text)
        case .paymentDeclinedByCardReader: (.tryAnotherPaymentMethod, "The card declined. Try another one.")
        case .anotherInterfaceNeeded:
            (.tryAnotherPaymentMethod, "This card cannot be tapped here. Insert or swipe it, or use another one.")
        case .notConnectedToInternet: (.tryAgain, "There is no network. Check it, and try again.")
        case .requestTimedOut: (.tryAgain, "The payment service did not answer in time. Try again.")
        case .processorAPIError: (.tryAgain, "The payment service failed. Try again.")
        case .internalServiceError: (.tryAgain, "The reader service failed. Try again.")
        case .readerSessionExpired:
            (.dontRetry, "The reader's session is over. Disconnect the reader, and connect it again.")
        case .incompleteStoreAddress: (.tryAgain, "The shop's address is not complete. Complete it, and try again.")
        case .invalidPostalCode: (.tryAgain, "The shop's postal code is not valid. Correct it, and try again.")
        case .noRefundInProgress: (.dontRetry, "There is no refund to cancel.")
        case .connectionAttemptInvalidated:
            (.dontRetry, "The connection was abandoned: the service was reset in the meantime.")
        case .noActivePaymentIntent: (.dontRetry, "There is no payment to cancel.")
        case .passcodeNotEnabled:
            (.tryAgain, "The key of this machine's store cannot be read. Check its file, and try again.")
        case .appleBuiltInReaderTOSAcceptanceRequiresiCloudSignIn:
            (.tryAgain, "An account has to be signed in to before the terms can be accepted.")
        case .appleBuiltInReaderFailedToPrepare: (.tryAgain, "The reader could not be made ready. Try again.")
        case .appleBuiltInReaderTOSAcceptanceCanceled:
            (.tryAgain, "The terms were not accepted. Accept them, and try again.")
        case .appleBuiltInReaderTOSNotYetAccepted:
            (.tryAgain, "The merchant has not accepted the terms yet. Accept them, and try again.")
        case .appleBuiltInReaderTOSAcceptanceFailed:
            (.tryAgain, "The acceptance of the terms could not be recorded. Try again.")
        case .readerNotAccessibleInBackground: (.tryAgain, "The machine is asleep or locked. Try again afterward.")
        case .commandNotAllowedDuringCall: (.tryAgain, "This is not allowed now. Try again later.")
        case .nfcDisabled: (.dontRetry, "The reader's field is off. Unplug the reader, and plug it in again.")
        case .appleBuiltInReaderMerchantBlocked:
            (.dontRetry, "The payment service has blocked the merchant. Ask the payment service.")
        case .appleBuiltInReaderInvalidMerchant:
            (.dontRetry, "The payment service does not know the merchant. Ask the payment service.")
        case .appleBuiltInReaderDeviceBanned:
            (.dontRetry, "The payment service has barred this machine. Ask the payment service.")
        case .unsupportedMobileDeviceConfiguration:
            (.dontRetry, "This machine cannot take payments as it is set up. Run reader-probe doctor to see why.")
        case .invalidAmount: (.tryAgain, "The amount is not valid for this currency. Correct it, and try again.")
        case .invalidCurrency: (.tryAgain, "The currency is not valid. Correct it, and try again.")
        case .notRecorded:
            (
                .tryAgain,
                "The payment or refund could not be written down. Check the folder's disk and owner, and try again."
            )
        case .paymentOutcomeUnknown:
            (
                .dontRetry,
                "It is not known whether the payment or refund before this one was made. Try that one again, or cancel it."
            )
        }
    }
}

extension UnderlyingError: LocalizedError {
    /// A sentence that says what is wrong and what to do next.
    public var errorDescription: String? { advice.text }
}
