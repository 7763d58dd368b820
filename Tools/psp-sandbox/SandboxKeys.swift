import CardEncryption
import Foundation
import JWTKit

/// The keys that sign the sandbox's statements.
struct SandboxKeys: Sendable {
    // TEST: a published key.  Trusting it means trusting everyone.
    private static let keyID = "test-payment-service"
    private static let scalar = "Jz3hgC6wPXkw9kLsBrVfP_24fBaaHcfm4apwcZfSwVE"

    static let issuer = "psp-sandbox"
    static let audience = "terminals"

    /// The key to which readers seal card data.
    let cardDataKey: JWEPrivateKey
    private let signer = JWTKeyCollection()

    init(cardDataKey: JWEPrivateKey) async throws {
        self.cardDataKey = cardDataKey
        try await signer.add(ecdsa: ES256PrivateKey(key: Self.scalar), kid: JWKIdentifier(string: Self.keyID))
    }

    /// The public half, as a JSON Web Key Set.
    static let keySet = """
        {"keys":[{"kty":"EC","crv":"P-256","use":"sig","alg":"ES256","kid":"\(keyID)",\
        "x":"A7bzZSKUJQVoRrbhhBeotBS9K9D8EecwZ6pYLsTrD_k","y":"aE9mO7DM_syqfuBYF61tL8VPRBgKoSqG3AciFM2laRs"}]}
        """

    func readerToken(merchant: String, lifetime: TimeInterval) async throws -> String {
        let now = Date().timeIntervalSince1970.rounded(.down)
        return try await sign(
            ReaderTokenClaims(
                iss: Self.issuer, aud: Self.audience, jti: UUID().uuidString, iat: now, exp: now + lifetime,
                mid: merchant, tpid: "sandbox",
                cardDataKey: try JSONDecoder().decode([String: String].self, from: Data(cardDataKey.publicJWK.utf8))),
            type: "reader-token+jwt")
    }

    /// The right of `reader` to delete the payments `ids` of the batch `id`, of `count` payments with the hash `hash`, for 24
    /// hours.
    ///
    /// - Parameter ids: nil: all of them.
    func deletionToken(
        for reader: String, batch id: String, count: Int, hash: String, ids: [String]?
    ) async throws -> String {
        let now = Date().timeIntervalSince1970.rounded(.down)
        return try await sign(
            DeletionTokenClaims(
                iss: Self.issuer, aud: reader, jti: UUID().uuidString, bid: id, cnt: count, hash: hash, iat: now,
                exp: now + 24 * 3600, ids: ids),
            type: "deletion-token+jwt")
    }

    /// - Parameter type: the purpose of the token.
    private func sign(_ claims: some JWTPayload, type: String) async throws -> String {
        try await signer.sign(claims, kid: JWKIdentifier(string: Self.keyID), header: ["typ": .string(type)])
    }

    private struct ReaderTokenClaims: JWTPayload {
        let iss: String, aud: String, jti: String
        let iat: Double, exp: Double
        let mid: String, tpid: String
        let cardDataKey: [String: String]

        enum CodingKeys: String, CodingKey {
            case iss, aud, jti, iat, exp, mid, tpid
            case cardDataKey = "card_data_key"
        }

        func verify(using algorithm: some JWTAlgorithm) throws {}
    }

    private struct DeletionTokenClaims: JWTPayload {
        let iss: String, aud: String, jti: String
        let bid: String
        let cnt: Int
        let hash: String
        let iat: Double, exp: Double
        let ids: [String]?

        func verify(using algorithm: some JWTAlgorithm) throws {}
    }
}
