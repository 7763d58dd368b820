public import Foundation

/// A card reader, from finding it to the payment: the contract between a point-of-sale app and whatever reader it has.
///
/// Each access of a sequence makes one of its own, for one task.  A task that takes none for long finds the newest there: the
/// last 4,096 events, and the last 64 states at least.  What becomes of a payment is no element of them, but what a call
/// returns.  One call that moves money is under way at a time, and one reader is connected at a time.
public protocol CardReaderService: Sendable {
    /// The readers that the present search has found, all of them each time, an empty list first.
    ///
    /// Outside of a search, those of the next one.  Ends with the search: by ``cancelDiscovery()`` or a call of
    /// ``connect(_:options:)``; throws ``CardReaderServiceError/discovery(underlyingError:)`` where it fails.
    var discoveredReaders: AsyncThrowingStream<[CardReader], any Error> { get }
    /// The reader that is connected, or none; first as it is now, then with each change of any field.
    var connectedReaders: AsyncStream<[CardReader]> { get }
    /// What happens at the connected reader, from now on.
    var readerEvents: AsyncStream<CardReaderEvent> { get }
    /// First as it is now, then with each change.
    var softwareUpdateEvents: AsyncStream<CardReaderSoftwareUpdateState> { get }
    /// How the connection to a reader that has left is made again, from now on.
    var reconnectionEvents: AsyncStream<CardReaderReconnection> { get }
    /// Whether a search is under way; first as it is now, then with each change.
    var discoveryStatus: AsyncStream<CardReaderServiceDiscoveryStatus> { get }

    /// Whether this machine can look for readers of this type in this way.
    ///
    /// - Parameter minimumOperatingSystemVersionOverride: without meaning here.
    func checkSupport(
        for cardReaderType: CardReaderType, configProvider: any CardReaderConfigProvider,
        discoveryMethod: CardReaderDiscoveryMethod, minimumOperatingSystemVersionOverride: OperatingSystemVersion?
    ) -> Bool

    /// Begins to look for readers.  Does not wait.
    ///
    /// - Throws: ``CardReaderServiceError/discovery(underlyingError:)``: `readerBusy` while a search or a connection is under
    ///   way, which goes on as if nothing had happened; `alreadyConnectedToReader`.
    func start(_ configProvider: any CardReaderConfigProvider, discoveryMethod: CardReaderDiscoveryMethod) throws

    /// Ends the search.  Without one it does nothing.  When it returns the next one may begin.
    func cancelDiscovery() async throws

    /// Connects to a reader that the present search has found, and ends the search.
    ///
    /// A token is fetched each time.  The first connection of a merchant accepts the terms, unless `options` say otherwise.
    ///
    /// - Returns: the reader as it is once connected.
    /// - Throws: ``CardReaderServiceError/connection(underlyingError:)``; of a required update
    ///   ``CardReaderServiceError/softwareUpdate(underlyingError:batteryLevel:)``.  After either a new search is due.
    @discardableResult
    func connect(_ reader: CardReader, options: CardReaderConnectionOptions?) async throws -> CardReader

    /// Gives the reader back, and gives up one that is waited for.
    ///
    /// - Throws: ``CardReaderServiceError/disconnection(underlyingError:)``: `notConnectedToReader`, or `readerBusy` while a
    ///   payment or a refund is under way.
    func disconnect() async throws

    /// Returns when no card is on the reader.
    func waitForInsertedCardToBeRemoved() async

    /// Forgets the shop, the search, and the payment that could be tried again; not one of which nobody knows whether it was
    /// charged, nor such a refund.
    ///
    /// A connection under way fails with `connectionAttemptInvalidated`.  Does not wait.
    ///
    /// - Throws: ``CardReaderServiceError/disconnection(underlyingError:)`` of `alreadyConnectedToReader`: disconnect first.
    func clear() throws

    /// Takes a payment: makes an intent, waits for a card, and has the payment service process it.
    ///
    /// A card that lies on the reader has to be removed before.  Cancelling the task cancels until the payment service is
    /// asked to process; from then on its answer is waited for.
    ///
    /// - Returns: an intent that is to be captured, or that has succeeded.
    /// - Throws: ``CardReaderServiceError``; ``CardReaderServiceError/intentCreation(underlyingError:)`` of
    ///   `paymentOutcomeUnknown` while it is not known whether the payment before was charged: first
    ///   ``retryActivePaymentIntent()``, which returns that payment if it was, or ``cancelPaymentIntent()``.
    func capturePayment(_ parameters: PaymentIntentParameters) async throws -> PaymentIntent

    /// Takes up the payment that failed, from where it failed.  Otherwise as ``capturePayment(_:)``.
    ///
    /// A reader is needed only if a card has to be presented.  Where the answer was lost the payment service is asked again
    /// about the same card, and charges it once.
    func retryActivePaymentIntent() async throws -> PaymentIntent

    /// Cancels the payment that waits for a card, or that failed.  It needs no reader.
    ///
    /// - Throws: ``CardReaderServiceError/paymentCancellation(underlyingError:)``: `noActivePaymentIntent`; `readerBusy` while
    ///   the payment service processes, whose answer counts.
    func cancelPaymentIntent() async throws

    /// Gives money back.
    ///
    /// A call whose answer was lost is made again with the same parameters: then the same refund is asked about, without the
    /// reader, and the money is given back once.  Until it is known what became of it, another amount of the same charge is
    /// refused: ``CardReaderServiceError/refundCreation(underlyingError:)`` of `paymentOutcomeUnknown`.
    ///
    /// - Returns: `success`, `pending` or `unknown`.
    /// - Throws: ``CardReaderServiceError``, ``CardReaderServiceError/refundPayment(underlyingError:shouldRetry:)`` among it.
    func refundPayment(parameters: RefundParameters) async throws -> String

    /// Ends the wait for a card to give money back to.
    ///
    /// - Throws: ``CardReaderServiceError/refundCancellation(underlyingError:)``: `noRefundInProgress`, `readerBusy`.
    func cancelRefund() async throws

    /// Installs the update that is available.  Without one, or without a reader, it does nothing.
    ///
    /// - Throws: ``CardReaderServiceError/softwareUpdate(underlyingError:batteryLevel:)``: `readerBusy` while a payment or a
    ///   refund is under way, as those have while it is; `readerSoftwareUpdateFailedInterrupted` where the reader leaves.
    func installUpdate() async throws
}

extension CardReaderService {
    /// A payment to its end: ``capturePayment(_:)``, then at the same time the app's capture and the wait for the card to be
    /// removed.
    ///
    /// - Parameters:
    ///   - onProcessing: told when the payment service has processed the payment, before it is captured.
    ///   - capture: captures it, on the app's server; not called for a payment that has succeeded already, nor for one that was
    ///     stored and is not uploaded: that one is returned as it is.  What it throws is thrown, when the card is gone.
    /// - Throws: ``CardReaderServiceError``; ``CardReaderServiceError/paymentCapture(underlyingError:)`` of
    ///   `processorAPIError` for an intent that `capture` returns and that has not succeeded, or is of another amount.
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
