import SmartCard

/// The Error Indication, DF8115, 6 bytes (EMV Contactless Book C-2, A.1).
struct ErrorIndication: Hashable, Sendable {
    enum Level2: UInt8 {
        case ok = 0x00
        case cardDataMissing = 0x01
        case authenticationFailed = 0x02
        case statusBytes = 0x03
        case parsingError = 0x04
        case maximumLimitExceeded = 0x05
        case cardDataError = 0x06
        case magStripeNotSupported = 0x07
        case dataStorageReadError = 0x0B
        case dataStorageWriteError = 0x0C
        case dataStorageDataError = 0x0D
        case dataStorageNoMatchingCryptogram = 0x0E
    }

    enum Level3: UInt8 {
        case ok = 0x00
        case timeOut = 0x01
    }

    var l1: CommunicationError?
    var l2 = Level2.ok
    var l3 = Level3.ok
    var status: StatusWord?
    var message: UserInterfaceRequest.Message?

    var bytes: [UInt8] {
        [l1?.l1Error ?? 0, l2.rawValue, l3.rawValue, status?.sw1 ?? 0, status?.sw2 ?? 0, message?.rawValue ?? 0xFF]
    }
}

/// The outcomes of Kernel 2 (EMV Contactless Book C-2, A.1, Outcome Parameter Set, and the OUT signals of 6).
extension Kernel2 {
    /// Returns an outcome with the parameters that all outcomes share.
    func outcome(
        _ kind: Outcome.Kind, start: Outcome.Start? = nil, request: UserInterfaceRequest? = nil,
        onRestart: UserInterfaceRequest? = nil, hasDataRecord: Bool = false, error: ErrorIndication = ErrorIndication(),
        reason: String
    ) -> Outcome {
        var outcome = Outcome(
            kind, start: start, cvm: cvm, userInterfaceRequest: request, userInterfaceRequestOnRestart: onRestart,
            dataRecord: hasDataRecord ? dataRecord : nil, discretionaryData: discretionaryData(error),
            receipt: receipt, fieldOff: kind == .selectNext ? nil : fieldOff, reason: reason)
        outcome.isAuthentic = isAuthentic
        return outcome
    }

    /// Returns the outcome for an unusable card (Invalid Response): END APPLICATION with message 1C, and a data record
    /// if the card may have written (S910.50 to S910.53).
    func notThisCard(
        _ error: ErrorIndication.Level2, status: StatusWord? = nil, l1: CommunicationError? = nil, _ reason: String
    ) -> Termination {
        let message = UserInterfaceRequest.Message.insertSwipeOrTryAnotherCard
        var kernel = self
        // S11.91 and S11.92
        if let forgotten, forgotten.data.mayHaveBeenWritten { kernel.abandoned = forgotten.data }
        return Termination(
            outcome: kernel.outcome(
                .endApplication,
                request: UserInterfaceRequest(message, .notReady, holdTime: messageHoldTime),
                hasDataRecord: writesDataStorage,
                error: ErrorIndication(l1: l1, l2: error, status: status, message: message), reason: reason))
    }

    func notThisCard(_ response: ResponseAPDU, to command: String) -> Termination {
        notThisCard(.statusBytes, status: response.status, "\(command): \(response.status)")
    }

    /// SELECT NEXT, Start C.
    func selectNext(
        _ error: ErrorIndication.Level2, status: StatusWord? = nil, _ reason: String
    ) -> Termination {
        Termination(
            outcome: outcome(.selectNext, start: .c, error: ErrorIndication(l2: error, status: status), reason: reason))
    }

    /// Returns the outcome for a card that left or cannot be understood: END APPLICATION with Start B.
    func presentAgain(_ error: CommunicationError) -> Termination {
        let message = UserInterfaceRequest.Message.presentCardAgain
        return Termination(
            outcome: outcome(
                .endApplication, start: .b, onRestart: UserInterfaceRequest(message, .readyToRead),
                error: ErrorIndication(l1: error, message: message), reason: "communication error"))
    }

    /// The terminal did not answer (S2.3, S6.3, S8.3).
    var timeOut: Termination {
        Termination(
            outcome: outcome(
                .endApplication, error: ErrorIndication(l3: .timeOut),
                reason: "the terminal does not give what the kernel needs"))
    }

    /// The message of the phone message table, DF8131, for the card's POS cardholder interaction information, DF4B
    /// (S910.73).
    var phoneMessage: UserInterfaceRequest {
        let table = data[.phoneMessageTable] ?? []
        let information = data[.posCardholderInteractionInformation] ?? []
        for start in stride(from: 0, through: table.count - 8, by: 8) {
            let row = Array(table[start..<start + 8])
            if (0..<3).allSatisfy({ row[$0] & (information.count > $0 ? information[$0] : 0) == row[$0 + 3] }) {
                return UserInterfaceRequest(
                    UserInterfaceRequest.Message(rawValue: row[6]),
                    UserInterfaceRequest.Status(rawValue: row[7]) ?? .notReady, holdTime: messageHoldTime)
            }
        }
        return UserInterfaceRequest(.notAuthorized, .notReady, holdTime: messageHoldTime)
    }

    /// Has the cardholder act on the device and present it again (S910.78.1 to S910.80, S13.44, S14.22).  The phone's
    /// message stays until then.
    ///
    /// The field always goes off for the hold time, so that the device is not read repeatedly in the meantime.
    ///
    /// - Parameter status: the status of the message; nil for that of the phone message table.
    mutating func seePhone(_ status: UserInterfaceRequest.Status? = nil) -> KernelStep {
        var message = phoneMessage
        if let status { message.status = status }
        shown.append(message)
        (message.status, message.holdTime) = (.readyToRead, 0)
        var outcome = outcome(
            .endApplication, start: .b, onRestart: message, hasDataRecord: true,
            reason: "the cardholder has to confirm on the device")
        outcome.fieldOff = holdTime
        return KernelStep(.outcome(outcome))
    }

    private static let emvModeFacts: Set<TLVTag> = [
        .applicationCryptogram, .cryptogramInformationData, .terminalVerificationResults, .cvmResults,
    ]

    /// Mag-stripe mode has neither a cryptogram nor verification results, whatever the kernel began with.
    func receiptFacts(_ outcome: Outcome) -> ReceiptFacts? {
        let isMagStripe = mode == .magStripe
        return activation.receiptFacts(outcome.cvm) { tag in
            isMagStripe && Self.emvModeFacts.contains(tag) ? nil : data[tag]
        }
    }

    // MARK: Data record and discretionary data

    /// FF8105 (Book C-2, tables 4.7 and 4.10).
    var dataRecord: DataRecord { record(mode == .magStripe ? Self.magStripeRecord : Self.emvRecord) }

    /// FF8106 (Book C-2, tables 4.8 and 4.9); the error alone before the card's mode is known.
    func discretionaryData(_ error: ErrorIndication) -> DataRecord {
        var record =
            switch mode {
            case .emv: record(Self.emvDiscretionaryData)
            case .magStripe: record(Self.magStripeDiscretionaryData)
            case nil: DataRecord()
            }
        record[.errorIndication] = error.bytes
        if let abandoned { record[.tornRecord] = abandoned.encoded }
        return record
    }

    private func record(_ tags: [TLVTag]) -> DataRecord {
        DataRecord(tags.compactMap { tag in data[tag].map { DataRecord.Element(tag, $0) } })
    }

    private static let emvRecord: [TLVTag] = [
        0x9F02, 0x9F03, 0x9F26, 0x5F24, 0x82, 0x50, 0x5A, 0x5F34, 0x9F12, 0x9F36, 0x9F07, 0x9F09, 0x9F27, 0x9F34, 0x84,
        0x9F1E, 0x9F10, 0x9F11, 0x9F24, 0x9F33, 0x9F1A, 0x9F35, 0x95, 0x57, 0x9F53, 0x5F2A, 0x9A, 0x9C, 0x9F37,
    ]
    private static let magStripeRecord: [TLVTag] = [0x50, 0x9F12, 0x84, 0x9F11, 0x9F6D, 0x9F24, 0x56, 0x9F6B]
    private static let emvDiscretionaryData: [TLVTag] = [
        0x9F5D, 0x9F42, 0xDF8105, 0xDF8104, 0xDF8102, 0xDF810B, 0xDF810E, 0xDF810F, 0x9F6E,
    ]
    private static let magStripeDiscretionaryData: [TLVTag] = [0x9F5D, 0xDF812A, 0xDF812B, 0x9F6E]
}

extension CommunicationError {
    /// The error's value in the Error Indication (EMV Contactless Book C-2, A.1.64, byte 1, L1).
    fileprivate var l1Error: UInt8 {
        switch self {
        case .timeout: 1
        case .transmission: 2
        case .protocol: 3
        }
    }
}
