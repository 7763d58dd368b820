public import SmartCard

/// A contactless kernel, as a value: events go in, steps come out.  It does no I/O and has no clock, and
/// its unpredictable numbers come with its activation, so that a table, a trace or a fuzzer can play card and terminal.
///
/// Entry Point creates a kernel for each activation (EMV Contactless Book B, 3.4), and passes events to it until it
/// has an outcome.  ``Kernels`` registers it.
public protocol Kernel: Sendable {
    /// The options that a combination can set for this kernel.
    associatedtype Options: KernelOptions = NoKernelOptions

    /// The tags that the terminal's or the combination's data must contain.
    static var mandatoryData: [TLVTag] { get }
    /// The tags of templates, and of objects without a value, that the configuration may set.  The kernel reads or requests the
    /// value.
    static var requestableData: Set<TLVTag> { get }
    /// The kernel's own data objects whose values follow from the reader's abilities, and must not exceed them.
    static var advertisedData: AdvertisedData { get }

    /// Checks a combination of the kernel, after its general settings.
    ///
    /// - Parameters:
    ///   - combination: a combination whose kernel this is.
    ///   - options: the combination's, or the default.
    ///   - path: the place of the combination, the beginning of the error's path.
    /// - Throws: ``ConfigurationError`` at the first error.
    static func validate(_ combination: Combination, _ options: Options, at path: String) throws(ConfigurationError)

    /// Handles an event.
    ///
    /// - Returns: the next step.  After an outcome this is not called again.
    mutating func next(_ event: KernelEvent) -> KernelStep
}

extension Kernel {
    public static var mandatoryData: [TLVTag] { [] }
    public static var requestableData: Set<TLVTag> { [] }
    public static var advertisedData: AdvertisedData { "" }
    public static func validate(
        _ combination: Combination, _ options: Options, at path: String
    ) throws(ConfigurationError) {}
}

/// A kernel that needs nothing but its activation.
public protocol ActivatableKernel: Kernel {
    init(_ activation: KernelActivation)
}

/// An event for a kernel.
public enum KernelEvent: Sendable {
    /// The first event, which occurs once.
    case start
    /// The card responded to the kernel's command after this time: from the command's first byte to the response's
    /// last, as far as the transport can measure it.
    case response(ResponseAPDU, after: Duration)
    /// There is no response: the card left the field, timed out, or violated the protocol (Book A, L1RSP).
    case communicationError(CommunicationError)
    /// The terminal answered ``KernelStep/Action/exchange(_:)`` with data objects, or with none.
    case terminalData(DataRecord)
}

/// A step of a kernel: first show the requests, then carry out the action.
public struct KernelStep: Sendable {
    public enum Action: Sendable {
        case send(CommandAPDU)
        /// Exchange data with the terminal; ``KernelEvent/terminalData(_:)`` follows.
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

/// The data that a kernel receives when it is activated (Book B, 3.4.1).
public struct KernelActivation: Sendable {
    public let combination: Combination
    /// The kernel that is activated: the combination's, or Kernel 1 for a card that does not request the TTQ (Book B, 3.3.3.6).
    public let kernel: KernelIdentifier
    /// The start of Entry Point that led to this activation (Book B, 3).
    public let start: Outcome.Start
    /// True if Entry Point has started again in this transaction, after an outcome (Book B, 3: the Restart Flag).
    public let isRestart: Bool
    /// The pre-processing indicators of the combination.
    public let indicators: PreProcessingIndicators
    /// The name by which the application was selected: the ADF name, with the extended selection if that was appended.
    public let name: [UInt8]
    /// The response to the SELECT of the application, with its FCI.
    public let selectResponse: ResponseAPDU
    /// The transaction, with the unpredictable number of this activation.
    public let transaction: Transaction
    /// The source of further unpredictable numbers, which no card has received.
    public let unpredictableNumbers: UnpredictableNumbers
    /// The terminal's data for a card that requests it, by tag: the data of the terminal, the combination and the
    /// transaction, and the TTQ after pre-processing.
    public let terminalData: [TLVTag: [UInt8]]
    /// Offline data authentication, with the valid keys for the application on the day of the transaction.
    public let offlineDataAuthentication: OfflineDataAuthentication
    /// Cards that must not be used.
    public let exceptionFile: any ExceptionFile
    /// The issuer's answer, if the kernel is activated again after an online request.
    public let onlineResponse: OnlineResponse?
    /// The memory that the kernel handed out last, with ``Outcome/memory``; nil if it has none.
    public let memory: (any KernelMemory)?

    public init(
        combination: Combination, kernel: KernelIdentifier? = nil, start: Outcome.Start = .a, isRestart: Bool = false,
        indicators: PreProcessingIndicators, name: [UInt8], selectResponse: ResponseAPDU, transaction: Transaction,
        unpredictableNumbers: UnpredictableNumbers = UnpredictableNumbers(), terminalData: [TLVTag: [UInt8]],
        offlineDataAuthentication: OfflineDataAuthentication, exceptionFile: any ExceptionFile = NoExceptionFile(),
        onlineResponse: OnlineResponse? = nil, memory: (any KernelMemory)? = nil
    ) {
        self.combination = combination
        self.kernel = kernel ?? combination.kernel
        self.start = start
        self.isRestart = isRestart
        self.indicators = indicators
        self.name = name
        self.selectResponse = selectResponse
        self.transaction = transaction
        self.unpredictableNumbers = unpredictableNumbers
        self.terminalData = terminalData
        self.offlineDataAuthentication = offlineDataAuthentication
        self.exceptionFile = exceptionFile
        self.onlineResponse = onlineResponse
        self.memory = memory
    }
}

extension KernelActivation {
    /// Returns the combination's options, or the default if it sets none for this kernel.
    public func options<Options: KernelOptions>(_ type: Options.Type = Options.self) -> Options {
        combination.options as? Options ?? Options()
    }
}

/// The response to SELECT may contain account data: an activation prints as its combination, `activation of Kernel 2, start A`.
extension KernelActivation: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "activation of \(kernel), start \(start.rawValue)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}

/// The issuer's answer.
public struct OnlineResponse: Hashable, Sendable {
    /// The Authorisation Response Code, tag 8A; nil if the issuer could not be reached.
    public var authorizationResponseCode: [UInt8]?
    /// The Issuer Authentication Data, tag 91.
    public var issuerAuthenticationData: [UInt8]?
    /// Issuer scripts, templates 71 and 72, each as BER-TLV, in order of execution.
    public var scripts: [[UInt8]]

    public init(
        authorizationResponseCode: [UInt8]? = nil, issuerAuthenticationData: [UInt8]? = nil, scripts: [[UInt8]] = []
    ) {
        self.authorizationResponseCode = authorizationResponseCode
        self.issuerAuthenticationData = issuerAuthenticationData
        self.scripts = scripts
    }

    /// True if the answer contains data for the card.
    public var hasDataForCard: Bool { issuerAuthenticationData != nil || !scripts.isEmpty }
}

/// A list of account numbers that the terminal must refuse (EMV Book 4, 6.3.5; Book C-3, 5.5.1.2).
public protocol ExceptionFile: Sendable {
    /// Returns true if the list contains the account number.
    ///
    /// - Parameters:
    ///   - pan: the account number, tag 5A.
    ///   - sequenceNumber: tag 5F34; nil if the card has none.
    func contains(_ pan: PAN, sequenceNumber: UInt8?) -> Bool
}

/// An exception file without entries.
public struct NoExceptionFile: ExceptionFile {
    public init() {}
    public func contains(_ pan: PAN, sequenceNumber: UInt8?) -> Bool { false }
}
