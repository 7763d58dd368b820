/// The place in which an app keeps the reader that it used last.
public protocol KnownReaderStore: Sendable {
    /// Returns the serial of the last reader; nil if there is none.
    func knownReader() async -> String?
    func remember(_ serial: String) async
}

/// A search that ends with a connection: to the known reader automatically, or to the one that a person chooses.
public struct ReaderSearch: Sendable {
    private let service: any CardReaderService
    private let known: any KnownReaderStore

    public init(_ service: any CardReaderService, known: any KnownReaderStore) {
        (self.service, self.known) = (service, known)
    }

    /// Looks for readers until one is connected.  Canceling the task ends the search.
    ///
    /// The known reader is tried at most once.  If that fails, the search continues, and a person has to choose.  A
    /// reader becomes the known one when it is connected.
    ///
    /// - Parameters:
    ///   - configProvider: supplies the token and the location.
    ///   - discoveryMethod: where to look for readers.
    ///   - options: the options of the connection; nil for the defaults.
    ///   - skipped: the serials of readers to ignore, such as one that a person has just disconnected.
    ///   - choose: called with each list that contains readers; nil chooses none of them.
    /// - Throws: ``CardReaderServiceError``, also if the chosen reader cannot be connected; `CancellationError`.
    public func connect(
        _ configProvider: any CardReaderConfigProvider, discoveryMethod: CardReaderDiscoveryMethod = .usb,
        options: CardReaderConnectionOptions? = nil, skipping skipped: Set<String> = [],
        choose: @Sendable ([CardReader]) async -> CardReader? = { _ in nil }
    ) async throws -> CardReader {
        var wanted = await known.knownReader()
        while true {
            try service.start(configProvider, discoveryMethod: discoveryMethod)
            do {
                for try await readers in service.discoveredReaders {
                    let readers = readers.filter { !skipped.contains($0.serial) }
                    guard !readers.isEmpty else { continue }
                    if let reader = readers.first(where: { $0.serial == wanted }) {
                        wanted = nil
                        do { return try await connect(reader, options) } catch { break }
                    }
                    if let reader = await choose(readers) { return try await connect(reader, options) }
                }
            } catch {
                try? await service.cancelDiscovery()
                throw error
            }
            try? await service.cancelDiscovery()
            try Task.checkCancellation()
        }
    }

    private func connect(_ reader: CardReader, _ options: CardReaderConnectionOptions?) async throws -> CardReader {
        let connected = try await service.connect(reader, options: options)
        await known.remember(connected.serial)
        return connected
    }
}
