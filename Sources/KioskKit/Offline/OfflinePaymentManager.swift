public import Foundation
public import Observation
public import ProximityReader

/// Payments that are taken while there is no network, and forwarded when there is: what a screen shows of them.
///
/// The configuration must have a `ProximityReaderSystem.StoreAndForwardPolicy`.
@Observable
@MainActor
public final class OfflinePaymentManager {
    /// The batch that is on its way: 0 or 1.
    public private(set) var pendingBatchCount = 0
    /// The payments that are stored, those of the batch and those that were set aside among them.
    public private(set) var pendingTransactionCount = 0
    /// Whether ``syncPendingTransactions()`` is under way.
    public private(set) var isForwarding = false
    /// What the last ``syncPendingTransactions()`` has come to, also where it failed; nil before the first.
    public private(set) var lastReport: PaymentForwarder.Report?
    /// Why the last call of any kind failed; nil if it did not.
    public private(set) var errorMessage: String?

    private let reader: PaymentCardReader
    private let forwarder: PaymentForwarder
    private let store: PaymentCardReaderStore
    @ObservationIgnored private var session: StoreAndForwardPaymentCardReaderSession?

    /// - Parameters:
    ///   - forwarder: what ``syncPendingTransactions()`` has forward the payments of `reader`.
    /// - Throws: `PaymentCardReaderError.storeAndForwardNotAllowed` if nothing may be stored, and nothing ever was.
    public init(reader: PaymentCardReader, forwarder: PaymentForwarder) throws {
        self.reader = reader
        self.forwarder = forwarder
        store = try reader.fetchPaymentCardReaderStore()
    }

    /// - Throws: `PaymentCardReaderError.storeAndForwardNotAllowed` if nothing may be stored, and nothing ever was.
    public convenience init(
        psp: any PaymentServiceProvider, reader: PaymentCardReader = PaymentCardReader(),
        pace: PaymentForwarder.Pace = .init()
    ) throws {
        try self.init(
            reader: reader,
            forwarder: PaymentForwarder(try reader.fetchPaymentCardReaderStore(), to: psp, pace: pace))
    }

    /// Makes the reader ready to store payments: with `token`, if it is good and has not expired; else after the last
    /// preparation that was made with one.  Records that the merchant accepts the terms, if need be.
    ///
    /// - Throws: `PaymentCardReaderError`.
    public func initialize(token: PaymentCardReader.Token) async throws {
        try await noting {
            do { try await reader.acceptTerms(of: token) } catch PaymentCardReaderError.tokenExpired {}
            session = try await StoreAndForwardPaymentCardReaderSession(reader: reader, token: token)
            try await count()
        }
    }

    /// Waits for a card, and stores the payment: it is on the disk when this returns.
    ///
    /// - Parameter attachment: the application's own, such as its order: the store seals it with the payment, the payment
    ///   service gets it in the batch, and the outcome has it.  Apple's interface, and so `readPaymentCard(_:)`, has no place
    ///   for one.
    /// - Returns: what was read.  Its `id` is the payment's in the ledger, in the batch, and at the payment service.
    /// - Throws: ``TapToPayError/notInitialized``, `PaymentCardReaderSession.ReadError`, `PaymentCardReaderError`.  Nothing is
    ///   stored then.
    @discardableResult
    public func acceptPayment(
        amount: Decimal, currency: String, attachment: Data? = nil
    ) async throws -> PaymentCardReadResult {
        let result = try await noting {
            guard let session else { throw TapToPayError.notInitialized }
            return try await session.successfulRead(
                PaymentCardTransactionRequest(amount: amount, currencyCode: currency), attachment: attachment)
        }
        // The payment is taken, whatever becomes of the count.
        try? await count()
        return result
    }

    /// Forwards what is stored: see ``PaymentForwarder/forward()``, also for what it throws.
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

    /// Counts anew what is stored: other things than this may store and forward.
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
