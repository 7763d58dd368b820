import Waiting

/// The payment that is not over: what is known of it, and so what may be done next.  It asks nobody and waits for nobody.
///
/// What counts is whether the card may have been charged.  From the moment the payment service is asked until it has said
/// what became of that, no other payment may begin, and the same card is asked about under the same key.
struct ActivePayment: Sendable {
    private(set) var intent: PaymentIntent
    /// Read for this payment, until the payment service has answered for it.
    private(set) var card: CollectedCard?
    /// How often the payment service was asked to charge ``card`` without having said what became of it.
    private var unanswered = 0
    /// Whether a card may have been charged of which the payment service has never heard, as far as it says: the call may still
    /// be on its way.
    private var isInDoubt = false
    /// How often the payment service was asked to cancel it without having said what became of that: it may be canceled at any
    /// time.
    private var cancellations = 0
    /// Set when it is paid and it has yet to be seen whether somebody takes the result.
    private(set) var claim: ResultClaim?
    /// Whether the app knows that it has succeeded.
    private var isTold = false

    init(_ intent: PaymentIntent) { self.intent = intent }

    /// A payment that an earlier run of the program has asked for, with a card that is not known any more.
    ///
    /// - Parameter isBeingCancelled: whether to cancel it, too.
    init(unanswered intent: PaymentIntent, isBeingCancelled: Bool) {
        (self.intent, unanswered, cancellations) = (intent.with(.unknown), 1, isBeingCancelled ? 1 : 0)
    }

    /// What brings a payment to its end.
    enum Step {
        case collect
        /// The card that was read is charged, or is asked about.
        case process
        /// The payment service is asked how it stands.
        case inquire
        /// The payment service was asked to cancel it, and is asked again.
        case cancel
        /// It is paid.
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

    /// What an app is told where ``Step/inquire`` has brought nothing new.
    var stillOpen: CardReaderServiceError {
        switch intent.status {
        case .processing: .retryNotPossibleProcessingInProgress
        case .requiresAction: .retryNotPossibleRequiresAction
        default: .retryNotPossibleUnknownCause
        }
    }

    /// Whether no other payment may begin: this one may have been charged, or has been, and nobody knows.
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

    /// The payment service is about to be asked to cancel it.
    mutating func cancelling() { cancellations += 1 }

    /// Takes in why the payment service has not cancelled it, as far as it says.
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

    /// The payment service is about to be asked to charge the card.
    mutating func asked() {
        intent = intent.with(.requiresConfirmation)
        unanswered += 1
    }

    mutating func waits(for claim: ResultClaim) { self.claim = claim }
    mutating func told() { isTold = true }

    /// Whether an answer is about this payment.  What is about another one, or another amount, is none.
    func isMeant(by answer: PaymentIntent) -> Bool {
        answer.id == intent.id && answer.amount == intent.amount
            && answer.currency.lowercased() == intent.currency.lowercased()
    }

    /// Takes in how the payment stands, as the payment service says when it is asked about it.
    mutating func inquired(_ now: PaymentIntent) {
        if unanswered > 0 { isInDoubt = true }
        learn(now)
    }

    /// Takes in how the payment stands, as the payment service says.
    mutating func learn(_ now: PaymentIntent) {
        intent = now
        // A card counts once; while nobody knows whether it has, it is asked about again.
        if now.status != .requiresConfirmation { (card, unanswered) = (nil, 0) }
    }

    /// Takes in how the payment service has failed.
    mutating func learn(_ error: any Error) {
        guard let error = error as? PaymentProcessorError else { return }
        if let now = error.intent {
            if isMeant(by: now) { learn(now) }
            return
        }
        switch error.reason {
        case .noAnswer: break
        case .declined: learn(intent.with(.requiresPaymentMethod))
        // Not this time; it may have been, the times before.
        case .notConnected: unanswered = max(0, unanswered - 1)
        case .unknownIntent, .sessionExpired, .invalidAmount, .invalidCurrency, .tooOld, .refused:
            unanswered = max(0, unanswered - 1)
            if unanswered == 0 {
                learn(intent.with(.requiresPaymentMethod))
            } else if error.reason == .unknownIntent {
                // The key no longer helps.
                isInDoubt = true
                learn(intent.with(.unknown))
            }
        }
    }

    /// Takes in the answer to the question whether the card is charged.
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
