public import Foundation
import Synchronization

/// The right to read cards for one merchant, until the token or the session is over.
public class PaymentCardReaderSession: @unchecked Sendable {
    /// Not stable: another one for each session.
    @available(*, deprecated)
    public var id: String { session.id }

    /// Always nil: no version of Linux is deprecated.
    public let currentOSVersionDeprecationDate: Date? = nil

    private let current: Mutex<HeldSession>
    let options: PaymentCardReader.Options
    /// Tells the handler that the session was made with; ends with it.  Set before anybody else has the session.
    var watch: Task<Void, Never>?

    /// What ``prepareAgain()`` puts another in place of.
    var session: HeldSession { current.withLock { $0 } }

    package init(_ session: HeldSession, options: PaymentCardReader.Options) {
        current = Mutex(session)
        self.options = options
    }

    deinit { watch?.cancel() }

    /// Makes the reader ready again, with the token of before: as ``PaymentCardReader/prepare(using:)``, with this object for
    /// the new session.
    package func prepareAgain() async throws {
        let next = try await session.next()
        current.withLock { $0 = next }
    }

    /// Whether cards can be read in it: it is the reader's, and neither its time nor its token's is over.
    package var isGood: Bool { get async { await session.isGood } }

    /// As ``PaymentCardReader/events``.
    package var readerEvents: AsyncStream<PaymentCardReader.Event> { session.events }

    /// Ends the read that is under way.
    ///
    /// - Returns: whether it did.  A read whose card has been detected goes on.
    /// - Throws: ``ReadError/noReaderSession`` after a newer session has begun.
    public func cancelRead() async throws -> Bool { try await session.cancelRead() }

    /// Waits for a card, and performs the transaction with it.
    ///
    /// Cancelling the task ends the wait as ``cancelRead()`` does.
    ///
    /// A card that was left on the reader is not read again: the wait begins when it has been taken away.
    ///
    /// - Throws: ``ReadError``; ``PaymentCardReaderError`` if the result could not be stored.
    public func readPaymentCard(_ request: PaymentCardTransactionRequest) async throws -> PaymentCardReadResult {
        try await told { try await session.read(.transaction(request), options) }
    }

    /// As ``readPaymentCard(_:)``.
    ///
    /// - Parameters:
    ///   - id: the result's.
    ///   - attachment: the application's own, which a session that stores keeps with the payment; nil: nothing.
    /// - Throws: as ``readPaymentCard(_:)``, and ``AnotherInterfaceNeeded`` as itself.
    package func read(
        _ request: PaymentCardTransactionRequest, as id: UUID = UUID(), attachment: Data? = nil
    ) async throws -> PaymentCardReadResult {
        try await session.read(.transaction(request), options, as: id, attachment: attachment)
    }

    /// Has what Apple has no error for thrown as the one that comes nearest.
    private func told(_ read: () async throws -> PaymentCardReadResult) async throws -> PaymentCardReadResult {
        do { return try await read() } catch is AnotherInterfaceNeeded { throw ReadError.cardNotSupported }
    }

    /// Waits for a card, and reads it without a payment.
    ///
    /// - Throws: ``ReadError``.
    public func readPaymentCard(_ request: PaymentCardVerificationRequest) async throws -> PaymentCardReadResult {
        try await told { try await session.read(.verification(request), options) }
    }

    @available(*, deprecated, message: "Use readPaymentCard(_:) and PaymentCardReader.events")
    public func readPaymentCard(
        _ request: PaymentCardTransactionRequest, eventHandler: ((Event) -> Void)? = nil
    ) async throws -> PaymentCardReadResult {
        try await told { try await session.read(.transaction(request), options, telling: eventHandler) }
    }

    @available(*, deprecated, message: "Use readPaymentCard(_:) and PaymentCardReader.events")
    public func readPaymentCard(
        _ request: PaymentCardVerificationRequest, eventHandler: ((Event) -> Void)? = nil
    ) async throws -> PaymentCardReadResult {
        try await told { try await session.read(.verification(request), options, telling: eventHandler) }
    }
}

extension PaymentCardReaderSession {
    @available(*, deprecated, message: "Use PaymentCardReader.Event")
    public enum Event: Sendable, Hashable {
        case readyForTap
        case cardDetected
        case removeCard
        case completed
        case retry
        case readCancelled
        case readNotCompleted

        /// The case's name.
        public var name: String { "\(self)" }
    }
}
