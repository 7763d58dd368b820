public import Foundation
public import ProximityReader
import Synchronization

/// How a payment by tap stands.
///
/// One attempt has one of three courses: `confirmingPayment`, `completed`; `cancelled`; `confirmingPayment`, `cancelled`.
public enum TapTransactionState: Sendable {
    /// There was no payment: no card was read, or the attempt was cancelled before it was confirmed.  What is asked of the
    /// payment service at that moment, ``TapConfirmation/complete(_:)`` will not take.
    case cancelled(any Error)
    /// A card was read and wants to pay.  To be confirmed once, with what the payment service says.
    case confirmingPayment(TapPayment, TapConfirmation)
    case completed(TapOutcome)
}

/// What a card was read for, and what it gave.
public struct TapPayment: Sendable {
    /// In the currency's major unit.
    public let amount: Decimal
    /// Of ISO 4217.
    public let currencyCode: String
    public let card: PaymentCardReadResult
}

/// What came of a payment.
public enum TapOutcome: Sendable, Hashable {
    case approved
    /// - Parameter reason: for a person; nil if there is none.
    case declined(reason: String?)
    case failed(TapFailure)

    public init(_ result: PaymentResult) {
        self = result.status == .approved ? .approved : .declined(reason: result.message)
    }

    /// Of what ``TapToPayService/authorise(_:amount:currency:)`` has thrown.
    public init(_ error: any Error) {
        if case TapToPayError.outcomeUnknown(let key) = error {
            self = .failed(.outcomeUnknown(key: key))
        } else {
            self = .failed(.service(error.localizedDescription))
        }
    }
}

/// Why a payment has neither been approved nor declined, as far as is known.
public enum TapFailure: Sendable, Hashable {
    /// The confirmation was let go of without an answer.
    case unanswered
    /// The confirmation was not answered in time.
    case timedOut
    /// The payment service has decided nothing: nobody has paid.  Why, for a person.
    case service(String)
    /// The payment service was asked and did not answer: the customer may have paid.  See
    /// ``TapToPayError/outcomeUnknown(key:)``.
    case outcomeUnknown(key: String)
}

extension TapFailure: CustomStringConvertible {
    public var description: String {
        switch self {
        case .unanswered: "nobody has confirmed the payment"
        case .timedOut: "the payment was not confirmed in time"
        case .service(let reason): reason
        case .outcomeUnknown(let key): TapToPayError.outcomeUnknown(key: key).description
        }
    }
}

/// The one answer to ``TapTransactionState/confirmingPayment(_:_:)``.  May be given from any thread.
///
/// Letting go of every reference without an answer fails the payment as ``TapFailure/unanswered``.
public final class TapConfirmation: Sendable {
    private let answer: TapAnswer

    init(_ answer: TapAnswer) { self.answer = answer }

    /// - Returns: whether this is the attempt's outcome: false if it was answered before, or is over.  A payment that the
    ///   service approved and that this returns false for must be taken back, with ``TapToPayService/reverse(_:)``;
    ///   ``TapToPayService/authorise(_:answering:)`` does all of it.
    public func complete(_ outcome: TapOutcome) -> Bool { answer.give(.outcome(outcome)) }

    /// Keeps the attempt from ending otherwise until ``fulfill(_:)``, which is to follow.
    ///
    /// - Returns: whether it does: false if it was answered before, or is over.
    func reserve() -> Bool { answer.reserve() }

    /// Gives the outcome of a confirmation that was reserved.
    func fulfill(_ outcome: TapOutcome) { answer.give(.outcome(outcome), isReserved: true) }

    /// Whether an answer would be the attempt's outcome now.
    var isAwaited: Bool { answer.isAwaited }

    deinit { answer.give(.outcome(.failed(.unanswered))) }
}

/// What an attempt waits for: the first that is given counts.
final class TapAnswer: Sendable {
    enum Value: Sendable {
        case outcome(TapOutcome)
        case cancelled
    }

    private struct State {
        var value: Value?
        var isReserved = false
        var waiter: CheckedContinuation<Value, Never>?
    }

    private let state = Mutex(State())

    var isAwaited: Bool { state.withLock { $0.value == nil && !$0.isReserved } }

    /// - Returns: whether it is the first: from now on only an answer of ``give(_:isReserved:)`` that says so counts.
    func reserve() -> Bool {
        state.withLock { state in
            guard state.value == nil, !state.isReserved else { return false }
            state.isReserved = true
            return true
        }
    }

    /// - Returns: whether it is the first.
    @discardableResult func give(_ value: Value, isReserved: Bool = false) -> Bool {
        let (isFirst, waiter) = state.withLock { state in
            guard state.value == nil, state.isReserved == isReserved else {
                return (false, nil as CheckedContinuation<Value, Never>?)
            }
            state.value = value
            defer { state.waiter = nil }
            return (true, state.waiter)
        }
        waiter?.resume(returning: value)
        return isFirst
    }

    /// Waits for it; to be called once.  When the time is over, or the task is cancelled, that is the answer.
    func value(within limit: Duration) async -> Value {
        let clock = Task {
            try await Task.sleep(for: limit)
            give(.outcome(.failed(.timedOut)))
        }
        defer { clock.cancel() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                let value = state.withLock { state in
                    if state.value == nil { state.waiter = waiter }
                    return state.value
                }
                if let value { waiter.resume(returning: value) }
            }
        } onCancel: {
            give(.cancelled)
        }
    }
}
