public import Foundation
import Synchronization

/// A session in which one merchant can read cards, until the token or the session expires.
public class PaymentCardReaderSession: @unchecked Sendable {
    /// An identifier that differs for each session.
    @available(*, deprecated)
    public var id: String { session.id }

    /// Always nil: no version of Linux is deprecated.
    public let currentOSVersionDeprecationDate: Date? = nil

    private let current: Mutex<HeldSession>
    let options: PaymentCardReader.Options
    /// Calls the handler that the session was created with; ends with it.  Set before the session is shared.
    var watch: Task<Void, Never>?

    /// The session that ``prepareAgain()`` replaces.
    var session: HeldSession { current.withLock { $0 } }

    package init(_ session: HeldSession, options: PaymentCardReader.Options) {
        current = Mutex(session)
        self.options = options
    }

    deinit { watch?.cancel() }

    /// Prepares the reader again with the same token, like ``PaymentCardReader/prepare(using:)``.  This object then
    /// stands for the new session.
    package func prepareAgain() async throws {
        let next = try await session.next()
        current.withLock { $0 = next }
    }

    /// True if cards can be read in the session: it is the reader's present one, and neither it nor its token has
    /// expired.
    package var isGood: Bool { get async { await session.isGood } }

    /// The reader's events, as in ``PaymentCardReader/events``.
    package var readerEvents: AsyncStream<PaymentCardReader.Event> { session.events }

    /// Ends the read that is under way.
    ///
    /// - Returns: true if it did.  A read that has detected a card continues.
    /// - Throws: ``ReadError/noReaderSession`` after a newer session has begun.
    public func cancelRead() async throws -> Bool { try await session.cancelRead() }

    /// Waits for a card, and performs the transaction with it.
    ///
    /// Canceling the task ends the wait, as ``cancelRead()`` does.
    ///
    /// A card that still lies on the reader is not read again: the wait begins when it has been removed.
    ///
    /// - Throws: ``ReadError``; ``PaymentCardReaderError`` if the result could not be stored.
    public func readPaymentCard(_ request: PaymentCardTransactionRequest) async throws -> PaymentCardReadResult {
        try await told { try await session.read(.transaction(request), options) }
    }

    /// Waits for a card, and performs the transaction with it, like ``readPaymentCard(_:)``.
    ///
    /// - Parameters:
    ///   - id: the identifier of the result.
    ///   - attachment: the application's data, which a storing session keeps with the payment; nil for none.
    /// - Throws: the errors of ``readPaymentCard(_:)``, and ``AnotherInterfaceNeeded`` unmapped.
    package func read(
        _ request: PaymentCardTransactionRequest, as id: UUID = UUID(), attachment: Data? = nil
    ) async throws -> PaymentCardReadResult {
        try await session.read(.transaction(request), options, as: id, attachment: attachment)
    }

    /// Maps errors that Apple's interface does not have to the closest ones that it has.
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
