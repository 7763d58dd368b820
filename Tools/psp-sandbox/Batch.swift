import Crypto
import Foundation
import SwiftASN1
import X509

/// Stored payments, as `StoreAndForwardBatch` encodes them.
struct Batch: Decodable, Sendable {
    struct Stored: Decodable, Sendable {
        let id: String
        let paymentCardData: String
        let generalCardData: String
        let attachment: String?
        let signature: String

        /// The form that ProximityReader's documentation specifies.
        var canonicalForm: String {
            "swift-contactless payment 1\n\(id)\n\(paymentCardData)\n\(generalCardData)\n"
                + (attachment.map { "\($0)\n" } ?? "")
        }
    }

    let id: String
    let count: Int
    let signature: String
    let intermediateCertificate: [String]
    let leafCertificate: String
    let payments: [Stored]

    /// The input of the signature and the hash of a deletion token, as ProximityReader's documentation specifies.
    var canonicalForm: String {
        let lines = payments.map { payment in
            let hash = SHA256.hash(data: Data(payment.canonicalForm.utf8))
            return "\(payment.id) \(hash.map { String(format: "%02x", $0) }.joined())\n"
        }
        return "swift-contactless batch 1\n\(id)\n\(payments.count)\n\(lines.joined())"
    }

    /// - Throws: ``Sandbox/Refusal`` for an invalid batch.
    func check() throws {
        // Line feeds would make another batch's canonical form of it.
        func isName(_ text: String) -> Bool {
            (1...255).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        }
        guard isName(id), payments.allSatisfy({ isName($0.id) }), (1...Self.maximumCount).contains(payments.count),
            count == payments.count, Set(payments.map(\.id)).count == count
        else {
            throw Sandbox.Refusal(
                status: 422, code: "invalid_batch",
                message: """
                    The batch has an id that is not 1 to 255 printable characters, a count that is not that of its \
                    payments, one of them twice, none, or more than \(Self.maximumCount).
                    """)
        }
    }

    private static let maximumCount = 10_000

    /// - Parameter trust: of the terminal; nil for one that is not enrolled: the last certificate is trusted as it comes.
    /// - Throws: ``Sandbox/Refusal`` if a signature is not by the leaf certificate, or the certificate is not the terminal's.
    func verify(_ trust: Terminals.Trust?) async throws {
        do {
            let certificate = try Certificate(base64: leafCertificate)
            guard let root = try trust?.root ?? intermediateCertificate.last.map(Certificate.init(base64:)),
                await certificate.isVouchedFor(by: root, through: intermediateCertificate.dropLast()),
                trust.map({ $0.key == certificate.publicKey }) ?? true,
                let key = P256.Signing.PublicKey(certificate.publicKey)
            else { throw Failure.certificate }
            func verify(_ signature: String, _ form: String) throws {
                guard let bytes = Data(base64Encoded: signature),
                    key.isValidSignature(
                        try P256.Signing.ECDSASignature(derRepresentation: bytes), for: Data(form.utf8))
                else { throw Failure.signature }
            }
            try verify(signature, canonicalForm)
            for payment in payments { try verify(payment.signature, payment.canonicalForm) }
        } catch {
            throw Sandbox.Refusal(
                status: 422, code: "signature",
                message: """
                    A signature is not the leaf certificate's, or that is not the intermediate certificate's or the enrolled \
                    terminal's.
                    """)
        }
    }

    private enum Failure: Error { case certificate, signature }
}
