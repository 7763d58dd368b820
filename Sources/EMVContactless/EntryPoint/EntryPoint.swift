public import SmartCard

/// Entry Point (EMV Contactless Book B): pre-processes the transaction, has a card presented, selects one of its
/// applications and the kernel for it, and passes on the kernel's outcome.
///
/// It is a value that does no I/O: events go in, steps come out, as in the kernels.  ``ContactlessTerminal`` performs
/// transactions with a reader.  To examine cards use ``CardInspector``, which sends commands that no terminal may
/// send.
public struct EntryPoint: Sendable {
    /// An event for Entry Point.
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
        /// The card responded to the command after this time.
        case response(ResponseAPDU, after: Duration)
        /// There is no response.
        case communicationError(CommunicationError)
        /// The terminal answered ``Step/Action-swift.enum/exchange(_:)`` with data objects, or with none.
        case terminalData(DataRecord)
        /// The field has been off for the requested time.
        case fieldIsOff
        /// The issuer answered an online request for which ``Outcome/isRestarted(by:)`` is true.
        case onlineResponse(OnlineResponse)
    }

    /// A step of Entry Point: first show the requests, then carry out the action.
    public struct Step: Sendable {
        public enum Action: Sendable {
            /// Switch the field on and poll; ``Event/cardPresent`` or ``Event/collision`` follows.
            case activateField
            /// Send the command; ``Event/response(_:after:)`` or ``Event/communicationError(_:)`` follows.
            case send(CommandAPDU)
            /// Exchange data between the kernel and the terminal; ``Event/terminalData(_:)`` follows.
            case exchange(DataExchange)
            /// Switch the field off for this time; ``Event/fieldIsOff`` follows.
            case switchFieldOff(milliseconds: Int)
            /// The transaction ends, unless an online response restarts it.
            case finish(FinalOutcome)
        }

        public var userInterfaceRequests: [UserInterfaceRequest]
        /// Explanations for a log: sentences without card data.
        public var notes: [String]
        public var action: Action
    }

    /// The number of activations of the field in a row without a result after which the card is given up.
    public static let maximumActivations = 16
    /// The maximum number of commands of a kernel in one activation, including exchanges with the terminal.
    public static let maximumCommands = 1024

    /// The maximum number of directory entries of the PPSE, and of candidates.  A PPSE of 256 bytes, the maximum for
    /// short lengths, has room for fewer than thirty entries.
    public static let maximumCandidates = 128

    private(set) var configuration: ReaderConfiguration
    let kernels: Kernels
    private let keys: CAPublicKeys
    private let exceptionFile: any ExceptionFile
    private let preferredApplications: [AID]
    /// The source of the transaction's unpredictable numbers after its first.
    private(set) var unpredictableNumbers: UnpredictableNumbers

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
    /// The kernel that was activated last.
    private var kernel: (any Kernel)?
    private var transaction: Transaction?
    /// The transaction's unpredictable number, until it has been used.
    private var unpredictableNumber: [UInt8]?
    /// The start that led to the present state, and whether it followed an outcome.
    private var start = Outcome.Start.a
    private var isRestart = false
    /// The combinations for the transaction, with their pre-processing indicators.
    private var combinations: [(combination: Combination, indicators: PreProcessingIndicators)] = []
    /// The candidates of the card that was presented last, in the order in which they are tried.
    public private(set) var candidates = CandidateList()
    /// The combination that was selected last, and the card's response.
    private var selected: (candidate: Candidate, kernel: KernelIdentifier, response: ResponseAPDU)?
    /// The issuer's answer, with the application and the kernel that asked for it.
    private var answer: (response: OnlineResponse, candidate: Candidate, kernel: KernelIdentifier)?
    /// The memory of the kernels, which persists from one transaction to the next.
    public var memory = KernelMemories()
    /// The application for which there is issuer's data; no other may receive it.
    private var updated: Candidate? { answer.flatMap { $0.response.hasDataForCard ? $0.candidate : nil } }
    private var activations = 0
    private var requests: [UserInterfaceRequest] = []
    private var notes: [String] = []

    /// Creates an Entry Point.
    ///
    /// - Parameters:
    ///   - validated: the combinations of AID and kernel and the terminal's data, with the reader's kernels.
    ///   - keys: the trusted certification authority keys.
    ///   - exceptionFile: the cards to refuse.
    ///   - preferredApplications: the applications that the reader selects before all others of a card, whatever the
    ///     card prefers, in descending order.
    ///   - random: the source of the unpredictable numbers, except for the first, which is the transaction's.  A
    ///     predictable generator is for tests.
    public init(
        configuration validated: ReaderConfiguration.Validated,
        keys: CAPublicKeys = CAPublicKeys(), exceptionFile: any ExceptionFile = NoExceptionFile(),
        preferredApplications: [AID] = [],
        random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
    ) {
        let configuration = validated.configuration
        self.configuration = configuration.advertised(for: validated.kernels)
        // Book B, 3.1.1.7: the terminal's floor limit, if a combination has no other.
        if let limit = configuration.terminal[0x9F1B] {
            for index in configuration.combinations.indices {
                self.configuration.combinations[index].data.merge([0x9F1B: limit]) { own, _ in own }
            }
        }
        kernels = validated.kernels
        self.keys = keys
        self.exceptionFile = exceptionFile
        self.preferredApplications = preferredApplications
        unpredictableNumbers = UnpredictableNumbers(then: random)
    }

    /// Handles an event.
    ///
    /// - Returns: the next step.  An event that does not follow from the previous step ends the transaction.
    public mutating func next(_ event: Event) -> Step {
        requests = []
        notes = []
        let action = act(on: event)
        return Step(userInterfaceRequests: requests, notes: notes, action: action)
    }

    private mutating func act(on event: Event) -> Step.Action {
        switch (state, event) {
        case (.idle, .startA(let transaction)), (.finished, .startA(let transaction)):
            begin(transaction, at: .a)
            return preProcess(transaction)
        case (.idle, .startB(let transaction)), (.finished, .startB(let transaction)):
            begin(transaction, at: .b)
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
            start = .b
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
    private mutating func begin(_ transaction: Transaction, at start: Outcome.Start) {
        self.transaction = transaction
        unpredictableNumber = transaction.unpredictableNumber
        unpredictableNumbers = UnpredictableNumbers(
            transaction.furtherUnpredictableNumbers, then: unpredictableNumbers.generator)
        (self.start, isRestart) = (start, false)
        candidates = CandidateList()
        selected = nil
        answer = nil
        activations = 0
    }

    private func combinations(for transaction: Transaction) -> some Sequence<Combination> {
        configuration.combinations.lazy.filter { $0.transactionTypes.contains(transaction.kind) }
    }

    /// Performs pre-processing.
    ///
    /// - Parameter outcome: the outcome of a kernel that restarts it.
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
    /// Performs protocol activation.
    ///
    /// - Parameter outcome: the outcome of a kernel that restarts it.
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
        if start == .b, let updated { return send(select: updated) }
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
            // An FCI that cannot be parsed has no directory entry (3.3.2.4).
            notes.append("PPSE: \(error)")
        }
    }

    private mutating func selectFinalCombination() -> Step.Action {
        if let updated {
            while let candidate = candidates.next, candidate != updated { candidates.passOver() }
        }
        // 3.3.2.6, 3.3.2.7
        guard let candidate = candidates.next else { return end("no application of the card can be used") }
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
        // 3.3.3.6: the one rule of Book B about kernels by number.
        if kernel == 3, DataElement.Scope(aid: candidate.combination.aid) == .visa, Self.lacksTTQ(response) {
            guard kernels.contains(1) else {
                notes.append("the card wants Kernel 1 (Visa, JCB), which this reader does not have")
                return selectNext()
            }
            kernel = 1
        }
        selected = (candidate, kernel, response)
        return activateKernel()
    }

    /// Returns true if the PDOL is absent or does not contain the TTQ; false if FCI or PDOL cannot be read, which is for
    /// the kernel to find out.
    private static func lacksTTQ(_ response: ResponseAPDU) -> Bool {
        guard let fci = (try? TLVList(response.data))?[0x6F] else { return false }
        guard let list = fci.children[0xA5]?.children[0x9F38] else { return true }
        guard let pdol = try? DataObjectList(list.value) else { return false }
        return !pdol.contains(0x9F66)
    }

    /// Selects the next candidate.
    ///
    /// - Parameter outcome: the outcome of a kernel that requests it.
    private mutating func selectNext(after outcome: Outcome? = nil) -> Step.Action {
        // 3.3.3.5: the issuer's data is for no other combination.
        guard updated == nil else { return end("the application cannot be selected again") }
        candidates.passOver()
        guard let outcome else { return selectFinalCombination() }
        return restart(at: .c, after: outcome)
    }

    /// Performs End Application (3.3.2.7, 3.3.3.5).
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
        if updated != nil, let answer, answer.candidate != selected.candidate || answer.kernel != selected.kernel {
            return end("the issuer's data is for another application")
        }
        // 3.4.1.1
        guard kernels.contains(selected.kernel) else {
            return process(Outcome(.selectNext, reason: "this reader does not have \(selected.kernel)"))
        }
        let combination = selected.candidate.combination
        // A number that one card has received is no secret from the next.
        transaction.unpredictableNumber = unpredictableNumber ?? unpredictableNumbers.next()
        unpredictableNumber = nil
        var data = configuration.terminal.merging(combination.data) { $1 }.merging(transaction.dataObjects) { $1 }
        data[0x9F06] = combination.aid.bytes
        data[0x9F66] = indicators.terminalTransactionQualifiers?.bytes
        // 3.4.1.2, 3.4.1.3
        let activation = KernelActivation(
            combination: combination, kernel: selected.kernel, start: start, isRestart: isRestart,
            indicators: indicators, name: selected.candidate.name, selectResponse: selected.response,
            transaction: transaction, unpredictableNumbers: unpredictableNumbers, terminalData: data,
            offlineDataAuthentication: OfflineDataAuthentication(
                keys: keys, environment: configuration.environment, aid: combination.aid, date: transaction.time.date),
            exceptionFile: exceptionFile, onlineResponse: answer?.response, memory: memory[selected.kernel])
        kernel = kernels.make(activation)
        return tellKernel(.start, 0)
    }

    private mutating func tellKernel(_ event: KernelEvent, _ commands: Int) -> Step.Action {
        guard let step = kernel?.next(event) else { return end("no kernel is active") }
        requests += step.userInterfaceRequests
        switch step.action {
        case .outcome(let outcome):
            if let kept = outcome.memory, let kernel = selected?.kernel { memory[kernel] = kept }
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
        switch (outcome.kind, outcome.start) {
        case (.tryAgain, _):
            // 3.5.1.3
            notes.append("try again: \(outcome.reason)")
            return restart(at: .b, after: outcome)
        case (.endApplication, .a?) where outcome.onlineResponseData == nil, (.endApplication, .b?):
            // Kernel 2 uses this to have a card presented again (Book C-2, A.1, Outcome Parameter Set; Book A, table
            // 6-1, Start).
            notes.append("once more: \(outcome.reason)")
            return restart(at: outcome.start ?? .b, after: outcome)
        case (.selectNext, _):
            // 3.5.1.4
            notes.append("select next: \(outcome.reason)")
            return selectNext(after: outcome)
        default:
            // 3.5.1.5
            return hand(out: outcome)
        }
    }

    /// Finishes with an outcome that Entry Point itself determines.
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

    /// Restarts with the issuer's answer, at the start that the outcome names (Book A, 8.1.1.9).
    private mutating func restart(_ outcome: Outcome, _ response: OnlineResponse) -> Step.Action {
        guard let start = outcome.start, let selected else { return end("nothing to start again") }
        answer = (response, selected.candidate, selected.kernel)
        activations = 0
        return restart(at: start, after: outcome)
    }

    /// Restarts with the user interface request of the outcome.
    private mutating func restart(at start: Outcome.Start, after outcome: Outcome) -> Step.Action {
        (self.start, isRestart) = (start, true)
        switch (start, transaction) {
        case (.a, let transaction?): return preProcess(transaction, after: outcome)
        case (.b, _): return activateProtocol(after: outcome)
        case (.a, nil): return end("nothing to start again")
        case (.c, _), (.d, _):
            if let request = outcome.userInterfaceRequestOnRestart { requests.append(request) }
            return start == .c ? selectFinalCombination() : activateKernel()
        }
    }
}

/// Entry Point contains its kernel's clear account data, and prints without it.
extension EntryPoint: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "Entry Point" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}

extension Outcome {
    /// Returns true if this answer of the issuer restarts Entry Point.
    public func isRestarted(by response: OnlineResponse) -> Bool {
        switch (start, onlineResponseData) {
        case (nil, _), (_, nil): false
        case (_, .any): true
        case (_, .emvData): response.hasDataForCard
        }
    }
}

/// The outcome that Entry Point passes to the reader (Book B, 3.5.1.5).
public struct FinalOutcome: Hashable, Sendable {
    public let outcome: Outcome
    /// The ADF name of the selected application, with the extended selection if that was appended; nil if none was
    /// selected.
    public let name: [UInt8]?
    /// The kernel that was activated last; nil if none was.
    public let kernel: KernelIdentifier?
}
