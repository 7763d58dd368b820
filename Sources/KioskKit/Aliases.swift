// Who imports this module has these two, too, as with Apple's.
@_exported public import Foundation
@_exported public import ProximityReader

// Names that integration guides use for things of Apple's module, and Apple does not: source that is written after such a
// guide compiles with `import KioskKit` added to it.

extension PaymentCardReaderSession {
    /// As `PaymentCardReader.prepare(using:)`.
    ///
    /// A session that stores is prepared so, if the token has not expired, and then as
    /// `PaymentCardReader.prepareStoreAndForward()` has it.
    ///
    /// - Throws: ``ProximityReader/PaymentCardReaderError``.
    public convenience init(reader: PaymentCardReader, token: PaymentCardReader.Token) async throws {
        // Which of the two it is, is known here alone: the subclass inherits this, and no extension can override it.
        guard Self.self is StoreAndForwardPaymentCardReaderSession.Type else {
            self.init(try await reader.terminal.prepare(using: token), options: reader.options)
            return
        }
        do {
            _ = try await reader.terminal.prepare(using: token)
        } catch PaymentCardReaderError.tokenExpired {
            // There may have been a preparation that payments can be stored after.
        }
        self.init(try await reader.terminal.prepareStoreAndForward(), options: reader.options)
    }

    /// Makes the reader ready again, with the token of before.
    ///
    /// - Throws: ``ProximityReader/PaymentCardReaderError``, of the case `tokenExpired` if a new token is due.
    public func prepare() async throws { try await prepareAgain() }

    /// As `PaymentCardReader.events`: a stream of the caller's own.
    public var events: AsyncStream<PaymentCardReader.Event> { readerEvents }
}

extension PaymentCardTransactionRequest {
    /// As `PaymentCardTransactionRequest.init(amount:currencyCode:for:)`.
    public init(amount: Decimal, currencyCode: String, type: TransactionType) {
        self.init(amount: amount, currencyCode: currencyCode, for: type)
    }
}

extension PaymentCardReader.Event {
    /// `PaymentCardReader.Event.readyForTap`
    public static var ready: Self { .readyForTap }

    /// Whether both are of one case.  What a case carries is not looked at.
    public static func ~= (pattern: Self, value: Self) -> Bool { pattern.name == value.name }
}

extension PaymentCardReaderSession.ReadError {
    /// `PaymentCardReaderSession.ReadError.readCancelled`
    public static var cancelled: Self { .readCancelled }
    /// `PaymentCardReaderSession.ReadError.noReaderSession`
    public static var notReady: Self { .noReaderSession }

    /// Whether both are of one case.  What a case carries is not looked at.
    public static func ~= (pattern: Self, value: Self) -> Bool { pattern.errorName == value.errorName }
}

extension PaymentCardReaderError {
    /// `PaymentCardReaderError.backgroundRequestNotAllowed`
    public static var backgrounded: Self { .backgroundRequestNotAllowed }

    /// Whether both are of one case.  What a case carries is not looked at.
    public static func ~= (pattern: Self, value: Self) -> Bool { pattern.errorName == value.errorName }
}
