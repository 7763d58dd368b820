import CardEncryption
package import Foundation
package import JWTKit

/// The payment service's public keys, and what they have signed: JSON web tokens with ES256.
package struct TokenVerifier: Sendable {
    /// What a token is for: the `typ` of its header (RFC 8725, section 3.11).
    package enum Purpose: String, Sendable {
        case reading = "reader-token+jwt"
        case deletion = "deletion-token+jwt"
    }

    /// What a token says, once its signature is good.  Times, issuer and audience are for the caller to look at.
    package struct Verified<Claims: Sendable>: Sendable {
        package let claims: Claims
        /// Nil if the header does not tell.
        package let purpose: Purpose?
        /// The claims as they came.
        package let payload: Data
    }

    /// A token that says it is for something that nobody here has heard of.
    struct OtherPurpose: Error {}

    private let keys: [(id: String, key: ES256PublicKey)]
    /// Whether anybody can sign, with the published key of the test payment service: by the keys' thumbprints (RFC 7638), so
    /// that it does not matter how the set is written.
    let hasTestKey: Bool

    /// - Parameter text: a JSON Web Key Set (RFC 7517); of its keys, those on P-256 count.
    /// - Throws: `JWKError`, also for a private key, for one without a name and for a set of no key on P-256.
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

    /// Looks at the signature and at what the token says it is for.
    ///
    /// - Throws: `JWTError`; ``OtherPurpose``; what decoding the claims throws.
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
