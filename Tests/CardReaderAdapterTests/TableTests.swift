import CardReaderAdapter
import CardReceipts
import Foundation
import ProximityReader
import SmartCard
import SmartCardPCSC
import SmartCardUSB
import Testing
import USBDevices

/// The tables, walked against the lists that others keep.
@Suite struct TableTests {
    /// The contract's underlying errors, with what its app does about each: D nothing, A again, O another card.
    static let contract: [(UnderlyingError, Character)] = [
        (.notConnectedToReader, "A"), (.alreadyConnectedToReader, "D"), (.confirmInvalidPaymentIntent, "A"),
        (.unsupportedSDK, "D"), (.featureNotAvailableWithConnectedReader, "D"),
        (.commandCancelled(from: .app), "D"), (.locationServicesDisabled, "A"), (.bluetoothDisabled, "A"),
        (.bluetoothError, "A"), (.bluetoothScanTimedOut, "A"), (.bluetoothConnectTimedOut, "A"),
        (.bluetoothDisconnected, "A"), (.bluetoothConnectionFailedBatteryCriticallyLow, "A"),
        (.bluetoothLowEnergyUnsupported, "D"), (.readerSoftwareUpdateFailedBatteryLow, "A"),
        (.readerSoftwareUpdateFailedInterrupted, "A"), (.readerSoftwareUpdateFailed, "A"),
        (.readerSoftwareUpdateFailedReader, "A"), (.readerSoftwareUpdateFailedServer, "A"),
        (.cardInsertNotRead, "A"), (.cardSwipeNotRead, "A"), (.cardReadTimeOut, "A"), (.cardRemoved, "A"),
        (.cardLeftInReader, "A"), (.readerBusy, "A"), (.readerIncompatible, "D"), (.readerCommunicationError, "A"),
        (.unsupportedReaderVersion, "A"), (.connectFailedReaderIsInUse, "A"), (.unexpectedSDKError, "A"),
        (.paymentDeclinedByPaymentProcessorAPI(declineReason: .generic), "O"), (.paymentDeclinedByCardReader, "O"),
        (.notConnectedToInternet, "A"), (.requestTimedOut, "A"), (.processorAPIError, "A"),
        (.internalServiceError, "A"), (.readerSessionExpired, "D"), (.incompleteStoreAddress(adminUrl: nil), "A"),
        (.invalidPostalCode, "A"), (.noRefundInProgress, "D"), (.connectionAttemptInvalidated, "D"),
        (.noActivePaymentIntent, "D"), (.passcodeNotEnabled, "A"),
        (.appleBuiltInReaderTOSAcceptanceRequiresiCloudSignIn, "A"), (.appleBuiltInReaderFailedToPrepare, "A"),
        (.appleBuiltInReaderTOSAcceptanceCanceled, "A"), (.appleBuiltInReaderTOSNotYetAccepted, "A"),
        (.appleBuiltInReaderTOSAcceptanceFailed, "A"), (.readerNotAccessibleInBackground, "A"),
        (.commandNotAllowedDuringCall, "A"), (.nfcDisabled, "D"), (.appleBuiltInReaderMerchantBlocked, "D"),
        (.appleBuiltInReaderInvalidMerchant, "D"), (.appleBuiltInReaderDeviceBanned, "D"),
        (.unsupportedMobileDeviceConfiguration, "D"), (.invalidAmount, "A"), (.invalidCurrency, "A"),
        // Ours: to make the same call again would be refused again.
        (.paymentOutcomeUnknown, "D"), (.notRecorded, "A"), (.anotherInterfaceNeeded, "O"),
    ]

    @Test("A22: every underlying error has a description of its own, and the contract's category")
    func a22() {
        var texts: Set<String> = []
        for (error, category) in Self.contract {
            #expect(error.recovery == ["A": .tryAgain, "D": .dontRetry, "O": .tryAnotherPaymentMethod][category])
            let text = error.errorDescription ?? ""
            #expect(text.hasSuffix(".") && text.count > 20, "\(error)")
            #expect(texts.insert(text).inserted, "said twice: \(text)")
            #expect(error.isSoftwareUpdateError == "\(error)".contains("SoftwareUpdate"))
        }
        #expect(texts.count == 57 + 3)
        for source in CancellationSource.allCases {
            #expect(UnderlyingError.commandCancelled(from: source).recovery == .dontRetry)
        }
    }

    @Test("A22: of a service error the underlying one decides, but for the refund that must not be tried again")
    func a22Categories() {
        struct Foreign: Error {}
        let busy = UnderlyingError.readerBusy
        let table: [(any Error, RecoveryCategory)] = [
            (Foreign(), .tryAgain), (CardReaderServiceError.bluetoothDenied, .tryAgain),
            (CardReaderServiceError.discovery(), .tryAgain),
            (CardReaderServiceError.connection(underlyingError: .nfcDisabled), .dontRetry),
            (
                CardReaderServiceError.paymentCaptureWithPaymentMethod(
                    underlyingError: .paymentDeclinedByCardReader, paymentMethod: .card), .tryAnotherPaymentMethod
            ),
            (CardReaderServiceError.refundPayment(underlyingError: busy, shouldRetry: true), .tryAgain),
            (CardReaderServiceError.refundPayment(underlyingError: busy, shouldRetry: false), .dontRetry),
            (CardReaderServiceError.softwareUpdate(underlyingError: busy, batteryLevel: 0.1), .tryAgain),
            (CardReaderServiceError.retryNotPossibleNoActivePayment, .dontRetry),
            (CardReaderServiceError.retryNotPossibleActivePaymentCancelled, .dontRetry),
            (CardReaderServiceError.retryNotPossibleActivePaymentSucceeded, .dontRetry),
            (CardReaderServiceError.retryNotPossibleProcessingInProgress, .dontRetry),
            (CardReaderServiceError.retryNotPossibleRequiresAction, .dontRetry),
            (CardReaderServiceError.retryNotPossibleUnknownCause, .dontRetry),
        ]
        for (error, category) in table {
            #expect(RecoveryCategory(error) == category, "\(error)")
            if let error = error as? CardReaderServiceError { #expect(error.errorDescription?.hasSuffix(".") == true) }
        }
        // The contract's older names.
        #expect("\(CardReaderServiceError.paymentMethod())" == "\(CardReaderServiceError.paymentMethodCollection())")
        #expect("\(CardReaderServiceError.capturePayment())" == "\(CardReaderServiceError.paymentCapture())")
    }

    /// The values that a C header defines for names with this prefix.
    private func defines(_ header: String, _ pattern: Regex<(Substring, Substring, Substring)>) throws -> [String:
        Int64]
    {
        let text = try String(contentsOfFile: header, encoding: .utf8)
        return Dictionary(
            text.matches(of: pattern).compactMap { match in
                let digits = match.2.replacing("0x", with: "")
                let value = match.2.hasPrefix("0x") ? Int64(digits, radix: 16) : Int64(digits)
                return value.map { (String(match.1), $0) }
            }, uniquingKeysWith: { first, _ in first })
    }

    @Test("A22: every status of pcsclite.h is an underlying error")
    func a22PCSC() throws {
        let header = try defines(
            "/usr/include/PCSC/pcsclite.h", #/#define\s+(SCARD_[SFEPW]_\w+)\s+\(\(LONG\)(0x[0-9A-Fa-f]+)\)/#)
        #expect(header.count > 55)
        // What the contract says of some, then what pcsclite.h says of the rest.
        let table: [(UnderlyingError, String)] = [
            (.bluetoothDisabled, "E_NO_SERVICE E_SERVICE_STOPPED P_SHUTDOWN E_SERVER_TOO_BUSY"),
            (.cardRemoved, "W_REMOVED_CARD E_NO_SMARTCARD"), (.cardReadTimeOut, "E_TIMEOUT"),
            (.cardInsertNotRead, "W_UNRESPONSIVE_CARD"), (.connectFailedReaderIsInUse, "E_SHARING_VIOLATION"),
            (.bluetoothDisconnected, "E_READER_UNAVAILABLE E_UNKNOWN_READER E_INVALID_VALUE"),
            (.notConnectedToReader, "E_NO_READERS_AVAILABLE"), (.bluetoothLowEnergyUnsupported, "W_SECURITY_VIOLATION"),
            (.readerIncompatible, "E_READER_UNSUPPORTED E_PCI_TOO_SMALL"),
            (.bluetoothError, "F_INTERNAL_ERROR E_NO_MEMORY E_DUPLICATE_READER"),
            (.commandCancelled(from: .unknown), "E_CANCELLED E_SYSTEM_CANCELLED"),
            (.commandCancelled(from: .reader), "W_CANCELLED_BY_USER"),
            (
                .featureNotAvailableWithConnectedReader,
                "E_UNSUPPORTED_FEATURE E_PROTO_MISMATCH E_UNKNOWN_CARD E_CARD_UNSUPPORTED W_UNSUPPORTED_CARD"
            ),
            (
                .readerCommunicationError,
                """
                F_COMM_ERROR E_COMM_DATA_LOST E_NOT_TRANSACTED E_NOT_READY E_INVALID_HANDLE E_INVALID_ATR E_CANT_DISPOSE \
                E_INSUFFICIENT_BUFFER F_WAITED_TOO_LONG W_UNPOWERED_CARD W_RESET_CARD
                """
            ),
            // Of cards' files, PINs and certificates, and mistakes in the call: none of them comes of a payment.
            (
                .unexpectedSDKError,
                """
                E_INVALID_PARAMETER E_INVALID_TARGET F_UNKNOWN_ERROR E_ICC_INSTALLATION E_ICC_CREATEORDER \
                E_DIR_NOT_FOUND E_FILE_NOT_FOUND E_NO_DIR E_NO_FILE E_NO_ACCESS E_WRITE_TOO_MANY E_BAD_SEEK E_INVALID_CHV \
                E_UNKNOWN_RES_MNG E_NO_SUCH_CERTIFICATE E_CERTIFICATE_UNAVAILABLE E_NO_KEY_CONTAINER W_WRONG_CHV \
                W_CHV_BLOCKED W_EOF W_CARD_NOT_AUTHENTICATED E_UNEXPECTED
                """
            ),
        ]
        let expected = Dictionary(
            table.flatMap { error, names in names.split(separator: " ").map { ("SCARD_\($0)", error) } },
            uniquingKeysWith: { first, _ in first })
        for (name, value) in header where name != "SCARD_S_SUCCESS" {
            let status = PCSCStatus(rawValue: UInt32(value))
            // One value has two names: E_UNEXPECTED and E_UNSUPPORTED_FEATURE.
            let names = header.filter { $0.value == value }.keys
            #expect(names.contains { expected[$0] == UnderlyingError(cause: status) }, "\(name)")
        }
        #expect(UnderlyingError(cause: PCSCStatus(rawValue: 0x8010_00FF)) == .unexpectedSDKError)
    }

    @Test("A22: every error of libusb.h is an underlying error")
    func a22USB() throws {
        let header = try defines("/usr/include/libusb-1.0/libusb.h", #/(LIBUSB_ERROR_\w+)\s*=\s*(-\d+)/#)
        #expect(header.count == 13)
        let expected: [String: UnderlyingError] = [
            "IO": .readerCommunicationError, "PIPE": .readerCommunicationError, "TIMEOUT": .readerCommunicationError,
            "OVERFLOW": .readerCommunicationError, "OTHER": .readerCommunicationError,
            "BUSY": .connectFailedReaderIsInUse,
            "NO_DEVICE": .bluetoothDisconnected, "NOT_FOUND": .bluetoothDisconnected,
            "ACCESS": .bluetoothLowEnergyUnsupported, "NOT_SUPPORTED": .readerIncompatible, "NO_MEM": .bluetoothError,
            "INTERRUPTED": .commandCancelled(from: .unknown), "INVALID_PARAM": .unexpectedSDKError,
        ]
        for (name, value) in header {
            let error = expected[name.replacing("LIBUSB_ERROR_", with: "")]
            let status = USBStatus(rawValue: Int32(value))
            #expect(UnderlyingError(cause: status) == error && "\(status)" == "\(name) \(value)")
        }
    }

    @Test("A22: so is every error of USB CCID 1.10, table 6.2-2, and every kind of a card error")
    func a22CCID() {
        let feature = UnderlyingError.featureNotAvailableWithConnectedReader
        let table: [(UInt8, UnderlyingError)] = [
            (0xFF, .commandCancelled(from: .unknown)), (0xFE, .cardInsertNotRead), (0xFD, .readerCommunicationError),
            (0xFC, .readerCommunicationError), (0xFB, .readerCommunicationError), (0xF8, .cardInsertNotRead),
            (0xF7, .cardInsertNotRead), (0xF6, feature), (0xF5, feature), (0xF4, .readerCommunicationError),
            (0xF3, .readerCommunicationError), (0xF2, .readerBusy), (0xF0, .cardReadTimeOut),
            (0xEF, .commandCancelled(from: .reader)), (0xE0, .readerBusy), (0x00, feature),
        ]
        for (code, error) in table { #expect(UnderlyingError(cause: CCIDError(rawValue: code)) == error, "\(code)") }
        for kind in CardError.Kind.allCases {
            #expect(UnderlyingError.ofKind[kind] != nil, "\(kind)")
            #expect(UnderlyingError(cause: CardError(kind)) == UnderlyingError.ofKind[kind])
        }
        // A kind that knows what was being done counts more than the status under it.
        #expect(
            UnderlyingError(cause: CardError(.permissionDenied, cause: PCSCStatus.commError))
                == .bluetoothLowEnergyUnsupported)
        #expect(UnderlyingError(cause: CardError(.readerTimeout, cause: PCSCStatus.timeout)) == .cardReadTimeOut)
        #expect(UnderlyingError(cause: CardError(.readerBusy, cause: CCIDError.slotBusy)) == .readerBusy)
    }

    /// What the payment service and the terminal fail with.
    private static let causes: [(any Error, UnderlyingError)] = [
        (PaymentProcessorError(.noAnswer), .requestTimedOut),
        (PaymentProcessorError(.notConnected), .notConnectedToInternet),
        (PaymentProcessorError(.unknownIntent), .confirmInvalidPaymentIntent),
        (PaymentProcessorError(.sessionExpired), .readerSessionExpired),
        (PaymentProcessorError(.invalidAmount), .invalidAmount),
        (PaymentProcessorError(.invalidCurrency), .invalidCurrency),
        (PaymentProcessorError(.tooOld), .unsupportedSDK),
        (PaymentProcessorError(.refused("merchant")), .processorAPIError),
        (CardReaderServiceError.discovery(underlyingError: .readerBusy), .readerBusy),
        (CancellationError(), .commandCancelled(from: .app)),
        (PaymentCardReaderSession.ReadError.readNotAllowed, .featureNotAvailableWithConnectedReader),
        (PaymentCardReaderSession.ReadError.readNotAllowedDuringCall, .featureNotAvailableWithConnectedReader),
        (PaymentCardReaderSession.ReadError.vasReadFail, .featureNotAvailableWithConnectedReader),
        (PaymentCardReaderSession.ReadError.invalidVASMerchants(nil), .featureNotAvailableWithConnectedReader),
        (PaymentCardReaderSession.ReadError.invalidVASRequestParameters(nil), .featureNotAvailableWithConnectedReader),
        (PaymentCardReaderSession.ReadError.pinNotAllowed, .featureNotAvailableWithConnectedReader),
        (PaymentCardReaderSession.ReadError.readFromBackgroundError, .readerNotAccessibleInBackground),
        (PaymentCardReaderSession.ReadError.readerServiceConnectionError, .bluetoothDisabled),
        (PaymentCardReaderSession.ReadError.readerServiceError, .readerCommunicationError),
        (PaymentCardReaderSession.ReadError.pinEntryFailed, .readerCommunicationError),
        (PaymentCardReaderSession.ReadError.pinTokenInvalid, .readerCommunicationError),
        (PaymentCardReaderSession.ReadError.noReaderSession, .notConnectedToReader),
        (PaymentCardReaderSession.ReadError.readerSessionExpired, .readerSessionExpired),
        (PaymentCardReaderSession.ReadError.readerTokenExpired, .readerSessionExpired),
        (PaymentCardReaderSession.ReadError.readerSessionAuthenticationError, .readerSessionExpired),
        (PaymentCardReaderSession.ReadError.readerSessionNetworkError, .notConnectedToInternet),
        (PaymentCardReaderSession.ReadError.readerSessionBusy, .readerBusy),
        (PaymentCardReaderSession.ReadError.readCancelled, .commandCancelled(from: .app)),
        (PaymentCardReaderSession.ReadError.invalidAmount, .invalidAmount),
        (PaymentCardReaderSession.ReadError.invalidCurrencyCode, .invalidCurrency),
        (PaymentCardReaderSession.ReadError.invalidPreferredAID, .unexpectedSDKError),
        (PaymentCardReaderSession.ReadError.unknown(code: 1), .unexpectedSDKError),
        (PaymentCardReaderSession.ReadError.nfcDisabled, .nfcDisabled),
        (PaymentCardReaderSession.ReadError.passcodeDisabled, .passcodeNotEnabled),
        (PaymentCardReaderSession.ReadError.cardReadFailed, .cardRemoved),
        (PaymentCardReaderSession.ReadError.paymentReadFailed, .paymentDeclinedByCardReader),
        (PaymentCardReaderSession.ReadError.paymentCardDeclined, .paymentDeclinedByCardReader),
        (PaymentCardReaderSession.ReadError.cardNotSupported, .anotherInterfaceNeeded),
        (PaymentCardReaderSession.ReadError.pinEntryTimeout, .cardReadTimeOut),
        (PaymentCardReaderSession.ReadError.pinCancelled, .commandCancelled(from: .reader)),
        (PaymentCardReaderSession.ReadError.storeAndForwardDeclineFailed, .confirmInvalidPaymentIntent),
        (PaymentCardReaderSession.ReadError.storeAndForwardResultNotFound, .confirmInvalidPaymentIntent),
        (PaymentCardReaderSession.ReadError.readerInitializationFailed, .appleBuiltInReaderFailedToPrepare),
        (PaymentCardReaderSession.ReadError.readerNotAvailable, .bluetoothDisconnected),
        (PaymentCardReaderError.notAllowed, .bluetoothLowEnergyUnsupported),
        (PaymentCardReaderError.osVersionNotSupported, .bluetoothLowEnergyUnsupported),
        (PaymentCardReaderError.backgroundRequestNotAllowed, .readerNotAccessibleInBackground),
        (PaymentCardReaderError.unsupported, .bluetoothDisconnected),
        (PaymentCardReaderError.modelNotSupported, .readerIncompatible),
        (PaymentCardReaderError.passcodeDisabled, .passcodeNotEnabled),
        (PaymentCardReaderError.networkError, .notConnectedToInternet),
        (PaymentCardReaderError.readerMemoryFull, .notConnectedToInternet),
        (PaymentCardReaderError.storeAndForwardNotAllowed, .notConnectedToInternet),
        (PaymentCardReaderError.storeAndForwardSessionExpired, .notConnectedToInternet),
        (PaymentCardReaderError.storeAndForwardSessionInvalidated, .notConnectedToInternet),
        (PaymentCardReaderError.storeAndForwardTokenIssuerChanged, .notConnectedToInternet),
        (PaymentCardReaderError.networkAuthenticationError, .readerSessionExpired),
        (PaymentCardReaderError.emptyReaderToken, .readerSessionExpired),
        (PaymentCardReaderError.invalidReaderToken(nil), .readerSessionExpired),
        (PaymentCardReaderError.tokenExpired, .readerSessionExpired),
        (PaymentCardReaderError.prepareExpired, .readerSessionExpired),
        (PaymentCardReaderError.serviceConnectionError, .bluetoothDisabled),
        (PaymentCardReaderError.notReady, .notConnectedToReader),
        (PaymentCardReaderError.prepareFailed(nil), .appleBuiltInReaderFailedToPrepare),
        (PaymentCardReaderError.deviceBanned(nil), .appleBuiltInReaderDeviceBanned),
        (PaymentCardReaderError.readerBusy, .connectFailedReaderIsInUse),
        (PaymentCardReaderError.accountNotLinked, .appleBuiltInReaderTOSNotYetAccepted),
        (PaymentCardReaderError.accountAlreadyLinked, .unexpectedSDKError),
        (PaymentCardReaderError.unknown(code: 1), .unexpectedSDKError),
        (PaymentCardReaderError.accountLinkingFailed, .appleBuiltInReaderTOSAcceptanceFailed),
        (PaymentCardReaderError.accountLinkingCheckFailed, .appleBuiltInReaderTOSAcceptanceFailed),
        (
            PaymentCardReaderError.accountLinkingRequiresiCloudSignIn,
            .appleBuiltInReaderTOSAcceptanceRequiresiCloudSignIn
        ),
        (PaymentCardReaderError.accountLinkingCancelled, .appleBuiltInReaderTOSAcceptanceCanceled),
        (PaymentCardReaderError.merchantBlocked, .appleBuiltInReaderMerchantBlocked),
        (PaymentCardReaderError.accountDeactivated, .appleBuiltInReaderMerchantBlocked),
        (PaymentCardReaderError.invalidMerchant, .appleBuiltInReaderInvalidMerchant),
        (PaymentCardReaderError.requestInterrupted, .commandCancelled(from: .unknown)),
    ]

    @Test("A22: what the payment service and the terminal fail with") func a22Causes() {
        for (cause, error) in Self.causes { #expect(UnderlyingError(cause: cause) == error, "\(cause)") }
        for reason in DeclineReason.allCases {
            #expect(
                UnderlyingError(cause: PaymentProcessorError(.declined(reason)))
                    == .paymentDeclinedByPaymentProcessorAPI(declineReason: reason))
        }
    }

    @Test("A22: there are 17 reasons to decline; fraud is worded like any, and no refund is tried again for it")
    func a22Reasons() {
        #expect(DeclineReason.allCases.count == 17)
        #expect(DeclineReason.fraud.text == DeclineReason.generic.text)
        #expect(Set(DeclineReason.allCases.map(\.text)).count == 16)
        let final: Set<DeclineReason> = [
            .fraud, .invalidAccount, .currencyNotSupported, .duplicateTransaction, .incorrectPostalCode, .invalidAmount,
        ]
        for reason in DeclineReason.allCases { #expect(reason.allowsRefundRetry == !final.contains(reason)) }
    }

    @Test(
        "A23: a currency is one of ISO 4217, in lower case, or nothing",
        arguments: [("USD", "usd"), ("usd", "usd"), ("Jpy", "jpy"), ("XYZ", ""), ("840", ""), ("", ""), ("u$d", "")])
    func a23Currency(_ text: String, _ code: String) {
        #expect(CurrencyCode(wrappedValue: text).wrappedValue == code)
    }

    @Test("A23: a statement has 22 characters at most, and none of the four that networks refuse")
    func a23Statement() {
        let table: [(String?, String?)] = [
            ("A < DESCRIPTION' longer THAN 22 Characters", "A - DESCRIPTION- longe"), (nil, nil), ("", ""),
            (#"<>'""#, "----"), ("Café", "Café"),
        ]
        for (text, statement) in table { #expect(StatementDescriptor(wrappedValue: text).wrappedValue == statement) }
    }

    @Test("A23: an e-mail address is one, or nothing")
    func a23Email() {
        for good in ["a@b.example", "first.last+tag@shop.example.org", "ü@münchen.example"] {
            #expect(Email(wrappedValue: good).wrappedValue == good)
        }
        for bad in [
            "", "a", "a@b", "@b.example", "a@", "a@@b.example", "a b@c.example", "a@b..example", "a@-b.example",
            ".a@b.example", "a.@b.example", "a@b.example\n", "a@b.example\0",
            String(repeating: "a", count: 65) + "@b.example",
        ] { #expect(Email(wrappedValue: bad).wrappedValue == nil, "\(bad)") }
        #expect(Email(wrappedValue: nil).wrappedValue == nil)
    }
}
