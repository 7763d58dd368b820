public import Foundation
public import Observation
import ProximityReader

/// What a screen shows of a payment, whatever draws it.
@Observable
@MainActor
public final class PaymentViewModel {
    /// In the currency's major unit.
    public var amount: Decimal = 0
    /// Of ISO 4217.
    public var currencyCode: String
    /// Whether ``readPayment()`` can begin: the reader is prepared, and has not been lost since.
    public private(set) var isReady = false
    /// Whether a payment is under way: until its ``result`` or ``errorMessage`` is there.
    public private(set) var isProcessing = false
    /// How far the reader's preparation is, or the read: 0 to 100.
    public private(set) var readProgress = 0
    /// What the customer is to do: nil where there is nothing.
    public private(set) var prompt: Prompt?
    /// Nil also for a read that was cancelled.
    public private(set) var errorMessage: String?
    /// The last payment's, approved or declined.
    public private(set) var result: PaymentResult?
    /// Whether the last payment was approved.
    public var transactionComplete: Bool { result?.status == .approved }

    public enum Prompt: Sendable, Hashable {
        case presentCard
        case holdStill
        case presentAgain
        case removeCard
    }

    private let service: TapToPayService
    @ObservationIgnored private var watch: Watch?

    public init(_ service: TapToPayService, currencyCode: String = "EUR") {
        self.service = service
        self.currencyCode = currencyCode
    }

    /// Makes the reader ready.  What fails is in ``errorMessage``.
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

    /// Waits for a card and has it charged.  What comes of it is in ``result`` or ``errorMessage``.
    ///
    /// Cancelling the task ends the wait.  Does nothing while a payment is under way.
    public func readPayment() async {
        guard isReady, !isProcessing else { return }
        isProcessing = true
        errorMessage = nil
        result = nil
        defer {
            isProcessing = false
            prompt = nil
        }
        do {
            result = try await service.charge(amount: amount, currency: currencyCode)
        } catch PaymentCardReaderSession.ReadError.readCancelled {
            // Nobody needs to be told what they did.
        } catch {
            errorMessage = error.localizedDescription
        }
    }

    private func show(_ event: PaymentCardReader.Event) {
        switch event {
        case .updateProgress(let progress):
            readProgress = progress
            // Somebody may prepare the reader again, such as a ReaderSessionManager.
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
