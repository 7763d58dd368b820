public import SmartCard
import Synchronization
import Waiting

/// A terminal that performs transactions: it carries out the steps of ``EntryPoint`` in a reader's field.
///
///     let terminal = ContactlessTerminal(EntryPoint(configuration: .test, keys: .published))
///     let report = try await terminal.perform(transaction, in: CardReaderField(reader)) { print($0) }
///     if report.outcome.kind == .onlineRequest { … }
public struct ContactlessTerminal: Sendable {
    /// A command and its duration.
    public struct Exchange: Hashable, Sendable {
        /// CLA, INS, P1 and P2.
        public let header: [UInt8]
        /// The time of the card, the reader and the bus together, as measured by the transport (`ExchangeStopwatch`);
        /// without a response, the time from the call to its return.
        public let duration: Duration
        /// The status word; nil if there was no response.
        public let status: StatusWord?
    }

    /// The report of a transaction.
    public struct Report: Sendable {
        /// Entry Point's last outcome (Book B, 3.5.1.5).  It is the online request if the card, which was to receive
        /// the issuer's answer, was not presented again, or if the reader failed.
        public fileprivate(set) var final: FinalOutcome
        /// The online request that the issuer answered, if the card was to receive the answer.  It contains the data
        /// record and the cardholder verification, which a later outcome does not repeat.
        public fileprivate(set) var onlineRequest: FinalOutcome?
        /// The candidates of the card that was presented last, in the order in which they were tried.
        public fileprivate(set) var candidates = CandidateList()
        /// All commands that were sent, in order.
        public fileprivate(set) var exchanges: [Exchange] = []
        /// Explanations for the log: sentences without card data.
        public fileprivate(set) var notes: [String] = []
        /// The unpredictable numbers drawn after the transaction's own, in order: 4 bytes each.
        public fileprivate(set) var furtherUnpredictableNumbers: [[UInt8]] = []

        /// The outcome of ``final``.
        public var outcome: Outcome { final.outcome }
        /// The facts for a receipt; those of the online request if the card received the issuer's answer; nil unless
        /// the transaction was approved, declined or went online.
        public var receiptFacts: ReceiptFacts? { outcome.receiptFacts ?? onlineRequest?.outcome.receiptFacts }
        /// The total duration of all exchanges.
        public var cardTime: Duration { exchanges.reduce(.zero) { $0 + $1.duration } }
    }

    private let entryPoint: EntryPoint
    /// The memory of its kernels.  Copies of a terminal share it.
    public let memory: TerminalMemory

    /// Creates a terminal.
    ///
    /// - Parameters:
    ///   - entryPoint: Entry Point with its configuration and kernels.
    ///   - memory: that of the previous terminal, if a new one is created for each transaction.
    public init(_ entryPoint: EntryPoint, memory: TerminalMemory = TerminalMemory()) {
        self.entryPoint = entryPoint
        self.memory = memory
    }

    /// Performs Start A alone, with pre-processing, before the wait for a card (Book B, 3.1).
    ///
    /// - Returns: the report of a transaction that pre-processing refuses; nil if a card is to be presented, in which
    ///   case ``perform(_:in:layers:authorize:exchange:show:)`` follows.
    public func refusal(of transaction: Transaction, show: (UserInterfaceRequest) -> Void = { _ in }) -> Report? {
        var entryPoint = entryPoint
        let step = entryPoint.next(.startA(transaction))
        guard case .finish(let final) = step.action else { return nil }
        step.userInterfaceRequests.forEach(show)
        return Report(final: final, notes: step.notes)
    }

    /// Prepares for the first card: see ``EntryPoint/rehearse()``.
    public func rehearse() { entryPoint.rehearse() }

    /// Performs one transaction.
    ///
    /// A card that leaves, breaks off or misbehaves leads to an outcome.  Canceling the task ends the transaction at
    /// the next exchange or wait; it is then unknown whether the card has counted it.
    ///
    /// - Parameters:
    ///   - transaction: the amount, the type and the time.
    ///   - field: is left on, with the card in it.
    ///   - layers: wraps the channel between the kernel and the card, such as with a traffic log or a recorder.
    ///   - authorize: asks the issuer, and returns nil if it cannot be reached.  Called for an outcome that may be
    ///     restarted; without it such an outcome is the last.
    ///   - exchange: receives a kernel's data for the terminal while the card is present, and returns the data objects
    ///     that the kernel requests, or none; the card waits.  Without it the answer is empty.
    ///   - show: shows a message to the cardholder; called in the order of the messages.
    /// - Returns: the last outcome; the online request if the card was not presented again for the issuer's answer, or
    ///   if the reader failed after it.
    /// - Throws: `CardError` if the reader fails, or no card is presented, before the issuer has answered;
    ///   `CancellationError`; errors of `authorize`.
    public func perform(
        _ transaction: Transaction, in field: some ContactlessField,
        layers: (any CardChannel) -> any CardChannel = { $0 },
        authorize: (@Sendable (FinalOutcome) async throws -> OnlineResponse?)? = nil,
        exchange: (@Sendable (DataExchange) async throws -> DataRecord)? = nil,
        show: (UserInterfaceRequest) -> Void
    ) async throws -> Report {
        var entryPoint = entryPoint
        entryPoint.memory = memory.current
        var exchanges: [Exchange] = []
        var notes: [String] = []
        var channel: (any CardChannel)?
        var onlineRequest: FinalOutcome?
        var event = EntryPoint.Event.startA(transaction)
        func report(_ final: FinalOutcome) -> Report {
            Report(
                final: final, onlineRequest: onlineRequest, candidates: entryPoint.candidates, exchanges: exchanges,
                notes: notes,
                furtherUnpredictableNumbers: entryPoint.unpredictableNumbers.drawn)
        }
        while true {
            try Task.checkCancellation()
            let step = entryPoint.next(event)
            if entryPoint.memory != memory.current { memory.replace(with: entryPoint.memory) }
            step.userInterfaceRequests.forEach(show)
            notes += step.notes
            do {
                switch step.action {
                case .activateField:
                    switch try await field.activate() {
                    case .card(let card):
                        channel = layers(card)
                        event = .cardPresent
                    case .collision: event = .collision
                    case .collisionOver: event = .collisionOver
                    case .communicationError(let error): event = .communicationError(error)
                    }
                case .send(let command):
                    let stopwatch = ExchangeStopwatch()
                    var status: StatusWord?
                    defer {
                        exchanges.append(
                            Exchange(
                                header: [command.cla, command.ins, command.p1, command.p2],
                                duration: stopwatch.elapsed, status: status))
                    }
                    do {
                        guard let channel else { throw CardError(.cardAbsent) }
                        let response = try await stopwatch.time { try await channel.transmit(command) }
                        status = response.status
                        event = .response(response, after: stopwatch.elapsed)
                    } catch let error as CardError {
                        guard let communicationError = CommunicationError(error) else { throw error }
                        event = .communicationError(communicationError)
                        notes.append("\(error)")
                    }
                case .exchange(let data):
                    event = .terminalData(try await exchange?(data) ?? DataRecord())
                case .switchFieldOff(let milliseconds):
                    try await field.deactivate(for: .milliseconds(milliseconds))
                    event = .fieldIsOff
                case .finish(let final):
                    guard let authorize, final.outcome.start != nil,
                        let response = try await Self.issuerResponse(
                            to: final, authorize, in: field, notes: &notes, show: show),
                        final.outcome.isRestarted(by: response)
                    else {
                        return report(final)
                    }
                    onlineRequest = final
                    event = .onlineResponse(response)
                }
            } catch {
                // The issuer's decision stands, whether the card receives it or not.
                guard let onlineRequest, !Task.isCancelled else { throw error }
                notes.append(
                    (error as? CardError)?.kind == .cardAbsent
                        ? "the card was not presented again for the issuer's message"
                        : "the card was not told the issuer's message to its end: \(Self.text(of: error))")
                return report(onlineRequest)
            }
        }
    }

    /// Returns a text without foreign error messages, which might contain card data.
    private static func text(of error: any Error) -> String {
        (error as? CardError).map { "\($0)" } ?? "\(type(of: error))"
    }

    /// Asks the issuer.  A card that may stay in the field in the meantime is released when the removal timeout is
    /// over (Book A, table 6-1).
    private static func issuerResponse(
        to final: FinalOutcome, _ authorize: @escaping @Sendable (FinalOutcome) async throws -> OnlineResponse?,
        in field: some ContactlessField, notes: inout [String], show: (UserInterfaceRequest) -> Void
    ) async throws -> OnlineResponse? {
        guard final.outcome.removalTimeout > 0 else { return try await authorize(final) }
        let timeout = Duration.milliseconds(final.outcome.removalTimeout)
        return try await withThrowingTaskGroup(of: OnlineResponse??.self) { group in
            defer { group.cancelAll() }
            group.addTask { .some(try await authorize(final)) }
            group.addTask {
                try await Time.sleep(for: timeout)
                return nil
            }
            while let result = try await group.next() {
                if let response = result { return response }
                show(UserInterfaceRequest(.removeCard, .cardReadSuccessfully))
                do {
                    try await field.deactivate(for: .zero)
                } catch {
                    // The issuer has been asked: a failure of the reader must not discard the answer.
                    try Task.checkCancellation()
                    notes.append("the field was not switched off: \(text(of: error))")
                }
            }
            return nil
        }
    }
}

/// The memory of a terminal's kernels, which persists from one transaction to the next.
public final class TerminalMemory: Sendable {
    private let memories = Mutex(KernelMemories())

    public init() {}

    /// The present memory.
    public var current: KernelMemories { memories.withLock { $0 } }

    func replace(with new: KernelMemories) { memories.withLock { $0 = new } }
}
