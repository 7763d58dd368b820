public import SmartCard

/// Performs transactions: asks ``EntryPoint`` what to do, and does it in a reader's field.
///
///     let terminal = ContactlessTerminal(EntryPoint(configuration: .test, kernels: Kernels.all, keys: .published))
///     let report = try await terminal.perform(transaction, in: CardReaderField(reader)) { print($0) }
///     if report.outcome.kind == .onlineRequest { … }
public struct ContactlessTerminal: Sendable {
    /// One command and how long it took.
    public struct Exchange: Hashable, Sendable {
        /// CLA, INS, P1 and P2.
        public let header: [UInt8]
        /// The card's, the reader's and the bus's time together, as the transport has measured it (`ExchangeStopwatch`); if
        /// there was no response, from the call to its return.
        public let duration: Duration
        /// nil if there was no response.
        public let status: StatusWord?
    }

    /// What came of a transaction.
    public struct Report: Sendable {
        /// What Entry Point handed out last (Book B, 3.5.1.5): that of the online request where the card was to hear of the
        /// issuer's answer and was not presented again, or the reader failed.
        public fileprivate(set) var final: FinalOutcome
        /// The online request that the issuer answered, where the card was to be told of the answer: with the data record and
        /// the cardholder verification, which an outcome after that does not repeat.
        public fileprivate(set) var onlineRequest: FinalOutcome?
        /// Every command that was sent, in its order.
        public fileprivate(set) var exchanges: [Exchange] = []
        /// Why what happened happened: sentences without card data.
        public fileprivate(set) var notes: [String] = []
        /// The numbers that were drawn for cards after the transaction's own, in their order: of 4 bytes, and not all of them
        /// are sent.
        public fileprivate(set) var furtherUnpredictableNumbers: [[UInt8]] = []

        /// That of ``final``.
        public var outcome: Outcome { final.outcome }
        /// What a receipt has to state: that of the online request, where the card was told the issuer's answer; nil unless the
        /// transaction was approved, declined or went online.
        public var receiptFacts: ReceiptFacts? { outcome.receiptFacts ?? onlineRequest?.outcome.receiptFacts }
        /// All exchanges together.
        public var cardTime: Duration { exchanges.reduce(.zero) { $0 + $1.duration } }
    }

    private let entryPoint: EntryPoint
    /// Transactions that cards may have to recover.  Copies of a terminal share them.
    public let tornTransactions: TornTransactions

    /// - Parameter tornTransactions: those of the terminal before this one, where it is made anew for each transaction.
    public init(_ entryPoint: EntryPoint, tornTransactions: TornTransactions = TornTransactions()) {
        self.entryPoint = entryPoint
        self.tornTransactions = tornTransactions
    }

    /// Performs Start A alone, with pre-processing, before there is a card to wait for (Book B, 3.1).
    ///
    /// - Returns: the report of a transaction that pre-processing refuses; nil where a card is to be presented, and
    ///   ``perform(_:in:preProcessing:layers:authorise:exchange:show:)`` follows.
    public func refusal(of transaction: Transaction, show: (UserInterfaceRequest) -> Void = { _ in }) -> Report? {
        var entryPoint = entryPoint
        let step = entryPoint.next(.startA(transaction))
        guard case .finish(let final) = step.action else { return nil }
        step.userInterfaceRequests.forEach(show)
        return Report(final: final, notes: step.notes)
    }

    /// Makes ready for the first card: see ``EntryPoint/rehearse()``.
    public func rehearse() { entryPoint.rehearse() }

    /// Performs one transaction.
    ///
    /// A card that leaves, breaks off or misbehaves leads to an outcome.  Cancelling the task ends the transaction at the
    /// next exchange or wait; whether the card has counted it is not known then.
    ///
    /// - Parameters:
    ///   - field: is left on, with the card in it.
    ///   - preProcessing: false begins at Start B, for a reader that does not know the amount in advance.
    ///   - layers: what goes between the kernel and the card, such as a traffic log or a recorder.
    ///   - exchange: takes what a kernel has for the terminal while the card is there, and answers with the data objects that
    ///     it wants, or without any; the card waits.  Without it the answer is empty.
    ///   - show: shows a message to the cardholder; called in the order in which they come.
    ///   - authorise: asks the issuer, and returns nil if it could not be reached.  Called for an outcome that may be
    ///     restarted; without it such an outcome is the last.
    /// - Returns: the last outcome; that which the issuer answered, if the card was not presented again for the answer, or
    ///   the reader failed after it.
    /// - Throws: `CardError` when the reader fails, or no card was presented, before the issuer has answered;
    ///   `CancellationError`; what `authorise` throws.
    public func perform(
        _ transaction: Transaction, in field: some ContactlessField, preProcessing: Bool = true,
        layers: (any CardChannel) -> any CardChannel = { $0 },
        authorise: (@Sendable (FinalOutcome) async throws -> OnlineResponse?)? = nil,
        exchange: (@Sendable (DataExchange) async throws -> DataRecord)? = nil,
        show: (UserInterfaceRequest) -> Void
    ) async throws -> Report {
        var entryPoint = entryPoint
        entryPoint.tornTransactions = tornTransactions.current
        var exchanges: [Exchange] = []
        var notes: [String] = []
        var channel: (any CardChannel)?
        var onlineRequest: FinalOutcome?
        var event = preProcessing ? EntryPoint.Event.startA(transaction) : .startB(transaction)
        func report(_ final: FinalOutcome) -> Report {
            Report(
                final: final, onlineRequest: onlineRequest, exchanges: exchanges, notes: notes,
                furtherUnpredictableNumbers: entryPoint.furtherUnpredictableNumbers)
        }
        while true {
            try Task.checkCancellation()
            let step = entryPoint.next(event)
            if entryPoint.tornTransactions != tornTransactions.current {
                tornTransactions.replace(with: entryPoint.tornTransactions)
            }
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
                    guard let authorise, final.outcome.start != nil,
                        let response = try await Self.issuerResponse(
                            to: final, authorise, in: field, notes: &notes, show: show),
                        final.outcome.isRestarted(by: response)
                    else {
                        return report(final)
                    }
                    onlineRequest = final
                    event = .onlineResponse(response)
                }
            } catch {
                // What the issuer has decided stands, whether the card hears of it or not.
                guard let onlineRequest, !Task.isCancelled else { throw error }
                notes.append(
                    (error as? CardError)?.kind == .cardAbsent
                        ? "the card was not presented again for the issuer's message"
                        : "the card was not told the issuer's message to its end: \(Self.text(of: error))")
                return report(onlineRequest)
            }
        }
    }

    /// Without what another's error might tell of a card.
    private static func text(of error: any Error) -> String {
        (error as? CardError).map { "\($0)" } ?? "\(type(of: error))"
    }

    /// Asks the issuer.  A card that may stay in the field meanwhile is let go when the removal timeout is over
    /// (Book A, table 6-1).
    private static func issuerResponse(
        to final: FinalOutcome, _ authorise: @escaping @Sendable (FinalOutcome) async throws -> OnlineResponse?,
        in field: some ContactlessField, notes: inout [String], show: (UserInterfaceRequest) -> Void
    ) async throws -> OnlineResponse? {
        guard final.outcome.removalTimeout > 0 else { return try await authorise(final) }
        let timeout = Duration.milliseconds(final.outcome.removalTimeout)
        return try await withThrowingTaskGroup(of: OnlineResponse??.self) { group in
            defer { group.cancelAll() }
            group.addTask { .some(try await authorise(final)) }
            group.addTask {
                try await Task.sleep(for: timeout)
                return nil
            }
            while let result = try await group.next() {
                if let response = result { return response }
                show(UserInterfaceRequest(.removeCard, .cardReadSuccessfully))
                do {
                    try await field.deactivate(for: .zero)
                } catch {
                    // The issuer has been asked, and is not to be given up for a reader.
                    try Task.checkCancellation()
                    notes.append("the field was not switched off: \(text(of: error))")
                }
            }
            return nil
        }
    }
}
