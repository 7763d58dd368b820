public import Foundation
public import ProximityReader
import Synchronization
import Waiting

/// The state of a payment by tap.
///
/// An attempt takes one of three courses: `confirmingPayment`, `completed`; `cancelled`; `confirmingPayment`,
/// `cancelled`.
public enum TapTransactionState: Sendable {
    /// There was no payment: no card was read, or the attempt was canceled before it was confirmed.
    /// ``TapConfirmation/complete(_:)`` rejects the answer to a request that is under way at that time.
    case cancelled(any Error)
    /// A card was read, to pay.  Confirm it once, with the payment service's decision.
    case confirmingPayment(TapPayment, TapConfirmation)
    case completed(TapOutcome)
}

/// The purpose and the data of a read.
public struct TapPayment: Sendable {
    /// The amount in the currency's major unit.
    public let amount: Decimal
    /// The ISO 4217 code of the currency.
    public let currencyCode: String
    public let card: PaymentCardReadResult
}

/// The outcome of a payment.
public enum TapOutcome: Sendable, Hashable {
    case approved
    /// The payment was declined.
    ///
    /// - Parameter reason: for a person; nil if there is none.
    case declined(reason: String?)
    case failed(TapFailure)

    public init(_ result: PaymentResult) {
        self = result.status == .approved ? .approved : .declined(reason: result.message)
    }

    /// Creates the outcome for an error of ``TapToPayService/authorize(_:amount:currency:)``.
    public init(_ error: any Error) {
        if case TapToPayError.outcomeUnknown(let key) = error {
            self = .failed(.outcomeUnknown(key: key))
        } else {
            self = .failed(.service(error.localizedDescription))
        }
    }
}

/// The reason for which a payment is neither approved nor declined, as far as is known.
public enum TapFailure: Sendable, Hashable {
    /// The confirmation was released without an answer.
    case unanswered
    /// The confirmation was not answered in time.
    case timedOut
    /// The payment service has decided nothing, with a reason for a person: nobody has paid.
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

/// The single answer to ``TapTransactionState/confirmingPayment(_:_:)``, given from any thread.
///
/// If every reference is released without an answer, the payment fails with ``TapFailure/unanswered``.
public final class TapConfirmation: Sendable {
    private let answer: TapAnswer

    init(_ answer: TapAnswer) { self.answer = answer }

    /// Completes the attempt.
    ///
    /// - Returns: true if this is the attempt's outcome; false if it was already answered, or is over.  If the service
    ///   approved a payment for which this returns false, reverse it with ``TapToPayService/reverse(_:)``;
    ///   ``TapToPayService/authorize(_:answering:)`` does all of this.
    public func complete(_ outcome: TapOutcome) -> Bool { answer.give(.outcome(outcome)) }

    /// Keeps the attempt from any other end until ``fulfill(_:)``, which must follow.
    ///
    /// - Returns: true if it does; false if the attempt was already answered, or is over.
    func reserve() -> Bool { answer.reserve() }

    /// Sets the outcome of a reserved confirmation.
    func fulfill(_ outcome: TapOutcome) { answer.give(.outcome(outcome), isReserved: true) }

    /// True if an answer would now be the attempt's outcome.
    var isAwaited: Bool { answer.isAwaited }

    deinit { answer.give(.outcome(.failed(.unanswered))) }
}

/// The answer that an attempt waits for: the first one counts.
final class TapAnswer: Sendable {
    enum Value: Sendable {
        case outcome(TapOutcome)
        case cancelled
    }

    private enum State { case open, reserved, given }

    private let state = Mutex(State.open)
    private let delivery = Delivery<Value>()

    var isAwaited: Bool { state.withLock { $0 == .open } }

    /// Reserves the answer.
    ///
    /// - Returns: true if it is the first: from now on only ``give(_:isReserved:)`` with `isReserved` counts.
    func reserve() -> Bool {
        state.withLock { state in
            guard state == .open else { return false }
            state = .reserved
            return true
        }
    }

    /// Sets the answer.
    ///
    /// - Returns: true if it is the first.
    @discardableResult func give(_ value: Value, isReserved: Bool = false) -> Bool {
        let isFirst = state.withLock { state in
            guard state == (isReserved ? .reserved : .open) else { return false }
            state = .given
            return true
        }
        if isFirst { delivery.deliver(.success(value)) }
        return isFirst
    }

    /// Waits for the answer; called once.  The end of the time, or of the task, is an answer, too.
    func value(within limit: Duration) async -> Value {
        let clock = Task {
            try await Time.sleep(for: limit)
            give(.outcome(.failed(.timedOut)))
        }
        defer { clock.cancel() }
        // No error is delivered.
        return (try? await delivery.receiveToTheEnd { give(.cancelled) }) ?? .cancelled
    }
}
