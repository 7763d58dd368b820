import CardEncryption
package import Foundation
package import JWTKit

/// The payment service's public keys, for verifying JSON Web Tokens signed with ES256.
package struct TokenVerifier: Sendable {
    /// The purpose of a token: the `typ` of its header (RFC 8725, section 3.11).
    package enum Purpose: String, Sendable {
        case reading = "reader-token+jwt"
        case deletion = "deletion-token+jwt"
    }

    /// The contents of a token whose signature is valid.  The caller checks times, issuer and audience.
    package struct Verified<Claims: Sendable>: Sendable {
        package let claims: Claims
        /// The token's purpose; nil if the header does not contain it.
        package let purpose: Purpose?
        /// The claims as received.
        package let payload: Data
    }

    /// A token for an unknown purpose.
    struct OtherPurpose: Error {}

    private let keys: [(id: String, key: ES256PublicKey)]
    /// True if the set contains the published key of the test payment service, with which anybody can sign.  Keys are
    /// compared by thumbprint (RFC 7638), so their notation does not matter.
    let hasTestKey: Bool

    /// Reads a key set.
    ///
    /// - Parameter text: a JSON Web Key Set (RFC 7517); only keys on P-256 are used.
    /// - Throws: `JWKError`, also for a private key, for a key without a name, and for a set without a key on P-256.
    package init(keySet text: String) throws {
        var keys: [(id: String, key: ES256PublicKey)] = []
        var hasTestKey = false
        for jwk in try JWK.set(text) {
            guard let key = try jwk.signingKey() else { continue }
            guard let id = jwk.keyID else { throw UnusableKeys(description: "a key has no \"kid\"") }
            keys.append((id, try ES256PublicKey(backing: key)))
            if try jwk.thumbprint() == TestPaymentService.thumbprint { hasTestKey = true }
        }
        guard !keys.isEmpty else { throw UnusableKeys(description: "none is on P-256") }
        (self.keys, self.hasTestKey) = (keys, hasTestKey)
    }

    struct UnusableKeys: Error, CustomStringConvertible { let description: String }

    /// Verifies the signature and the purpose of a token.
    ///
    /// - Throws: `JWTError`; ``OtherPurpose``; errors of decoding the claims.
    package func verify<Claims: JWTPayload>(_ token: String, as type: Claims.Type) async throws -> Verified<Claims> {
        let collection = JWTKeyCollection()
        for (id, key) in keys { await collection.add(ecdsa: key, kid: JWKIdentifier(string: id)) }
        let claims = try await collection.verify(token, as: type)
        let (header, _, _) = try DefaultJWTParser().parse(Data(token.utf8), as: type)
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let payload = Data(base64URL: String(parts[1])) else {
            throw JWTError.malformedToken(reason: "not Base64url")
        }
        return Verified(claims: claims, purpose: try Self.purpose(header.typ), payload: payload)
    }

    /// RFC 7515, section 4.1.9: in any case, with or without `application/`.
    private static func purpose(_ type: String?) throws -> Purpose? {
        guard let name = type?.lowercased(), name != "jwt" else { return nil }
        let short = name.hasPrefix("application/") ? String(name.dropFirst("application/".count)) : name
        guard let purpose = Purpose(rawValue: short) else { throw OtherPurpose() }
        return purpose
    }
}

extension Data {
    /// RFC 4648, section 5, without padding.
    init?(base64URL text: String) {
        guard !text.contains(where: { "+/=".contains($0) }) else { return nil }
        let standard = text.replacing("-", with: "+").replacing("_", with: "/")
        self.init(base64Encoded: standard + String(repeating: "=", count: (4 - standard.count % 4) % 4))
    }
}
