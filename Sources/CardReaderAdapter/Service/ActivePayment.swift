import CardReceipts
import Waiting

/// The payment that is not over: the known facts, and so the permitted next steps.  This value does no I/O.
///
/// The deciding fact is whether the card may have been charged.  From the time the payment service is asked until it
/// reports the result, no other payment may begin, and further questions about the same card use the same key.
struct ActivePayment: Sendable {
    private(set) var intent: PaymentIntent
    /// The card read for this payment, until the payment service has answered for it.
    private(set) var card: CollectedCard?
    /// The number of requests to charge ``card`` that the payment service has not answered.
    private var unanswered = 0
    /// True if a card may have been charged although the payment service reports no such payment: the request may
    /// still be on its way.
    private var isInDoubt = false
    /// The number of requests to cancel that the payment service has not answered: the payment may be canceled at any
    /// time.
    private var cancellations = 0
    /// Set when the payment is paid and it is not yet known whether the caller takes the result.
    private(set) var claim: ResultClaim?
    /// True if the app knows that the payment succeeded.
    private var isTold = false

    init(_ intent: PaymentIntent) { self.intent = intent }

    /// Restores a payment that an earlier run of the program requested.  Its card is no longer known.
    ///
    /// - Parameter isBeingCancelled: true if the payment is also to be canceled.
    init(unanswered intent: PaymentIntent, isBeingCancelled: Bool) {
        (self.intent, unanswered, cancellations) = (intent.with(.unknown), 1, isBeingCancelled ? 1 : 0)
    }

    /// A step toward the end of the payment.
    enum Step {
        case collect
        /// Charge the card that was read, or ask about it.
        case process
        /// Ask the payment service for the state of the payment.
        case inquire
        /// Repeat a request to cancel that was not answered.
        case cancel
        /// Return the paid payment.
        case result
        case over(CardReaderServiceError)
    }

    var next: Step {
        if isBeingCancelled, !isPaid, intent.status != .canceled { return .cancel }
        return switch intent.status {
        case .requiresPaymentMethod: .collect
        case .requiresConfirmation: card == nil ? .collect : .process
        case .processing, .requiresAction, .unknown: .inquire
        case .requiresCapture: .result
        case .succeeded: claim == nil ? .over(.retryNotPossibleActivePaymentSucceeded) : .result
        case .canceled: .over(.retryNotPossibleActivePaymentCancelled)
        }
    }

    /// The error for the app if ``Step/inquire`` brought no news.
    var stillOpen: CardReaderServiceError {
        switch intent.status {
        case .processing: .retryNotPossibleProcessingInProgress
        case .requiresAction: .retryNotPossibleRequiresAction
        default: .retryNotPossibleUnknownCause
        }
    }

    /// True if no other payment may begin: this one was charged or may have been.
    var isOpen: Bool {
        switch intent.status {
        case .requiresPaymentMethod where isBeingCancelled: true
        case .requiresPaymentMethod: isInDoubt
        case .canceled: false
        case .requiresConfirmation: unanswered > 0
        case .processing, .requiresAction, .unknown, .requiresCapture: true
        case .succeeded: !isTold
        }
    }

    var isPaid: Bool { intent.status == .requiresCapture || intent.status == .succeeded }

    var isBeingCancelled: Bool { cancellations > 0 }

    /// Records that the payment service is about to be asked to cancel.
    mutating func cancelling() { cancellations += 1 }

    /// Records the reason for which the payment service did not cancel, as far as it gives one.
    mutating func notCancelled(_ error: any Error) {
        guard let error = error as? PaymentProcessorError else { return }
        if let now = error.intent {
            guard isMeant(by: now) else { return }
            learn(now)
            if isPaid { cancellations = 0 }
        } else if error.reason != .noAnswer {
            cancellations -= 1
        }
    }

    mutating func read(_ card: CollectedCard) { self.card = card }

    /// Records that the payment service is about to be asked to charge the card.
    mutating func asked() {
        intent = intent.with(.requiresConfirmation)
        unanswered += 1
    }

    mutating func waits(for claim: ResultClaim) { self.claim = claim }
    mutating func told() { isTold = true }

    /// True if an answer is about this payment.  An answer about another payment or another amount is ignored.
    func isMeant(by answer: PaymentIntent) -> Bool {
        answer.id == intent.id && answer.amount == intent.amount
            && answer.currency.lowercased() == intent.currency.lowercased()
    }

    /// Records the state that the payment service reported in answer to an inquiry.
    mutating func inquired(_ now: PaymentIntent) {
        if unanswered > 0 { isInDoubt = true }
        learn(now)
    }

    /// Records the state that the payment service reported.
    mutating func learn(_ now: PaymentIntent) {
        intent = now
        // A card is charged once.  Until the result is known, questions about it use its key.
        if now.status != .requiresConfirmation { (card, unanswered) = (nil, 0) }
    }

    /// Records a failure of the payment service.
    mutating func learn(_ error: any Error) {
        guard let error = error as? PaymentProcessorError else { return }
        if let now = error.intent {
            if isMeant(by: now) { learn(now) }
            return
        }
        switch error.reason {
        case .noAnswer: break
        case .declined: learn(intent.with(.requiresPaymentMethod))
        // This request was not sent; earlier ones may have been.
        case .notConnected: unanswered = max(0, unanswered - 1)
        case .unknownIntent, .sessionExpired, .invalidAmount, .invalidCurrency, .tooOld, .refused:
            unanswered = max(0, unanswered - 1)
            if unanswered == 0 {
                learn(intent.with(.requiresPaymentMethod))
            } else if error.reason == .unknownIntent {
                // The key is of no further use.
                isInDoubt = true
                learn(intent.with(.unknown))
            }
        }
    }

    /// Records the answer to a request to charge the card.
    ///
    /// - Returns: the intent, if it is paid.
    /// - Throws: ``CardReaderServiceError``.
    mutating func settle(_ answer: Result<PaymentIntent, any Error>) throws -> PaymentIntent {
        var failure: any Error = UnderlyingError.processorAPIError
        switch answer {
        case .success(let now) where isMeant(by: now):
            learn(now)
            failure = PaymentProcessorError(
                now.status == .requiresPaymentMethod ? .declined(.unknown) : .refused(now.status.rawValue), intent: now)
        case .success: break
        case .failure(let error):
            learn(error)
            failure = error
        }
        guard !isPaid else { return intent }
        let cause = UnderlyingError(cause: failure)
        guard let method = (failure as? PaymentProcessorError)?.intent?.paymentMethod() else {
            throw CardReaderServiceError.paymentCapture(underlyingError: cause)
        }
        throw CardReaderServiceError.paymentCaptureWithPaymentMethod(underlyingError: cause, paymentMethod: method)
    }
}
