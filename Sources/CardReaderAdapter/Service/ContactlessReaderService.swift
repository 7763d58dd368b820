public import Foundation
public import ProximityReader
import Synchronization

/// The readers of this machine, for an app that speaks the ``CardReaderService`` contract.
///
///     let service = ContactlessReaderService(processor: MyPaymentService(), configuration: configuration)
///     try service.start(shop, discoveryMethod: .usb)
///     for try await readers in service.discoveredReaders {
///         if let reader = readers.first { try await service.connect(reader, options: nil) }
///     }
///     let intent = try await service.capturePayment(PaymentIntentParameters(amount: 12.34, currency: "eur"))
public actor ContactlessReaderService: CardReaderService {
    /// How long others are waited for.
    public struct TimeLimits: Sendable {
        /// For a token, and for a location.
        public var token = Duration.seconds(60)
        /// For a reader to be ready, without the time for a token.
        public var connection = Duration.seconds(60)
        /// For each answer of the payment service.
        public var processor = Duration.seconds(60)
        /// Before a reader that is back is tried again, each time.
        public var reconnectionPauses: [Duration] = [
            .milliseconds(200), .milliseconds(500), .seconds(1), .seconds(2), .seconds(5),
        ]

        public init() {}
    }

    private let backend: any ReaderBackend
    private let processor: any PaymentProcessor
    private let limits: TimeLimits

    private nonisolated let discovered = Mutex(Broadcast<[CardReader]>([]))
    private nonisolated let connected = Broadcast<[CardReader]>([])
    private nonisolated let events = Broadcast<CardReaderEvent>()
    private nonisolated let updates = Broadcast<CardReaderSoftwareUpdateState>(.none)
    private nonisolated let reconnections = Broadcast<CardReaderReconnection>()
    private nonisolated let searching = Broadcast<CardReaderServiceDiscoveryStatus>(.idle)

    /// What has to be settled before a call returns that does not wait.
    private nonisolated let desk = Mutex(Desk())
    private var discovery: Discovery?
    private var connection: Connection?
    private var reconnection: Reconnection?
    private var operation: Operation?
    private var active: ActivePayment?
    /// The serials of the readers that have been connected to.
    private var remembered: Set<String> = []

    /// What readers are looked for or connected.
    private enum Occupation: Hashable {
        case free
        case searching(UUID)
        case connecting(UUID)
        case connected
    }

    private struct Desk {
        var occupation = Occupation.free
        var configProvider: (any CardReaderConfigProvider)?
    }

    private struct Discovery {
        let id: UUID
        var found: [AttachedReader] = []
        var task: Task<Void, Never>?
    }

    private struct Connection {
        let id = UUID()
        let link: any ReaderLink
        let options: CardReaderConnectionOptions
        var reader: CardReader
        var watch: Task<Void, Never>?
    }

    private struct Reconnection {
        let id = UUID()
        let serial: String
        var task: Task<Void, Never>?
    }

    /// A payment or a refund that is under way.
    private struct Operation {
        enum Phase { case preparing, collecting, processing }
        let id = UUID()
        let isRefund: Bool
        var phase = Phase.preparing
        /// Who has cancelled it, if anybody has.
        var cancelledBy: CancellationSource?
        var stop: @Sendable () -> Void = {}
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    /// The payment that can be tried again.
    private struct ActivePayment {
        var intent: PaymentIntent
        /// Kept until the payment service has answered.
        var card: CollectedCard?
    }

    /// - Parameters:
    ///   - processor: the payment service.
    ///   - configuration: what the terminal accepts, and whose tokens; which reader it has is not looked at.
    public init(
        processor: any PaymentProcessor, configuration: ProximityReaderSystem.Configuration,
        limits: TimeLimits = TimeLimits()
    ) {
        self.init(processor: processor, backend: MachineReaders(configuration), limits: limits)
    }

    /// Readers of a script, for apps under development.
    public init(simulating readers: SimulatedReaders, limits: TimeLimits = TimeLimits()) {
        self.init(processor: SimulatedPaymentProcessor(readers), backend: readers, limits: limits)
    }

    package init(processor: any PaymentProcessor, backend: any ReaderBackend, limits: TimeLimits = TimeLimits()) {
        (self.processor, self.backend, self.limits) = (processor, backend, limits)
    }

    deinit {
        discovery?.task?.cancel()
        connection?.watch?.cancel()
        reconnection?.task?.cancel()
    }

    // MARK: What there is to see

    public nonisolated var discoveredReaders: AsyncThrowingStream<[CardReader], any Error> {
        discovered.withLock { $0 }.throwingStream()
    }
    public nonisolated var connectedReaders: AsyncStream<[CardReader]> { connected.stream() }
    public nonisolated var readerEvents: AsyncStream<CardReaderEvent> { events.stream() }
    public nonisolated var softwareUpdateEvents: AsyncStream<CardReaderSoftwareUpdateState> { updates.stream() }
    public nonisolated var reconnectionEvents: AsyncStream<CardReaderReconnection> { reconnections.stream() }
    public nonisolated var discoveryStatus: AsyncStream<CardReaderServiceDiscoveryStatus> { searching.stream() }

    /// The payment that failed and can be tried again or cancelled; nil if there is none.
    public var activePaymentIntent: PaymentIntent? { active?.intent }

    public nonisolated func checkSupport(
        for cardReaderType: CardReaderType, configProvider: any CardReaderConfigProvider,
        discoveryMethod: CardReaderDiscoveryMethod, minimumOperatingSystemVersionOverride: OperatingSystemVersion?
    ) -> Bool {
        backend.supports(discoveryMethod, cardReaderType)
    }

    // MARK: Discovery

    /// As the protocol has it.  Does not wait.
    public nonisolated func start(
        _ configProvider: any CardReaderConfigProvider, discoveryMethod: CardReaderDiscoveryMethod
    ) throws {
        guard backend.supports(discoveryMethod, .other) else {
            throw CardReaderServiceError.discovery(underlyingError: .transportUnsupported)
        }
        let id = UUID()
        try desk.withLock { desk in
            switch desk.occupation {
            case .free: desk = Desk(occupation: .searching(id), configProvider: configProvider)
            case .searching, .connecting: throw CardReaderServiceError.discovery(underlyingError: .readerBusy)
            case .connected: throw CardReaderServiceError.discovery(underlyingError: .alreadyConnectedToReader)
            }
        }
        Task { await search(id) }
    }

    private nonisolated var occupation: Occupation { desk.withLock { $0.occupation } }

    /// - Returns: whether it was `old` until now.
    @discardableResult private nonisolated func change(_ old: Occupation, to new: Occupation) -> Bool {
        desk.withLock { desk in
            guard desk.occupation == old else { return false }
            desk.occupation = new
            return true
        }
    }

    private func search(_ id: UUID) {
        guard occupation == .searching(id) else { return }
        dropSearch()
        giveUpReconnection()
        let readers = backend.attachedReaders()
        let task = Task { [weak self] in
            do {
                for try await found in readers { await self?.found(found, by: id) }
                await self?.endDiscovery(id, throwing: nil)
            } catch {
                await self?.endDiscovery(id, throwing: error)
            }
        }
        discovery = Discovery(id: id, task: task)
        searching.send(.discovering)
    }

    private func found(_ readers: [AttachedReader], by id: UUID) {
        guard discovery?.id == id, occupation == .searching(id) else { return }
        discovery?.found = readers
        let now = readers.map { remembered.contains($0.reader.serial) ? $0.reader.remembered() : $0.reader }
        let sessions = discovered.withLock { $0 }
        guard let before = sessions.latest, !before.isIdentical(to: now) else { return }
        sessions.send(now)
    }

    private func endDiscovery(_ id: UUID, throwing error: (any Error)?) {
        guard discovery?.id == id, change(.searching(id), to: .free) else { return }
        dropSearch()
        finishLists(throwing: error)
    }

    /// Forgets what was found.
    private func dropSearch() {
        discovery?.task?.cancel()
        discovery = nil
    }

    /// Ends the sequence of a search, and begins that of the next one.
    private nonisolated func finishLists(throwing error: (any Error)? = nil) {
        let session = discovered.withLock { current in
            defer { current = Broadcast([]) }
            return current
        }
        session.finish(
            throwing: error.map { CardReaderServiceError.discovery(underlyingError: UnderlyingError(cause: $0)) })
        searching.send(error == nil ? .idle : .fault)
    }

    public func cancelDiscovery() async throws {
        let occupation = occupation
        guard case .searching = occupation, change(occupation, to: .free) else { return }
        dropSearch()
        finishLists()
    }

    // MARK: Connection

    @discardableResult
    public func connect(_ reader: CardReader, options: CardReaderConnectionOptions?) async throws -> CardReader {
        let attempt = Occupation.connecting(UUID())
        let (found, configProvider) = try begin(attempt, with: reader)
        dropSearch()
        finishLists()
        defer { change(attempt, to: .free) }
        let options = options ?? CardReaderConnectionOptions()
        let (link, locationId) = try await open(found, options, configProvider) { self.occupation == attempt }
        guard change(attempt, to: .connected) else {
            await link.close()
            throw CardReaderServiceError.connection(underlyingError: .connectionAttemptInvalidated)
        }
        return adopt(link, found.reader.connected(at: locationId), options)
    }

    /// Ends the search for a connection to one of the readers found.
    private func begin(
        _ attempt: Occupation, with reader: CardReader
    ) throws -> (AttachedReader, any CardReaderConfigProvider) {
        try desk.withLock { [discovery] desk in
            switch desk.occupation {
            case .connected: throw CardReaderServiceError.connection(underlyingError: .alreadyConnectedToReader)
            case .connecting: throw CardReaderServiceError.connection(underlyingError: .readerBusy)
            case .free: throw CardReaderServiceError.connection()
            case .searching(let id):
                guard let discovery, discovery.id == id, let configProvider = desk.configProvider,
                    let found = discovery.found.first(where: { $0.reader == reader })
                else { throw CardReaderServiceError.connection() }
                desk.occupation = attempt
                return (found, configProvider)
            }
        }
    }

    /// - Parameter isWanted: whether the attempt is still valid.
    private func open(
        _ found: AttachedReader, _ options: CardReaderConnectionOptions,
        _ configProvider: any CardReaderConfigProvider, while isWanted: () -> Bool
    ) async throws -> (any ReaderLink, locationId: String) {
        do {
            let locationId = try await answer(within: limits.token, to: configProvider.fetchDefaultLocationID)
            let token = try await answer(within: limits.token, to: configProvider.fetchToken)
            let acceptsTerms = options.builtInOptions?.termsOfServiceAcceptancePermitted ?? true
            let link = try await waiting(atMost: limits.connection) { [backend, updates] in
                let link = try await backend.open(found, token: token, acceptingTerms: acceptsTerms) {
                    updates.send($0)
                }
                // Nobody may be waiting any more.
                if Task.isCancelled {
                    await link.close()
                    throw CancellationError()
                }
                return link
            }
            return (link, locationId)
        } catch let failure as SoftwareUpdateFailure {
            throw CardReaderServiceError.softwareUpdate(
                underlyingError: failure.underlyingError, batteryLevel: failure.batteryLevel)
        } catch {
            let cause = isWanted() ? UnderlyingError(cause: error) : .connectionAttemptInvalidated
            throw CardReaderServiceError.connection(underlyingError: cause)
        }
    }

    private func adopt(
        _ link: any ReaderLink, _ reader: CardReader, _ options: CardReaderConnectionOptions
    ) -> CardReader {
        remembered.insert(reader.serial)
        let reader = reader.remembered()
        var connection = Connection(link: link, options: options, reader: reader)
        let (id, events) = (connection.id, link.events)
        connection.watch = Task { [weak self] in
            for await event in events { await self?.handle(event, of: id) }
        }
        self.connection = connection
        connected.send([reader])
        return reader
    }

    private func handle(_ event: LinkEvent, of id: UUID) {
        guard let connection, connection.id == id else { return }
        switch event {
        case .happened(let event): events.send(event)
        case .changed(let reader):
            let now = reader.connected(at: connection.reader.locationId).remembered()
            guard !now.isIdentical(to: connection.reader) else { return }
            self.connection?.reader = now
            connected.send([now])
        case .left(let reason): lose(connection, reason)
        }
    }

    /// The reader has left without being asked to.
    private func lose(_ lost: Connection, _ reason: DisconnectReason) {
        connection = nil
        change(.connected, to: .free)
        lost.watch?.cancel()
        connected.send([])
        events.send(.disconnected(reason))
        if operation?.phase != .processing { operation?.stop() }
        Task { await lost.link.close() }
        if lost.options.autoReconnect { reconnect(to: lost) }
    }

    public func disconnect() async throws {
        guard operation == nil else { throw CardReaderServiceError.disconnection(underlyingError: .readerBusy) }
        if reconnection != nil { return giveUpReconnection() }
        guard let ended = connection else {
            throw CardReaderServiceError.disconnection(underlyingError: .notConnectedToReader)
        }
        connection = nil
        ended.watch?.cancel()
        await ended.link.close()
        change(.connected, to: .free)
        connected.send([])
    }

    /// As the protocol has it.  Does not wait.
    public nonisolated func clear() throws {
        let was = try desk.withLock { desk in
            guard desk.occupation != .connected else {
                throw CardReaderServiceError.disconnection(underlyingError: .alreadyConnectedToReader)
            }
            defer { desk = Desk() }
            return desk.occupation
        }
        if case .searching = was { finishLists() }
        Task { await forget() }
    }

    /// A payment that is being processed is not forgotten.
    private func forget() {
        giveUpReconnection()
        if let discovery, occupation != .searching(discovery.id) { dropSearch() }
        if operation == nil { active = nil }
    }

    // MARK: Reconnection

    private func reconnect(to lost: Connection) {
        guard let configProvider = desk.withLock({ $0.configProvider }) else { return }
        var reconnection = Reconnection(serial: lost.reader.serial)
        let (id, serial) = (reconnection.id, reconnection.serial)
        let readers = backend.attachedReaders()
        reconnection.task = Task { [weak self, limits] in
            do {
                var last: any Error = UnderlyingError.readerDisconnected
                for try await found in readers {
                    guard let found = found.first(where: { $0.reader.serial == serial }) else { continue }
                    for pause in limits.reconnectionPauses {
                        do {
                            guard let self else { return }
                            try await self.connectAgain(to: found, lost.options, configProvider, id)
                            return
                        } catch {
                            last = error
                            try await Task.sleep(for: pause)
                        }
                    }
                    break
                }
                await self?.endReconnection(id, throwing: last)
            } catch {
                await self?.endReconnection(id, throwing: error)
            }
        }
        self.reconnection = reconnection
        reconnections.send(.started(serial: serial, cancelable: ReconnectionHandle(service: self, id: id)))
    }

    private func connectAgain(
        to found: AttachedReader, _ options: CardReaderConnectionOptions,
        _ configProvider: any CardReaderConfigProvider, _ id: UUID
    ) async throws {
        let (link, locationId) = try await open(found, options, configProvider) { self.reconnection?.id == id }
        // A search that began meanwhile comes first.
        guard reconnection?.id == id, change(.free, to: .connected) else {
            await link.close()
            throw CardReaderServiceError.connection(underlyingError: .connectionAttemptInvalidated)
        }
        reconnection = nil
        reconnections.send(.succeeded(adopt(link, found.reader.connected(at: locationId), options)))
    }

    private func endReconnection(_ id: UUID, throwing error: any Error) {
        guard let ended = reconnection, ended.id == id else { return }
        reconnection = nil
        ended.task?.cancel()
        reconnections.send(.failed(serial: ended.serial, error))
    }

    private func giveUpReconnection() {
        guard let reconnection else { return }
        endReconnection(
            reconnection.id, throwing: CardReaderServiceError.connection(underlyingError: .commandCancelled(from: .app))
        )
    }

    private struct ReconnectionHandle: FallibleCancelable {
        let service: ContactlessReaderService
        let id: UUID

        func cancel(completion: @escaping @Sendable (Result<Void, any Error>) -> Void) {
            Task { completion(await service.cancelReconnection(id)) }
        }
    }

    private func cancelReconnection(_ id: UUID) -> Result<Void, any Error> {
        guard reconnection?.id == id else {
            return .failure(CardReaderServiceError.connection(underlyingError: .connectionAttemptInvalidated))
        }
        giveUpReconnection()
        return .success(())
    }

    // MARK: One operation at a time

    /// - Parameter name: the error that `body`'s call fails with.
    private func perform<Result: Sendable>(
        isRefund: Bool = false, as name: (UnderlyingError) -> CardReaderServiceError,
        _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        guard operation == nil else { throw name(.readerBusy) }
        guard connection != nil else { throw name(.notConnectedToReader) }
        let task = Task { try await body() }
        var begun = Operation(isRefund: isRefund)
        begun.stop = { task.cancel() }
        operation = begun
        defer {
            let waiters = operation?.waiters ?? []
            operation = nil
            for waiter in waiters { waiter.resume() }
        }
        let id = begun.id
        return try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            Task { try? await self.cancelOperation(id) }
        }
    }

    /// Cancels what can be cancelled.  What the payment service was asked is not.
    private func cancelOperation(_ id: UUID) async throws {
        guard operation?.id == id, let phase = operation?.phase, phase != .processing else { return }
        operation?.cancelledBy = .app
        if phase == .collecting, let link = connection?.link {
            do {
                // A card that is there is read to its end, and then not charged.
                _ = try await link.cancelCollection()
            } catch {
                if operation?.id == id { operation?.cancelledBy = nil }
                throw error
            }
        }
        if operation?.id == id { operation?.stop() }
    }

    private func checkNotCancelled() throws {
        if let source = operation?.cancelledBy { throw UnderlyingError.commandCancelled(from: source) }
    }

    /// One step of an operation, whose errors are given the step's name.
    private func step<Result>(
        _ name: (UnderlyingError) -> CardReaderServiceError, _ body: () async throws -> Result
    ) async throws -> Result {
        do {
            let result = try await body()
            try checkNotCancelled()
            return result
        } catch {
            if let source = operation?.cancelledBy { throw name(.commandCancelled(from: source)) }
            if connection == nil, error is CancellationError || operation?.phase == .collecting {
                throw name(.readerDisconnected)
            }
            throw name(UnderlyingError(cause: error))
        }
    }

    private func ask<Result: Sendable>(
        _ question: @escaping @Sendable (any PaymentProcessor) async throws -> Result
    ) async throws -> Result {
        try await waiting(atMost: limits.processor) { [processor] in try await question(processor) }
    }

    private func collect(_ request: CollectionRequest) async throws -> CollectedCard {
        guard let link = connection?.link else { throw UnderlyingError.notConnectedToReader }
        let events = events
        operation?.phase = .collecting
        return try await link.collect(request) { events.send($0) }
    }

    private func waitForFreeReader() async throws {
        guard let link = connection?.link else { throw UnderlyingError.notConnectedToReader }
        let events = events
        await link.waitForRemoval { events.send(.displayMessage(ReaderDisplayMessage.removeCard.text)) }
        try Task.checkCancellation()
        guard connection != nil else { throw UnderlyingError.readerDisconnected }
    }

    public func waitForInsertedCardToBeRemoved() async {
        guard let link = connection?.link else { return }
        let events = events
        let wasThere = Mutex(false)
        await link.waitForRemoval {
            wasThere.withLock { $0 = true }
            events.send(.displayMessage(ReaderDisplayMessage.removeCard.text))
        }
        if wasThere.withLock({ $0 }) { events.send(.cardRemovedAfterClientSidePaymentCapture) }
    }

    // MARK: Payments

    public func capturePayment(_ parameters: PaymentIntentParameters) async throws -> PaymentIntent {
        guard !parameters.currency.isEmpty, let multiplier = MinorUnits.multiplier(of: parameters.currency) else {
            throw CardReaderServiceError.intentCreation(underlyingError: .invalidCurrency)
        }
        guard multiplier == parameters.stripeSmallestCurrencyUnitMultiplier,
            let amount = MinorUnits.units(parameters.amount, of: parameters.currency)
        else { throw CardReaderServiceError.intentCreation(underlyingError: .invalidAmount) }
        return try await perform(as: CardReaderServiceError.paymentMethodCollection) {
            try await self.pay(parameters, amount)
        }
    }

    private func pay(_ parameters: PaymentIntentParameters, _ amount: UInt) async throws -> PaymentIntent {
        active = nil
        try await step(CardReaderServiceError.paymentMethodCollection) { try await waitForFreeReader() }
        let key = UUID().uuidString
        try await step(CardReaderServiceError.intentCreation) {
            let intent = try await ask {
                try await $0.createIntent(parameters, amount: amount, idempotencyKey: key)
            }
            guard intent.status == .requiresPaymentMethod, intent.amount == amount,
                intent.currency.lowercased() == parameters.currency
            else { throw UnderlyingError.processorAPIError }
            active = ActivePayment(intent: intent)
        }
        return try await complete()
    }

    public func retryActivePaymentIntent() async throws -> PaymentIntent {
        guard let active else { throw CardReaderServiceError.retryNotPossibleNoActivePayment }
        switch active.intent.status {
        case .requiresPaymentMethod, .requiresConfirmation:
            return try await perform(as: CardReaderServiceError.paymentMethodCollection) {
                try await self.payAgain()
            }
        case .requiresCapture: return finish(active.intent)
        case .processing: throw CardReaderServiceError.retryNotPossibleProcessingInProgress
        case .canceled: throw CardReaderServiceError.retryNotPossibleActivePaymentCancelled
        case .succeeded: throw CardReaderServiceError.retryNotPossibleActivePaymentSucceeded
        case .requiresAction: throw CardReaderServiceError.retryNotPossibleRequiresAction
        case .unknown: throw CardReaderServiceError.retryNotPossibleUnknownCause
        }
    }

    private func payAgain() async throws -> PaymentIntent {
        if active?.card == nil {
            try await step(CardReaderServiceError.paymentMethodCollection) { try await waitForFreeReader() }
        }
        return try await complete()
    }

    /// Takes the active payment to its end, from where it is.
    private func complete() async throws -> PaymentIntent {
        if active?.card == nil {
            let card = try await step(CardReaderServiceError.paymentMethodCollection) {
                guard let intent = active?.intent else { throw UnderlyingError.noActivePaymentIntent }
                return try await collect(
                    CollectionRequest(kind: .purchase, amount: intent.amount, currency: intent.currency))
            }
            active?.card = card
        }
        guard let payment = active, let card = payment.card else {
            throw CardReaderServiceError.paymentCapture(underlyingError: .noActivePaymentIntent)
        }
        active?.intent = payment.intent.with(.requiresConfirmation)
        operation?.phase = .processing
        do {
            let intent = try await ask {
                try await $0.process(payment.intent, card: card, idempotencyKey: card.id)
            }
            return try settle(intent)
        } catch {
            return try settle(error)
        }
    }

    /// What the payment service has answered.
    private func settle(_ intent: PaymentIntent) throws -> PaymentIntent {
        guard let asked = active?.intent, intent.id == asked.id, intent.amount == asked.amount,
            intent.currency.lowercased() == asked.currency.lowercased()
        else {
            // The answer to another question: what has become of this one is not known.
            throw UnderlyingError.processorAPIError
        }
        switch intent.status {
        case .requiresCapture, .succeeded: return finish(intent)
        case .requiresPaymentMethod: throw PaymentProcessorError(.declined(.unknown), intent: intent)
        case .requiresConfirmation, .processing, .canceled, .requiresAction, .unknown:
            throw PaymentProcessorError(.refused(intent.status.rawValue), intent: intent)
        }
    }

    /// How the payment service has failed.  The intent of now, if it has told, is what is tried again.
    private func settle(_ error: any Error) throws -> PaymentIntent {
        let failure = error as? PaymentProcessorError
        if let intent = failure?.intent, intent.id == active?.intent.id {
            if intent.status == .requiresCapture { return finish(intent) }
            active?.intent = intent
        } else if case .declined = failure?.reason {
            if let intent = active?.intent { active?.intent = intent.with(.requiresPaymentMethod) }
        }
        // A card counts once; while nobody knows whether it has, it is asked about again.
        if active?.intent.status != .requiresConfirmation { active?.card = nil }
        let cause = UnderlyingError(cause: error)
        guard let method = failure?.intent?.paymentMethod() else {
            throw CardReaderServiceError.paymentCapture(underlyingError: cause)
        }
        throw CardReaderServiceError.paymentCaptureWithPaymentMethod(underlyingError: cause, paymentMethod: method)
    }

    private func finish(_ intent: PaymentIntent) -> PaymentIntent {
        active = nil
        return intent
    }

    public func cancelPaymentIntent() async throws {
        guard let active else {
            throw CardReaderServiceError.paymentCancellation(underlyingError: .noActivePaymentIntent)
        }
        if let operation {
            guard !operation.isRefund, operation.phase != .processing else {
                throw CardReaderServiceError.paymentCancellation(underlyingError: .readerBusy)
            }
            do { try await cancelOperation(operation.id) } catch {
                throw CardReaderServiceError.paymentCancellation(underlyingError: UnderlyingError(cause: error))
            }
            await end(of: operation.id)
        }
        do {
            try await ask { try await $0.cancel(active.intent) }
        } catch {
            throw CardReaderServiceError.paymentCancellation(underlyingError: UnderlyingError(cause: error))
        }
        if self.active?.intent.id == active.intent.id { self.active = nil }
    }

    private func end(of id: UUID) async {
        guard operation?.id == id else { return }
        await withCheckedContinuation { operation?.waiters.append($0) }
    }

    // MARK: Refunds

    public func refundPayment(parameters: RefundParameters) async throws -> String {
        guard !parameters.currency.isEmpty else {
            throw CardReaderServiceError.refundCreation(underlyingError: .invalidCurrency)
        }
        guard let amount = MinorUnits.units(parameters.amount, of: parameters.currency) else {
            throw CardReaderServiceError.refundCreation(underlyingError: .invalidAmount)
        }
        return try await perform(isRefund: true, as: CardReaderServiceError.refundCreation) {
            try await self.refund(parameters, amount)
        }
    }

    private func refund(_ parameters: RefundParameters, _ amount: UInt) async throws -> String {
        let needsCard = try await step(CardReaderServiceError.refundCreation) {
            try await ask { try await $0.needsCard(for: parameters) }
        }
        var card: CollectedCard?
        if needsCard {
            card = try await step(CardReaderServiceError.paymentMethodCollection) {
                try await waitForFreeReader()
                return try await collect(
                    CollectionRequest(kind: .refund, amount: amount, currency: parameters.currency))
            }
        }
        operation?.phase = .processing
        switch try await outcome(of: parameters, amount, card) {
        case .succeeded: return "success"
        case .pending: return "pending"
        case .unknown: return "unknown"
        case .failed(let reason):
            throw CardReaderServiceError.refundPayment(
                underlyingError: .paymentDeclinedByPaymentProcessorAPI(declineReason: reason ?? .unknown),
                shouldRetry: reason?.allowsRefundRetry ?? false)
        }
    }

    private func outcome(
        of refund: RefundParameters, _ amount: UInt, _ card: CollectedCard?
    ) async throws -> RefundOutcome {
        let key = card?.id ?? UUID().uuidString
        do {
            return try await ask {
                try await $0.refund(refund, amount: amount, card: card, idempotencyKey: key)
            }
        } catch let error as PaymentProcessorError {
            if case .declined(let reason) = error.reason { return .failed(reason) }
            throw CardReaderServiceError.refundPayment(underlyingError: UnderlyingError(cause: error))
        } catch {
            throw CardReaderServiceError.refundPayment(underlyingError: UnderlyingError(cause: error))
        }
    }

    public func cancelRefund() async throws {
        guard let operation, operation.isRefund else {
            throw CardReaderServiceError.refundCancellation(underlyingError: .noRefundInProgress)
        }
        guard operation.phase != .processing else {
            throw CardReaderServiceError.refundCancellation(underlyingError: .readerBusy)
        }
        do { try await cancelOperation(operation.id) } catch {
            throw CardReaderServiceError.refundCancellation(underlyingError: UnderlyingError(cause: error))
        }
        await end(of: operation.id)
    }

    // MARK: Updates

    public func installUpdate() async throws {
        guard let link = connection?.link else { return }
        do {
            try await link.installUpdate { [updates] in updates.send($0) }
        } catch let failure as SoftwareUpdateFailure {
            throw CardReaderServiceError.softwareUpdate(
                underlyingError: failure.underlyingError, batteryLevel: failure.batteryLevel)
        } catch {
            throw CardReaderServiceError.softwareUpdate(
                underlyingError: UnderlyingError(cause: error), batteryLevel: nil)
        }
    }
}

extension [CardReader] {
    fileprivate func isIdentical(to other: Self) -> Bool {
        count == other.count && zip(self, other).allSatisfy { $0.isIdentical(to: $1) }
    }
}

extension CardReader {
    fileprivate func remembered() -> Self {
        CardReader(
            serial: serial, vendorIdentifier: vendorIdentifier, name: name,
            status: CardReaderStatus(connected: status.connected, remembered: true), softwareVersion: softwareVersion,
            batteryLevel: batteryLevel, readerType: readerType, locationId: locationId)
    }
}

extension PaymentIntent {
    fileprivate func with(_ status: PaymentIntentStatus) -> Self {
        PaymentIntent(
            id: id, status: status, created: created, amount: amount, currency: currency, metadata: metadata,
            charges: charges)
    }
}
