public import CardReaderAdapter
public import CardReceipts
public import Foundation
public import OpenCombine

/// The contract of `CardReaderService` for code that uses publishers.
///
/// A `Future` begins with the call.  Any other publisher of a command is one call, which begins with the first
/// subscriber, delivers its result to each subscriber, and is canceled when nobody subscribes any more.  If a payment
/// was made nevertheless, `retryActivePaymentIntent` returns it; until then no other payment begins.
public protocol PublishingCardReaderService {
    var discoveredReaders: AnyPublisher<[CardReader], any Error> { get }
    var connectedReaders: AnyPublisher<[CardReader], Never> { get }
    var readerEvents: AnyPublisher<CardReaderEvent, Never> { get }
    var softwareUpdateEvents: AnyPublisher<CardReaderSoftwareUpdateState, Never> { get }
    var reconnectionEvents: AnyPublisher<CardReaderReconnection, Never> { get }
    var discoveryStatus: AnyPublisher<CardReaderServiceDiscoveryStatus, Never> { get }

    func checkSupport(
        for cardReaderType: CardReaderType, configProvider: any CardReaderConfigProvider,
        discoveryMethod: CardReaderDiscoveryMethod, minimumOperatingSystemVersionOverride: OperatingSystemVersion?
    ) -> Bool
    func start(_ configProvider: any CardReaderConfigProvider, discoveryMethod: CardReaderDiscoveryMethod) throws
    func cancelDiscovery() -> Future<Void, any Error>
    func connect(_ reader: CardReader, options: CardReaderConnectionOptions?) -> AnyPublisher<CardReader, any Error>
    func disconnect() -> Future<Void, any Error>
    func waitForInsertedCardToBeRemoved() -> Future<Void, Never>
    func clear() throws
    func capturePayment(_ parameters: PaymentIntentParameters) -> AnyPublisher<PaymentIntent, any Error>
    func retryActivePaymentIntent() -> AnyPublisher<PaymentIntent, any Error>
    func cancelPaymentIntent() -> Future<Void, any Error>
    func refundPayment(parameters: RefundParameters) -> AnyPublisher<String, any Error>
    func cancelRefund() -> AnyPublisher<Void, any Error>
    func installUpdate()
}

/// A `CardReaderService` for code that uses publishers.  It has no state: the service's sequences are authoritative.
public final class CombineCardReaderService: PublishingCardReaderService, Sendable {
    /// The underlying service.
    public let service: any CardReaderService

    public init(_ service: any CardReaderService) { self.service = service }

    public var discoveredReaders: AnyPublisher<[CardReader], any Error> {
        StreamPublisher { [service] in service.discoveredReaders }.eraseToAnyPublisher()
    }
    public var connectedReaders: AnyPublisher<[CardReader], Never> {
        StreamPublisher { [service] in service.connectedReaders }.eraseToAnyPublisher()
    }
    public var readerEvents: AnyPublisher<CardReaderEvent, Never> {
        StreamPublisher { [service] in service.readerEvents }.eraseToAnyPublisher()
    }
    public var softwareUpdateEvents: AnyPublisher<CardReaderSoftwareUpdateState, Never> {
        StreamPublisher { [service] in service.softwareUpdateEvents }.eraseToAnyPublisher()
    }
    public var reconnectionEvents: AnyPublisher<CardReaderReconnection, Never> {
        StreamPublisher { [service] in service.reconnectionEvents }.eraseToAnyPublisher()
    }
    public var discoveryStatus: AnyPublisher<CardReaderServiceDiscoveryStatus, Never> {
        StreamPublisher { [service] in service.discoveryStatus }.eraseToAnyPublisher()
    }

    public func checkSupport(
        for cardReaderType: CardReaderType, configProvider: any CardReaderConfigProvider,
        discoveryMethod: CardReaderDiscoveryMethod, minimumOperatingSystemVersionOverride: OperatingSystemVersion?
    ) -> Bool {
        service.checkSupport(
            for: cardReaderType, configProvider: configProvider, discoveryMethod: discoveryMethod,
            minimumOperatingSystemVersionOverride: minimumOperatingSystemVersionOverride)
    }

    public func start(
        _ configProvider: any CardReaderConfigProvider, discoveryMethod: CardReaderDiscoveryMethod
    ) throws {
        try service.start(configProvider, discoveryMethod: discoveryMethod)
    }

    public func cancelDiscovery() -> Future<Void, any Error> {
        future { [service] in try await service.cancelDiscovery() }
    }

    public func connect(
        _ reader: CardReader, options: CardReaderConnectionOptions?
    ) -> AnyPublisher<CardReader, any Error> {
        CommandPublisher({ [service] in try await service.connect(reader, options: options) })
            .eraseToAnyPublisher()
    }

    public func disconnect() -> Future<Void, any Error> { future { [service] in try await service.disconnect() } }

    public func waitForInsertedCardToBeRemoved() -> Future<Void, Never> {
        Future { [service] promise in
            let promise = Promise(call: promise)
            Task {
                await service.waitForInsertedCardToBeRemoved()
                promise.call(.success(()))
            }
        }
    }

    public func clear() throws { try service.clear() }

    public func capturePayment(_ parameters: PaymentIntentParameters) -> AnyPublisher<PaymentIntent, any Error> {
        CommandPublisher({ [service] in try await service.capturePayment(parameters) }).eraseToAnyPublisher()
    }

    public func retryActivePaymentIntent() -> AnyPublisher<PaymentIntent, any Error> {
        CommandPublisher({ [service] in try await service.retryActivePaymentIntent() }).eraseToAnyPublisher()
    }

    public func cancelPaymentIntent() -> Future<Void, any Error> {
        future { [service] in try await service.cancelPaymentIntent() }
    }

    public func refundPayment(parameters: RefundParameters) -> AnyPublisher<String, any Error> {
        CommandPublisher({ [service] in try await service.refundPayment(parameters: parameters) })
            .eraseToAnyPublisher()
    }

    public func cancelRefund() -> AnyPublisher<Void, any Error> {
        CommandPublisher({ [service] in try await service.cancelRefund() }).eraseToAnyPublisher()
    }

    /// Installs the available update.  ``softwareUpdateEvents`` publishes the progress.
    public func installUpdate() {
        Task { [service] in try? await service.installUpdate() }
    }

    private func future(_ command: @escaping @Sendable () async throws -> Void) -> Future<Void, any Error> {
        Future { promise in
            let promise = Promise(call: promise)
            Task {
                do {
                    promise.call(.success(try await command()))
                } catch {
                    promise.call(.failure(error))
                }
            }
        }
    }

    /// A promise that one task fulfills, once.
    private struct Promise<Failure: Error>: @unchecked Sendable {
        let call: (Result<Void, Failure>) -> Void
    }
}
