package import CardReaders
public import CardReceipts
public import Foundation
package import KioskKit
public import ProximityReader
import Synchronization
import Waiting

/// The readers of this machine, for an app that uses the ``CardReaderService`` contract.
///
///     let service = ContactlessReaderService(processor: MyPaymentService(), configuration: configuration)
///     try service.start(shop, discoveryMethod: .usb)
///     for try await readers in service.discoveredReaders {
///         if let reader = readers.first { try await service.connect(reader, options: nil) }
///     }
///     let intent = try await service.capturePayment(PaymentIntentParameters(amount: 12.34, currency: "eur"))
public actor ContactlessReaderService: CardReaderService {
    /// The time limits for the service's partners.
    public struct TimeLimits: Sendable {
        /// The limit for a token, and for a location.
        public var token = Duration.seconds(60)
        /// The limit for preparing a reader, without the time for a token.
        public var connection = Duration.seconds(60)
        /// The limit for each answer of the payment service.
        public var processor = Duration.seconds(60)
        /// The limit for installing an update.
        public var update = Duration.seconds(1800)
        /// The limit for finding a first reader; nil waits until the search is canceled.
        public var discovery: Duration?
        /// The least interval between two tokens for a reader that returns.  In the meantime the first token is used,
        /// as long as no connection succeeds.
        public var fetchInterval = Duration.seconds(60)
        /// The pauses before each attempt to reconnect.  Each is extended at random by up to one half.
        public var reconnectionPauses: [Duration] = [
            .milliseconds(200), .milliseconds(500), .seconds(1), .seconds(2), .seconds(5),
        ]

        public init() {}
    }

    let backend: any ReaderBackend
    let processor: any PaymentProcessor
    let limits: TimeLimits

    // Each stream keeps the newest elements.  Calls return the result of a payment; no stream carries it.
    nonisolated let discovered = Mutex(Multicast<[CardReader]>([], keeping: .newest(64)))
    nonisolated let connected = Multicast<[CardReader]>([], keeping: .newest(64))
    nonisolated let events = Multicast<CardReaderEvent>(keeping: .newest(4096))
    nonisolated let updates = Multicast<CardReaderSoftwareUpdateState>(.none, keeping: .newest(256))
    nonisolated let reconnections = Multicast<CardReaderReconnection>(keeping: .newest(64))
    private nonisolated let paymentStates = Multicast<PaymentStatus>(.notReady, keeping: .newest(64))
    nonisolated let searching = Multicast<CardReaderServiceDiscoveryStatus>(.idle, keeping: .newest(64))

    /// The state that a call that does not wait must settle before it returns.
    nonisolated let desk = Mutex(Desk())
    var discovery: Discovery?
    var connection: Connection? { didSet { tellPaymentStatus() } }
    var reconnection: Reconnection?
    /// Ends when the readers that left are released.
    var returning: Task<Void, Never>?
    var operation: Operation? { didSet { tellPaymentStatus() } }
    var active: ActivePayment?
    var openRefunds = OpenRefunds()
    let journal: PaymentJournal
    let decided: (@Sendable (CardReaderDecision) async -> Void)?
    /// The journal entries of the active payment: one for each card that the payment service was asked to charge.
    var activeEntries: [OpenPayment] = []
    /// Payments of an earlier run that are to become the active one.
    var leftovers: [OpenPayment] = []
    var restoration: Task<Void, Never>?
    /// The serials of the readers that were connected before.
    var remembered: Set<String> = []

    struct Discovery {
        let id: UUID
        var found: [AttachedReader] = []
        var task: Task<Void, Never>?
    }

    /// Creates a service.
    ///
    /// - Parameters:
    ///   - processor: the payment service.
    ///   - configuration: the cards that the terminal accepts, and the issuer of its tokens; its reader is ignored.
    ///     Payments are recorded in `intents` of its folder.
    ///   - limits: the longest waits for each step.
    ///   - decided: receives decisions for the app's accounting.
    public init(
        processor: any PaymentProcessor, configuration: ProximityReaderSystem.ValidatedConfiguration,
        limits: TimeLimits = TimeLimits(), decided: (@Sendable (CardReaderDecision) async -> Void)? = nil
    ) {
        self.init(
            processor: processor, backend: MachineReaders(configuration),
            journal: .folder(configuration.folder.appending(path: "intents")), limits: limits, decided: decided)
    }

    /// Creates a service whose terminal stores payments while the payment service is unreachable.
    public init(
        storing processor: OfflinePaymentProcessor, limits: TimeLimits = TimeLimits(),
        decided: (@Sendable (CardReaderDecision) async -> Void)? = nil
    ) {
        self.init(storing: processor, machine: Machine(), limits: limits, decided: decided)
    }

    package init(
        storing processor: OfflinePaymentProcessor, machine: Machine, limits: TimeLimits = TimeLimits(),
        decided: (@Sendable (CardReaderDecision) async -> Void)? = nil
    ) {
        let configuration = processor.configuration
        self.init(
            processor: processor, backend: MachineReaders(configuration, store: processor.store, machine: machine),
            journal: .folder(configuration.folder.appending(path: "intents")), limits: limits, decided: decided)
    }

    /// Creates a service over scripted readers, for apps under development.
    public init(
        simulating readers: SimulatedReaders, journal: JournalPlace, limits: TimeLimits = TimeLimits(),
        decided: (@Sendable (CardReaderDecision) async -> Void)? = nil
    ) {
        self.init(
            processor: SimulatedPaymentProcessor(readers), backend: readers, journal: journal, limits: limits,
            decided: decided)
    }

    package init(
        processor: any PaymentProcessor, backend: any ReaderBackend, journal: JournalPlace,
        limits: TimeLimits = TimeLimits(), disk: PaymentJournal.Disk = PaymentJournal.Disk(),
        decided: (@Sendable (CardReaderDecision) async -> Void)? = nil
    ) {
        (self.processor, self.backend, self.limits, self.decided) = (processor, backend, limits, decided)
        switch journal {
        case .memory: self.journal = PaymentJournal(folder: nil, disk: disk)
        case .folder(let folder): self.journal = PaymentJournal(folder: folder, disk: disk)
        }
    }

    deinit {
        discovery?.task?.cancel()
        connection?.watch?.cancel()
        reconnection?.task?.cancel()
    }

    // MARK: State

    public nonisolated var discoveredReaders: AsyncThrowingStream<[CardReader], any Error> {
        discovered.withLock { $0 }.throwingStream()
    }
    public nonisolated var connectedReaders: AsyncStream<[CardReader]> { connected.stream() }
    public nonisolated var readerEvents: AsyncStream<CardReaderEvent> { events.stream() }
    public nonisolated var softwareUpdateEvents: AsyncStream<CardReaderSoftwareUpdateState> { updates.stream() }
    public nonisolated var reconnectionEvents: AsyncStream<CardReaderReconnection> { reconnections.stream() }
    public nonisolated var discoveryStatus: AsyncStream<CardReaderServiceDiscoveryStatus> { searching.stream() }

    /// The state of the next payment or of the present one: the present state first, then each change.
    public nonisolated var paymentStatus: AsyncStream<PaymentStatus> { paymentStates.stream() }
    public nonisolated var status: CardReaderServiceStatus { searching.latest == .fault ? .fault : .ready }

    private func tellPaymentStatus() {
        let now: PaymentStatus =
            switch operation?.phase {
            case .collecting: .waitingForInput
            case .processing: .processing
            case .preparing: .notReady
            case nil: connection == nil ? .notReady : .ready
            }
        if paymentStates.latest != now { paymentStates.send(now) }
    }

    /// The payment that can be retried or canceled: it failed, or its result is unknown; nil if there is none.
    public var activePaymentIntent: PaymentIntent? {
        get async {
            await restore()
            await forgetWhatWasTaken()
            return active?.intent
        }
    }

    public nonisolated func checkSupport(
        for cardReaderType: CardReaderType, configProvider: any CardReaderConfigProvider,
        discoveryMethod: CardReaderDiscoveryMethod, minimumOperatingSystemVersionOverride: OperatingSystemVersion?
    ) -> Bool {
        backend.supports(discoveryMethod, cardReaderType)
    }

    // MARK: Discovery

    /// Starts to look for readers; see the protocol.  Does not wait.
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

    private func search(_ id: UUID) {
        guard occupation == .searching(id) else { return }
        dropSearch()
        giveUpReconnection()
        let readers = backend.attachedReaders()
        let task = Task { [weak self, limits] in
            let timer = Task {
                guard let limit = limits.discovery else { return }
                try await Time.sleep(for: limit)
                await self?.giveUpSearch(id)
            }
            defer { timer.cancel() }
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

    private func giveUpSearch(_ id: UUID) {
        guard discovery?.id == id, discovery?.found.isEmpty == true else { return }
        endDiscovery(id, throwing: UnderlyingError.discoveryTimedOut)
    }

    private func endDiscovery(_ id: UUID, throwing error: (any Error)?) {
        guard discovery?.id == id, change(.searching(id), to: .free) else { return }
        dropSearch()
        finishLists(throwing: error)
    }

    /// Discards the readers found.
    func dropSearch() {
        discovery?.task?.cancel()
        discovery = nil
    }

    /// Ends the sequence of this search, and begins the sequence of the next one.
    nonisolated func finishLists(throwing error: (any Error)? = nil) {
        let session = discovered.withLock { current in
            defer { current = Multicast([], keeping: .newest(64)) }
            return current
        }
        session.finish(
            throwing: error.map { CardReaderServiceError.discovery(underlyingError: noted($0)) })
        searching.send(error == nil ? .idle : .fault)
    }

    public func cancelDiscovery() async throws {
        let occupation = occupation
        guard case .searching = occupation, change(occupation, to: .free) else { return }
        dropSearch()
        finishLists()
    }

    // MARK: Updates

    public func installUpdate() async throws {
        guard let link = connection?.link else { return }
        let name = { CardReaderServiceError.softwareUpdate(underlyingError: $0, batteryLevel: nil) }
        let limit = limits.update
        do {
            try await perform(.update, as: name) { [updates] in
                try await waiting(atMost: limit) {
                    try await link.installUpdate { state in
                        // The caller may have stopped waiting.
                        if !Task.isCancelled { updates.send(state) }
                    }
                }
            }
        } catch let failure as SoftwareUpdateFailure {
            throw CardReaderServiceError.softwareUpdate(
                underlyingError: failure.underlyingError, batteryLevel: failure.batteryLevel)
        } catch let error as CardReaderServiceError {
            throw error
        } catch {
            let cause = connection == nil ? .readerSoftwareUpdateFailedInterrupted : noted(error)
            updates.send(.failed(error: cause))
            updates.send(.none)
            throw name(cause)
        }
    }
}

extension [CardReader] {
    func isIdentical(to other: Self) -> Bool {
        count == other.count && zip(self, other).allSatisfy { $0.isIdentical(to: $1) }
    }
}

extension CardReader {
    func remembered() -> Self {
        CardReader(
            serial: serial, vendorIdentifier: vendorIdentifier, name: name,
            status: CardReaderStatus(connected: status.connected, remembered: true), softwareVersion: softwareVersion,
            batteryLevel: batteryLevel, readerType: readerType, locationId: locationId)
    }
}
