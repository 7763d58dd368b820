public import CardReceipts
import Synchronization
import Waiting

/// Scripted readers, cards and a payment service, for apps under development and their tests.
///
///     let readers = SimulatedReaders([SimulatedReader(serial: "SIM-1")])
///     let service = ContactlessReaderService(simulating: readers, journal: .memory)
///     readers.present(.declined(.insufficientFunds))
public final class SimulatedReaders: ReaderBackend {
    private struct State {
        var readers: [SimulatedReader]
        /// The links by serial number.  The opener holds the link, and the link holds its owner.
        var links: [String: OpenLink] = [:]
        var cards: [SimulatedCard] = []
        var isCardLying = false
        var refusal: UnderlyingError?
        var network = SimulatedNetwork.online
        var questions = 0
    }

    private let state: Mutex<State>
    private let attached: Multicast<[SimulatedReader]>
    /// Presented cards, and whether one lies on the reader.
    fileprivate let table = Multicast<Bool>(false, keeping: .newest(64))

    public init(_ readers: [SimulatedReader] = [SimulatedReader(serial: "SIMULATED-1")]) {
        state = Mutex(State(readers: readers))
        attached = Multicast(readers, keeping: .newest(64))
    }

    // MARK: The script

    /// Plugs a reader in, or replaces the one with the same serial.
    public func plug(_ reader: SimulatedReader) {
        change { $0.readers = $0.readers.filter { $0.serial != reader.serial } + [reader] }
    }

    public func unplug(_ serial: String, reason: DisconnectReason = .usbDisconnected) {
        let link = change { state in
            state.readers.removeAll { $0.serial == serial }
            return state.links.removeValue(forKey: serial)?.link
        }
        link?.leave(reason)
        // Wakes the task that waits for a card's removal.
        table.send(state.withLock { $0.isCardLying })
    }

    /// Sets the charge of a reader's battery.
    ///
    /// - Parameters:
    ///   - level: from 0 to 1.  Below 0.2 the reader reports a low battery, and above it the end of that state.
    ///   - serial: the serial of the reader.
    public func setBattery(_ level: Float, of serial: String) {
        let (reader, link) = change { state in
            for index in state.readers.indices where state.readers[index].serial == serial {
                state.readers[index].batteryLevel = level
            }
            return (state.readers.first { $0.serial == serial }, state.links[serial]?.link)
        }
        if let reader { link?.battery(reader) }
    }

    /// Presents a card.  Cards that no task awaits yet are queued.
    public func present(_ card: SimulatedCard) {
        state.withLock { $0.cards.append(card) }
        table.send(state.withLock { $0.isCardLying })
    }

    /// Puts a card on the reader, where it stays.
    public func layCard() { setCardLying(true) }
    public func takeCard() { setCardLying(false) }

    /// Sets the error of all further connections; nil lets them succeed.
    public func refuseConnections(with error: UnderlyingError?) { state.withLock { $0.refusal = error } }

    /// Sets the state of the network to the payment service.
    public func setNetwork(_ network: SimulatedNetwork) { state.withLock { $0.network = network } }

    private func setCardLying(_ isLying: Bool) {
        state.withLock { $0.isCardLying = isLying }
        table.send(isLying)
    }

    private func change<Result: Sendable>(_ body: (inout State) -> sending Result) -> Result {
        let (result, readers) = state.withLock { state in
            let result = body(&state)
            return (result, state.readers)
        }
        attached.send(readers)
        return result
    }

    // MARK: ReaderBackend

    package func supports(_ method: CardReaderDiscoveryMethod, _ type: CardReaderType) -> Bool { method == .simulated }

    package func attachedReaders() -> AsyncThrowingStream<[AttachedReader], any Error> {
        let readers = attached.stream()
        return AsyncThrowingStream { continuation in
            let task = Task {
                for await readers in readers {
                    continuation.yield(readers.map { AttachedReader($0.reader, handle: $0.serial) })
                }
                continuation.finish()
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    package func open(
        _ reader: AttachedReader, token: String, acceptingTerms: Bool,
        update: @escaping @Sendable (CardReaderSoftwareUpdateState) -> Void
    ) async throws -> any ReaderLink {
        let serial = reader.reader.serial
        let (found, refusal) = state.withLock { state in
            (state.readers.first { $0.serial == serial }, state.refusal)
        }
        guard let found else { throw UnderlyingError.readerDisconnected }
        if let refusal { throw refusal }
        let link = SimulatedLink(found, self)
        switch found.update {
        case .none: break
        case .available: update(.available)
        case .required: try await link.installUpdate(update)
        }
        state.withLock { $0.links[serial] = OpenLink(link: link) }
        return link
    }

    fileprivate func closed(_ link: SimulatedLink) {
        state.withLock { state in
            let serial = link.reader.serial
            if state.links[serial]?.link === link { state.links[serial] = nil }
        }
    }

    fileprivate func nextCard() -> SimulatedCard? {
        state.withLock { $0.cards.isEmpty ? nil : $0.cards.removeFirst() }
    }

    /// Returns the way in which the next request to the payment service is answered.
    func answerToQuestion() -> SimulatedNetwork.Answer {
        state.withLock { state in
            state.questions += 1
            return switch state.network {
            case .online: .given
            case .offline: .notConnected
            case .silent: .lost
            case .intermittent: state.questions.isMultiple(of: 2) ? .given : .lost
            }
        }
    }
}

public struct SimulatedReader: Sendable {
    public enum Update: Sendable {
        case none
        case available
        /// An update that `connect` installs.
        case required
    }

    public var serial: String
    public var name: String
    public var batteryLevel: Float?
    public var softwareVersion: String
    public var update: Update
    /// The error of installing the update; nil if it succeeds.
    public var updateFailure: UnderlyingError?

    public init(
        serial: String, name: String = "Simulated reader", batteryLevel: Float? = nil, softwareVersion: String = "1.0",
        update: Update = .none, updateFailure: UnderlyingError? = nil
    ) {
        (self.serial, self.name, self.batteryLevel) = (serial, name, batteryLevel)
        (self.softwareVersion, self.update, self.updateFailure) = (softwareVersion, update, updateFailure)
    }

    var reader: CardReader {
        CardReader(
            serial: serial, vendorIdentifier: CardReader.simulatedVendor, name: name, softwareVersion: softwareVersion,
            batteryLevel: batteryLevel)
    }
}

/// A card to present, and its result.
public enum SimulatedCard: Hashable, Sendable {
    case approved(CardBrand)
    /// The issuer declines.
    case declined(DeclineReason)
    case declinedByCard
    /// The card leaves the field before it is read.  The reader asks for it again.
    case removedTooEarly
    case unreadable
    /// Nobody presents a card before the reader gives up.
    case notPresented
    /// The customer cancels at the reader.
    case cancelledAtReader
}

/// The state of the network to the payment service.
public enum SimulatedNetwork: Hashable, Sendable, CaseIterable {
    case online
    case offline
    /// Requests are carried out, and their answers are lost.
    case silent
    /// The first answer is lost, and every second one after it.
    case intermittent

    enum Answer { case given, notConnected, lost }
}

private struct OpenLink {
    weak var link: SimulatedLink?
}

/// A simulated reader that is connected.
final class SimulatedLink: ReaderLink {
    let events: AsyncStream<LinkEvent>
    private let continuation: AsyncStream<LinkEvent>.Continuation
    private let owner: SimulatedReaders
    private let state: Mutex<State>

    private struct State {
        var reader: SimulatedReader
        var isThere = true
        /// Ends the wait for a card.
        var cancel: (@Sendable (UnderlyingError) -> Void)?
        var isUpToDate = false
    }

    init(_ reader: SimulatedReader, _ owner: SimulatedReaders) {
        (events, continuation) = AsyncStream.makeStream(of: LinkEvent.self)
        self.owner = owner
        state = Mutex(State(reader: reader))
    }

    var reader: CardReader { state.withLock { $0.reader.reader } }

    func leave(_ reason: DisconnectReason) {
        let cancel = state.withLock { state in
            state.isThere = false
            return state.cancel
        }
        cancel?(.readerDisconnected)
        continuation.yield(.left(reason))
        continuation.finish()
    }

    func battery(_ reader: SimulatedReader) {
        let before = state.withLock { state in
            defer { state.reader = reader }
            return state.reader.batteryLevel ?? 1
        }
        continuation.yield(.changed(reader.reader))
        let (wasLow, isLow) = (before < 0.2, (reader.batteryLevel ?? 1) < 0.2)
        if isLow != wasLow { continuation.yield(.happened(isLow ? .lowBattery : .lowBatteryResolved)) }
    }

    func collect(
        _ request: CollectionRequest, tell: @escaping @Sendable (CardReaderEvent) -> Void
    ) async throws -> CollectedCard {
        let (steps, continuation) = AsyncThrowingStream.makeStream(of: Bool.self, throwing: (any Error).self)
        let isThere = state.withLock { state in
            state.cancel = { continuation.finish(throwing: $0) }
            return state.isThere
        }
        guard isThere else { throw UnderlyingError.readerDisconnected }
        defer { state.withLock { $0.cancel = nil } }
        let table = owner.table.stream()
        let watch = Task { for await step in table { continuation.yield(step) } }
        defer { watch.cancel() }
        tell(.waitingForInput(.tap))
        for try await _ in steps {
            while let card = owner.nextCard() {
                if let collected = try read(card, tell) { return collected }
            }
        }
        throw CancellationError()
    }

    /// Reads a simulated card.
    ///
    /// - Returns: nil if the reader continues to wait.
    private func read(_ card: SimulatedCard, _ tell: (CardReaderEvent) -> Void) throws -> CollectedCard? {
        switch card {
        case .notPresented: throw UnderlyingError.cardReadTimeOut
        case .cancelledAtReader: throw UnderlyingError.commandCancelled(from: .reader)
        case .approved, .declined:
            tell(.cardInserted)
            tell(.displayMessage(ReaderDisplayMessage.removeCard.text))
            tell(.cardDetailsCollected)
            return SimulatedPaymentProcessor.seal(card)
        case .declinedByCard:
            tell(.cardInserted)
            tell(.displayMessage(ReaderDisplayMessage.tryAnotherCard.text))
            throw UnderlyingError.paymentDeclinedByCardReader
        case .removedTooEarly:
            tell(.cardInserted)
            tell(.displayMessage(ReaderDisplayMessage.cardRemovedTooEarly.text))
            tell(.waitingForInput(.tap))
            return nil
        case .unreadable:
            tell(.cardInserted)
            tell(.displayMessage(ReaderDisplayMessage.retryCard.text))
            throw UnderlyingError.readerCommunicationError
        }
    }

    func cancelCollection() async throws -> Bool {
        let cancel = state.withLock { $0.cancel }
        cancel?(.commandCancelled(from: .app))
        return cancel != nil
    }

    func waitForRemoval(_ cardIsThere: @escaping @Sendable () -> Void) async -> Bool {
        var isTold = false
        for await isLying in owner.table.stream() {
            guard state.withLock({ $0.isThere }) else { return false }
            guard isLying else { return true }
            if !isTold { cardIsThere() }
            isTold = true
        }
        return false
    }

    func installUpdate(_ tell: @escaping @Sendable (CardReaderSoftwareUpdateState) -> Void) async throws {
        let reader: SimulatedReader? = state.withLock { state in
            if case .none = state.reader.update { return nil }
            guard !state.isUpToDate else { return nil }
            return state.reader
        }
        guard let reader else { return }
        tell(.started(cancelable: nil))
        if let failure = reader.updateFailure {
            let error = SoftwareUpdateFailure(failure, batteryLevel: reader.batteryLevel.map(Double.init))
            tell(.failed(error: failure))
            throw error
        }
        for percent in stride(from: 0, through: 100, by: 25) { tell(.installing(progress: Float(percent) / 100)) }
        state.withLock { $0.isUpToDate = true }
        tell(.completed)
        tell(.none)
    }

    func close() async {
        continuation.finish()
        owner.closed(self)
    }
}
