import CardEncryption
import CardReaders
import ContactlessMetrics
import EMVContactless
import Foundation
import Logging
import SmartCard
import Waiting

/// A read that is under way, or whose card has not been removed.
struct RunningRead {
    var life: ReadLife
    let session: TerminalSession
    let answer: Delivery<TapResult>
    let requested: MetricTable.Request
    /// The time at which its last card was detected.
    var detected: Time.Instant?
    var task: Task<Void, Never>?
    /// Its time limits, which go with it: a task that sleeps for each would stay for minutes.
    var limits: [Time.Deadline] = []
}

/// The terminal's reads: carries out the actions of ``ReadLife``, and reports the events.
extension PaymentTerminal {
    func read(_ request: ReadRequest) async throws -> TapResult {
        // No card is requested.
        guard !Task.isCancelled else { throw PaymentCardReaderSession.ReadError.readCancelled }
        guard reading == nil, !isPreparing else { throw PaymentCardReaderSession.ReadError.readerSessionBusy }
        guard !isAsleep else { throw PaymentCardReaderSession.ReadError.readFromBackgroundError }
        try check(request.session)
        let transaction = try request.card.map(nextTransaction)
        let id = request.id
        let answer = Delivery<TapResult>()
        let before = lastRead
        reads[id] = RunningRead(
            life: ReadLife(returnsAtOnce: request.options.returnReadResultImmediately),
            session: request.session, answer: answer, requested: request.label)
        reading = id
        let task = Task {
            await perform(transaction, request, after: before)
            // A read that was refused or canceled has not waited; the next one does.
            await before?.value
            for limit in reads.removeValue(forKey: id)?.limits ?? [] { limit.lift() }
        }
        reads[id]?.task = task
        lastRead = task
        // A canceled read ends as its life says: a card that was found is read.
        return try await answer.receiveToTheEnd { Task { await self.happen(.interrupted(.readCancelled), in: id) } }
    }

    func nextTransaction(_ request: CardRequest) throws -> Transaction {
        var random = SystemRandomNumberGenerator()
        let transaction = try request.transaction(
            at: configuration.now(), unpredictableNumber: (0..<4).map { _ in .random(in: 0...255, using: &random) },
            sequenceCounter: sequenceCounter % 99_999_999 + 1)
        sequenceCounter = transaction.sequenceCounter
        return transaction
    }

    func cancelRead(in session: TerminalSession) throws -> Bool {
        guard let reading, let read = reads[reading], read.session === session else {
            guard has(session) else { throw PaymentCardReaderSession.ReadError.noReaderSession }
            return false
        }
        guard read.life.isWaiting else { return false }
        happen(.interrupted(.readCancelled), in: reading)
        return true
    }

    /// Ends the read that is under way as soon as there is no card: a card that was found is read to its end.
    func interruptRead(with error: PaymentCardReaderSession.ReadError) {
        if let reading { happen(.interrupted(error), in: reading) }
    }

    // MARK: Life

    /// Carries out the actions that follow from an event in a read's life.
    ///
    /// - Returns: the refusal of the event.
    @discardableResult func happen(_ event: ReadLife.Event, in id: UUID) -> (any Error)? {
        guard let actions = reads[id]?.life.next(event) else { return CancellationError() }
        if case .field(.cardDetected) = event { reads[id]?.detected = Time.now }
        var refusal: (any Error)?
        for action in actions {
            switch action {
            case .tell(let event): events.send(event, of: id)
            case .stop: reads[id]?.task?.cancel()
            case .start(let timer): start(timer, of: id)
            case .abandonReader:
                logger.error("the reader does not answer")
                (attached, lastRead) = (nil, nil)
            case .leaveCard: isCardLeft = true
            case .makeRoom:
                if reading == id { reading = nil }
                if let detected = reads[id]?.detected { metrics.cardTime.add(since: detected) }
            case .checkSession:
                do { if let session = reads[id]?.session { try check(session) } } catch { refusal = error }
            case .refuse(let error): refusal = error
            case .answer(let result): end(id, with: .success(result))
            case .fail(let error): end(id, with: .failure(error))
            }
        }
        return refusal
    }

    private func end(_ id: UUID, with result: Result<TapResult, any Error>) {
        guard let read = reads[id] else { return }
        metrics.reads.add(read.requested, MetricTable.ReadResult(result))
        read.answer.deliver(result)
    }

    func proceed(_ event: ReadLife.Event, in id: UUID) throws {
        if let refusal = happen(event, in: id) { throw refusal }
    }

    private func start(_ timer: ReadLife.Timer, of id: UUID) {
        let time: Duration =
            switch timer {
            case .answer: configuration.answerTime
            case .transaction: configuration.transactionTime
            case .removal: .seconds(5)
            }
        let limit = Time.deadline(after: time) { [weak self] in
            Task { [weak self] in await self?.happen(.timeOver(timer), in: id) }
        }
        reads[id]?.limits.append(limit)
    }

    private func fail(_ id: UUID, with error: any Error) {
        guard reads[id]?.life.hasEnded == false else { return logger.debug("after the read: \(type(of: error))") }
        happen(.failed(Self.readError(error)), in: id)
    }

    private static func readError(_ error: any Error) -> any Error {
        switch error {
        case is PaymentCardReaderSession.ReadError, is PaymentCardReaderError, is AnotherInterfaceNeeded,
            is CancellationError, is NoAmount:
            return error
        case let error as CardError:
            logger.warning("the reader: \(error.description)")
            return PaymentCardReaderSession.ReadError(error)
        default:
            // A foreign error's text is not safe to log.
            logger.error("the card's data could not be sealed or stored: \(type(of: error))")
            return PaymentCardReaderSession.ReadError.readerServiceError
        }
    }

    // MARK: The card

    /// Performs a transaction.
    ///
    /// - Parameter before: the previous read, which has the field until its card is gone.
    private func perform(_ transaction: Transaction?, _ request: ReadRequest, after before: Task<Void, Never>?) async {
        do {
            // No card is requested that would be of no use.
            if let card = request.card { try await admit(card, to: request.session) }
            try proceed(.admitted(cardIsLeft: isCardLeft), in: request.id)
            await before?.ended()
            try proceed(.turnCame, in: request.id)
            let reader = try await attachedReader()
            try await reader.withField(broadcast: request.frame) { field in
                let field = EventfulField(field) { try await self.proceed(.field($0), in: request.id) }
                await self.perform(transaction, request, reader, field)
            }
        } catch {
            // A read that has ended stands, even if the reader's state could not be restored.
            fail(request.id, with: error)
        }
    }

    private func perform(
        _ transaction: Transaction?, _ request: ReadRequest, _ reader: AttachedReader, _ field: EventfulField
    ) async {
        do {
            let result: TapResult
            if let passes = request.passes {
                result = try await read(passes, transaction, request, reader, field)
            } else if let transaction {
                result = TapResult(payment: try await pay(transaction, request, reader, field))
            } else {
                throw PaymentCardReaderSession.ReadError.readNotAllowed
            }
            guard happen(.completed(result), in: request.id) == nil else { return }
        } catch {
            fail(request.id, with: error)
        }
        if request.passes != nil, isCardLeft { await release(field) }
        await removal(from: field)
        happen(.cardGone, in: request.id)
    }

    /// Ends the tap of a phone, which shows that it is done once it is deselected and loses the field.  What was read
    /// stands in any case.
    private func release(_ field: EventfulField) async {
        do { try await field.release() } catch { logger.debug("the phone was not released: \(loggable(error))") }
    }

    /// Runs a transaction and seals its data.  The clear data is gone when this returns, however long the card stays.
    ///
    /// - Parameter passesStand: true if the passes that were read are a result even if the phone has no card.
    /// - Returns: nil only in that case.
    func pay(
        _ transaction: Transaction, _ request: ReadRequest, _ reader: AttachedReader, _ field: some ContactlessField,
        passesStand: Bool = false
    ) async throws -> PaymentCardReadResult? {
        guard let purpose = request.card else { return nil }
        // Start A comes before the wait for a card (EMV Contactless Book B, 3.1).
        let entryPoint = EntryPoint(
            configuration: configuration.terminal, keys: configuration.certificationAuthorityKeys,
            preferredApplications: try purpose.preferredAIDs())
        let report = try await ContactlessTerminal(entryPoint, memory: memory).perform(
            transaction, in: field, layers: { reader.stack.over($0) },
            show: { [messages] in messages.send($0) })
        let card = CardRead(
            report, transaction, id: request.id.uuidString,
            applications: configuration.terminal.combinations.map(\.aid))
        if passesStand, card.error != nil, !card.hasApplication { return nil }
        if let error = card.error, !request.options.includeErrorInReadResult {
            throw card.needsAnotherInterface ? AnotherInterfaceNeeded() : error
        }
        let result = card.result(try await sealed(card, in: request.session, reader.identity))
        try proceed(.sealed, in: request.id)
        if card.error == nil { try await keep(result, card, of: request) }
        return result
    }

    private func sealed(
        _ card: CardRead, in session: TerminalSession, _ reader: ReaderIdentity
    ) async throws -> SealedCardData? {
        guard let data = try card.clearData() else { return nil }
        return try await sealed(data, boundTo: card.id, in: session, header: card.header(session, reader: reader))
    }

    /// Seals data of a read for the payment service.
    ///
    /// - Parameter id: the identifier of the result.
    func sealed(
        _ data: ClearCardData, boundTo id: String, in session: TerminalSession, header: JWEHeader
    ) async throws -> SealedCardData? {
        switch configuration.cardDataKey {
        case .ofToken: return try session.token.recipient?.seal(data, header: header)
        case .dukpt(let device, let options):
            return try await device.seal(data, boundTo: Array(id.utf8), options: options)
        case .tdesDUKPT(let device, let options): return try await device.seal(data, options: options)
        }
    }

    /// Waits until the card of a read is gone, canceled or not, so that it does not pay for the next customer.
    private func removal(from field: EventfulField) async {
        guard isCardLeft, session != nil else { return }
        let removal = Task {
            do { try await field.waitForRemoval() } catch {
                logger.debug("waiting for the card's removal: \(type(of: error))")
            }
        }
        self.removal = removal
        await removal.value
        isCardLeft = false
    }

    /// Waits until the card of the last read has been removed.  Before that the reader itself may report no card.
    ///
    /// - Parameter cardIsThere: called at once if the card is still there.
    /// - Returns: true if it was called.
    package func waitForRemoval(_ cardIsThere: @Sendable () -> Void) async -> Bool {
        guard isCardLeft, let lastRead else { return false }
        cardIsThere()
        await lastRead.ended()
        return true
    }
}
