public import Foundation
import ProximityReader
import SmartCard
import Synchronization
import Waiting

/// What a checkout needs of whatever takes payments, by tap or otherwise.
public protocol PaymentProcessing: Sendable {
    /// Whether a payment can be made now.
    var canMakePayments: Bool { get async }

    /// One attempt to take a payment.
    ///
    /// - Returns: its states, for one consumer; ends after `completed` or `cancelled`.  Who stops consuming before cancels
    ///   the attempt.
    func processPayment(_ amount: Decimal, currencyCode: String) -> AsyncStream<TapTransactionState>
}

/// Is told of the states of every attempt, in their order, on no thread in particular.
public protocol TapTransactionDelegate: AnyObject, Sendable {
    func tapTransactions(
        _ transactions: TapTransactions, didRead payment: TapPayment, confirmation: TapConfirmation)
    func tapTransactions(_ transactions: TapTransactions, didComplete outcome: TapOutcome)
    func tapTransactions(_ transactions: TapTransactions, didCancel error: any Error)
}

/// Payments by tap: one attempt at a time, each a stream of states that ends.
///
///     for await state in transactions.processPayment(12.34, currencyCode: "EUR") {
///         switch state {
///         case .confirmingPayment(let payment, let confirmation):
///             await service.authorise(payment, answering: confirmation)
///         case .completed(let outcome): show(outcome)
///         case .cancelled(let error): show(error)
///         }
///     }
public final class TapTransactions: PaymentProcessing {
    private let service: TapToPayService
    private let networks: Set<PaymentNetwork>
    private let confirmationTime: Duration
    /// The one that is under way.
    private let current = Mutex<Attempt?>(nil)
    private let delegates = Mutex<[WeakDelegate]>([])
    /// First the state of the last attempt, if it has one and its confirmation is still held by somebody.
    private let states = Multicast<TapTransactionState>(keeping: .all(upTo: 1024)) { state in
        guard case .confirmingPayment(let payment, let confirmation) = state else { return { state } }
        return { [weak confirmation] in confirmation.map { .confirmingPayment(payment, $0) } }
    }

    /// Can be cancelled until a card was read for it.
    private final class Attempt: Sendable {
        private enum Phase {
            case reading
            case cancelled
            case read
        }
        private let state = Mutex<(phase: Phase, task: Task<Void, Never>?)>((.reading, nil))

        /// - Parameter task: what performs it.
        func perform(_ task: Task<Void, Never>) {
            let isCancelled = state.withLock { state in
                state.task = task
                return state.phase == .cancelled
            }
            if isCancelled { task.cancel() }
        }

        /// - Returns: whether it is.
        func cancel() -> Bool {
            let (isCancelled, task) = state.withLock { state in
                if state.phase == .reading { state.phase = .cancelled }
                return (state.phase == .cancelled, state.task)
            }
            if isCancelled { task?.cancel() }
            return isCancelled
        }

        /// - Throws: `ReadError.readCancelled`
        func hasRead() throws {
            try state.withLock { state in
                guard state.phase == .reading else { throw PaymentCardReaderSession.ReadError.readCancelled }
                state.phase = .read
            }
        }
    }

    private struct WeakDelegate: Sendable {
        weak var value: (any TapTransactionDelegate)?
        let id: ObjectIdentifier
    }

    /// - Parameter networks: whose cards the merchant accepts.
    /// - Parameter confirmationTime: how long a card that was read waits for ``TapConfirmation/complete(_:)``.  Longer than the
    ///   payment service may take, however often it is asked.
    public init(
        _ service: TapToPayService, networks: Set<PaymentNetwork> = Set(PaymentNetwork.allCases),
        confirmationTime: Duration = .seconds(180)
    ) {
        self.service = service
        self.networks = networks
        self.confirmationTime = confirmationTime
    }

    /// Whether a reader is attached, and its terminal has an application of one of the networks.
    public var canMakePayments: Bool {
        get async {
            guard hasApplication else { return false }
            return (try? await service.reader.readerIdentifier) != nil
        }
    }

    private var hasApplication: Bool {
        service.reader.terminal.applications.contains { application in networks.contains { $0.has(application) } }
    }

    // MARK: Attempts

    /// One attempt to take a payment.
    ///
    /// While another is under way it ends at once with `cancelled` and `ReadError.readerSessionBusy`.
    public func processPayment(_ amount: Decimal, currencyCode: String) -> AsyncStream<TapTransactionState> {
        let (stream, continuation) = AsyncStream.makeStream(of: TapTransactionState.self)
        let attempt = Attempt()
        let isFree = current.withLock { current in
            guard current == nil else { return false }
            current = attempt
            return true
        }
        guard isFree else {
            continuation.yield(.cancelled(PaymentCardReaderSession.ReadError.readerSessionBusy))
            continuation.finish()
            return stream
        }
        states.forget()
        let task = Task {
            do {
                let payment = try await read(amount, currencyCode)
                // A card that was found is read to its end, whoever has gone.
                guard !Task.isCancelled else { throw PaymentCardReaderSession.ReadError.readCancelled }
                try attempt.hasRead()
                let answer = TapAnswer()
                // Held by those who are told, and not here.
                tell(.confirmingPayment(payment, TapConfirmation(answer)), continuation)
                switch await answer.value(within: confirmationTime) {
                case .outcome(let outcome): tell(.completed(outcome), continuation)
                case .cancelled: tell(.cancelled(PaymentCardReaderSession.ReadError.readCancelled), continuation)
                }
            } catch {
                tell(.cancelled(error), continuation)
            }
        }
        attempt.perform(task)
        continuation.onTermination = { reason in
            if case .cancelled = reason { task.cancel() }
        }
        return stream
    }

    private func read(_ amount: Decimal, _ currencyCode: String) async throws -> TapPayment {
        guard hasApplication else { throw PaymentCardReaderSession.ReadError.cardNotSupported }
        try await service.checkWritten()
        let card = try await service.read(PaymentCardTransactionRequest(amount: amount, currencyCode: currencyCode))
        let application = try? AID([UInt8](hex: card.applicationTypeIdentifier ?? ""))
        guard let application, networks.contains(where: { $0.has(application) }) else {
            throw PaymentCardReaderSession.ReadError.cardNotSupported
        }
        return TapPayment(amount: amount, currencyCode: currencyCode, card: card)
    }

    /// Cancels the attempt, as long as no card was read for it: it ends with `cancelled`, at once where there is no card, else
    /// when the card that is there has been read.
    ///
    /// - Returns: whether it does.
    @discardableResult public func cancel() async -> Bool { current.withLock { $0 }?.cancel() ?? false }

    private func tell(_ state: TapTransactionState, _ attempt: AsyncStream<TapTransactionState>.Continuation) {
        states.send(state)
        // Held until the lock is open: what lets go of a delegate may call this object.
        for delegate in delegates.withLock({ $0.compactMap(\.value) }) {
            switch state {
            case .confirmingPayment(let payment, let confirmation):
                delegate.tapTransactions(self, didRead: payment, confirmation: confirmation)
            case .completed(let outcome): delegate.tapTransactions(self, didComplete: outcome)
            case .cancelled(let error): delegate.tapTransactions(self, didCancel: error)
            }
        }
        switch state {
        case .confirmingPayment: attempt.yield(state)
        case .cancelled, .completed:
            // The next attempt begins when everybody has been told of this one's end.
            current.withLock { $0 = nil }
            attempt.yield(state)
            attempt.finish()
        }
    }

    // MARK: All attempts

    /// The states of every attempt: first that which the last attempt is in or ended with, then those to come.
    ///
    /// A stream of the caller's own.  It holds 1,024 states; if there are more that nobody takes, it ends after those, and the
    /// caller begins another.  What it holds untaken are also confirmations: such a payment fails when its time is over, and
    /// not before.
    public var transactionStates: AsyncStream<TapTransactionState> { states.stream() }

    /// Tells `delegate` of every attempt from now on, besides those added before.  It is not kept alive.
    public func add(_ delegate: any TapTransactionDelegate) {
        // As in `tell`.
        _ = delegates.withLock { delegates in
            let held = delegates.map { ($0, $0.value) }
            delegates = held.filter { $0.1 != nil }.map(\.0)
            delegates.append(WeakDelegate(value: delegate, id: ObjectIdentifier(delegate)))
            return held.compactMap(\.1)
        }
    }

    public func remove(_ delegate: any TapTransactionDelegate) {
        let id = ObjectIdentifier(delegate)
        delegates.withLock { $0.removeAll { $0.id == id } }
    }
}
