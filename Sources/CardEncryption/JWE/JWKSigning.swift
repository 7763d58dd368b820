package import Crypto

extension JWK {
    /// Returns the key on P-256 for verifying ES256 signatures; nil for a key of another type or curve.
    ///
    /// - Throws: ``JWKError`` for a key that does not have the notation of RFC 7518, or is not on the curve.
    package func signingKey() throws(JWKError) -> P256.Signing.PublicKey? {
        guard members["kty"]?.text == "EC", members["crv"]?.text == "P-256" else { return nil }
        let point = try P256Point(jwk: members)
        guard let key = try? P256.Signing.PublicKey(rawRepresentation: point.key.rawRepresentation) else {
            throw JWKError(.notOnCurve)
        }
        return key
    }
}
