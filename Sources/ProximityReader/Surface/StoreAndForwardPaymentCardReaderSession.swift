/// The right to read cards while there is no network: each payment is stored, to be forwarded later.
///
/// It takes what ``ProximityReaderSystem/StoreAndForwardPolicy`` allows.  A read has been stored, on the disk, when it
/// returns.
public class StoreAndForwardPaymentCardReaderSession: PaymentCardReaderSession, @unchecked Sendable {
    /// Takes the last payment back: within 60 seconds, and if it is in no batch.
    ///
    /// - Throws: ``PaymentCardReaderSession/ReadError`` of the cases `storeAndForwardDeclineFailed` and
    ///   `storeAndForwardResultNotFound`, the latter if it was taken back before.
    public func decline() async throws { try await session.decline() }

    /// - Throws: ``PaymentCardReaderError``.
    public func status() async throws -> StoreAndForwardStatus { try await session.status() }
}
