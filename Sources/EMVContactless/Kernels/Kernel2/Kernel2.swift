import SmartCard

/// Kernel 2, for Mastercard and Maestro cards (EMV Contactless Book C-2): M/Chip cards in EMV mode, and older cards in
/// mag-stripe mode.
///
/// It is the book's state machine with one command at a time: it processes a response completely before it sends the
/// next command, while the book's kernel sends that first.  The terminal answers the kernel's requests for data (DEK)
/// before the next command (DET).  <doc:MastercardKernel> lists the data objects that configure the kernel, and the functions
/// that it lacks.
///
/// For each step of Book C-2 that a comment cites, such as S456.14, the rules table of the tests records whether it
/// could be checked against other implementations; the text of the book was not available.
public struct Kernel2: ActivatableKernel {
    /// A state, with its number in Book C-2, 6.  The other states of the book's diagram, S3R1, S456, S78 and S910, are
    /// shared parts of several states; S4' waits for the response to a command that is not sent here.
    package enum State: String, Sendable, CaseIterable {
        case idle = "S1"
        case waitingForPDOLData = "S2"
        case waitingForProcessingOptions = "S3"
        case waitingForRelayResistanceData = "SR1"
        case waitingForRecord = "S4"
        case waitingForData = "S5"
        case waitingForFirstWriteFlag = "S6"
        case waitingForMagStripeRecord = "S7"
        case waitingForMagStripeFirstWriteFlag = "S8"
        case waitingForCryptogram = "S9"
        case waitingForRecoveredCryptogram = "S10"
        case waitingForCryptogramAfterRecovery = "S11"
        case waitingForPutDataBeforeCryptogram = "S12"
        case waitingForChecksum = "S13"
        case waitingForChecksumOnDevice = "S14"
        case waitingForPutDataAfterCryptogram = "S15"
        case waitingForBalanceBeforeCryptogram = "S16"
        case waitingForBalanceAfterCryptogram = "S17"
        case ended = "end"
    }

    enum Mode { case emv, magStripe }

    /// An early end of the processing.
    struct Termination: Error {
        let outcome: Outcome
    }

    let activation: KernelActivation
    var data: TLVDatabase
    package var state = State.idle
    /// The mode; nil until the card's AIP determines it.
    var mode: Mode?
    /// The requests to show with the next step (MSG).
    var shown: [UserInterfaceRequest] = []

    /// The records that remain to be read.
    var records: RecordReader?
    /// Tags To Read Yet.
    var tagsToRead: [TLVTag] = []
    /// The tag that GET DATA requests (Active Tag).
    var activeTag: TLVTag?
    /// Tags To Write Yet Before Gen AC, and after.
    var toWriteBefore: [DataRecord.Element] = []
    var toWriteAfter: [DataRecord.Element] = []

    /// DF8106 and FF8104, for the next DEK.
    var exchange = DataExchange()
    /// True if the exchange is due before the next command.
    var isExchangeDue = false
    /// The command to send after the terminal's answer.
    var pendingCommand: CommandAPDU?

    /// Reader Contactless Transaction Limit: DF8124 or DF8125.
    var transactionLimit: UInt64 = 0
    /// True to request CDA (ODA Status).
    var requiresCDA = false
    var cryptogramType = ApplicationCryptogramType.tc
    var cvm: Outcome.CVM?
    var receipt = false
    var fieldOff: Int?
    /// The result of CDA; nil if it was not performed.
    var isAuthentic: Bool?
    /// The response to GENERATE AC or RECOVER AC as the card sent it.
    var cryptogramResponse: [UInt8] = []
    /// The number of unpredictable digits (nUN).
    var unpredictableDigits = 0

    var tornTransactions: TornTransactionLog
    /// Torn Temp Record: the transaction that the card is asked to recover.
    var recovering: TornTransactionLog.Record?
    /// The same, if the card has generated a new cryptogram instead (S11.5).
    var forgotten: TornTransactionLog.Record?
    /// Torn Record, FF8101: a record that will no longer be recovered.
    var abandoned: DataRecord?

    public init(_ activation: KernelActivation) {
        self.activation = activation
        tornTransactions = activation.memory as? TornTransactionLog ?? TornTransactionLog()
        data = TLVDatabase(activation)
    }

    public mutating func next(_ event: KernelEvent) -> KernelStep {
        var step: KernelStep
        do { step = try act(on: event) } catch { step = KernelStep(.outcome(error.outcome)) }
        step.userInterfaceRequests = shown + step.userInterfaceRequests
        shown = []
        // Book C-2, S1.7: the cardholder's languages go with every message.
        let languages = activation.languagePreference
        for index in step.userInterfaceRequests.indices {
            step.userInterfaceRequests[index].languagePreference = languages
        }
        if case .outcome(var outcome) = step.action {
            outcome.userInterfaceRequest?.languagePreference = languages
            outcome.userInterfaceRequestOnRestart?.languagePreference = languages
            outcome.memory = tornTransactions
            if outcome.kind.isDecision { outcome.receiptFacts = receiptFacts(outcome) }
            step.action = .outcome(outcome)
            state = .ended
        }
        return step
    }

    private mutating func act(on event: KernelEvent) throws(Termination) -> KernelStep {
        switch (state, event) {
        case (.idle, .start): try initiate()
        case (.idle, _), (.ended, _), (_, .start): throw unexpectedEvent
        case (_, .terminalData(let objects)): try takeTerminalData(objects)
        case (.waitingForPDOLData, _), (.waitingForFirstWriteFlag, _), (.waitingForMagStripeFirstWriteFlag, _):
            throw unexpectedEvent
        case (_, .communicationError(let error)): try takeCommunicationError(error)
        case (_, .response(let response, let duration)): try take(response, after: duration)
        }
    }

    private var unexpectedEvent: Termination {
        Termination(outcome: outcome(.endApplication, reason: "an event that does not follow from the step before"))
    }

    /// RA
    private mutating func take(_ response: ResponseAPDU, after duration: Duration) throws(Termination) -> KernelStep {
        switch state {
        case .waitingForProcessingOptions: try takeProcessingOptions(response)
        case .waitingForRelayResistanceData: try takeRelayResistanceData(response, after: duration)
        case .waitingForRecord: try takeRecord(response)
        case .waitingForData: try takeData(response)
        case .waitingForMagStripeRecord: try takeMagStripeRecord(response)
        case .waitingForCryptogram: try takeCryptogram(response)
        case .waitingForRecoveredCryptogram: try takeRecoveredCryptogram(response)
        case .waitingForCryptogramAfterRecovery: try takeCryptogramAfterRecovery(response)
        case .waitingForPutDataBeforeCryptogram: try takePutDataBeforeCryptogram(response)
        case .waitingForChecksum: try takeChecksum(response)
        case .waitingForChecksumOnDevice: try takeChecksumOnDevice(response)
        case .waitingForPutDataAfterCryptogram: takePutDataAfterCryptogram(response)
        case .waitingForBalanceBeforeCryptogram: try takeBalanceBeforeCryptogram(response)
        case .waitingForBalanceAfterCryptogram: try takeBalanceAfterCryptogram(response)
        case .idle, .waitingForPDOLData, .waitingForFirstWriteFlag, .waitingForMagStripeFirstWriteFlag, .ended:
            throw unexpectedEvent
        }
    }

    /// L1RSP
    private mutating func takeCommunicationError(_ error: CommunicationError) throws(Termination) -> KernelStep {
        switch state {
        // S3.4 and S3.5
        case .waitingForProcessingOptions:
            throw Termination(
                outcome: outcome(
                    .tryAgain, start: .b, error: ErrorIndication(l1: error), reason: "communication error"))
        case .waitingForCryptogram: throw tornTransaction(error)
        case .waitingForCryptogramAfterRecovery: throw tornTransactionAfterRecovery(error)
        // S15.1: the cryptogram is there.
        case .waitingForPutDataAfterCryptogram: return concludeAfterPutData()
        // S17.1
        case .waitingForBalanceAfterCryptogram: return try concludeCryptogram()
        // SR1.4, S4.5, S5.5, S7.5, S10.5, S12.5, S13.4, S14.4, S16.2
        default: throw presentAgain(error)
        }
    }

    /// Sends a command, after data that is due for the terminal.
    mutating func send(_ command: CommandAPDU, then state: State) -> KernelStep {
        self.state = state
        guard isExchangeDue else { return KernelStep(.send(command)) }
        pendingCommand = command
        return exchangeData()
    }
}

/// Contains clear account data, and prints as its state: `Kernel 2, S4`.
extension Kernel2: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "Kernel 2, \(state.rawValue)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}
