// An import of this module includes these two, as with Apple's.
@_exported public import Foundation
@_exported public import ProximityReader

// Names that integration guides use for Apple's module and that Apple does not have: code written by such a guide
// compiles with an additional `import KioskKit`.

extension PaymentCardReaderSession {
    /// Creates a session, like `PaymentCardReader.prepare(using:)`.
    ///
    /// For a storing session it prepares the reader online, if the token has not expired, and then like
    /// `PaymentCardReader.prepareStoreAndForward()`.
    ///
    /// - Throws: `PaymentCardReaderError`.
    public convenience init(reader: PaymentCardReader, token: PaymentCardReader.Token) async throws {
        // Only here the type is known: the subclass inherits this initializer, and no extension can override it.
        guard Self.self is StoreAndForwardPaymentCardReaderSession.Type else {
            self.init(try await reader.terminal.prepare(using: token), options: reader.options)
            return
        }
        do {
            _ = try await reader.terminal.prepare(using: token)
        } catch PaymentCardReaderError.tokenExpired {
            // There may be an earlier preparation after which payments can be stored.
        }
        self.init(try await reader.terminal.prepareStoreAndForward(), options: reader.options)
    }

    /// Prepares the reader again, with the same token.
    ///
    /// - Throws: `PaymentCardReaderError`, with the case `tokenExpired` if a new token is needed.
    public func prepare() async throws { try await prepareAgain() }

    /// The reader's events, `PaymentCardReader.events`: a new stream for each access.
    public var events: AsyncStream<PaymentCardReader.Event> { readerEvents }
}

extension PaymentCardTransactionRequest {
    /// Creates a request, like `PaymentCardTransactionRequest.init(amount:currencyCode:for:)`.
    public init(amount: Decimal, currencyCode: String, type: TransactionType) {
        self.init(amount: amount, currencyCode: currencyCode, for: type)
    }
}

extension VASRequest {
    /// Creates a request for the pass of one merchant, like `VASRequest.init(vasMerchants:localizedVASType:)`.
    public convenience init(merchantIdentifier: String, localizedDescription: String) {
        self.init(vasMerchants: [Merchant(id: merchantIdentifier)], localizedVASType: localizedDescription)
    }
}

extension PaymentCardReaderSession {
    /// Reads a card, and the passes that are there, in one tap, like
    /// `PaymentCardReaderSession.readPaymentCard(_:vasRequest:stopOnVASResult:)` with `false`.
    ///
    /// - Returns: the card; the passes are its ``ProximityReader/PaymentCardReadResult/vasReadResult``.
    /// - Throws: in addition `ReadError.paymentReadFailed` if there was a pass, and no card.
    public func readPaymentCard(
        _ request: PaymentCardTransactionRequest, vasRequest: VASRequest
    ) async throws -> PaymentCardReadResult {
        let (payment, passes) = try await readPaymentCard(request, vasRequest: vasRequest, stopOnVASResult: false)
        guard var payment else { throw ReadError.paymentReadFailed }
        payment.passes = passes
        return payment
    }
}

extension PaymentCardReadResult {
    /// The passes that ``ProximityReader/PaymentCardReaderSession/readPaymentCard(_:vasRequest:)`` read with the card;
    /// nil if none were read.
    public var vasReadResult: VASReadResult? { passes }
}

extension VASReadResult.ReadEntry {
    /// An alias of `VASReadResult.ReadEntry.id`: the merchant's pass type identifier.
    public var identifier: String { id }
}

extension PaymentCardReader.Event {
    /// An alias of `PaymentCardReader.Event.readyForTap`.
    public static var ready: Self { .readyForTap }

    /// Returns true if both have the same case, whatever their payloads.
    public static func ~= (pattern: Self, value: Self) -> Bool { pattern.name == value.name }
}

extension PaymentCardReaderSession.ReadError {
    /// An alias of `PaymentCardReaderSession.ReadError.readCancelled`.
    public static var cancelled: Self { .readCancelled }
    /// An alias of `PaymentCardReaderSession.ReadError.noReaderSession`.
    public static var notReady: Self { .noReaderSession }

    /// Returns true if both have the same case, whatever their payloads.
    public static func ~= (pattern: Self, value: Self) -> Bool { pattern.errorName == value.errorName }
}

extension PaymentCardReaderError {
    /// An alias of `PaymentCardReaderError.backgroundRequestNotAllowed`.
    public static var backgrounded: Self { .backgroundRequestNotAllowed }

    /// Returns true if both have the same case, whatever their payloads.
    public static func ~= (pattern: Self, value: Self) -> Bool { pattern.errorName == value.errorName }
}
