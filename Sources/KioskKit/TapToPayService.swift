public import Foundation
public import ProximityReader
import SmartCard

/// A reader and the payment service that it reads for: from the token to the decision.
///
/// A session that is over by time, or whose token is, is replaced with a new one by the next read.
public actor TapToPayService {
    public nonisolated let reader: PaymentCardReader
    public nonisolated let psp: any PaymentServiceProvider
    private var session: PaymentCardReaderSession?
    private var preparation: Task<PaymentCardReaderSession, any Error>?
    /// How often the reader was made ready.
    private(set) var preparations = 0
    private var isSuspended = false
    private let pauses: [Duration]

    /// - Parameter pauses: how long to wait before a payment service that did not answer is asked again, each time.
    public init(
        psp: any PaymentServiceProvider, reader: PaymentCardReader = PaymentCardReader(),
        pauses: [Duration] = [.milliseconds(500), .seconds(2), .seconds(5)]
    ) {
        self.psp = psp
        self.reader = reader
        self.pauses = pauses
    }

    /// Fetches a token, records that its merchant accepts the terms if need be, and prepares the reader.
    ///
    /// Called while it is under way, it waits for the end of that.
    ///
    /// - Throws: `PaymentCardReaderError`; what the payment service throws; `PaymentServiceError.noAnswer` if it has given no
    ///   token within a minute.
    public func initialize() async throws {
        guard !isSuspended else { throw PaymentCardReaderError.backgroundRequestNotAllowed }
        let preparation = preparation ?? Task { try await prepare() }
        self.preparation = preparation
        defer { if self.preparation == preparation { self.preparation = nil } }
        let session = try await preparation.value
        guard !isSuspended else { throw PaymentCardReaderError.backgroundRequestNotAllowed }
        if self.session !== session { preparations += 1 }
        self.session = session
    }

    private nonisolated func prepare() async throws -> PaymentCardReaderSession {
        let token = PaymentCardReader.Token(rawValue: try await psp.fetchReaderToken(within: .seconds(60)))
        try await reader.acceptTerms(of: token)
        return try await reader.prepare(using: token)
    }

    // MARK: Payments

    /// Waits for a card, and has the payment service charge it.
    ///
    /// - Returns: also for a payment that was declined.
    /// - Throws: ``TapToPayError``, `PaymentCardReaderSession.ReadError`, `PaymentCardReaderError`, ``PaymentServiceError``.
    public func charge(amount: Decimal, currency: String) async throws -> PaymentResult {
        let card = try await read(PaymentCardTransactionRequest(amount: amount, currencyCode: currency))
        return try await authorise(card, amount: amount, currency: currency)
    }

    /// Waits for a card, and has the payment service give money back to it.  Otherwise as ``charge(amount:currency:)``.
    public func refund(amount: Decimal, currency: String) async throws -> RefundResult {
        let card = try await read(
            PaymentCardTransactionRequest(amount: amount, currencyCode: currency, for: .refund))
        return try await giveBack(card, amount: amount, currency: currency)
    }

    /// Has the payment service charge a card that was read.
    ///
    /// The idempotency key is the read's `id`: however often this is called for one read, it is charged once.  A service that
    /// does not answer is asked again, each time after a pause.  Cancelling the task before the service is asked the first
    /// time keeps it from being asked; afterwards the answer to the call under way is awaited, and no other is made.
    ///
    /// - Throws: ``TapToPayError``; ``PaymentServiceError`` if nothing was done;
    ///   `PaymentCardReaderSession.ReadError.readCancelled`.
    public nonisolated func authorise(
        _ card: PaymentCardReadResult, amount: Decimal, currency: String
    ) async throws -> PaymentResult {
        try await answer(to: card) { [psp] cardData in
            try await psp.processPayment(
                cardData: cardData, amount: amount, currency: currency.uppercased(), idempotencyKey: card.id)
        }
    }

    /// Has the payment service give money to a card that was read for a refund.  Otherwise as
    /// ``authorise(_:amount:currency:)``.
    public nonisolated func giveBack(
        _ card: PaymentCardReadResult, amount: Decimal, currency: String
    ) async throws -> RefundResult {
        try await answer(to: card) { [psp] cardData in
            try await psp.processRefund(
                cardData: cardData, amount: amount, currency: currency.uppercased(), idempotencyKey: card.id)
        }
    }

    private nonisolated func answer(
        to card: PaymentCardReadResult, _ ask: @escaping @Sendable (_ cardData: String) async throws -> PaymentResult
    ) async throws -> PaymentResult {
        guard let cardData = card.paymentCardData else { throw TapToPayError.noCardData }
        guard !Task.isCancelled else { throw PaymentCardReaderSession.ReadError.readCancelled }
        var wasLost = false
        for pause in pauses.map(Optional.some) + [nil] {
            do {
                // A task of its own: whoever leaves does not break off a call that moves money.
                return try await Task { try await ask(cardData) }.value
            } catch let error as PaymentServiceError where error.hasDoneNothing && !wasLost {
                throw error
            } catch {
                // What refuses this call tells nothing of one before it, whose answer was lost.
                wasLost = true
            }
            guard let pause else { break }
            // Who cancels now is told that nothing is known, as it is.
            do { try await Task.sleep(for: pause) } catch { break }
        }
        throw TapToPayError.outcomeUnknown(key: card.id)
    }

    // MARK: Reads

    /// Waits for a card.  Cancelling the task ends the wait.
    ///
    /// - Returns: a card that can pay.
    /// - Throws: ``TapToPayError/notInitialized``, `PaymentCardReaderSession.ReadError`, `PaymentCardReaderError`.
    public func read(_ request: PaymentCardTransactionRequest) async throws -> PaymentCardReadResult {
        do {
            return try await currentSession().readPaymentCard(request).successful()
        } catch PaymentCardReaderSession.ReadError.readerSessionExpired {
            try await initialize()
        } catch PaymentCardReaderSession.ReadError.readerTokenExpired {
            try await initialize()
        } catch PaymentCardReaderSession.ReadError.noReaderSession {
            // Somebody has prepared the reader meanwhile.
            try await initialize()
        }
        return try await currentSession().readPaymentCard(request).successful()
    }

    /// Ends the wait for a card.
    ///
    /// - Returns: whether it did.  A read whose card has been detected goes on.
    @discardableResult public func cancelRead() async -> Bool {
        // One that is over has nothing to cancel.
        (try? await session?.cancelRead()) ?? false
    }

    private func currentSession() throws -> PaymentCardReaderSession {
        guard !isSuspended else { throw PaymentCardReaderSession.ReadError.readFromBackgroundError }
        guard let session else { throw TapToPayError.notInitialized }
        return session
    }

    // MARK: Sleep

    /// Ends the wait for a card: the machine goes to sleep.  No card is read until ``resume()``.
    public func suspend() async {
        isSuspended = true
        let ended = session
        session = nil
        _ = try? await ended?.cancelRead()
    }

    /// The machine is awake: as ``initialize()``.
    public func resume() async throws {
        isSuspended = false
        try await initialize()
    }
}

extension PaymentServiceError {
    var hasDoneNothing: Bool {
        switch self {
        case .refused, .notAuthorised: true
        case .noAnswer: false
        }
    }
}

extension PaymentServiceProvider {
    /// - Throws: ``PaymentServiceError/noAnswer(_:)`` when the time is over.
    func fetchReaderToken(within limit: Duration) async throws -> String {
        do {
            return try await withTimeLimit(limit) { try await fetchReaderToken() }
        } catch let error as CardError where error.kind == .readerTimeout {
            throw PaymentServiceError.noAnswer("no reader token within \(limit)")
        }
    }
}

extension PaymentCardReader {
    /// Records that the merchant of `token` accepts the terms, if that is not recorded.
    func acceptTerms(of token: Token) async throws {
        guard try await !isAccountLinked(using: token) else { return }
        do { try await linkAccount(using: token) } catch PaymentCardReaderError.accountAlreadyLinked {}
    }
}

extension PaymentCardReadResult {
    /// - Throws: `ReadError` for a card that did not pay, which `PaymentCardReader.Options.includeErrorInReadResult` makes a
    ///   result.
    func successful() throws -> PaymentCardReadResult {
        switch outcome {
        case .success: self
        case .cardDeclined: throw PaymentCardReaderSession.ReadError.paymentCardDeclined
        case .failure: throw PaymentCardReaderSession.ReadError.paymentReadFailed
        }
    }
}

/// Why there was no payment, or none that is known of.
public enum TapToPayError: Error, Hashable, Sendable {
    /// No reader has been made ready.
    case notInitialized
    /// The read has given no card data.
    case noCardData
    /// The payment service was asked and did not answer: the customer may have paid.  Whether they have,
    /// ``PaymentServiceProvider/result(for:)`` tells; ``PaymentServiceProvider/reverse(idempotencyKey:)`` sees to it that they
    /// have not.
    case outcomeUnknown(key: String)
}

extension TapToPayError: LocalizedError, CustomStringConvertible {
    public var description: String {
        switch self {
        case .notInitialized: "The reader is not ready. Call initialize() first."
        case .noCardData: "The card gave no data that can be charged. Try another one."
        case .outcomeUnknown(let key):
            "The payment service did not answer: whether the payment was made is not known. Ask it for the key \(key) before the customer pays again."
        }
    }
    public var errorDescription: String? { description }
}
