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
        try await payment { try await session.read(.transaction(request), options) }
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
        try await payment(of: session.read(.transaction(request), options, as: id, attachment: attachment))
    }

    /// Reads passes and a card in one tap, like ``readPaymentCard(_:vasRequest:stopOnVASResult:)``.
    ///
    /// - Parameters:
    ///   - stopsOnPass: true to end as soon as a pass was read.
    ///   - attachment: the application's data, which a storing session keeps with the payment; nil for none.
    ///   - pricing: fixes the amount between pass and payment, at most that of the request; nil keeps that.
    /// - Throws: in addition ``AnotherInterfaceNeeded``, and ``NoAmount`` with an error of `pricing`.
    package func read(
        _ request: PaymentCardTransactionRequest, _ passes: VASRequest, stopsOnPass: Bool, attachment: Data? = nil,
        pricing: (@Sendable (VASReadResult?) async throws -> Decimal)? = nil
    ) async throws -> TapResult {
        try await session.read(
            .transaction(request), options, attachment: attachment,
            passes: try passes.valid(stopsOnPass ? .passesOrPayment : .passesAndPayment, self), pricing: pricing)
    }

    /// Maps errors that Apple's interface does not have to the closest ones that it has.
    private func told(_ read: () async throws -> TapResult) async throws -> TapResult {
        do { return try await read() } catch is AnotherInterfaceNeeded { throw ReadError.cardNotSupported }
    }

    private func payment(_ read: () async throws -> TapResult) async throws -> PaymentCardReadResult {
        try payment(of: try await told(read))
    }

    private func payment(of result: TapResult) throws -> PaymentCardReadResult {
        guard let payment = result.payment else { throw ReadError.paymentReadFailed }
        return payment
    }

    /// Waits for a card, and reads it without a payment.
    ///
    /// - Throws: ``ReadError``.
    public func readPaymentCard(_ request: PaymentCardVerificationRequest) async throws -> PaymentCardReadResult {
        try await payment { try await session.read(.verification(request), options) }
    }

    @available(*, deprecated, message: "Use readPaymentCard(_:) and PaymentCardReader.events")
    public func readPaymentCard(
        _ request: PaymentCardTransactionRequest, eventHandler: ((Event) -> Void)? = nil
    ) async throws -> PaymentCardReadResult {
        try await payment { try await session.read(.transaction(request), options, telling: eventHandler) }
    }

    @available(*, deprecated, message: "Use readPaymentCard(_:) and PaymentCardReader.events")
    public func readPaymentCard(
        _ request: PaymentCardVerificationRequest, eventHandler: ((Event) -> Void)? = nil
    ) async throws -> PaymentCardReadResult {
        try await payment { try await session.read(.verification(request), options, telling: eventHandler) }
    }

    // MARK: Passes

    /// Waits for a phone, and reads its passes.
    ///
    /// A plain card is not read: the wait continues when it is gone.  A phone that is locked is asked again when its
    /// owner has opened it; if it stays in the field and locked, the entries say so.
    ///
    /// - Throws: ``ReadError``, of the case `vasReadFail` for a phone that breaks the protocol.
    public func readVAS(_ request: VASRequest) async throws -> VASReadResult {
        try passes(of: try await session.read(nil, options, passes: try request.valid(.passes, self)))
    }

    /// Waits for a phone or a card, and in one tap reads passes and performs the transaction.
    ///
    /// - Parameters:
    ///   - request: the amount and the kind of transaction.
    ///   - vasRequest: the merchants whose passes are read.
    ///   - stopOnVASResult: true to end as soon as a pass was read, so that there is a payment only without one; false to
    ///     have both.
    /// - Returns: the card, and the passes.  Either is nil if it was not read: no payment after a pass that ends the
    ///   read, by a phone without a card, or by one that left after its pass was read; no passes from a plain card.
    /// - Throws: ``ReadError``; ``PaymentCardReaderError`` if the result could not be stored.
    public func readPaymentCard(
        _ request: PaymentCardTransactionRequest, vasRequest: VASRequest, stopOnVASResult: Bool
    ) async throws -> (PaymentCardReadResult?, VASReadResult?) {
        let result = try await told { try await read(request, vasRequest, stopsOnPass: stopOnVASResult) }
        return (result.payment, result.passes)
    }

    @available(*, deprecated, message: "Use readVAS(_:) and PaymentCardReader.events")
    public func readVAS(
        _ request: VASRequest, eventHandler: ((Event) -> Void)? = nil
    ) async throws -> VASReadResult {
        try passes(
            of: try await session.read(
                nil, options, passes: try request.valid(.passes, self), telling: eventHandler))
    }

    @available(
        *, deprecated, message: "Use readPaymentCard(_:vasRequest:stopOnVASResult:) and PaymentCardReader.events"
    )
    public func readPaymentCard(
        _ request: PaymentCardTransactionRequest, vasRequest: VASRequest, stopOnVASResult: Bool,
        eventHandler: ((Event) -> Void)? = nil
    ) async throws -> (PaymentCardReadResult?, VASReadResult?) {
        let passes = try vasRequest.valid(stopOnVASResult ? .passesOrPayment : .passesAndPayment, self)
        let result = try await told {
            try await session.read(.transaction(request), options, passes: passes, telling: eventHandler)
        }
        return (result.payment, result.passes)
    }

    private func passes(of result: TapResult) throws -> VASReadResult {
        guard let passes = result.passes else { throw ReadError.vasReadFail }
        return passes
    }
}

extension VASRequest {
    /// Validates the request.
    ///
    /// - Throws: `ReadError`.
    fileprivate func valid(
        _ purpose: PassPart.Purpose, _ session: PaymentCardReaderSession
    ) throws -> RequestedPasses {
        try RequestedPasses(
            self, for: purpose, or: session.options.merchants, session.session.terminal.configuration.passes)
    }
}
