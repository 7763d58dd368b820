import CardEncryption
import EMVContactless
import Foundation
import Logging
package import SmartCard

/// The device behind every ``PaymentCardReader`` of a process: one reader, one session, one read at a time.
package actor PaymentTerminal {
    package static let shared = PaymentTerminal(ProximityReaderSystem.use())

    nonisolated let events = EventHub()
    nonisolated let processIdentifier = UUID().uuidString
    let configuration: ProximityReaderSystem.Configuration
    package let store: RecordStore
    private let accounts: AccountRecords
    private var isPreparing = false
    private var session: TerminalSession?
    private var attached: AttachedReader?
    private var read: Read?
    private var sleepWatch: SleepWatch.Handle?
    private var isAsleep = false
    /// Tag 9F41 of the last transaction.
    private var sequenceCounter: UInt32 = 0

    /// A read that is under way.
    private struct Read {
        let id: UUID
        var task: Task<PaymentCardReadResult, any Error>?
        /// Whether it may still be cancelled: no card has been found.
        var isWaiting = true
        /// What the read fails with, once it has been cancelled.
        var cancellation: PaymentCardReaderSession.ReadError?
    }

    package init(_ configuration: ProximityReaderSystem.Configuration) {
        self.configuration = configuration
        accounts = AccountRecords(folder: configuration.folder)
        store = RecordStore(
            folder: configuration.folder, wrapping: configuration.storeWrappingKey, now: configuration.now)
    }

    // MARK: Accounts

    func isAccountLinked(using token: PaymentCardReader.Token) async throws -> Bool {
        let token = try await ReaderToken(token, for: configuration)
        return try accounts.isLinked(token.merchant, of: token.issuer, terms: configuration.termsVersion)
    }

    func linkAccount(using token: PaymentCardReader.Token, again: Bool) async throws {
        let token = try await ReaderToken(token, for: configuration)
        let isLinked = try accounts.isLinked(token.merchant, of: token.issuer, terms: configuration.termsVersion)
        guard again || !isLinked else { throw PaymentCardReaderError.accountAlreadyLinked }
        try accounts.link(token.merchant, of: token.issuer, terms: configuration.termsVersion, at: configuration.now())
    }

    // MARK: Reader

    /// The applications that it has a kernel for.
    package nonisolated var applications: [AID] {
        configuration.terminal.combinations.filter { Kernels.all[$0.kernel] != nil }.map(\.aid)
    }

    func readerIdentifier() async throws -> String {
        let reader: any CardReader
        do {
            reader = try await attachedReader()
        } catch let error as CardError {
            throw PaymentCardReaderError(error)
        }
        return try reader.identity.serialNumber ?? accounts.machineIdentifier()
    }

    /// The reader, looked for if it is not there or was unplugged.
    private func attachedReader() async throws -> any CardReader {
        if let attached, await attached.isThere { return attached.reader }
        let reader = try await configuration.reader.find()
        attached = AttachedReader(reader) { [weak self] in await self?.readerLeft() }
        return reader
    }

    private func readerLeft() {
        attached = nil
        guard session != nil else { return }
        logger.warning("the reader is gone")
        events.send(.notReady)
    }

    // MARK: Sleep

    /// From the first `prepare` on.
    private func watchSleep() {
        guard sleepWatch == nil else { return }
        sleepWatch = SleepWatch.start(on: configuration.systemBus) { [weak self] isAsleep in
            Task { await self?.hostSleeps(isAsleep) }
        }
    }

    /// Nothing is read while the machine sleeps.  Afterwards the reader is looked for anew, and the session goes on.
    func hostSleeps(_ isAsleep: Bool) {
        guard isAsleep != self.isAsleep else { return }
        self.isAsleep = isAsleep
        attached = nil
        guard isAsleep, session != nil else { return }
        if let read { cancel(read.id, with: .readFromBackgroundError) }
        events.send(.notReady)
    }

    // MARK: Sessions

    package func prepare(using token: PaymentCardReader.Token) async throws -> TerminalSession {
        watchSleep()
        guard !isAsleep else { throw PaymentCardReaderError.backgroundRequestNotAllowed }
        guard !isPreparing, read == nil else { throw PaymentCardReaderError.readerBusy }
        isPreparing = true
        defer { isPreparing = false }
        events.send(.updateProgress(0))
        let verified = try await ReaderToken(token, for: configuration)
        guard try accounts.isLinked(verified.merchant, of: verified.issuer, terms: configuration.termsVersion) else {
            throw PaymentCardReaderError.accountNotLinked
        }
        if case .ofToken = configuration.cardDataKey, verified.recipient == nil {
            throw PaymentCardReaderError.invalidReaderToken("it names no card data key")
        }
        events.send(.updateProgress(30))
        try await openReader()
        events.send(.updateProgress(90))
        await notePreparation(verified)
        let end = configuration.now().addingTimeInterval(configuration.sessionLifetime / .seconds(1))
        let session = TerminalSession(verified, end: min(end, verified.expiration), terminal: self)
        self.session = session
        events.send(.updateProgress(100))
        return session
    }

    func prepareStoreAndForward() async throws -> TerminalSession {
        guard !isPreparing, read == nil else { throw PaymentCardReaderError.readerBusy }
        isPreparing = true
        defer { isPreparing = false }
        events.send(.updateProgress(0))
        let (preparation, end) = try await storingTerms()
        events.send(.updateProgress(30))
        try await openReader()
        events.send(.updateProgress(90))
        let session = TerminalSession(
            try ReaderToken(preparation), end: end, storingAfter: preparation, terminal: self)
        self.session = session
        events.send(.updateProgress(100))
        return session
    }

    private func openReader() async throws {
        do {
            let reader = try await attachedReader()
            events.send(.updateProgress(60))
            // A reader that cannot tell what is in its slot cannot read a card.
            try await withTimeLimit(.seconds(10)) {
                for try await _ in reader.slotStates() { return }
                throw CardError(.readerGone)
            }
        } catch let error as CardError {
            attached = nil
            throw PaymentCardReaderError(error)
        }
    }

    /// Whether this is the session of now.
    func has(_ session: TerminalSession) -> Bool { self.session === session }

    /// - Throws: `ReadError` for a session that is over; `PaymentCardReaderError` for one that stores.
    private func check(_ session: TerminalSession) throws {
        guard self.session === session else { throw PaymentCardReaderSession.ReadError.noReaderSession }
        if let preparation = session.preparation {
            guard let error = storingEnd(preparation) else { return }
            self.session = nil
            events.send(.notReady)
            throw error
        }
        let now = configuration.now()
        guard now < session.token.expiration else { throw PaymentCardReaderSession.ReadError.readerTokenExpired }
        guard now < session.end else {
            self.session = nil
            events.send(.notReady)
            throw PaymentCardReaderSession.ReadError.readerSessionExpired
        }
    }

    // MARK: Reads

    func cancelRead(in session: TerminalSession) throws -> Bool {
        guard self.session === session else { throw PaymentCardReaderSession.ReadError.noReaderSession }
        return read.map { cancel($0.id, with: .readCancelled) } ?? false
    }

    /// - Returns: whether it was under way, and no card had been found.
    @discardableResult private func cancel(_ id: UUID, with error: PaymentCardReaderSession.ReadError) -> Bool {
        guard read?.id == id, read?.isWaiting == true else { return false }
        read?.cancellation = error
        read?.task?.cancel()
        return true
    }

    func read(
        _ request: CardRequest, _ options: PaymentCardReader.Options, in session: TerminalSession
    ) async throws -> PaymentCardReadResult {
        try check(session)
        guard !isAsleep else { throw PaymentCardReaderSession.ReadError.readFromBackgroundError }
        guard read == nil, !isPreparing else { throw PaymentCardReaderSession.ReadError.readerSessionBusy }
        var random = SystemRandomNumberGenerator()
        let unpredictableNumber = (0..<4).map { _ in UInt8.random(in: 0...255, using: &random) }
        let transaction = try request.transaction(
            at: configuration.now(), unpredictableNumber: unpredictableNumber,
            sequenceCounter: sequenceCounter % 99_999_999 + 1)
        let preferred = try request.preferredAIDs()
        sequenceCounter = transaction.sequenceCounter

        let id = UUID()
        read = Read(id: id)
        do {
            // Nobody is asked for a card that would be of no use.
            try await admit(request, to: session)
            if let cancellation = read?.cancellation { throw cancellation }
        } catch {
            read = nil
            throw error
        }
        let task = Task { try await perform(id, transaction, request, preferring: preferred, options, in: session) }
        read?.task = task
        return try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            // As `cancelRead` does: a card that was found is read to its end.
            Task { await self.cancel(id, with: .readCancelled) }
        }
    }

    private func perform(
        _ id: UUID, _ transaction: Transaction, _ request: CardRequest, preferring preferred: [AID],
        _ options: PaymentCardReader.Options, in session: TerminalSession
    ) async throws -> PaymentCardReadResult {
        var field: CardReaderField?
        do {
            let reader = try await attachedReader()
            let cardField = CardReaderField(reader)
            field = cardField
            let report = try await transact(transaction, preferring: preferred, in: cardField)
            let read = CardRead(
                report, transaction, id: id.uuidString, applications: configuration.terminal.combinations.map(\.aid))
            let result = try await seal(read, options, in: session)
            if read.error == nil { try await keep(result, read.cvm, of: request, in: session) }
            await end(with: result.outcome == .success ? .readCompleted : .readNotCompleted, cardField, reader, options)
            return result
        } catch {
            let cancellation = read?.cancellation
            await end(with: cancellation == nil ? .readNotCompleted : .readCancelled, field, nil, options)
            if let cancellation { throw cancellation }
            if error is CancellationError { throw PaymentCardReaderSession.ReadError.readCancelled }
            if let error = error as? CardError { throw PaymentCardReaderSession.ReadError(error) }
            throw error
        }
    }

    private func transact(
        _ transaction: Transaction, preferring preferred: [AID], in field: CardReaderField
    ) async throws -> ContactlessTerminal.Report {
        let entryPoint = EntryPoint(
            configuration: configuration.terminal, kernels: Kernels.all,
            keys: configuration.certificationAuthorityKeys, preferredApplications: preferred)
        return try await ContactlessTerminal(entryPoint).perform(
            transaction, in: EventfulField(field: field) { await self.fieldChanged($0) },
            show: { @Sendable [events] request in
                switch request.message {
                case .presentCardAgain, .presentOneCardOnly, .seePhone: events.send(.readRetry)
                default: break
                }
            })
    }

    private func fieldChanged(_ event: PaymentCardReader.Event) {
        if case .readyForTap = event { read?.isWaiting = true } else { read?.isWaiting = false }
        events.send(event)
    }

    /// - Throws: `ReadError` for a card that did not pay, unless `options` want it as a result.
    private func seal(
        _ read: CardRead, _ options: PaymentCardReader.Options, in session: TerminalSession
    ) async throws -> PaymentCardReadResult {
        if let error = read.error, !options.includeErrorInReadResult { throw error }
        var sealed: SealedCardData?
        if let data = try read.clearData() {
            switch configuration.cardDataKey {
            case .ofToken:
                sealed = try session.token.recipient?.seal(
                    data, header: read.header(session, reader: attached?.reader.identity))
            case .dukpt(let device):
                sealed = try await device.seal(data, boundTo: Array(read.id.utf8))
            }
        }
        return read.result(sealed)
    }

    /// Tells how the read ended, and gives the card back.
    private func end(
        with event: PaymentCardReader.Event, _ field: CardReaderField?, _ reader: (any CardReader)?,
        _ options: PaymentCardReader.Options
    ) async {
        let hadCard = read?.isWaiting == false
        if hadCard { events.send(.removeCard) }
        events.send(event)
        await field?.release(.powerOff)
        read = nil
        guard let reader, hadCard else { return events.send(.userInterfaceDismissed) }
        let removal = Task {
            // Whoever leaves a card on the reader holds nobody up for longer.
            try? await withTimeLimit(Self.removalTime) { try await reader.waitForRemoval() }
            events.send(.userInterfaceDismissed)
        }
        if !options.returnReadResultImmediately { await removal.value }
    }

    private static let removalTime = Duration.seconds(5)
}

/// A reader that was found, watched from then on.
private final class AttachedReader: Sendable {
    let reader: any CardReader
    private let watch: Task<Void, Never>
    private let state: State

    private actor State {
        var isThere = true
        func leave() { isThere = false }
    }

    var isThere: Bool { get async { await state.isThere } }

    /// - Parameter left: called once when the reader is gone.
    init(_ reader: any CardReader, left: @escaping @Sendable () async -> Void) {
        self.reader = reader
        let state = State()
        self.state = state
        watch = Task {
            do { for try await _ in reader.slotStates() {} } catch {}
            guard !Task.isCancelled else { return }
            await state.leave()
            await left()
        }
    }

    deinit { watch.cancel() }
}
