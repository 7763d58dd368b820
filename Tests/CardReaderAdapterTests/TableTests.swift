import CardReaderAdapter
import EMVContactless
import Foundation
import ProximityReader
import SmartCard
import SmartCardPCSC
import SmartCardUSB
import Testing

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
        #expect(texts.count == 57)
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
        for (name, value) in header where name != "SCARD_S_SUCCESS" {
            #expect(UnderlyingError.ofPCSC[PCSCStatus(rawValue: UInt32(value))] != nil, "\(name)")
        }
        // What the contract says of some.
        let table: [(PCSCStatus, UnderlyingError)] = [
            (.noService, .bluetoothDisabled), (.removedCard, .cardRemoved), (.noSmartcard, .cardRemoved),
            (.timeout, .cardReadTimeOut), (.unsupportedFeature, .featureNotAvailableWithConnectedReader),
            (.sharingViolation, .connectFailedReaderIsInUse), (.readerUnavailable, .bluetoothDisconnected),
            (.unresponsiveCard, .cardInsertNotRead), (.cancelledByUser, .commandCancelled(from: .reader)),
        ]
        for (status, error) in table { #expect(UnderlyingError(cause: status) == error, "\(status)") }
        #expect(UnderlyingError(cause: PCSCStatus(rawValue: 0x8010_00FF)) == .unexpectedSDKError)
    }

    @Test("A22: every error of libusb.h is an underlying error")
    func a22USB() throws {
        let header = try defines("/usr/include/libusb-1.0/libusb.h", #/(LIBUSB_ERROR_\w+)\s*=\s*(-\d+)/#)
        #expect(header.count == 13)
        for (name, value) in header {
            #expect(UnderlyingError.ofUSB[USBStatus(rawValue: Int32(value))] != nil, "\(name)")
        }
        #expect(UnderlyingError(cause: USBStatus.busy) == .connectFailedReaderIsInUse)
        #expect(UnderlyingError(cause: USBStatus.noDevice) == .bluetoothDisconnected)
    }

    @Test("A22: so is every error of USB CCID 1.10, table 6.2-2, and every kind of a card error")
    func a22CCID() {
        let table: [UInt8] = [
            0xFF, 0xFE, 0xFD, 0xFC, 0xFB, 0xF8, 0xF7, 0xF6, 0xF5, 0xF4, 0xF3, 0xF2, 0xF0, 0xEF, 0xE0, 0x00,
        ]
        for code in table { #expect(UnderlyingError.ofCCID[CCIDError(rawValue: code)] != nil, "\(code)") }
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

    @Test("A22: a kernel's outcome is a payment or an underlying error")
    func a22Outcomes() {
        let table: [Outcome.Kind: UnderlyingError?] = [
            .selectNext: .paymentDeclinedByCardReader, .tryAgain: .cardRemoved, .approved: nil,
            .declined: .paymentDeclinedByCardReader, .onlineRequest: nil,
            .tryAnotherInterface: .paymentDeclinedByCardReader, .endApplication: .paymentDeclinedByCardReader,
        ]
        for kind in Outcome.Kind.allCases { #expect(table[kind] == .some(UnderlyingError.of(kind)), "\(kind)") }
    }

    @Test(
        "A22: what the payment service and the terminal fail with",
        arguments: [
            (
                PaymentProcessorError(.declined(.fraud)) as any Error,
                UnderlyingError.paymentDeclinedByPaymentProcessorAPI(declineReason: .fraud)
            ),
            (PaymentProcessorError(.noAnswer), .requestTimedOut),
            (PaymentProcessorError(.notConnected), .notConnectedToInternet),
            (PaymentProcessorError(.unknownIntent), .confirmInvalidPaymentIntent),
            (PaymentProcessorError(.sessionExpired), .readerSessionExpired),
            (PaymentProcessorError(.invalidAmount), .invalidAmount),
            (PaymentProcessorError(.invalidCurrency), .invalidCurrency),
            (PaymentProcessorError(.tooOld), .unsupportedSDK),
            (PaymentProcessorError(.refused("merchant")), .processorAPIError),
            (PaymentCardReaderSession.ReadError.paymentCardDeclined, .paymentDeclinedByCardReader),
            (PaymentCardReaderSession.ReadError.readerTokenExpired, .readerSessionExpired),
            (PaymentCardReaderSession.ReadError.readerNotAvailable, .bluetoothDisconnected),
            (PaymentCardReaderSession.ReadError.readFromBackgroundError, .readerNotAccessibleInBackground),
            (PaymentCardReaderSession.ReadError.nfcDisabled, .nfcDisabled),
            (PaymentCardReaderError.accountNotLinked, .appleBuiltInReaderTOSNotYetAccepted),
            (PaymentCardReaderError.tokenExpired, .readerSessionExpired),
            (PaymentCardReaderError.modelNotSupported, .readerIncompatible),
            (PaymentCardReaderError.merchantBlocked, .appleBuiltInReaderMerchantBlocked),
            (CardReaderServiceError.discovery(underlyingError: .readerBusy), .readerBusy),
            (CancellationError(), .commandCancelled(from: .app)),
        ])
    func a22Causes(_ cause: any Error, _ error: UnderlyingError) {
        #expect(UnderlyingError(cause: cause) == error)
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
