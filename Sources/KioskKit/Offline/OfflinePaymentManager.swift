public import Foundation
public import Observation
public import ProximityReader

/// The state of offline payments, taken without a network and forwarded later, for a user interface.
///
/// The configuration must have a `ProximityReaderSystem.StoreAndForwardPolicy`.
@Observable
@MainActor
public final class OfflinePaymentManager {
    /// The number of batches on their way: 0 or 1.
    public private(set) var pendingBatchCount = 0
    /// The number of stored payments, including those of the batch and those that were set aside.
    public private(set) var pendingTransactionCount = 0
    /// True while ``syncPendingTransactions()`` is under way.
    public private(set) var isForwarding = false
    /// The report of the last ``syncPendingTransactions()``, even if it failed; nil before the first.
    public private(set) var lastReport: PaymentForwarder.Report?
    /// The message of the last call's error; nil if it succeeded.
    public private(set) var errorMessage: String?

    private let reader: PaymentCardReader
    private let forwarder: PaymentForwarder
    private let store: PaymentCardReaderStore
    @ObservationIgnored private var session: StoreAndForwardPaymentCardReaderSession?

    /// Creates a manager.
    ///
    /// - Parameters:
    ///   - reader: the reader that stores the payments.
    ///   - forwarder: forwards the payments of `reader` on ``syncPendingTransactions()``.
    /// - Throws: `PaymentCardReaderError.storeAndForwardNotAllowed` if nothing may be stored, and nothing ever was.
    public init(reader: PaymentCardReader, forwarder: PaymentForwarder) throws {
        self.reader = reader
        self.forwarder = forwarder
        store = try reader.fetchPaymentCardReaderStore()
    }

    /// Creates a manager with its own forwarder.
    ///
    /// - Throws: `PaymentCardReaderError.storeAndForwardNotAllowed` if nothing may be stored, and nothing ever was.
    public convenience init(
        psp: any PaymentServiceProvider, reader: PaymentCardReader = PaymentCardReader(),
        pace: PaymentForwarder.Pace = .init()
    ) throws {
        try self.init(
            reader: reader,
            forwarder: PaymentForwarder(try reader.fetchPaymentCardReaderStore(), to: psp, pace: pace))
    }

    /// Prepares the reader to store payments: with `token`, if it is valid; otherwise after the last online
    /// preparation.  Records that the merchant accepts the terms, if necessary.
    ///
    /// - Throws: `PaymentCardReaderError`.
    public func initialize(token: PaymentCardReader.Token) async throws {
        try await noting {
            do { try await reader.acceptTerms(of: token) } catch PaymentCardReaderError.tokenExpired {}
            session = try await StoreAndForwardPaymentCardReaderSession(reader: reader, token: token)
            try await count()
        }
    }

    /// Waits for a card, and stores the payment, which is on the disk when this returns.
    ///
    /// - Parameters:
    ///   - amount: in the currency's major unit.
    ///   - currency: an ISO 4217 code.
    ///   - attachment: the application's data, such as its order.  The store seals it with the payment, the payment
    ///     service receives it in the batch, and the outcome returns it.  Apple's interface, and so
    ///     `readPaymentCard(_:)`, has no attachment.
    /// - Returns: the result of the read.  Its `id` identifies the payment in the ledger, in the batch, and at the
    ///   payment service.
    /// - Throws: ``TapToPayError/notInitialized``, `PaymentCardReaderSession.ReadError`, `PaymentCardReaderError`.
    ///   Nothing is stored then.
    @discardableResult
    public func acceptPayment(
        amount: Decimal, currency: String, attachment: Data? = nil
    ) async throws -> PaymentCardReadResult {
        let result = try await noting {
            guard let session else { throw TapToPayError.notInitialized }
            return try await session.successfulRead(
                PaymentCardTransactionRequest(amount: amount, currencyCode: currency), attachment: attachment)
        }
        // The payment is taken, even if counting fails.
        try? await count()
        return result
    }

    /// Forwards the stored payments: see ``PaymentForwarder/forward()``, also for its errors.
    public func syncPendingTransactions() async throws {
        isForwarding = true
        defer { isForwarding = false }
        do {
            lastReport = try await noting { try await forwarder.forward() }
        } catch {
            lastReport = await forwarder.lastReport
            try? await count()
            throw error
        }
        try await refreshStatus()
    }

    /// Counts the stored payments again: others may store and forward, too.
    ///
    /// - Throws: `PaymentCardReaderStore.StoreError`.
    public func refreshStatus() async throws { try await noting { try await count() } }

    private func count() async throws {
        let status = try await store.status
        pendingBatchCount = status.batchCount
        pendingTransactionCount = status.totalTransactionCount
    }

    private func noting<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            let value = try await body()
            errorMessage = nil
            return value
        } catch {
            errorMessage = error.localizedDescription
            throw error
        }
    }
}
