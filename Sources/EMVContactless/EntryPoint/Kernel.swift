public import SmartCard

/// A contactless kernel, as a value: it is told what happened and says what to do next.  It does no I/O, has no clock
/// and no random numbers of its own, so that a table, a trace or a fuzzer can play card and terminal.
///
/// Entry Point makes one for each activation (EMV Contactless Book B, 3.4) and passes events on until it has an outcome.
public protocol Kernel: Sendable {
    init(_ activation: KernelActivation)

    /// - Returns: what to do next.  After an outcome it is not asked again.
    mutating func next(_ event: KernelEvent) -> KernelStep
}

/// What a kernel is told.
public enum KernelEvent: Sendable {
    /// Comes first, and once.
    case start
    /// The response to the command that the kernel sent, and how long it took from the command's first to the response's
    /// last byte, as far as the transport can tell.
    case response(ResponseAPDU, after: Duration)
    /// There is no response: the card left the field, timed out, or broke the protocol (Book A, L1RSP).
    case communicationError(CommunicationError)
    /// The terminal's answer to ``KernelStep/Action/exchange(_:)``: data objects, none if it has none.
    case terminalData(DataRecord)
}

/// What a kernel wants done: the requests are shown, then the action is carried out.
public struct KernelStep: Sendable {
    public enum Action: Sendable {
        case send(CommandAPDU)
        /// The terminal is told, and asked; ``KernelEvent/terminalData(_:)`` follows.
        case exchange(DataExchange)
        case outcome(Outcome)
    }

    public var userInterfaceRequests: [UserInterfaceRequest]
    public var action: Action

    public init(_ action: Action, showing requests: [UserInterfaceRequest] = []) {
        self.action = action
        userInterfaceRequests = requests
    }
}

/// All that a kernel is given when it is activated (Book B, 3.4.1).
public struct KernelActivation: Sendable {
    public let combination: Combination
    /// What pre-processing found for the combination.
    public let indicators: PreProcessingIndicators
    /// The name by which the application was selected: its ADF name, with the extended selection if that was appended.
    public let name: [UInt8]
    /// The response to the SELECT of the application, with its FCI.
    public let selectResponse: ResponseAPDU
    /// With the unpredictable number of this activation.
    public let transaction: Transaction
    /// Others that no card has been told, 4 bytes each.  Kernel 2 takes up to three of them, and
    /// ends the application without.
    public let furtherUnpredictableNumbers: [[UInt8]]
    /// What the terminal has for a card that asks, by tag: its own, the combination's and the transaction's data, and the
    /// TTQ as pre-processing left it.
    public let terminalData: [TLVTag: [UInt8]]
    /// With the keys that count for the application, on the day of the transaction.
    public let offlineDataAuthentication: OfflineDataAuthentication
    /// Cards that must not be used.
    public let exceptionFile: any ExceptionFile
    /// The issuer's answer, where the kernel is activated again after an online request.
    public let onlineResponse: OnlineResponse?
    /// Transactions that a card may have to recover.
    public let tornTransactions: TornTransactionLog

    public init(
        combination: Combination, indicators: PreProcessingIndicators, name: [UInt8], selectResponse: ResponseAPDU,
        transaction: Transaction, furtherUnpredictableNumbers: [[UInt8]], terminalData: [TLVTag: [UInt8]],
        offlineDataAuthentication: OfflineDataAuthentication, exceptionFile: any ExceptionFile = NoExceptionFile(),
        onlineResponse: OnlineResponse? = nil, tornTransactions: TornTransactionLog = TornTransactionLog()
    ) {
        self.combination = combination
        self.indicators = indicators
        self.name = name
        self.selectResponse = selectResponse
        self.transaction = transaction
        self.furtherUnpredictableNumbers = furtherUnpredictableNumbers
        self.terminalData = terminalData
        self.offlineDataAuthentication = offlineDataAuthentication
        self.exceptionFile = exceptionFile
        self.onlineResponse = onlineResponse
        self.tornTransactions = tornTransactions
    }
}

/// The answer to the SELECT may hold account data: it prints as its combination, `activation of Kernel 2`.
extension KernelActivation: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "activation of \(combination.kernel)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}

/// What came back from the issuer.
public struct OnlineResponse: Hashable, Sendable {
    /// The Authorisation Response Code, tag 8A; nil if the issuer could not be reached.
    public var authorisationResponseCode: [UInt8]?
    /// The Issuer Authentication Data, tag 91.
    public var issuerAuthenticationData: [UInt8]?
    /// Issuer scripts, templates 71 and 72, each as BER-TLV, in the order in which they are to be carried out.
    public var scripts: [[UInt8]]

    public init(
        authorisationResponseCode: [UInt8]? = nil, issuerAuthenticationData: [UInt8]? = nil, scripts: [[UInt8]] = []
    ) {
        self.authorisationResponseCode = authorisationResponseCode
        self.issuerAuthenticationData = issuerAuthenticationData
        self.scripts = scripts
    }

    /// Whether there is something in it for the card.
    public var hasDataForCard: Bool { issuerAuthenticationData != nil || !scripts.isEmpty }
}

/// Account numbers that the terminal has been told to refuse (EMV Book 4, 6.3.5; Book C-3, 5.5.1.2).
public protocol ExceptionFile: Sendable {
    /// - Parameter sequenceNumber: tag 5F34; nil if the card has none.
    func contains(_ pan: PAN, sequenceNumber: UInt8?) -> Bool
}

/// An exception file without entries.
public struct NoExceptionFile: ExceptionFile {
    public init() {}
    public func contains(_ pan: PAN, sequenceNumber: UInt8?) -> Bool { false }
}
