public import Foundation
public import Observation
import ProximityReader

/// The state of a payment for a user interface of any kind.
@Observable
@MainActor
public final class PaymentViewModel {
    /// The amount in the currency's major unit.
    public var amount: Decimal = 0
    /// The ISO 4217 code of the currency.
    public var currencyCode: String
    /// True if ``readPayment()`` can begin: the reader is prepared, and was not lost since.  After a loss ``setup()``
    /// or a ``ReaderSessionManager`` prepares it again.
    public private(set) var isReady = false
    /// True while a payment is under way, until ``result`` or ``errorMessage`` is set.
    public private(set) var isProcessing = false
    /// The progress of preparing the reader, or of a read: 0 to 100.
    public private(set) var readProgress = 0
    /// The prompt for the customer; nil if there is nothing to do.
    public private(set) var prompt: Prompt?
    /// The message of the last error; nil also after a canceled read.
    public private(set) var errorMessage: String?
    /// The result of the last payment, approved or declined.
    public private(set) var result: PaymentResult?
    /// The key of a payment that the payment service has not answered: the customer may have paid.  No other payment
    /// begins before ``resolve()`` has found out.
    public private(set) var unresolvedKey: String?
    /// True if the last payment was approved.
    public var transactionComplete: Bool { result?.status == .approved }

    public enum Prompt: Sendable, Hashable {
        case presentCard
        case holdStill
        case presentAgain
        case removeCard
    }

    private let service: TapToPayService
    @ObservationIgnored private var watch: Watch?
    /// The wait for a card.
    @ObservationIgnored private var read: Task<PaymentCardReadResult, any Error>?

    public init(_ service: TapToPayService, currencyCode: String = "EUR") {
        self.service = service
        self.currencyCode = currencyCode
    }

    /// Prepares the reader.  A failure sets ``errorMessage``.
    public func setup() async {
        errorMessage = nil
        let events = service.reader.events
        watch = Watch(Task { [weak self] in for await event in events { self?.show(event) } })
        do {
            try await service.initialize()
            isReady = true
        } catch {
            isReady = false
            errorMessage = error.localizedDescription
        }
    }

    /// Waits for a card and has it charged.  Sets ``result`` or ``errorMessage``.
    ///
    /// Canceling the task ends the wait.  Does nothing while a payment is under way, and while there is an
    /// ``unresolvedKey``.
    public func readPayment() async {
        guard isReady, !isProcessing, unresolvedKey == nil else { return }
        isProcessing = true
        errorMessage = nil
        result = nil
        defer {
            isProcessing = false
            prompt = nil
        }
        do {
            let (amount, currency) = (amount, currencyCode)
            let read = Task { [service] in
                try await service.read(PaymentCardTransactionRequest(amount: amount, currencyCode: currency))
            }
            self.read = read
            defer { self.read = nil }
            let card = try await withTaskCancellationHandler {
                try await read.value
            } onCancel: {
                read.cancel()
            }
            result = try await service.authorize(card, amount: amount, currency: currency)
        } catch PaymentCardReaderSession.ReadError.readCancelled {
            // People need no message about their own cancellation.
        } catch {
            if case TapToPayError.outcomeUnknown(let key) = error { unresolvedKey = key }
            errorMessage = error.localizedDescription
        }
    }

    /// Asks the payment service for the result of the payment of ``unresolvedKey``.  A decision sets ``result``;
    /// without one, the payment was not made and will not be, and the customer may pay again.
    public func resolve() async {
        guard let key = unresolvedKey, !isProcessing else { return }
        isProcessing = true
        defer { isProcessing = false }
        do {
            result = try await service.resolve(key)
            unresolvedKey = nil
            errorMessage = nil
        } catch {
            errorMessage = error.localizedDescription
        }
    }

    /// Ends the wait for a card.  A read that has detected a card continues.
    public func cancel() async { read?.cancel() }

    private func show(_ event: PaymentCardReader.Event) {
        switch event {
        case .updateProgress(let progress):
            readProgress = progress
            // Others, such as a ReaderSessionManager, may prepare the reader again.
            if progress == 100 { isReady = true }
        case .notReady: isReady = false
        case .readyForTap:
            isReady = true
            readProgress = 0
            if isProcessing { prompt = .presentCard }
        case .cardDetected: prompt = .holdStill
        case .readRetry: prompt = .presentAgain
        case .removeCard: prompt = .removeCard
        case .readCompleted: readProgress = 100
        case .userInterfaceDismissed: prompt = nil
        case .readCancelled, .readNotCompleted, .pinEntryRequested, .pinEntryCompleted: break
        }
    }
}
