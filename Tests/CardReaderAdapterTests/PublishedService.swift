import CardReaderAdapter
import CardReaderCombine
import CardReceipts
import Foundation
import OpenCombine
import Synchronization

/// The two shapes of the contract, which one suite is run over.
enum Surface: CaseIterable { case sequences, publishers }

extension Surface {
    func callAsFunction(_ service: ContactlessReaderService) -> any CardReaderService {
        switch self {
        case .sequences: service
        case .publishers: PublishedService(CombineCardReaderService(service))
        }
    }
}

/// A service that is reached by its publishers alone.
///
/// What cannot be told through them: what an update fails with (`installUpdate` returns nothing), and what a call fails with
/// whose task is cancelled (a subscription that is cancelled is told nothing).
private struct PublishedService: CardReaderService {
    private let publishing: CombineCardReaderService

    init(_ publishing: CombineCardReaderService) { self.publishing = publishing }

    var discoveredReaders: AsyncThrowingStream<[CardReader], any Error> { throwingStream(publishing.discoveredReaders) }
    var connectedReaders: AsyncStream<[CardReader]> { stream(publishing.connectedReaders) }
    var readerEvents: AsyncStream<CardReaderEvent> { stream(publishing.readerEvents) }
    var softwareUpdateEvents: AsyncStream<CardReaderSoftwareUpdateState> { stream(publishing.softwareUpdateEvents) }
    var reconnectionEvents: AsyncStream<CardReaderReconnection> { stream(publishing.reconnectionEvents) }
    var discoveryStatus: AsyncStream<CardReaderServiceDiscoveryStatus> { stream(publishing.discoveryStatus) }

    func checkSupport(
        for cardReaderType: CardReaderType, configProvider: any CardReaderConfigProvider,
        discoveryMethod: CardReaderDiscoveryMethod, minimumOperatingSystemVersionOverride: OperatingSystemVersion?
    ) -> Bool {
        publishing.checkSupport(
            for: cardReaderType, configProvider: configProvider, discoveryMethod: discoveryMethod,
            minimumOperatingSystemVersionOverride: minimumOperatingSystemVersionOverride)
    }

    func start(_ configProvider: any CardReaderConfigProvider, discoveryMethod: CardReaderDiscoveryMethod) throws {
        try publishing.start(configProvider, discoveryMethod: discoveryMethod)
    }
    func cancelDiscovery() async throws { try await end(publishing.cancelDiscovery()) }
    func connect(_ reader: CardReader, options: CardReaderConnectionOptions?) async throws -> CardReader {
        try await value(publishing.connect(reader, options: options))
    }
    func disconnect() async throws { try await end(publishing.disconnect()) }
    func waitForInsertedCardToBeRemoved() async {
        try? await end(publishing.waitForInsertedCardToBeRemoved())
    }
    func clear() throws { try publishing.clear() }
    func capturePayment(_ parameters: PaymentIntentParameters) async throws -> PaymentIntent {
        try await value(publishing.capturePayment(parameters))
    }
    func retryActivePaymentIntent() async throws -> PaymentIntent {
        try await value(publishing.retryActivePaymentIntent())
    }
    func cancelPaymentIntent() async throws { try await end(publishing.cancelPaymentIntent()) }
    func refundPayment(parameters: RefundParameters) async throws -> String {
        try await value(publishing.refundPayment(parameters: parameters))
    }
    func cancelRefund() async throws { try await value(publishing.cancelRefund()) }
    func installUpdate() async throws { publishing.installUpdate() }
}

private func stream<Output: Sendable>(_ publisher: AnyPublisher<Output, Never>) -> AsyncStream<Output> {
    AsyncStream { continuation in
        let subscription = Subscribed(
            publisher.sink { _ in
                continuation.finish()
            } receiveValue: {
                continuation.yield($0)
            })
        continuation.onTermination = { _ in subscription.cancel() }
    }
}

private func throwingStream<Output: Sendable>(
    _ publisher: AnyPublisher<Output, any Error>
) -> AsyncThrowingStream<Output, any Error> {
    AsyncThrowingStream { continuation in
        let subscription = Subscribed(
            publisher.sink { completion in
                switch completion {
                case .finished: continuation.finish()
                case .failure(let error): continuation.finish(throwing: error)
                }
            } receiveValue: {
                continuation.yield($0)
            })
        continuation.onTermination = { _ in subscription.cancel() }
    }
}

/// The one value of a publisher, or its failure.
func value<Output: Sendable, Failure: Error>(_ publisher: some Publisher<Output, Failure>) async throws -> Output {
    for try await value in throwingStream(publisher.mapError { $0 as any Error }.eraseToAnyPublisher()) { return value }
    throw AdapterBench.Missing()
}

/// Returns when a future is settled: it is called once, and nobody can cancel it.
func end<Failure: Error>(_ future: Future<Void, Failure>) async throws {
    let subscription = Mutex<Subscribed?>(nil)
    defer { subscription.withLock { $0 = nil } }
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        let new = Subscribed(
            future.sink { completion in
                switch completion {
                case .finished: continuation.resume()
                case .failure(let error): continuation.resume(throwing: error)
                }
            } receiveValue: {
            })
        subscription.withLock { $0 = new }
    }
}

private struct Subscribed: @unchecked Sendable {
    // Unchecked: OpenCombine's is under a lock of its own.
    private let subscription: AnyCancellable
    init(_ subscription: AnyCancellable) { self.subscription = subscription }
    func cancel() { subscription.cancel() }
}
