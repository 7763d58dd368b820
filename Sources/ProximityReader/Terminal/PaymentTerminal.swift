import CardEncryption
import EMVContactless
package import Foundation
import Logging
package import SmartCard
import Synchronization
import Waiting

/// The device behind every ``PaymentCardReader`` of a process: one reader, one session, one read at a time.
package actor PaymentTerminal {
    package static let shared = PaymentTerminal(ProximityReaderSystem.use())

    nonisolated let events = Multicast<TerminalEvent>()
    /// Of this run of the program.
    nonisolated let runIdentifier = UUID().uuidString
    let configuration: ProximityReaderSystem.ValidatedConfiguration
    package let store: RecordStore
    /// Where records are kept.
    package nonisolated var folder: URL { configuration.folder }
    private let accounts: AccountRecords

    private var isPreparing = false
    private var session: TerminalSession?
    /// Tells when the session's time is over.
    private var expiry: Task<Void, Never>?
    /// The session whose end has been told.
    private weak var toldEnd: TerminalSession?

    /// The reader, for as long as it is there.
    private var attached: AttachedReader?
    /// Finds it, whoever asks for it meanwhile.
    private var finding: Task<AttachedReader, any Error>?
    /// Looks for the reader while it is gone.
    private var search: Task<Void, Never>?
    private var sleepWatch: Task<Void, Never>?
    private var isAsleep = false

    private var read: Read?
    /// The last read, until its card has been taken away.
    private var lastRead: Task<Void, Never>?
    /// Whether the card of the last read has not been taken away.
    private var isCardLeft = false
    /// Waits for that.
    private var removal: Task<Void, Never>?
    /// Tag 9F41 of the last transaction.  It begins with the time, so that it goes on when the program is started again.
    private var sequenceCounter: UInt32

    /// A read that is under way.
    private struct Read {
        let id: UUID
        let session: TerminalSession
        let answer: Answer
        var task: Task<Void, Never>?
        /// Whether the application has been told of it.
        var isShown = false
        /// Whether there is no card.
        var isWaiting = true
        /// Whether there has been one.
        var hadCard = false
        /// Whether the card has paid, and the payment may be stored.
        var isDecided = false
        /// What it fails with as soon as there is no card.
        var cancellation: PaymentCardReaderSession.ReadError?
    }

    /// What the caller of a read gets, once.
    private final class Answer: Sendable {
        private let caller: Mutex<CheckedContinuation<PaymentCardReadResult, any Error>?>

        init(_ caller: CheckedContinuation<PaymentCardReadResult, any Error>) { self.caller = Mutex(caller) }

        func give(_ result: Result<PaymentCardReadResult, any Error>) {
            let caller = caller.withLock { caller in
                defer { caller = nil }
                return caller
            }
            caller?.resume(with: result)
        }
    }

    package init(_ configuration: ProximityReaderSystem.ValidatedConfiguration) {
        self.configuration = configuration
        accounts = AccountRecords(folder: configuration.folder)
        store = RecordStore(
            folder: configuration.folder, wrapping: configuration.storeWrappingKey, now: configuration.now)
        let seconds = configuration.now().timeIntervalSince1970
        sequenceCounter = UInt32(exactly: seconds.rounded().truncatingRemainder(dividingBy: 99_999_999)) ?? 0
    }

    deinit {
        for task in [expiry, search, sleepWatch, lastRead] { task?.cancel() }
    }

    // MARK: Accounts

    func isAccountLinked(using token: PaymentCardReader.Token) async throws -> Bool {
        try await isLinked(ReaderToken(token, for: configuration))
    }

    func linkAccount(using token: PaymentCardReader.Token, again: Bool) async throws {
        let token = try await ReaderToken(token, for: configuration)
        if !again, try await isLinked(token) { throw PaymentCardReaderError.accountAlreadyLinked }
        try await accounts.link(
            token.merchant, of: token.issuer, terms: configuration.termsVersion, at: configuration.now())
    }

    private func isLinked(_ token: ReaderToken) async throws -> Bool {
        try await accounts.isLinked(token.merchant, of: token.issuer, terms: configuration.termsVersion)
    }

    // MARK: Reader

    /// The applications that it has a kernel for.
    package nonisolated var applications: [AID] {
        configuration.terminal.combinations.filter { Kernels.all[$0.kernel] != nil }.map(\.aid)
    }

    func readerIdentifier() async throws -> String {
        let number: String?
        do {
            number = try await attachedReader().identity.serialNumber
        } catch let error as CardError {
            throw PaymentCardReaderError(error)
        }
        if let number { return number }
        return try await accounts.machineIdentifier()
    }

    /// The reader, looked for if it is not there.
    private func attachedReader() async throws -> AttachedReader {
        if let attached { return attached }
        let finding = finding ?? Task { try await findReader() }
        self.finding = finding
        await finding.ended()
        try Task.checkCancellation()
        return try await finding.value
    }

    private func findReader() async throws -> AttachedReader {
        defer { finding = nil }
        let found = try await AttachedReader(configuration.reader.find(), answersWithin: configuration.answerTime) {
            [weak self] in await self?.readerLeft($0)
        }
        attached = found
        return found
    }

    /// - Parameter id: of the reader, which may not be that of now.
    private func readerLeft(_ id: UUID) {
        guard id == attached?.id else { return }
        attached = nil
        logger.warning("the reader is gone")
        if let read { interrupt(read.id, with: .readerNotAvailable) }
        guard session != nil else { return }
        events.send(.notReady)
        searchReader()
    }

    /// Looks for the reader until it is there, so that its next leaving is noticed, too.
    private func searchReader() {
        guard search == nil else { return }
        search = Task { [weak self] in
            while !Task.isCancelled, await self?.hasFoundReader() == false {
                try? await Task.sleep(for: .seconds(1))
            }
            await self?.endSearch()
        }
    }

    private func hasFoundReader() async -> Bool {
        guard session != nil, !isAsleep else { return true }
        return (try? await attachedReader()) != nil
    }

    private func endSearch() { search = nil }

    // MARK: Sleep

    /// From the first `prepare` on, and from the next one after the bus has gone.
    private func watchSleep() {
        guard sleepWatch == nil else { return }
        let states = SleepWatch.states(on: configuration.systemBus)
        sleepWatch = Task { [weak self] in
            for await isAsleep in states { await self?.hostSleeps(isAsleep) }
            await self?.endSleepWatch()
        }
    }

    /// Nobody would tell of the machine's waking.
    private func endSleepWatch() {
        sleepWatch = nil
        hostSleeps(false)
    }

    /// Nothing is read while the machine sleeps.  Afterwards the reader is looked for anew, and the session goes on.
    private func hostSleeps(_ isAsleep: Bool) {
        guard isAsleep != self.isAsleep else { return }
        self.isAsleep = isAsleep
        attached = nil
        if isAsleep, let read { interrupt(read.id, with: .readFromBackgroundError) }
        guard session != nil else { return }
        if isAsleep { events.send(.notReady) } else { searchReader() }
    }

    // MARK: Sessions

    package func prepare(using token: PaymentCardReader.Token) async throws -> HeldSession {
        try await preparing {
            let token = try await ReaderToken(token, for: configuration)
            if case .ofToken = configuration.cardDataKey, token.recipient == nil {
                throw PaymentCardReaderError.invalidReaderToken("it names no card data key")
            }
            let end = configuration.now().addingTimeInterval(configuration.sessionLifetime / .seconds(1))
            return (token, min(end, token.expiration), nil)
        }
    }

    package func prepareStoreAndForward() async throws -> HeldSession {
        try await preparing {
            let (preparation, end) = try await storingTerms()
            return (try ReaderToken(preparation), end, preparation)
        }
    }

    /// Makes a session on these terms.
    private func preparing(
        _ terms: () async throws -> (token: ReaderToken, end: Date, preparation: Preparation?)
    ) async throws -> HeldSession {
        watchSleep()
        guard !isAsleep else { throw PaymentCardReaderError.backgroundRequestNotAllowed }
        guard !isPreparing, read == nil else { throw PaymentCardReaderError.readerBusy }
        isPreparing = true
        defer { isPreparing = false }
        events.send(.updateProgress(0))
        do {
            let (token, end, preparation) = try await terms()
            guard try await isLinked(token) else { throw PaymentCardReaderError.accountNotLinked }
            events.send(.updateProgress(30))
            try await openReader()
            events.send(.updateProgress(90))
            if preparation == nil { await notePreparation(token) }
            try Task.checkCancellation()
            guard !isAsleep else { throw PaymentCardReaderError.requestInterrupted }
            guard attached != nil else { throw PaymentCardReaderError.unsupported }
            let session = TerminalSession(token, end: end, storingAfter: preparation)
            begin(session)
            events.send(.updateProgress(100))
            return HeldSession(session: session, terminal: self)
        } catch let error as PaymentCardReaderError {
            throw error
        } catch is CancellationError {
            throw PaymentCardReaderError.requestInterrupted
        } catch let error as CardError {
            attached = nil
            throw PaymentCardReaderError(error)
        } catch {
            // Another's error may say anything.
            logger.error("the reader could not be prepared: \(type(of: error))")
            throw PaymentCardReaderError.prepareFailed(nil)
        }
    }

    private func openReader() async throws {
        if let attached { try await attached.check() }
        _ = try await attachedReader()
        events.send(.updateProgress(60))
    }

    /// Ends the session, and lets others have reader and store.  A card that is being read is read to its end.
    package func end() async {
        if let read { interrupt(read.id, with: .readCancelled) }
        session = nil
        for task in [expiry, search, removal] { task?.cancel() }
        if let lastRead { try? await withTimeLimit(configuration.answerTime) { await lastRead.ended() } }
        attached = nil
        await store.close()
    }

    private func begin(_ session: TerminalSession) {
        self.session = session
        expiry?.cancel()
        expiry = Task { [weak self, weak session, tick = configuration.clockTick] in
            // The clock may be set meanwhile.
            while !Task.isCancelled, let session, await self?.isOver(session) == false {
                try? await Task.sleep(for: tick)
            }
        }
    }

    /// Tells the application when it is.
    private func isOver(_ session: TerminalSession) -> Bool {
        guard self.session === session else { return true }
        guard (try? check(session)) == nil else { return false }
        return true
    }

    /// Whether this is the session of now.
    func has(_ session: TerminalSession) -> Bool { self.session === session }

    /// - Throws: `ReadError` for a session that is over; `PaymentCardReaderError` for one that stores.
    private func check(_ session: TerminalSession) throws {
        guard self.session === session else { throw PaymentCardReaderSession.ReadError.noReaderSession }
        let error: any Error
        if let preparation = session.preparation {
            guard let end = storingEnd(preparation) else { return }
            error = end
        } else {
            let now = configuration.now()
            guard now >= session.end else { return }
            error =
                now >= session.token.expiration
                ? PaymentCardReaderSession.ReadError.readerTokenExpired : .readerSessionExpired
        }
        if toldEnd !== session {
            toldEnd = session
            events.send(.notReady)
        }
        throw error
    }

    // MARK: Reads

    func cancelRead(in session: TerminalSession) throws -> Bool {
        guard let read, read.session === session else {
            guard self.session === session else { throw PaymentCardReaderSession.ReadError.noReaderSession }
            return false
        }
        guard read.isWaiting else { return false }
        interrupt(read.id, with: .readCancelled)
        return true
    }

    /// Ends a read as soon as there is no card: one that was found is read to its end.
    private func interrupt(_ id: UUID, with error: PaymentCardReaderSession.ReadError) {
        guard let read, read.id == id, read.cancellation == nil else { return }
        self.read?.cancellation = error
        guard read.isWaiting else { return }
        read.task?.cancel()
        giveUp(id, after: configuration.answerTime, with: error)
    }

    /// Ends a read that does not end, as where a driver hangs.
    private func giveUp(_ id: UUID, after time: Duration, with error: PaymentCardReaderSession.ReadError) {
        Task { [weak self] in
            try? await Task.sleep(for: time)
            await self?.giveUp(id, with: error)
        }
    }

    private func giveUp(_ id: UUID, with error: PaymentCardReaderSession.ReadError) {
        guard let read, read.id == id, !read.isDecided else { return }
        logger.error("the reader does not answer")
        read.task?.cancel()
        (attached, lastRead) = (nil, nil)
        fail(id, with: error)
    }

    func read(
        _ request: CardRequest, _ options: PaymentCardReader.Options, in session: TerminalSession, as id: UUID = UUID()
    ) async throws -> PaymentCardReadResult {
        // Nobody is asked for a card.
        guard !Task.isCancelled else { throw PaymentCardReaderSession.ReadError.readCancelled }
        guard read == nil, !isPreparing else { throw PaymentCardReaderSession.ReadError.readerSessionBusy }
        guard !isAsleep else { throw PaymentCardReaderSession.ReadError.readFromBackgroundError }
        try check(session)
        var random = SystemRandomNumberGenerator()
        let unpredictableNumber = (0..<4).map { _ in UInt8.random(in: 0...255, using: &random) }
        let transaction = try request.transaction(
            at: configuration.now(), unpredictableNumber: unpredictableNumber,
            sequenceCounter: sequenceCounter % 99_999_999 + 1)
        let preferred = try request.preferredAIDs()
        sequenceCounter = transaction.sequenceCounter

        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { caller in
                let before = lastRead
                read = Read(id: id, session: session, answer: Answer(caller))
                let task = Task {
                    await perform(id, transaction, request, preferring: preferred, options, in: session, after: before)
                    // One that was refused or cancelled has not waited for it, and who comes next does.
                    await before?.value
                }
                read?.task = task
                lastRead = task
            }
        } onCancel: {
            Task { await self.interrupt(id, with: .readCancelled) }
        }
    }

    /// - Parameter before: the read before, which has the field until its card is gone.
    private func perform(
        _ id: UUID, _ transaction: Transaction, _ request: CardRequest, preferring preferred: [AID],
        _ options: PaymentCardReader.Options, in session: TerminalSession, after before: Task<Void, Never>?
    ) async {
        do {
            // Nobody is asked for a card that would be of no use.
            try await admit(request, to: session)
            try proceed(id)
            if isCardLeft { tell(.removeCard, of: id) }
            await before?.ended()
            try proceed(id)
            let reader = try await attachedReader()
            try await reader.withField { field in
                let field = EventfulField(field) { try await self.fieldChanged($0, of: id) }
                await self.perform(
                    id, transaction, request, preferring: preferred, options, in: session, reader.identity, field)
            }
        } catch {
            // One that has ended stands, whether the reader could be put back as it was or not.
            fail(id, with: error)
        }
    }

    private func perform(
        _ id: UUID, _ transaction: Transaction, _ request: CardRequest, preferring preferred: [AID],
        _ options: PaymentCardReader.Options, in session: TerminalSession, _ reader: ReaderIdentity,
        _ field: EventfulField
    ) async {
        do {
            let result = try await pay(
                id, transaction, request, preferring: preferred, options, in: session, reader, field)
            guard let answer = read?.answer, read?.id == id else { return }
            end(id, with: result.outcome == .success ? .readCompleted : .readNotCompleted)
            if options.returnReadResultImmediately { answer.give(.success(result)) }
            let dismissal = Task { [events] in
                // Whoever leaves a card on the reader holds nobody up for longer.
                try? await Task.sleep(for: Self.removalTime)
                events.send(.userInterfaceDismissed, of: id)
                answer.give(.success(result))
            }
            await removal(from: field)
            dismissal.cancel()
            await dismissal.value
        } catch {
            fail(id, with: error)
            await removal(from: field)
        }
    }

    /// The card's data are gone when this returns, however long the card stays.
    private func pay(
        _ id: UUID, _ transaction: Transaction, _ request: CardRequest, preferring preferred: [AID],
        _ options: PaymentCardReader.Options, in session: TerminalSession, _ reader: ReaderIdentity,
        _ field: EventfulField
    ) async throws -> PaymentCardReadResult {
        let report = try await transact(transaction, preferring: preferred, in: field)
        let card = CardRead(
            report, transaction, id: id.uuidString, applications: configuration.terminal.combinations.map(\.aid))
        if let error = card.error, !options.includeErrorInReadResult { throw error }
        let result = try await seal(card, in: session, reader)
        guard read?.id == id else { throw CancellationError() }
        read?.isDecided = true
        if card.error == nil { try await keep(result, card, of: request, in: session) }
        return result
    }

    /// Waits until the card of a read is gone, cancelled or not, so that it does not pay for who comes next.
    private func removal(from field: EventfulField) async {
        guard isCardLeft, session != nil else { return }
        let removal = Task {
            do { try await field.waitForRemoval() } catch { logger.debug("waiting for the card's removal: \(error)") }
        }
        self.removal = removal
        await removal.value
        isCardLeft = false
    }

    /// Waits until the card of the last read has been taken away.  Until then the reader itself may say that there is none.
    ///
    /// - Parameter cardIsThere: called at once if it has not been.
    /// - Returns: whether it was called.
    package func waitForRemoval(_ cardIsThere: @Sendable () -> Void) async -> Bool {
        guard isCardLeft, let lastRead else { return false }
        cardIsThere()
        await lastRead.ended()
        return true
    }

    private func transact(
        _ transaction: Transaction, preferring preferred: [AID], in field: EventfulField
    ) async throws -> ContactlessTerminal.Report {
        let entryPoint = EntryPoint(
            configuration: configuration.terminal, kernels: Kernels.all,
            keys: configuration.certificationAuthorityKeys, preferredApplications: preferred)
        return try await ContactlessTerminal(entryPoint).perform(
            transaction, in: field, layers: { [limit = configuration.answerTime] in TimeLimitLayer($0, limit: limit) },
            show: { _ in })
    }

    private func seal(
        _ card: CardRead, in session: TerminalSession, _ reader: ReaderIdentity
    ) async throws -> PaymentCardReadResult {
        var sealed: SealedCardData?
        if let data = try card.clearData() {
            switch configuration.cardDataKey {
            case .ofToken:
                sealed = try session.token.recipient?.seal(data, header: card.header(session, reader: reader))
            case .dukpt(let device, let options):
                sealed = try await device.seal(data, boundTo: Array(card.id.utf8), options: options)
            case .tdesDUKPT(let device, let options): sealed = try await device.seal(data, options: options)
            }
        }
        return card.result(sealed)
    }

    // MARK: What becomes of a read

    /// - Throws: why it does not go on, where there is no card yet.
    private func proceed(_ id: UUID) throws {
        guard let read, read.id == id else { throw CancellationError() }
        if let cancellation = read.cancellation { throw cancellation }
    }

    private func tell(_ event: PaymentCardReader.Event, of id: UUID) {
        guard read?.id == id else { return }
        read?.isShown = true
        events.send(event, of: id)
    }

    private func fieldChanged(_ event: PaymentCardReader.Event, of id: UUID) throws {
        switch event {
        case .readyForTap:
            try proceed(id)
            read?.isWaiting = true
            tell(event, of: id)
        case .cardDetected:
            guard let read, read.id == id else { throw CancellationError() }
            self.read?.hadCard = true
            if let cancellation = read.cancellation { throw cancellation }
            self.read?.isWaiting = false
            tell(event, of: id)
            if !read.hadCard { giveUp(id, after: configuration.transactionTime, with: .readerServiceError) }
            // The wait for the card may have been long.
            try check(read.session)
        default: tell(event, of: id)
        }
    }

    /// Tells how the read ended; the next one may begin.
    private func end(_ id: UUID, with event: PaymentCardReader.Event) {
        guard let read, read.id == id else { return }
        if read.hadCard {
            isCardLeft = true
            events.send(.removeCard, of: id)
        }
        events.send(event, of: id)
        self.read = nil
    }

    private func fail(_ id: UUID, with error: any Error) {
        guard let read, read.id == id else { return logger.debug("after the read: \(error)") }
        let error = Self.readError(error, of: read)
        if read.isShown || read.cancellation != nil {
            switch error {
            case PaymentCardReaderSession.ReadError.readCancelled,
                PaymentCardReaderSession.ReadError.readFromBackgroundError:
                end(id, with: .readCancelled)
            default: end(id, with: .readNotCompleted)
            }
            events.send(.userInterfaceDismissed, of: id)
        } else {
            self.read = nil
        }
        read.answer.give(.failure(error))
    }

    private static func readError(_ error: any Error, of read: Read) -> any Error {
        if let cancellation = read.cancellation, read.isWaiting || error is CancellationError { return cancellation }
        switch error {
        case is PaymentCardReaderSession.ReadError, is PaymentCardReaderError: return error
        case is CancellationError: return PaymentCardReaderSession.ReadError.readCancelled
        case let error as CardError:
            logger.warning("the reader: \(error)")
            return PaymentCardReaderSession.ReadError(error)
        default:
            // Another's error may say anything.
            logger.error("the card's data could not be sealed or stored: \(type(of: error))")
            return PaymentCardReaderSession.ReadError.readerServiceError
        }
    }

    /// How long a caller waits for a card to be taken away.
    private static let removalTime = Duration.seconds(5)
}

extension Task {
    /// Waits until it has ended, or the task that waits is cancelled.
    fileprivate func ended() async {
        let (end, continuation) = AsyncStream.makeStream(of: Void.self)
        Task<Void, Never> {
            _ = await self.result
            continuation.finish()
        }
        for await _ in end {}
    }
}
