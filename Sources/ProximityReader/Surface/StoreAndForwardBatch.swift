import Crypto
public import Foundation

/// A payment that is stored, as the payment service gets it.
///
/// Its canonical form is `swift-contactless payment 1`, ``id``, ``paymentCardData``, ``generalCardData``, and where there is one
/// `attachment`, in UTF-8, each followed by a line feed.
public struct StoredPaymentCardReadResult: Sendable, Encodable, Identifiable {
    /// The result's.  It is the idempotency key with which the payment service is asked to charge the card, each time.
    public let id: String
    /// Sealed, as ``PaymentCardReadResult/paymentCardData``.
    public let paymentCardData: String
    /// As ``PaymentCardReadResult/generalCardData``; empty if there was nothing.
    public let generalCardData: String
    /// The application's own, in Base64; nil if there is none.
    package let attachment: String?
    /// Of the canonical form: ECDSA on P-256 with SHA-256, in DER and Base64, by the key of the batch's leaf certificate.
    public let signature: String
}

/// Payments on their way to the payment service.
///
/// Its canonical form is `swift-contactless batch 1`, ``id``, ``count``, and for each payment its `id`, a space and the
/// SHA-256 of its canonical form in lower-case hexadecimal digits, in UTF-8, each followed by a line feed.
public struct StoreAndForwardBatch: Sendable, Encodable, Identifiable {
    /// The same payments have the same, also in a batch that is made anew after a reset.
    ///
    /// A UUID (RFC 9562, version 8): of the SHA-256 of the payments' `id`, each followed by a line feed.
    public let id: String
    /// The number of payments.
    public let count: Int
    /// Of the canonical form: ECDSA on P-256 with SHA-256, in DER and Base64, by the key of the leaf certificate.  Made
    /// with the batch, and the same whenever it is fetched.
    public let signature: String
    /// DER in Base64: the certificate that signed the leaf certificate.
    public let intermediateCertificate: [String]
    /// DER in Base64: the certificate of this machine's key.
    public let leafCertificate: String
    /// The oldest first.
    public let payments: [StoredPaymentCardReadResult]
}

/// What the payment service gives for a batch that it has taken: the right to delete it here.
///
/// A JSON web token, as the page on ProximityReader has it.
public struct StoreAndForwardBatchDeletionToken: RawRepresentable, Hashable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
}

/// How much is stored, and for how long more can be.
public struct StoreAndForwardStatus: Hashable, Sendable {
    /// The number of payments that are not resolved.
    public let readCount: Int
    /// When the session ends.
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

    static func canonicalForm(id: String, payments: [StoreLedger.Payment]) -> Data {
        Data(
            ("swift-contactless batch 1\n\(id)\n\(payments.count)\n"
                + payments.map { "\($0.id) \($0.hash)\n" }.joined()).utf8)
    }
}
