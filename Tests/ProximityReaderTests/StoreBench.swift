import Crypto
import Foundation
import JWTKit
import ProximityReader

/// A folder that a store is in, with a clock that is set by hand, and the payment service that it belongs to.
final class StoreBench: Sendable {
    static let issuer = "https://payments.example"
    static let reader = "reader-1"

    let folder: URL
    let clock: Bench.Clock
    let service: ES256PrivateKey

    init(service: ES256PrivateKey = ES256PrivateKey(), clock: Bench.Clock = Bench.Clock()) throws {
        (self.service, self.clock) = (service, clock)
        folder = FileManager.default.temporaryDirectory.appending(path: "store-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    func file(_ name: String) -> URL { folder.appending(path: name) }

    func store() -> RecordStore { RecordStore(folder: folder) { [clock] in clock.now } }

    /// One that a reader was prepared with, online.
    func preparedStore() async throws -> RecordStore {
        let store = store()
        try await store.add(
            Preparation(
                issuer: Self.issuer, merchant: "merchant-1", terminalProfile: nil, cardDataKey: nil,
                tokenExpiration: clock.now.addingTimeInterval(48 * 3600), time: clock.now, uptime: 1, boot: "boot-1",
                reader: Self.reader))
        return store
    }

    /// TEST data: nothing in it is sealed.
    static func payment(_ id: String = UUID().uuidString, amount: Decimal = 10) -> RecordStore.Payment {
        RecordStore.Payment(
            id: id, paymentCardData: "sealed-\(id)", generalCardData: "general-\(id)", amount: amount, currency: "EUR",
            issuer: issuer, merchant: "merchant-1")
    }

    /// What a good deletion token says of `batch`, made from what the batch's documentation has for the canonical form.
    func claims(for batch: StoreAndForwardBatch) -> [String: Any] {
        [
            "iss": Self.issuer, "aud": Self.reader, "jti": UUID().uuidString, "bid": batch.id, "cnt": batch.count,
            "hash": base64URL(Data(SHA256.hash(data: Data(canonicalForm(of: batch).utf8)))),
            "iat": clock.now.timeIntervalSince1970, "exp": clock.now.timeIntervalSince1970 + 600,
        ]
    }

    /// ES256 by hand (RFC 7515, section 5.1), so that JWTKit judges what JWTKit has not made.
    func token(
        _ claims: [String: Any], algorithm: String = "ES256", signedBy key: P256.Signing.PrivateKey? = nil,
        type: String = "deletion-token+jwt"
    ) throws -> StoreAndForwardBatchDeletionToken {
        let header = try JSONSerialization.data(
            withJSONObject: ["alg": algorithm, "kid": "service-1", "typ": type], options: .sortedKeys)
        let body = try JSONSerialization.data(withJSONObject: claims, options: .sortedKeys)
        let text = "\(base64URL(header)).\(base64URL(body))"
        let signature = try (key ?? signer()).signature(for: Data(text.utf8)).rawRepresentation
        return .init(rawValue: "\(text).\(base64URL(signature))")
    }

    private func signer() throws -> P256.Signing.PrivateKey {
        try P256.Signing.PrivateKey(pemRepresentation: service.pemRepresentation)
    }

    func verified(_ claims: [String: Any], signedBy key: P256.Signing.PrivateKey? = nil) async throws -> DeletionToken {
        try await DeletionToken(
            token(claims, signedBy: key), by: TokenVerifier(keySet: Bench.keySet(service)), issuer: Self.issuer,
            at: clock.now)
    }
}

/// As the pages say it is made.
func canonicalForm(of payment: StoredPaymentCardReadResult) -> String {
    "swift-contactless payment 1\n\(payment.id)\n\(payment.paymentCardData)\n\(payment.generalCardData)\n"
}

func canonicalForm(of batch: StoreAndForwardBatch) -> String {
    let lines = batch.payments.map { payment in
        let hash = SHA256.hash(data: Data(canonicalForm(of: payment).utf8))
        return "\(payment.id) \(hash.map { String(format: "%02x", $0) }.joined())\n"
    }
    return "swift-contactless batch 1\n\(batch.id)\n\(batch.count)\n\(lines.joined())"
}

func base64URL(_ data: Data) -> String {
    data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
}
