public import SmartCard

/// Entry Point (EMV Contactless Book B): finds out what may be paid for contactless, has a card presented, chooses one of its
/// applications and the kernel for it, and passes that kernel's outcome on.
///
/// It is a value that does no I/O: it is told what happened and says what to do next, as the kernels do.  For transactions
/// with a reader there is ``ContactlessTerminal``; for looking at cards, ``CardInspector``, which does what no terminal
/// may.
public struct EntryPoint: Sendable {
    /// What Entry Point is told.
    public enum Event: Sendable {
        /// Start A: a transaction begins, with pre-processing.
        case startA(Transaction)
        /// Start B: a transaction begins without pre-processing; the TTQ are as configured.
        case startB(Transaction)
        /// There is one card in the field, activated.
        case cardPresent
        /// There is more than one card in the field.
        case collision
        /// There is no longer more than one card in the field.
        case collisionOver
        /// The response to the command that was sent, and how long it took.
        case response(ResponseAPDU, after: Duration)
        /// There is no response.
        case communicationError(CommunicationError)
        /// The terminal's answer to ``Step/Action-swift.enum/exchange(_:)``: data objects, none if it has none.
        case terminalData(DataRecord)
        /// The field has been off for as long as it was to be.
        case fieldIsOff
        /// The issuer's answer to an online request, where ``Outcome/isRestarted(by:)``.
        case onlineResponse(OnlineResponse)
    }

    /// What Entry Point wants done: the requests are shown, then the action is carried out.
    public struct Step: Sendable {
        public enum Action: Sendable {
            /// The field is switched on and polled; ``Event/cardPresent`` or ``Event/collision`` follows.
            case activateField
            /// ``Event/response(_:after:)`` or ``Event/communicationError(_:)`` follows.
            case send(CommandAPDU)
            /// A kernel has something for the terminal, or wants something of it; ``Event/terminalData(_:)`` follows.
            case exchange(DataExchange)
            /// The field is switched off for this many milliseconds; ``Event/fieldIsOff`` follows.
            case switchFieldOff(milliseconds: Int)
            /// The end, but for an online response that restarts it.
            case finish(FinalOutcome)
        }

        public var userInterfaceRequests: [UserInterfaceRequest]
        /// What to write into a log: sentences without card data.
        public var notes: [String]
        public var action: Action
    }

    /// After how many activations of the field in a row that came to nothing the card is given up.
    public static let maximumActivations = 16
    /// How many commands a kernel may send in one activation; what it exchanges with the terminal counts as well.
    public static let maximumCommands = 1024

    /// How many directory entries of the PPSE are read, and how many candidates are made of them, at the most.  A PPSE of 256
    /// bytes, the most that is read with short lengths, has no room for thirty entries.
    public static let maximumCandidates = 128

    private(set) var configuration: ReaderConfiguration
    let kernels: [KernelIdentifier: any Kernel.Type]
    private let keys: CAPublicKeys
    private let exceptionFile: any ExceptionFile
    private let preferredApplications: [AID]
    private var random: any RandomNumberGenerator & Sendable

    private enum State: Sendable {
        case idle
        case fieldOff(then: Outcome)
        case polling
        case selectingPPSE
        case selecting(Candidate)
        case kernel(commands: Int)
        case finished(Outcome)
    }
    private var state = State.idle
    /// The one that was activated last.
    private var kernel: (any Kernel)?
    private var transaction: Transaction?
    /// The transaction's own, until it has been used.
    private var unpredictableNumber: [UInt8]?
    /// Those after it, in their order.
    private(set) var furtherUnpredictableNumbers: [[UInt8]] = []
    /// The combinations for the transaction, with what pre-processing found.
    private var combinations: [(combination: Combination, indicators: PreProcessingIndicators)] = []
    private var candidates = CandidateList()
    /// The combination that was selected last, and the answer of the card.
    private var selected: (candidate: Candidate, kernel: KernelIdentifier, response: ResponseAPDU)?
    private var onlineResponse: OnlineResponse?
    /// Transactions that a card may have to recover (Book C-2, 4.4).  They stay from one transaction to the next.
    public var tornTransactions = TornTransactionLog()
    /// The combination that the issuer's data are for, to be selected again without a look at the PPSE.
    private var resumed: Candidate?
    private var activations = 0
    private var requests: [UserInterfaceRequest] = []
    private var notes: [String] = []

    /// - Parameters:
    ///   - kernels: the kernels that the reader has.
    ///   - keys: whose signatures it trusts.
    ///   - preferredApplications: of a card that has several, those that the reader takes before all others, whatever the
    ///     card prefers; the most wanted first.
    ///   - random: where the unpredictable numbers come from, but for the first, which is the transaction's.  A generator
    ///     whose numbers can be foretold is for tests.
    public init(
        configuration: ReaderConfiguration, kernels: [KernelIdentifier: any Kernel.Type] = [:],
        keys: CAPublicKeys = CAPublicKeys(), exceptionFile: any ExceptionFile = NoExceptionFile(),
        preferredApplications: [AID] = [],
        random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
    ) {
        self.configuration = configuration.advertised
        // Book B, 3.1.1.7: the terminal's floor limit, where a combination does not have another one.
        if let limit = configuration.terminal[0x9F1B] {
            for index in configuration.combinations.indices {
                self.configuration.combinations[index].data.merge([0x9F1B: limit]) { own, _ in own }
            }
        }
        self.kernels = kernels
        self.keys = keys
        self.exceptionFile = exceptionFile
        self.preferredApplications = preferredApplications
        self.random = random
    }

    /// - Returns: what to do next.  An event that does not follow from the step before ends the transaction.
    public mutating func next(_ event: Event) -> Step {
        requests = []
        notes = []
        let action = act(on: event)
        return Step(userInterfaceRequests: requests, notes: notes, action: action)
    }

    private mutating func act(on event: Event) -> Step.Action {
        switch (state, event) {
        case (.idle, .startA(let transaction)), (.finished, .startA(let transaction)):
            begin(transaction)
            return preProcess(transaction)
        case (.idle, .startB(let transaction)), (.finished, .startB(let transaction)):
            begin(transaction)
            // 3.2.1.1
            combinations = combinations(for: transaction).map {
                ($0, PreProcessingIndicators(withoutPreProcessing: $0))
            }
            return activateProtocol(after: nil)
        case (.fieldOff(let outcome), .fieldIsOff):
            return proceed(after: outcome)
        case (.polling, .collision):
            // 3.2.1.4
            requests.append(UserInterfaceRequest(.presentOneCardOnly, .processingError))
            return .activateField
        case (.polling, .collisionOver):
            // 3.2.1.5
            requests.append(UserInterfaceRequest(.presentOneCardOnly, .readyToRead))
            return .activateField
        case (.polling, .cardPresent):
            return selectCombination()
        // 3.3.3.7
        case (.polling, .communicationError), (.selectingPPSE, .communicationError), (.selecting, .communicationError):
            notes.append("communication error in combination selection")
            return activateProtocol(after: nil)
        case (.selectingPPSE, .response(let response, _)):
            readDirectory(response)
            return selectFinalCombination()
        case (.selecting(let candidate), .response(let response, _)):
            return select(candidate, response)
        case (.kernel(let commands), .response(let response, let duration)):
            return tellKernel(.response(response, after: duration), commands)
        case (.kernel(let commands), .communicationError(let error)):
            return tellKernel(.communicationError(error), commands)
        case (.kernel(let commands), .terminalData(let objects)):
            return tellKernel(.terminalData(objects), commands)
        case (.finished(let outcome), .onlineResponse(let response)) where outcome.isRestarted(by: response):
            return restart(outcome, response)
        default:
            return end("an event that does not follow from the step before")
        }
    }
}

// MARK: - Pre-processing (Book B, 3.1)

extension EntryPoint {
    private mutating func begin(_ transaction: Transaction) {
        self.transaction = transaction
        unpredictableNumber = transaction.unpredictableNumber
        furtherUnpredictableNumbers = []
        candidates = CandidateList()
        selected = nil
        onlineResponse = nil
        resumed = nil
        activations = 0
    }

    private func combinations(for transaction: Transaction) -> some Sequence<Combination> {
        configuration.combinations.lazy.filter { $0.transactionTypes.contains(transaction.kind) }
    }

    /// - Parameter outcome: that of a kernel which has it started again.
    private mutating func preProcess(_ transaction: Transaction, after outcome: Outcome? = nil) -> Step.Action {
        combinations = combinations(for: transaction).map { ($0, PreProcessingIndicators($0, transaction)) }
        // 3.1.1.13
        guard combinations.contains(where: { !$0.indicators.contactlessApplicationNotAllowed }) else {
            return finish(
                Outcome(
                    .tryAnotherInterface,
                    userInterfaceRequest: UserInterfaceRequest(.insertOrSwipeCard, .processingError),
                    reason: "no combination is allowed for this transaction"))
        }
        return activateProtocol(after: outcome)
    }
}

// MARK: - Protocol activation (Book B, 3.2)

extension EntryPoint {
    /// - Parameter outcome: that of a kernel which has it started again.
    private mutating func activateProtocol(after outcome: Outcome?) -> Step.Action {
        activations += 1
        guard activations <= Self.maximumActivations else { return end("the card cannot be read") }
        // 3.2.1.1
        if outcome == nil { candidates = CandidateList() }
        // 3.2.1.2
        requests.append(outcome?.userInterfaceRequestOnRestart ?? UserInterfaceRequest(.presentCard, .readyToRead))
        state = .polling
        return .activateField
    }
}

// MARK: - Combination selection (Book B, 3.3)

extension EntryPoint {
    private mutating func selectCombination() -> Step.Action {
        // 3.3.2.1
        if let resumed { return send(select: resumed) }
        // 3.3.2.2
        state = .selectingPPSE
        return .send(.select(Array("2PAY.SYS.DDF01".utf8)))
    }

    private mutating func readDirectory(_ response: ResponseAPDU) {
        candidates = CandidateList()
        // 3.3.2.3
        guard response.status == .success else { return notes.append("SELECT PPSE: \(response.status)") }
        do {
            let directory = try TLVList(response.data)
            let allowed = combinations.lazy.filter { !$0.indicators.contactlessApplicationNotAllowed }
            candidates = CandidateList(directory, allowed.map(\.combination), preferring: preferredApplications)
            if candidates.isCut {
                notes.append("PPSE: more than \(Self.maximumCandidates) applications, the rest is left out")
            }
        } catch {
            // An FCI that cannot be read has no directory entry (3.3.2.4).
            notes.append("PPSE: \(error)")
        }
    }

    private mutating func selectFinalCombination() -> Step.Action {
        // 3.3.2.6, 3.3.2.7
        guard let candidate = candidates.first else { return end("no application of the card can be used") }
        return send(select: candidate)
    }

    private mutating func send(select candidate: Candidate) -> Step.Action {
        state = .selecting(candidate)
        return .send(.select(candidate.name))
    }

    private mutating func select(_ candidate: Candidate, _ response: ResponseAPDU) -> Step.Action {
        // 3.3.3.5
        guard response.status == .success else {
            notes.append("SELECT \(candidate): \(response.status)")
            return selectNext()
        }
        var kernel = candidate.combination.kernel
        // 3.3.3.6
        if kernel == 3, DataElement.Scope(aid: candidate.combination.aid) == .visa, !Self.asksForTTQ(response) {
            guard kernels[1] != nil else {
                notes.append("the card wants Kernel 1 (Visa, JCB), which this reader does not have")
                return selectNext()
            }
            kernel = 1
        }
        selected = (candidate, kernel, response)
        return activateKernel()
    }

    private static func asksForTTQ(_ response: ResponseAPDU) -> Bool {
        guard let fci = try? TLVList(response.data), let list = fci[0x6F]?.children[0xA5]?.children[0x9F38],
            let pdol = try? DataObjectList(list.value)
        else { return false }
        return pdol.contains(0x9F66)
    }

    private mutating func selectNext() -> Step.Action {
        // 3.3.2.1: the issuer's data are for no other combination.
        guard resumed == nil else { return end("the application cannot be selected again") }
        candidates.removeFirst()
        return selectFinalCombination()
    }

    /// End Application (3.3.2.7, 3.3.3.5).
    private mutating func end(_ reason: String) -> Step.Action {
        finish(
            Outcome(
                .endApplication,
                userInterfaceRequest: UserInterfaceRequest(.insertSwipeOrTryAnotherCard, .readyToRead), reason: reason))
    }
}

// MARK: - Kernel activation (Book B, 3.4)

extension EntryPoint {
    private mutating func activateKernel() -> Step.Action {
        guard let selected, var transaction,
            let indicators = combinations.first(where: { $0.combination == selected.candidate.combination })?.indicators
        else { return end("no combination is selected") }
        // 3.4.1.1
        guard let kernel = kernels[selected.kernel] else {
            return process(Outcome(.selectNext, reason: "this reader does not have \(selected.kernel)"))
        }
        let combination = selected.candidate.combination
        // What a card has been told before is no secret from the next one.
        transaction.unpredictableNumber = unpredictableNumber ?? drawUnpredictableNumber()
        unpredictableNumber = nil
        var data = configuration.terminal.merging(combination.data) { $1 }.merging(transaction.dataObjects) { $1 }
        data[0x9F06] = combination.aid.bytes
        data[0x9F66] = indicators.terminalTransactionQualifiers?.bytes
        // 3.4.1.2, 3.4.1.3
        let activation = KernelActivation(
            combination: combination, indicators: indicators, name: selected.candidate.name,
            selectResponse: selected.response, transaction: transaction,
            furtherUnpredictableNumbers: (0..<3).map { _ in drawUnpredictableNumber() }, terminalData: data,
            offlineDataAuthentication: OfflineDataAuthentication(
                keys: keys, environment: configuration.environment, aid: combination.aid, date: transaction.time.date),
            exceptionFile: exceptionFile, onlineResponse: onlineResponse, tornTransactions: tornTransactions)
        self.kernel = kernel.init(activation)
        return tellKernel(.start, 0)
    }

    private mutating func drawUnpredictableNumber() -> [UInt8] {
        let given = transaction?.furtherUnpredictableNumbers.dropFirst(furtherUnpredictableNumbers.count).first
        let drawn = withUnsafeBytes(of: UInt32(truncatingIfNeeded: random.next() >> 32).bigEndian) { Array($0) }
        let number = given.flatMap { $0.count == 4 ? $0 : nil } ?? drawn
        furtherUnpredictableNumbers.append(number)
        return number
    }

    private mutating func tellKernel(_ event: KernelEvent, _ commands: Int) -> Step.Action {
        guard let step = kernel?.next(event) else { return end("no kernel is active") }
        requests += step.userInterfaceRequests
        switch step.action {
        case .outcome(let outcome):
            if let log = outcome.tornTransactions { tornTransactions = log }
            return process(outcome)
        case .send(let command):
            guard commands < Self.maximumCommands else { return end("the card needs too many commands") }
            state = .kernel(commands: commands + 1)
            return .send(command)
        case .exchange(let exchange):
            guard commands < Self.maximumCommands else { return end("the terminal is asked too often") }
            state = .kernel(commands: commands + 1)
            return .exchange(exchange)
        }
    }
}

// MARK: - Outcome processing (Book B, 3.5)

extension EntryPoint {
    private mutating func process(_ outcome: Outcome) -> Step.Action {
        // 3.5.1.1
        if let request = outcome.userInterfaceRequest { requests.append(request) }
        // 3.5.1.2
        if let fieldOff = outcome.fieldOff {
            state = .fieldOff(then: outcome)
            return .switchFieldOff(milliseconds: fieldOff)
        }
        return proceed(after: outcome)
    }

    private mutating func proceed(after outcome: Outcome) -> Step.Action {
        switch outcome.kind {
        case .tryAgain:
            // 3.5.1.3
            notes.append("try again: \(outcome.reason)")
            return activateProtocol(after: outcome)
        case .endApplication where outcome.start == .b:
            // So Kernel 2 has a card presented again (Book C-2, A.1, Outcome Parameter Set; Book A, table 6-1, Start).
            notes.append("once more: \(outcome.reason)")
            return activateProtocol(after: outcome)
        case .selectNext:
            // 3.5.1.4
            notes.append("select next: \(outcome.reason)")
            return selectNext()
        default:
            // 3.5.1.5
            return hand(out: outcome)
        }
    }

    /// An outcome of Entry Point's own.
    private mutating func finish(_ outcome: Outcome) -> Step.Action {
        if let request = outcome.userInterfaceRequest { requests.append(request) }
        selected = nil
        return hand(out: outcome)
    }

    private mutating func hand(out outcome: Outcome) -> Step.Action {
        state = .finished(outcome)
        return .finish(
            FinalOutcome(outcome: outcome, name: selected?.candidate.name, kernel: selected?.kernel))
    }

    /// Book A, 8.1.1.9: whatever starts again does so where the outcome has it.
    private mutating func restart(_ outcome: Outcome, _ response: OnlineResponse) -> Step.Action {
        onlineResponse = response
        resumed = outcome.start == .b && response.hasDataForCard ? selected?.candidate : nil
        activations = 0
        switch (outcome.start, transaction) {
        case (.a, let transaction?): return preProcess(transaction, after: outcome)
        case (.b, _): return activateProtocol(after: outcome)
        case (.c, _): return selectFinalCombination()
        case (.d, _): return activateKernel()
        default: return end("nothing to start again")
        }
    }
}

/// It holds the account data of its kernel in the clear, and prints without them.
extension EntryPoint: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "Entry Point" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}

extension Outcome {
    /// Whether Entry Point starts again when the issuer answers so.
    public func isRestarted(by response: OnlineResponse) -> Bool {
        switch (start, onlineResponseData) {
        case (nil, _), (_, nil): false
        case (_, .any): true
        case (_, .emvData): response.hasDataForCard
        }
    }
}

/// What Entry Point hands to the reader (Book B, 3.5.1.5).
public struct FinalOutcome: Hashable, Sendable {
    public let outcome: Outcome
    /// The ADF name of the application that was selected, with the extended selection if that was appended; nil if none
    /// was selected.
    public let name: [UInt8]?
    /// The kernel that was activated last; nil if none was.
    public let kernel: KernelIdentifier?
}
