public import Foundation
public import ProximityReader

/// A reader and the payment service that it reads for: from the token to the decision.
///
/// A session that is over by time, or whose token is, is replaced with a new one by the next read.
public actor TapToPayService {
    public nonisolated let reader: PaymentCardReader
    private let psp: any PaymentServiceProvider
    private var session: PaymentCardReaderSession?
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
    /// - Throws: `PaymentCardReaderError`; what the payment service throws.
    public func initialize() async throws {
        guard !isSuspended else { throw PaymentCardReaderError.backgroundRequestNotAllowed }
        let token = PaymentCardReader.Token(rawValue: try await psp.fetchReaderToken())
        if try await !reader.isAccountLinked(using: token) { try await reader.linkAccount(using: token) }
        session = try await reader.prepare(using: token)
    }

    // MARK: Payments

    /// Waits for a card, and has the payment service charge it.
    ///
    /// - Returns: also for a payment that was declined.
    /// - Throws: ``TapToPayError``, `PaymentCardReaderSession.ReadError`, `PaymentCardReaderError`; what the payment service
    ///   throws.
    public func charge(amount: Decimal, currency: String) async throws -> PaymentResult {
        let card = try await read(PaymentCardTransactionRequest(amount: amount, currencyCode: currency))
        return try await authorise(card, amount: amount, currency: currency)
    }

    /// Waits for a card, and has the payment service give money back to it.  Otherwise as ``charge(amount:currency:)``.
    public func refund(amount: Decimal, currency: String) async throws -> RefundResult {
        let card = try await read(
            PaymentCardTransactionRequest(amount: amount, currencyCode: currency, for: .refund))
        guard let cardData = card.paymentCardData else { throw TapToPayError.noCardData }
        return try await answer(to: card.id) { [psp] key in
            try await psp.processRefund(cardData: cardData, amount: amount, currency: currency, idempotencyKey: key)
        }
    }

    /// Has the payment service charge a card that was read.
    ///
    /// The idempotency key is the read's `id`: however often this is called for one read, it is charged once.  A service that
    /// does not answer is asked again, each time after a pause.
    ///
    /// - Throws: ``TapToPayError``; what the payment service throws.
    public nonisolated func authorise(
        _ card: PaymentCardReadResult, amount: Decimal, currency: String
    ) async throws -> PaymentResult {
        guard let cardData = card.paymentCardData else { throw TapToPayError.noCardData }
        return try await answer(to: card.id) { [psp] key in
            try await psp.processPayment(cardData: cardData, amount: amount, currency: currency, idempotencyKey: key)
        }
    }

    private nonisolated func answer(
        to key: String, _ ask: @Sendable (String) async throws -> PaymentResult
    ) async throws -> PaymentResult {
        for pause in pauses {
            do { return try await ask(key) } catch PaymentServiceError.noAnswer {}
            // Who cancels now is told that nothing is known, as it is.
            do { try await Task.sleep(for: pause) } catch { throw TapToPayError.outcomeUnknown(key: key) }
        }
        do { return try await ask(key) } catch PaymentServiceError.noAnswer {
            throw TapToPayError.outcomeUnknown(key: key)
        }
    }

    // MARK: Reads

    /// Waits for a card.  Cancelling the task ends the wait.
    ///
    /// - Throws: ``TapToPayError/notInitialized``, `PaymentCardReaderSession.ReadError`, `PaymentCardReaderError`.
    public func read(_ request: PaymentCardTransactionRequest) async throws -> PaymentCardReadResult {
        do {
            return try await currentSession().readPaymentCard(request)
        } catch PaymentCardReaderSession.ReadError.readerSessionExpired {
            try await initialize()
        } catch PaymentCardReaderSession.ReadError.readerTokenExpired {
            try await initialize()
        }
        return try await currentSession().readPaymentCard(request)
    }

    private func currentSession() throws -> PaymentCardReaderSession {
        guard !isSuspended else { throw PaymentCardReaderSession.ReadError.readFromBackgroundError }
        guard let session else { throw TapToPayError.notInitialized }
        return session
    }

    // MARK: Sleep

    /// Ends the session, and the wait for a card: the machine goes to sleep.  No card is read until ``resume()``.
    public func suspend() async {
        isSuspended = true
        // One that is over has nothing to cancel.
        _ = try? await session?.cancelRead()
        session = nil
    }

    /// The machine is awake: as ``initialize()``.
    public func resume() async throws {
        isSuspended = false
        try await initialize()
    }
}

/// Why there was no payment, or none that is known of.
public enum TapToPayError: Error, Hashable, Sendable {
    case notInitialized
    /// The read has given no card data.
    case noCardData
    /// The payment service was asked and did not answer: the customer may have paid.
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
