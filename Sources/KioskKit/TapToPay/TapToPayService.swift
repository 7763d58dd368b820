import Foundation
public import ProximityReader
import Waiting

/// A reader and its payment service: from the token to the decision.
///
/// If the session or its token has expired, the next read replaces it with a new one.
public actor TapToPayService {
    public nonisolated let reader: PaymentCardReader
    public nonisolated let psp: any PaymentServiceProvider
    let measured: MeasuredService
    private var session: PaymentCardReaderSession?
    private var preparation: Task<PaymentCardReaderSession, any Error>?
    /// The number of times that the reader was prepared.
    private(set) var preparations = 0
    /// The number of tokens requested.
    private(set) var fetches = 0
    private var isSuspended = false
    let pauses: [Duration]
    let reversalPause: Duration
    let answerTime: Duration
    let settlingTime: Duration
    /// The reads that have not ended.
    private var reads: [UUID: Task<TapResult, any Error>] = [:]

    let journal: PaymentJournal
    /// The requests that are not answered, and the payments to reverse, by idempotency key.
    var unsettled: [String: OpenPayment] = [:]
    /// The task that repeats outstanding reversals.
    var sweep: Task<Void, Never>?
    let decided: (@Sendable (UnsettledPayment, PaymentResult) async -> Void)?

    /// Creates a service.
    ///
    /// - Parameters:
    ///   - psp: the payment service.
    ///   - reader: the reader.
    ///   - pauses: the pauses before a payment service that did not answer is asked again.
    ///   - reversalPause: the pause after those, between further requests for a reversal.
    ///   - answerTime: the time limit for each answer of the payment service.
    ///   - settlingTime: the time for which ``initialize()`` waits until the leftovers of an earlier run are settled;
    ///     this continues in the background.
    ///   - decided: receives each decision for the application's accounting, before the caller does, and again in the
    ///     next run of the program if this one ends in between: at least once each.  It also receives payments that an
    ///     earlier run requested without learning the outcome.  With nil those payments are reversed.
    public init(
        psp: any PaymentServiceProvider, reader: PaymentCardReader = PaymentCardReader(),
        pauses: [Duration] = [.milliseconds(500), .seconds(2), .seconds(5)], reversalPause: Duration = .seconds(30),
        answerTime: Duration = .seconds(60), settlingTime: Duration = .seconds(10),
        decided: (@Sendable (UnsettledPayment, PaymentResult) async -> Void)? = nil
    ) {
        self.init(
            psp: psp, reader: reader, pauses: pauses, reversalPause: reversalPause, answerTime: answerTime,
            settlingTime: settlingTime, disk: PaymentJournal.Disk(), decided: decided)
    }

    package init(
        psp: any PaymentServiceProvider, reader: PaymentCardReader, pauses: [Duration], reversalPause: Duration,
        answerTime: Duration = .seconds(60), settlingTime: Duration = .seconds(10), disk: PaymentJournal.Disk,
        decided: (@Sendable (UnsettledPayment, PaymentResult) async -> Void)? = nil
    ) {
        self.psp = psp
        measured = MeasuredService(service: psp)
        self.reader = reader
        self.pauses = pauses
        self.reversalPause = reversalPause
        self.answerTime = answerTime
        self.settlingTime = settlingTime
        self.decided = decided
        journal = PaymentJournal(folder: reader.terminal.folder.appending(path: "payments"), disk: disk)
    }

    deinit { sweep?.cancel() }

    /// Finds the reader, fetches a token, records that its merchant accepts the terms if necessary, and prepares the
    /// reader.  A session that is still valid, of a reader that was gone in between, is kept: no token is fetched for
    /// it.
    ///
    /// A call during another one waits for its end.  Payments that an earlier run of the program left unsettled are
    /// settled first, as far as the payment service answers: see ``unsettledPayments``.
    ///
    /// - Throws: `PaymentCardReaderError`; errors of the payment service; `PaymentServiceError.noAnswer` if it has
    ///   given no token within a minute.
    public func initialize() async throws {
        guard !isSuspended else { throw PaymentCardReaderError.backgroundRequestNotAllowed }
        let preparation =
            preparation
            ?? Task {
                await settleLeftovers()
                return try await prepare()
            }
        self.preparation = preparation
        defer { if self.preparation == preparation { self.preparation = nil } }
        let session = try await preparation.value
        guard !isSuspended else { throw PaymentCardReaderError.backgroundRequestNotAllowed }
        if self.session !== session { preparations += 1 }
        self.session = session
    }

    private func prepare() async throws -> PaymentCardReaderSession {
        try await reader.terminal.requireReader()
        // A reader that was gone has returned: no other token is needed.
        if let session, await session.isGood { return session }
        fetches += 1
        let token = PaymentCardReader.Token(rawValue: try await measured.fetchReaderToken(within: .seconds(60)))
        try await reader.acceptTerms(of: token)
        return try await reader.prepare(using: token)
    }

    // MARK: Reads

    /// Waits for a card.  Canceling the task ends the wait.
    ///
    /// - Returns: a card that can pay.
    /// - Throws: ``TapToPayError/notInitialized``, `PaymentCardReaderSession.ReadError`, `PaymentCardReaderError`.
    public func read(_ request: PaymentCardTransactionRequest) async throws -> PaymentCardReadResult {
        let tap = try await read { TapResult(payment: try await $0.successfulRead(request)) }
        guard let card = tap.payment else { throw PaymentCardReaderSession.ReadError.paymentReadFailed }
        return card
    }

    /// Waits for a phone with passes, or for a card.
    ///
    /// - Parameters:
    ///   - beginning: called before each tap.
    ///   - pricing: fixes the amount between pass and payment.
    func read(
        _ request: PaymentCardTransactionRequest, _ passes: VASRequest, stopsOnPass: Bool,
        beginning: @escaping @Sendable () -> Void,
        pricing: @escaping @Sendable (VASReadResult?) async throws -> Decimal
    ) async throws -> TapResult {
        try await read {
            beginning()
            return try await $0.successfulRead(request, passes, stopsOnPass: stopsOnPass, pricing: pricing)
        }
    }

    func read(
        _ body: @escaping @Sendable (PaymentCardReaderSession) async throws -> TapResult
    ) async throws -> TapResult {
        let id = UUID()
        let read = Task { try await inSession(body) }
        reads[id] = read
        defer { reads[id] = nil }
        return try await withTaskCancellationHandler {
            try await read.value
        } onCancel: {
            read.cancel()
        }
    }

    /// Reads in the session, or in a new one if it has expired.
    private func inSession(
        _ body: @Sendable (PaymentCardReaderSession) async throws -> TapResult
    ) async throws -> TapResult {
        do {
            return try await body(try currentSession())
        } catch PaymentCardReaderSession.ReadError.readerSessionExpired {
            try await initializeOrLeave()
        } catch PaymentCardReaderSession.ReadError.readerTokenExpired {
            try await initializeOrLeave()
        } catch PaymentCardReaderSession.ReadError.noReaderSession {
            // Another caller has prepared the reader in the meantime.
            try await initializeOrLeave()
        }
        return try await body(try currentSession())
    }

    /// Initializes the service; if the task is canceled, ``initialize()`` continues without a wait for it.
    private func initializeOrLeave() async throws {
        let initialization = Task { try await initialize() }
        let (end, continuation) = AsyncStream.makeStream(of: Void.self)
        Task {
            _ = await initialization.result
            continuation.finish()
        }
        for await _ in end {}
        guard !Task.isCancelled else { throw PaymentCardReaderSession.ReadError.readCancelled }
        try await initialization.value
    }

    /// Ends the wait for a card, even one that has not begun because the reader is being prepared.
    ///
    /// - Returns: true if it ended, once that is certain.  A read that has detected a card continues to its end.
    @discardableResult public func cancelRead() async -> Bool {
        let reads = Array(reads.values)
        for read in reads { read.cancel() }
        var isCancelled = false
        for read in reads {
            guard case .failure(PaymentCardReaderSession.ReadError.readCancelled) = await read.result else { continue }
            isCancelled = true
        }
        return isCancelled
    }

    private func currentSession() throws -> PaymentCardReaderSession {
        guard !Task.isCancelled else { throw PaymentCardReaderSession.ReadError.readCancelled }
        guard !isSuspended else { throw PaymentCardReaderSession.ReadError.readFromBackgroundError }
        guard let session else { throw TapToPayError.notInitialized }
        return session
    }

    // MARK: Sleep

    /// Ends the wait for a card before the machine sleeps.  No card is read until ``resume()``.
    public func suspend() async {
        isSuspended = true
        let ended = session
        session = nil
        for read in reads.values { read.cancel() }
        _ = try? await ended?.cancelRead()
    }

    /// Prepares the reader after the machine woke, like ``initialize()``.
    public func resume() async throws {
        isSuspended = false
        try await initialize()
    }
}

extension PaymentServiceProvider {
    /// Fetches a token.
    ///
    /// - Throws: ``PaymentServiceError/noAnswer(_:)`` when the time is over.
    package func fetchReaderToken(within limit: Duration) async throws -> String {
        try await waiting(atMost: limit, or: PaymentServiceError.noAnswer("no reader token within \(limit)")) {
            try await fetchReaderToken()
        }
    }
}

extension PaymentCardReader {
    /// Records that the token's merchant accepts the terms, unless that is already recorded.
    func acceptTerms(of token: Token) async throws {
        guard try await !isAccountLinked(using: token) else { return }
        do { try await linkAccount(using: token) } catch PaymentCardReaderError.accountAlreadyLinked {}
    }
}

extension PaymentCardReaderSession {
    /// Waits for a card that can pay.
    ///
    /// - Parameter attachment: the application's data, which a storing session keeps with the payment; nil for none.
    /// - Throws: in addition ``TapToPayError/anotherInterfaceNeeded``.
    func successfulRead(
        _ request: PaymentCardTransactionRequest, attachment: Data? = nil
    ) async throws -> PaymentCardReadResult {
        do {
            return try await read(request, attachment: attachment).successful()
        } catch is AnotherInterfaceNeeded {
            throw TapToPayError.anotherInterfaceNeeded
        }
    }

    /// Waits for a phone with passes, or for a card that can pay.
    ///
    /// - Throws: in addition ``TapToPayError/anotherInterfaceNeeded``.
    func successfulRead(
        _ request: PaymentCardTransactionRequest, _ passes: VASRequest, stopsOnPass: Bool,
        pricing: @escaping @Sendable (VASReadResult?) async throws -> Decimal
    ) async throws -> TapResult {
        do {
            var tap = try await read(request, passes, stopsOnPass: stopsOnPass, pricing: pricing)
            tap.payment = try tap.payment?.successful()
            return tap
        } catch is AnotherInterfaceNeeded {
            throw TapToPayError.anotherInterfaceNeeded
        }
    }
}

extension PaymentCardReadResult {
    /// Returns the result of a card that can pay.
    ///
    /// - Throws: `ReadError` or ``TapToPayError`` for a card that did not pay, which
    ///   `PaymentCardReader.Options.includeErrorInReadResult` makes a result.
    func successful() throws -> PaymentCardReadResult {
        switch outcome {
        case .success: self
        case .cardDeclined: throw PaymentCardReaderSession.ReadError.paymentCardDeclined
        case .failure where needsAnotherInterface: throw TapToPayError.anotherInterfaceNeeded
        case .failure: throw PaymentCardReaderSession.ReadError.paymentReadFailed
        }
    }
}
