public import CardReceipts
public import Foundation

/// A service for machines without readers: every call fails, and every sequence is empty and ends at once.
public struct NoOpCardReaderService: CardReaderService {
    public init() {}

    public var discoveredReaders: AsyncThrowingStream<[CardReader], any Error> { AsyncThrowingStream { $0.finish() } }
    public var connectedReaders: AsyncStream<[CardReader]> { AsyncStream { $0.finish() } }
    public var readerEvents: AsyncStream<CardReaderEvent> { AsyncStream { $0.finish() } }
    public var softwareUpdateEvents: AsyncStream<CardReaderSoftwareUpdateState> { AsyncStream { $0.finish() } }
    public var reconnectionEvents: AsyncStream<CardReaderReconnection> { AsyncStream { $0.finish() } }
    public var discoveryStatus: AsyncStream<CardReaderServiceDiscoveryStatus> { AsyncStream { $0.finish() } }

    public func checkSupport(
        for cardReaderType: CardReaderType, configProvider: any CardReaderConfigProvider,
        discoveryMethod: CardReaderDiscoveryMethod, minimumOperatingSystemVersionOverride: OperatingSystemVersion?
    ) -> Bool { false }
    public func start(
        _ configProvider: any CardReaderConfigProvider, discoveryMethod: CardReaderDiscoveryMethod
    ) throws { throw CardReaderServiceError.discovery() }
    public func cancelDiscovery() async throws { throw CardReaderServiceError.discovery() }
    public func connect(_ reader: CardReader, options: CardReaderConnectionOptions?) async throws -> CardReader {
        throw CardReaderServiceError.connection()
    }
    public func disconnect() async throws { throw CardReaderServiceError.disconnection() }
    public func waitForInsertedCardToBeRemoved() async {}
    public func clear() throws { throw CardReaderServiceError.disconnection() }
    public func capturePayment(_ parameters: PaymentIntentParameters) async throws -> PaymentIntent {
        throw CardReaderServiceError.paymentCapture()
    }
    public func retryActivePaymentIntent() async throws -> PaymentIntent {
        throw CardReaderServiceError.retryNotPossibleNoActivePayment
    }
    public func cancelPaymentIntent() async throws { throw CardReaderServiceError.paymentCancellation() }
    public func refundPayment(parameters: RefundParameters) async throws -> String {
        throw CardReaderServiceError.refundPayment()
    }
    public func cancelRefund() async throws { throw CardReaderServiceError.refundCancellation() }
    public func installUpdate() async throws { throw CardReaderServiceError.softwareUpdate(batteryLevel: nil) }
}
