public import CardReceipts
public import Foundation

/// The contract between a point-of-sale app and its card reader, from discovery to payment.
///
/// Each access of a sequence property creates a new sequence, for one task.  A sequence buffers the last 4,096 events,
/// or at least the last 64 states; a slow task finds the newest.  The result of a payment is no element of a sequence:
/// a call returns it.  One reader is connected at a time, and one call that moves money is under way at a time.
public protocol CardReaderService: Sendable {
    /// The readers that the present search has found.  Each element is the whole list; the first one is empty.
    ///
    /// Outside a search, the readers of the next search.  The sequence ends with the search: on ``cancelDiscovery()``
    /// or ``connect(_:options:)``.  It throws ``CardReaderServiceError/discovery(underlyingError:)`` if the search
    /// fails.
    var discoveredReaders: AsyncThrowingStream<[CardReader], any Error> { get }
    /// The connected reader, or an empty list: the present state first, then an element with each change of any
    /// property.
    var connectedReaders: AsyncStream<[CardReader]> { get }
    /// The events at the connected reader, from now on.
    var readerEvents: AsyncStream<CardReaderEvent> { get }
    /// The state of a software update: the present state first, then each change.
    var softwareUpdateEvents: AsyncStream<CardReaderSoftwareUpdateState> { get }
    /// The progress of reconnecting a reader that left, from now on.
    var reconnectionEvents: AsyncStream<CardReaderReconnection> { get }
    /// The state of discovery: the present state first, then each change.
    var discoveryStatus: AsyncStream<CardReaderServiceDiscoveryStatus> { get }

    /// Returns true if this machine can look for readers of this type with this method.
    ///
    /// - Parameters:
    ///   - cardReaderType: the type of reader.
    ///   - configProvider: the merchant's tokens and locations.
    ///   - discoveryMethod: the way to find it.
    ///   - minimumOperatingSystemVersionOverride: ignored.
    func checkSupport(
        for cardReaderType: CardReaderType, configProvider: any CardReaderConfigProvider,
        discoveryMethod: CardReaderDiscoveryMethod, minimumOperatingSystemVersionOverride: OperatingSystemVersion?
    ) -> Bool

    /// Starts to look for readers.  Does not wait.
    ///
    /// - Throws: ``CardReaderServiceError/discovery(underlyingError:)``: `readerBusy` while a search or a connection
    ///   is under way, which continues unaffected; `alreadyConnectedToReader`.
    func start(_ configProvider: any CardReaderConfigProvider, discoveryMethod: CardReaderDiscoveryMethod) throws

    /// Ends the search, if there is one.  When this returns the next search may start.
    func cancelDiscovery() async throws

    /// Connects to a reader that the present search has found, and ends the search.
    ///
    /// Each connection fetches a token.  The first connection of a merchant accepts the terms of service, unless
    /// `options` say otherwise.
    ///
    /// - Returns: the reader in its connected state.
    /// - Throws: ``CardReaderServiceError/connection(underlyingError:)``; for a required update
    ///   ``CardReaderServiceError/softwareUpdate(underlyingError:batteryLevel:)``.  After either, start a new search.
    @discardableResult
    func connect(_ reader: CardReader, options: CardReaderConnectionOptions?) async throws -> CardReader

    /// Releases the reader, or stops waiting for one to return.
    ///
    /// - Throws: ``CardReaderServiceError/disconnection(underlyingError:)``: `notConnectedToReader`, or `readerBusy`
    ///   while a payment or a refund is under way.
    func disconnect() async throws

    /// Returns when no card is on the reader.
    func waitForInsertedCardToBeRemoved() async

    /// Discards the shop, the search, and a payment that could be retried.  A payment or a refund whose result is
    /// unknown is kept.
    ///
    /// A connection under way fails with `connectionAttemptInvalidated`.  Does not wait.
    ///
    /// - Throws: ``CardReaderServiceError/disconnection(underlyingError:)`` of `alreadyConnectedToReader`: disconnect
    ///   first.
    func clear() throws

    /// Takes a payment: creates an intent, waits for a card, and has the payment service process it.
    ///
    /// A card that is already on the reader must be removed first.  Canceling the task takes effect until the payment
    /// service is asked to process; after that the call waits for the answer.
    ///
    /// - Returns: an intent that is to be captured, or that has succeeded.
    /// - Throws: ``CardReaderServiceError``; ``CardReaderServiceError/intentCreation(underlyingError:)`` of
    ///   `paymentOutcomeUnknown` while it is unknown whether the previous payment was charged.  Call
    ///   ``retryActivePaymentIntent()`` first, which returns that payment if it was charged, or
    ///   ``cancelPaymentIntent()``.
    func capturePayment(_ parameters: PaymentIntentParameters) async throws -> PaymentIntent

    /// Continues a failed payment at the step that failed; otherwise like ``capturePayment(_:)``.
    ///
    /// A reader is needed only if a card has to be presented.  If the answer was lost, the payment service is asked
    /// again about the same card, and charges it once.
    func retryActivePaymentIntent() async throws -> PaymentIntent

    /// Cancels the payment that waits for a card or that failed.  Needs no reader.
    ///
    /// - Throws: ``CardReaderServiceError/paymentCancellation(underlyingError:)``: `noActivePaymentIntent`;
    ///   `readerBusy` while the payment service processes: its answer counts.
    func cancelPaymentIntent() async throws

    /// Refunds a charge.
    ///
    /// If the answer was lost, repeat the call with the same parameters.  It then asks about the same refund, without
    /// a reader, and the money is refunded once.  Until the result is known, a refund of another amount of the same
    /// charge is refused: ``CardReaderServiceError/refundCreation(underlyingError:)`` of `paymentOutcomeUnknown`.
    ///
    /// - Returns: `success`, `pending` or `unknown`.
    /// - Throws: ``CardReaderServiceError``, including
    ///   ``CardReaderServiceError/refundPayment(underlyingError:shouldRetry:)``.
    func refundPayment(parameters: RefundParameters) async throws -> String

    /// Ends the wait for the card of a refund.
    ///
    /// - Throws: ``CardReaderServiceError/refundCancellation(underlyingError:)``: `noRefundInProgress`, `readerBusy`.
    func cancelRefund() async throws

    /// Installs the available update.  Does nothing without an update or without a reader.
    ///
    /// - Throws: ``CardReaderServiceError/softwareUpdate(underlyingError:batteryLevel:)``: `readerBusy` while a
    ///   payment or a refund is under way (and these fail so during an update);
    ///   `readerSoftwareUpdateFailedInterrupted` if the reader leaves.
    func installUpdate() async throws
}

extension CardReaderService {
    /// Takes a payment to its end: calls ``capturePayment(_:)``, then captures and waits for the card's removal at the
    /// same time.
    ///
    /// - Parameters:
    ///   - parameters: the amount, the currency and the data of the intent.
    ///   - onProcessing: called when the payment service has processed the payment, before it is captured.
    ///   - capture: captures the payment on the app's server.  It is not called for a payment that has already
    ///     succeeded, nor for one that was stored and is not uploaded: these are returned as they are.  Its error is
    ///     rethrown when the card is gone.
    /// - Throws: ``CardReaderServiceError``; ``CardReaderServiceError/paymentCapture(underlyingError:)`` of
    ///   `processorAPIError` for an intent from `capture` that has not succeeded, or that has another amount.
    public func collectPayment(
        _ parameters: PaymentIntentParameters, onProcessing: @Sendable (PaymentIntent) async -> Void = { _ in },
        capture: @escaping @Sendable (PaymentIntent) async throws -> PaymentIntent
    ) async throws -> PaymentIntent {
        let intent = try await capturePayment(parameters)
        await onProcessing(intent)
        async let removal: Void = waitForInsertedCardToBeRemoved()
        let isStored = intent.offlineDetails?.requiresUpload == true
        let hasNothingToCapture = isStored || intent.status == .succeeded
        let captured = await Task { hasNothingToCapture ? intent : try await capture(intent) }.result
        await removal
        guard !isStored else { return intent }
        let result = try captured.get()
        guard result.status == .succeeded, result.id == intent.id, result.amount == intent.amount,
            result.currency.lowercased() == intent.currency.lowercased()
        else { throw CardReaderServiceError.paymentCapture(underlyingError: .processorAPIError) }
        return result
    }

    public func checkSupport(
        for cardReaderType: CardReaderType, configProvider: any CardReaderConfigProvider,
        discoveryMethod: CardReaderDiscoveryMethod
    ) -> Bool {
        checkSupport(
            for: cardReaderType, configProvider: configProvider, discoveryMethod: discoveryMethod,
            minimumOperatingSystemVersionOverride: nil)
    }
}
