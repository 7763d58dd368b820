import Crypto
public import Foundation

/// A stored payment, in the form that the payment service receives.
///
/// Its canonical form consists of `swift-contactless payment 1`, ``id``, ``paymentCardData``, ``generalCardData``, and
/// `attachment` if there is one: UTF-8, each followed by a line feed.
public struct StoredPaymentCardReadResult: Sendable, Encodable, Identifiable {
    /// The identifier of the result.  It is the idempotency key of every request to charge the card.
    public let id: String
    /// The sealed card data, ``PaymentCardReadResult/paymentCardData``.
    public let paymentCardData: String
    /// The general card data, ``PaymentCardReadResult/generalCardData``; empty if there is none.
    public let generalCardData: String
    /// The application's data in Base64; nil if there is none.
    package let attachment: String?
    /// The signature of the canonical form: ECDSA on P-256 with SHA-256, in DER and Base64, by the key of the batch's
    /// leaf certificate.
    public let signature: String
}

/// A batch of payments for the payment service.
///
/// Its canonical form consists of `swift-contactless batch 1`, ``id``, ``count``, and for each payment its `id`, a
/// space and the SHA-256 of its canonical form in lower-case hexadecimal digits: UTF-8, each followed by a line feed.
public struct StoreAndForwardBatch: Sendable, Encodable, Identifiable {
    /// The identifier of the batch.  The same payments have the same one, even in a batch made again after a reset.
    ///
    /// A UUID (RFC 9562, version 8) from the SHA-256 of the payments' `id`, each followed by a line feed.
    public let id: String
    /// The number of payments.
    public let count: Int
    /// The signature of the canonical form: ECDSA on P-256 with SHA-256, in DER and Base64, by the key of the leaf
    /// certificate.  It is made with the batch, and is always the same.
    public let signature: String
    /// The certificate that signed the leaf certificate, DER in Base64.
    public let intermediateCertificate: [String]
    /// The certificate of this machine's key, DER in Base64.
    public let leafCertificate: String
    /// The payments, the oldest first.
    public let payments: [StoredPaymentCardReadResult]
}

/// A deletion token: the payment service's permission to delete a batch that it has taken.
///
/// A JSON Web Token; <doc:StoreAndForward> lists its claims.
public struct StoreAndForwardBatchDeletionToken: RawRepresentable, Hashable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
}

/// The number of stored payments, and the end of the session.
public struct StoreAndForwardStatus: Hashable, Sendable {
    /// The number of payments that are not resolved.
    public let readCount: Int
    /// The time at which the session ends.
    public let expiration: Date
}

extension StoredPaymentCardReadResult {
    var canonicalForm: Data {
        Self.canonicalForm(
            id: id, paymentCardData: paymentCardData, generalCardData: generalCardData, attachment: attachment)
    }

    static func canonicalForm(
        id: String, paymentCardData: String, generalCardData: String, attachment: String?
    ) -> Data {
        let last = attachment.map { "\($0)\n" } ?? ""
        return Data("swift-contactless payment 1\n\(id)\n\(paymentCardData)\n\(generalCardData)\n\(last)".utf8)
    }
}

extension StoreAndForwardBatch {
    static func identifier(of payments: [String]) -> String {
        var bytes = Array(SHA256.hash(data: Data(payments.map { "\($0)\n" }.joined().utf8)).prefix(16))
        // RFC 9562, 5.8: version and variant.
        bytes[6] = bytes[6] & 0x0F | 0x80
        bytes[8] = bytes[8] & 0x3F | 0x80
        return NSUUID(uuidBytes: bytes).uuidString
    }
}
