package import Foundation

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

    /// Reads a card for a payment that is stored under an identifier of the caller's.
    ///
    /// - Parameters:
    ///   - id: the result's and the stored payment's; one that is stored already is not stored again, and the read fails.
    ///   - attachment: the application's own, which the store seals and the payment service gets with the payment.
    /// - Throws: as `readPaymentCard(_:)`.
    package func readPaymentCard(
        _ request: PaymentCardTransactionRequest, as id: UUID, attachment: Data
    ) async throws -> PaymentCardReadResult {
        try await session.read(.transaction(request), options, as: id, attachment: attachment)
    }

    /// - Throws: ``PaymentCardReaderError``.
    public func status() async throws -> StoreAndForwardStatus { try await session.status() }
}
