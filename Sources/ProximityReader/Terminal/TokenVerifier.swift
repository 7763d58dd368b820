import CardEncryption
import Foundation
package import JWTKit

/// The payment service's public keys, and what they have signed: JSON web tokens with ES256.
package struct TokenVerifier: Sendable {
    private let keys: JSONWebKeySet

    /// - Parameter text: a JSON Web Key Set.
    /// - Throws: `JWKError`.
    package init(keySet text: String) throws { keys = try JSONWebKeySet(text) }

    /// Whether anybody can sign, with the published key of the test payment service.
    ///
    /// By the thumbprints of the keys (RFC 7638), so that it does not matter how they are written or named.
    var hasTestKey: Bool { keys.keys.contains { $0.thumbprint == TestPaymentService.thumbprint } }

    /// The claims of a token whose signature is good.  Times, issuer and audience are for the caller to look at.
    ///
    /// - Throws: `JWTError`, or what decoding the claims throws.
    package func claims<Claims: JWTPayload>(of token: String, as type: Claims.Type = Claims.self) async throws -> Claims
    {
        let collection = JWTKeyCollection()
        for key in keys.keys {
            await collection.add(
                ecdsa: try ES256PublicKey(backing: key.key), kid: JWKIdentifier(string: key.keyID))
        }
        return try await collection.verify(token, as: type)
    }
}
