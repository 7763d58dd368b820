/// A session for reading cards while there is no network: each payment is stored, and forwarded later.
///
/// It accepts the payments that ``ProximityReaderSystem/StoreAndForwardPolicy`` allows.  When a read returns, its
/// payment is on the disk.
public class StoreAndForwardPaymentCardReaderSession: PaymentCardReaderSession, @unchecked Sendable {
    /// Withdraws the last payment, within 60 seconds and as long as it is in no batch.
    ///
    /// - Throws: ``PaymentCardReaderSession/ReadError`` of the cases `storeAndForwardDeclineFailed` and
    ///   `storeAndForwardResultNotFound`, the latter if it was already withdrawn.
    public func decline() async throws { try await session.decline() }

    /// Returns the number of stored payments, and the end of the session.
    ///
    /// - Throws: ``PaymentCardReaderError``.
    public func status() async throws -> StoreAndForwardStatus { try await session.status() }
}
