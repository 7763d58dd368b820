import Foundation
import KioskKit
import Synchronization
import Waiting

// The connected reader: how it is connected, how it leaves, and how it returns.
extension ContactlessReaderService {
    struct Connection {
        let id = UUID()
        let link: any ReaderLink
        let options: CardReaderConnectionOptions
        var reader: CardReader
        var watch: Task<Void, Never>?
    }

    struct Reconnection {
        let id = UUID()
        let serial: String
        var task: Task<Void, Never>?
        /// The credentials not yet used for a connection.
        var credentials: Credentials?
        /// The earliest time of the next fetch.
        var nextFetch = Time.now
    }

    /// The token and the location that are fetched for a connection.
    struct Credentials {
        let token: String
        let locationId: String
    }

    /// The activity that occupies discovery and connection.
    enum Occupation: Hashable {
        case free
        case searching(UUID)
        case connecting(UUID)
        case connected
    }

    struct Desk {
        var occupation = Occupation.free
        var configProvider: (any CardReaderConfigProvider)?
    }

    nonisolated var occupation: Occupation { desk.withLock { $0.occupation } }

    /// Changes the occupation, if it is `old`.
    ///
    /// - Returns: true if it was `old` until now.
    @discardableResult nonisolated func change(_ old: Occupation, to new: Occupation) -> Bool {
        desk.withLock { desk in
            guard desk.occupation == old else { return false }
            desk.occupation = new
            return true
        }
    }

    @discardableResult
    public func connect(_ reader: CardReader, options: CardReaderConnectionOptions?) async throws -> CardReader {
        let attempt = Occupation.connecting(UUID())
        let (found, configProvider) = try begin(attempt, with: reader)
        dropSearch()
        finishLists()
        defer { change(attempt, to: .free) }
        let options = options ?? CardReaderConnectionOptions()
        let isWanted = { self.occupation == attempt }
        let credentials = try await fetch(configProvider, while: isWanted)
        let link = try await open(found, options, credentials, while: isWanted)
        guard change(attempt, to: .connected) else {
            await link.close()
            throw CardReaderServiceError.connection(underlyingError: .connectionAttemptInvalidated)
        }
        return adopt(link, found.reader.connected(at: credentials.locationId), options)
    }

    /// Ends the search in order to connect to one of the readers found.
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

    /// Fetches a token and a location.
    ///
    /// - Parameter isWanted: returns true while the attempt is valid.
    private func fetch(
        _ configProvider: any CardReaderConfigProvider, while isWanted: () -> Bool
    ) async throws -> Credentials {
        do {
            let locationId = try await answer(to: configProvider.fetchDefaultLocationID)
            let token = try await answer(to: configProvider.fetchToken)
            return Credentials(token: token, locationId: locationId)
        } catch {
            let cause = isWanted() ? noted(error) : .connectionAttemptInvalidated
            throw CardReaderServiceError.connection(underlyingError: cause)
        }
    }

    /// Waits for the first call of the completion that `fetch` is handed.
    private func answer(
        to fetch: (@escaping @Sendable (Result<String, any Error>) -> Void) -> Void
    ) async throws -> String {
        let delivery = Delivery<String>()
        return try await delivery.receive(within: limits.token) { fetch { delivery.deliver($0) } }
    }

    /// Opens the reader.
    ///
    /// - Parameter isWanted: returns true while the attempt is valid.
    private func open(
        _ found: AttachedReader, _ options: CardReaderConnectionOptions, _ credentials: Credentials,
        while isWanted: () -> Bool
    ) async throws -> any ReaderLink {
        do {
            let acceptsTerms = options.builtInOptions?.termsOfServiceAcceptancePermitted ?? true
            return try await waiting(atMost: limits.connection, or: UnderlyingError.connectTimedOut) {
                [backend, updates, returning] in
                await returning?.value
                let link = try await backend.open(found, token: credentials.token, acceptingTerms: acceptsTerms) {
                    updates.send($0)
                }
                // The caller may have stopped waiting.
                if Task.isCancelled {
                    await link.close()
                    throw CancellationError()
                }
                return link
            }
        } catch let failure as SoftwareUpdateFailure {
            throw CardReaderServiceError.softwareUpdate(
                underlyingError: failure.underlyingError, batteryLevel: failure.batteryLevel)
        } catch {
            let cause = isWanted() ? noted(error) : .connectionAttemptInvalidated
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

    /// Handles a reader that left without being asked to.
    private func lose(_ lost: Connection, _ reason: DisconnectReason) {
        connection = nil
        change(.connected, to: .free)
        lost.watch?.cancel()
        connected.send([])
        events.send(.disconnected(reason))
        if operation?.phase != .processing { operation?.stop() }
        // A driver identifies a reader by its port: a late close would hit the next reader there.
        returning = Task { [before = returning] in
            await before?.value
            await lost.link.close()
        }
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

    /// Discards the shop, the search, and a payment that could be retried; see the protocol.  Does not wait.
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

    /// Discards everything but payments and refunds whose result is unknown.
    private func forget() {
        giveUpReconnection()
        if let discovery, occupation != .searching(discovery.id) { dropSearch() }
        guard operation == nil else { return }
        if active?.isOpen != true { active = nil }
        openRefunds.forgetWhatIsSettled()
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
                search: for try await found in readers {
                    guard let found = found.first(where: { $0.reader.serial == serial }) else { continue }
                    for pause in limits.reconnectionPauses {
                        do {
                            guard let self else { return }
                            try await self.connectAgain(to: found, lost.options, configProvider, id)
                            return
                        } catch {
                            last = error
                            // A further attempt would not help.  For other errors the list may be outdated: the next
                            // list counts.
                            if RecoveryCategory(error) == .dontRetry { break search }
                            // The jitter keeps many terminals from returning at once.
                            try await Time.sleep(for: pause * .random(in: 1...1.5))
                        }
                    }
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
        let isWanted = { self.reconnection?.id == id }
        let credentials = try await credentials(of: id, configProvider, while: isWanted)
        let link = try await open(found, options, credentials, while: isWanted)
        // A search that began in the meantime takes precedence.
        guard reconnection?.id == id, change(.free, to: .connected) else {
            await link.close()
            throw CardReaderServiceError.connection(underlyingError: .connectionAttemptInvalidated)
        }
        reconnection = nil
        reconnections.send(.succeeded(adopt(link, found.reader.connected(at: credentials.locationId), options)))
    }

    /// Returns the credentials fetched for this reconnection while they are fresh: a reader that does not return costs
    /// no further token.
    private func credentials(
        of id: UUID, _ configProvider: any CardReaderConfigProvider, while isWanted: () -> Bool
    ) async throws -> Credentials {
        if let fetched = reconnection?.credentials, let next = reconnection?.nextFetch, Time.now < next {
            return fetched
        }
        if isWanted(), let next = reconnection?.nextFetch { try await Time.sleep(until: next) }
        if isWanted() { reconnection?.nextFetch = Time.now + limits.fetchInterval }
        let credentials = try await fetch(configProvider, while: isWanted)
        if isWanted() { reconnection?.credentials = credentials }
        return credentials
    }

    private func endReconnection(_ id: UUID, throwing error: any Error) {
        guard let ended = reconnection, ended.id == id else { return }
        reconnection = nil
        ended.task?.cancel()
        reconnections.send(.failed(serial: ended.serial, error))
    }

    func giveUpReconnection() {
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
}
