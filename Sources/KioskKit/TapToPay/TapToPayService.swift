import Foundation
public import ProximityReader
import Waiting

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
    /// How often a token was asked for.
    private(set) var fetches = 0
    private var isSuspended = false
    let pauses: [Duration]
    let reversalPause: Duration
    let answerTime: Duration
    let settlingTime: Duration
    /// Those that have not come to their end.
    private var reads: [UUID: Task<PaymentCardReadResult, any Error>] = [:]

    let journal: PaymentJournal
    /// By idempotency key: what was asked for and not answered, or has to be taken back.
    var unsettled: [String: OpenPayment] = [:]
    /// Asks again for what remains to be taken back.
    var sweep: Task<Void, Never>?
    let decided: (@Sendable (UnsettledPayment, PaymentResult) async -> Void)?

    /// - Parameters:
    ///   - pauses: how long to wait before a payment service that did not answer is asked again, each time.
    ///   - reversalPause: how long to wait, after those, before it is asked again for what has to be taken back.
    ///   - answerTime: how long each answer of the payment service is waited for.
    ///   - settlingTime: how long ``initialize()`` waits for what an earlier run has left to be settled; it goes on in the
    ///     background.
    ///   - decided: for the application's own books: told of each decision before whoever has asked for it, and again by the
    ///     next run of the program if this one ends meanwhile: at least once each.  Also of payments that an earlier run asked
    ///     for and did not learn the outcome of.  Nil: those payments are taken back.
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
        self.reader = reader
        self.pauses = pauses
        self.reversalPause = reversalPause
        self.answerTime = answerTime
        self.settlingTime = settlingTime
        self.decided = decided
        journal = PaymentJournal(folder: reader.terminal.folder.appending(path: "payments"), disk: disk)
    }

    deinit { sweep?.cancel() }

    /// Finds the reader, fetches a token, records that its merchant accepts the terms if need be, and prepares the reader.
    /// A session that is still good, of a reader that was gone meanwhile, is kept: no token is fetched for it.
    ///
    /// Called while it is under way, it waits for the end of that.  What an earlier run of the program has left unsettled is
    /// settled before, as far as the payment service answers: see ``unsettledPayments``.
    ///
    /// - Throws: `PaymentCardReaderError`; what the payment service throws; `PaymentServiceError.noAnswer` if it has given no
    ///   token within a minute.
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
        // A reader that was gone has come back: nobody needs another token.
        if let session, await session.isGood { return session }
        fetches += 1
        let token = PaymentCardReader.Token(rawValue: try await psp.fetchReaderToken(within: .seconds(60)))
        try await reader.acceptTerms(of: token)
        return try await reader.prepare(using: token)
    }

    // MARK: Reads

    /// Waits for a card.  Cancelling the task ends the wait.
    ///
    /// - Returns: a card that can pay.
    /// - Throws: ``TapToPayError/notInitialized``, `PaymentCardReaderSession.ReadError`, `PaymentCardReaderError`.
    public func read(_ request: PaymentCardTransactionRequest) async throws -> PaymentCardReadResult {
        let id = UUID()
        let read = Task { try await readCard(request) }
        reads[id] = read
        defer { reads[id] = nil }
        return try await withTaskCancellationHandler {
            try await read.value
        } onCancel: {
            read.cancel()
        }
    }

    private func readCard(_ request: PaymentCardTransactionRequest) async throws -> PaymentCardReadResult {
        do {
            return try await currentSession().successfulRead(request)
        } catch PaymentCardReaderSession.ReadError.readerSessionExpired {
            try await initializeOrLeave()
        } catch PaymentCardReaderSession.ReadError.readerTokenExpired {
            try await initializeOrLeave()
        } catch PaymentCardReaderSession.ReadError.noReaderSession {
            // Somebody has prepared the reader meanwhile.
            try await initializeOrLeave()
        }
        return try await currentSession().successfulRead(request)
    }

    /// As ``initialize()``, which goes on where the task is cancelled, and is not waited for any longer.
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

    /// Ends the wait for a card, also one that has not begun because the reader is being made ready.
    ///
    /// - Returns: whether it did, when that is certain.  A read whose card has been detected goes on to its end.
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

    /// Ends the wait for a card: the machine goes to sleep.  No card is read until ``resume()``.
    public func suspend() async {
        isSuspended = true
        let ended = session
        session = nil
        for read in reads.values { read.cancel() }
        _ = try? await ended?.cancelRead()
    }

    /// The machine is awake: as ``initialize()``.
    public func resume() async throws {
        isSuspended = false
        try await initialize()
    }
}

extension PaymentServiceProvider {
    /// - Throws: ``PaymentServiceError/noAnswer(_:)`` when the time is over.
    package func fetchReaderToken(within limit: Duration) async throws -> String {
        try await waiting(atMost: limit, or: PaymentServiceError.noAnswer("no reader token within \(limit)")) {
            try await fetchReaderToken()
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

extension PaymentCardReaderSession {
    /// Waits for a card that can pay.
    ///
    /// - Parameter attachment: the application's own, which a session that stores keeps with the payment; nil: nothing.
    /// - Throws: also ``TapToPayError/anotherInterfaceNeeded``.
    func successfulRead(
        _ request: PaymentCardTransactionRequest, attachment: Data? = nil
    ) async throws -> PaymentCardReadResult {
        do {
            return try await read(request, attachment: attachment).successful()
        } catch is AnotherInterfaceNeeded {
            throw TapToPayError.anotherInterfaceNeeded
        }
    }
}

extension PaymentCardReadResult {
    /// - Throws: `ReadError` or ``TapToPayError`` for a card that did not pay, which `PaymentCardReader.Options.includeErrorInReadResult` makes a
    ///   result.
    func successful() throws -> PaymentCardReadResult {
        switch outcome {
        case .success: self
        case .cardDeclined: throw PaymentCardReaderSession.ReadError.paymentCardDeclined
        case .failure where needsAnotherInterface: throw TapToPayError.anotherInterfaceNeeded
        case .failure: throw PaymentCardReaderSession.ReadError.paymentReadFailed
        }
    }
}
