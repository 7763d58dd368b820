import SmartCard

/// The outcomes of Kernel 3 with all their parameters (EMV Contactless Book C-3, 5 and 6, and Annex B; Book A, 6.2),
/// except for the languages of their requests, which ``Kernel3/next(_:)`` sets.
extension Kernel3 {
    /// Book C-3, 5.9.1.1.
    func approved(_ cvm: Outcome.CVM, _ reason: String) -> Outcome {
        var outcome = Outcome(
            .approved, cvm: cvm,
            userInterfaceRequest: request(cvm == .signature ? .approvedSign : .approved),
            dataRecord: dataRecord, discretionaryData: discretionaryData, reason: reason)
        outcome.effectiveDate = card[0x5F25]
        return outcome
    }

    /// Book C-3, 5.9.1.2.
    func declined(_ reason: String) -> Outcome {
        Outcome(
            .declined, cvm: Outcome.CVM.none, userInterfaceRequest: request(.notAuthorized),
            discretionaryData: discretionaryData, reason: reason)
    }

    /// Book C-3, 5.8.1.1 and 5.8.1.2.
    func onlineRequest(_ decision: CardDecision, _ cvm: Outcome.CVM, _ reason: String) -> Outcome {
        var outcome = Outcome(
            .onlineRequest, cvm: cvm, userInterfaceRequest: request(cvm == .onlinePIN ? .enterPIN : .authorizing),
            dataRecord: dataRecord, discretionaryData: discretionaryData, reason: reason)
        outcome.effectiveDate = card[0x5F25]
        // The card may be presented again to receive the issuer's data.
        if terminalTransactionQualifiers.contains(.issuerUpdateProcessing),
            decision.qualifiers?.contains(.issuerUpdateProcessingSupported) == true
        {
            outcome.start = .b
            outcome.onlineResponseData = .emvData
            outcome.userInterfaceRequestOnRestart = UserInterfaceRequest(.presentCardAgain, .readyToRead)
        }
        return outcome
    }

    /// Book C-3, 6.2: the transaction has been decided; the results of the issuer update are handed out.
    func complete(_ update: IssuerUpdate) -> Outcome {
        let results = update.scriptResults
        return Outcome(
            .endApplication,
            userInterfaceRequest: UserInterfaceRequest(.cardReadRemoveCard, .cardReadSuccessfully),
            discretionaryData: results.isEmpty ? nil : DataRecord([.init(0x9F5B, results)]),
            reason: update.isInterrupted
                ? "the card left before all of the issuer's message had been passed on to it"
                : "the issuer's message has been passed on to the card")
    }

    /// Book C-3 has no CVM results, 9F34.
    func receiptFacts(_ outcome: Outcome) -> ReceiptFacts? {
        activation.receiptFacts(outcome.cvm) { tag in
            switch tag {
            case 0x95: terminalValue(tag)
            case 0x9F27: card.cryptogramInformationData.map { [$0] }
            case 0x9F34: nil
            default: card[tag]
            }
        }
    }

    private func request(_ message: UserInterfaceRequest.Message) -> UserInterfaceRequest {
        UserInterfaceRequest(
            message, .cardReadSuccessfully,
            value: balance.map { .balance($0, currency: activation.transaction.currency) })
    }

    /// Book C-3, 4.3.1.1: tag 9F5D, twelve digits.
    private var balance: UInt64? {
        guard options.displaysAvailableOfflineSpendingAmount, let value = card[0x9F5D], value.count == 6 else {
            return nil
        }
        return UInt64(value.hex)
    }

    private var discretionaryData: DataRecord? {
        guard balance != nil, let value = card[0x9F5D] else { return nil }
        return DataRecord([.init(0x9F5D, value)])
    }

    /// Book C-3, Annex B, EMV mode.
    private var dataRecord: DataRecord {
        var record = DataRecord()
        for (tag, source) in Self.dataRecordElements {
            record[tag] =
                switch source {
                case .card: card[tag]
                case .terminal: terminalValue(tag)
                }
        }
        if activation.transaction.kind != .purchaseWithCashback { record[0x9F03] = nil }
        if card.panSequenceNumber == nil { record[.panSequenceNumber] = nil }
        // Book C-3, 4.1.1.1: the reader does not set the payment transaction technology of byte 4.
        if var formFactor = card[.formFactorIndicator], formFactor.count >= 4 {
            formFactor[3] &= ~Self.paymentTransactionTechnology
            record[.formFactorIndicator] = formFactor
        }
        return record
    }

    /// The lower half of byte 4 of the Form Factor Indicator.
    private static let paymentTransactionTechnology: UInt8 = 0x0F

    private enum Source { case card, terminal }

    private static let dataRecordElements: [(TLVTag, Source)] = [
        (0x9F02, .terminal), (0x9F03, .terminal), (0x9F26, .card), (0x82, .card), (0x9F36, .card), (0x5F34, .card),
        (0x9F7C, .card), (0x9F6E, .card), (0x9F24, .card), (0x9F10, .card), (0x9F39, .terminal),
        (0x9F33, .terminal), (0x9F1A, .terminal), (0x95, .terminal), (0x57, .card), (0x5F2A, .terminal),
        (0x9A, .terminal), (0x9C, .terminal), (0x9F37, .terminal),
    ]
}

extension Kernel3.Termination {
    static func endApplication(_ reason: String) -> Self {
        Self(
            outcome: Outcome(
                .endApplication,
                userInterfaceRequest: UserInterfaceRequest(.insertSwipeOrTryAnotherCard, .processingError),
                reason: reason))
    }

    static func missing(_ tag: TLVTag) -> Self { endApplication("the card does not give \(tag)") }

    /// Book C-3, 5.2.2.2, 5.5.1.3, 5.5.1.4 and 5.9.1.3.
    static func tryAnotherInterface(_ message: UserInterfaceRequest.Message, _ reason: String) -> Self {
        Self(
            outcome: Outcome(
                .tryAnotherInterface, userInterfaceRequest: UserInterfaceRequest(message, .processingError),
                alternateInterfacePreference: message == .insertCard ? .contactChip : nil, reason: reason))
    }

    /// Book C-3, 5.2.2.2: the cardholder has to act on the device, and has 1.3 seconds for it.
    static var seePhone: Self {
        Self(
            outcome: Outcome(
                .tryAgain, start: .b,
                userInterfaceRequest: UserInterfaceRequest(.seePhone, .processingError, holdTime: 1300),
                userInterfaceRequestOnRestart: UserInterfaceRequest(nil, .readyToRead),
                fieldOff: 1300, reason: "the cardholder has to confirm on the device"))
    }

    /// Book C-3, 4.1.1.2: the card left, or cannot be understood.
    static var tryAgain: Self {
        Self(
            outcome: Outcome(
                .tryAgain, start: .b,
                userInterfaceRequestOnRestart: UserInterfaceRequest(.presentCardAgain, .readyToRead),
                reason: "communication error"))
    }
}
