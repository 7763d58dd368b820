public import Foundation
import ProximityReader
import SmartCard
import Synchronization
import Waiting

/// A source of payments for a checkout, by tap or by other means.
public protocol PaymentProcessing: Sendable {
    /// True if a payment can be made now.
    var canMakePayments: Bool { get async }

    /// Starts an attempt to take a payment.
    ///
    /// - Returns: its states, for one consumer; the stream ends after `completed` or `cancelled`.  A consumer that
    ///   stops earlier cancels the attempt.
    func processPayment(_ amount: Decimal, currencyCode: String) -> AsyncStream<TapTransactionState>
}

/// A delegate that receives the states of every attempt in order, on any thread.
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
///             await service.authorize(payment, answering: confirmation)
///         case .completed(let outcome): show(outcome)
///         case .cancelled(let error): show(error)
///         }
///     }
public final class TapTransactions: PaymentProcessing {
    private let service: TapToPayService
    private let networks: Set<PaymentNetwork>
    private let confirmationTime: Duration
    /// The attempt that is under way.
    private let current = Mutex<Attempt?>(nil)
    private let delegates = Mutex<[WeakDelegate]>([])
    /// Begins with the state of the last attempt, if it has one and its confirmation still exists.
    private let states = Multicast<TapTransactionState>(keeping: .all(upTo: 1024)) { state in
        guard case .confirmingPayment(let payment, let confirmation) = state else { return { state } }
        return { [weak confirmation] in confirmation.map { .confirmingPayment(payment, $0) } }
    }

    /// An attempt, which can be canceled until a card was read for it.
    private final class Attempt: Sendable {
        private enum Phase {
            case reading
            case cancelled
            case read
        }
        private let state = Mutex<(phase: Phase, task: Task<Void, Never>?)>((.reading, nil))

        /// Sets the task that performs the attempt.
        ///
        /// - Parameter task: the task.
        func perform(_ task: Task<Void, Never>) {
            let isCancelled = state.withLock { state in
                state.task = task
                return state.phase == .cancelled
            }
            if isCancelled { task.cancel() }
        }

        /// Cancels the attempt.
        ///
        /// - Returns: true if it is canceled.
        func cancel() -> Bool {
            let (isCancelled, task) = state.withLock { state in
                if state.phase == .reading { state.phase = .cancelled }
                return (state.phase == .cancelled, state.task)
            }
            if isCancelled { task?.cancel() }
            return isCancelled
        }

        /// Records that a card was read.
        ///
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

    /// Creates a source of payments.
    ///
    /// - Parameters:
    ///   - service: charges the cards.
    ///   - networks: the networks whose cards the merchant accepts.
    ///   - confirmationTime: the time for which a card that was read waits for ``TapConfirmation/complete(_:)``.  It
    ///     must exceed the time of the payment service, including all repetitions.
    public init(
        _ service: TapToPayService, networks: Set<PaymentNetwork> = Set(PaymentNetwork.allCases),
        confirmationTime: Duration = .seconds(180)
    ) {
        self.service = service
        self.networks = networks
        self.confirmationTime = confirmationTime
    }

    /// True if a reader is attached, and its terminal has an application of one of the networks.
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

    /// Starts an attempt to take a payment.
    ///
    /// During another attempt it ends at once with `cancelled` and `ReadError.readerSessionBusy`.
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
                // A card that was found is read to its end, even if the consumer has gone.
                guard !Task.isCancelled else { throw PaymentCardReaderSession.ReadError.readCancelled }
                try attempt.hasRead()
                let answer = TapAnswer()
                // The receivers retain it; this object does not.
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

    /// Cancels the attempt, unless a card was read for it.  It ends with `cancelled`: at once without a card,
    /// otherwise when the present card has been read.
    ///
    /// - Returns: true if it is canceled.
    @discardableResult public func cancel() async -> Bool { current.withLock { $0 }?.cancel() ?? false }

    private func tell(_ state: TapTransactionState, _ attempt: AsyncStream<TapTransactionState>.Continuation) {
        states.send(state)
        // Retained until the lock is released: a delegate's end may call this object.
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
            // The next attempt begins when everybody knows of this one's end.
            current.withLock { $0 = nil }
            attempt.yield(state)
            attempt.finish()
        }
    }

    // MARK: All attempts

    /// The states of every attempt: first the state of the present or last attempt, then each further one.
    ///
    /// Each access returns a new stream.  It buffers 1,024 states; if a consumer falls further behind, the stream ends
    /// after those, and the consumer starts another.  Buffered states include confirmations: such a payment fails when
    /// its time is over, and not before.
    public var transactionStates: AsyncStream<TapTransactionState> { states.stream() }

    /// Adds a delegate, which receives every attempt from now on.  It is not retained.
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
