package import Crypto

extension JWK {
    /// The key on P-256 that signatures of ES256 are verified with; nil for a key of another type or curve.
    ///
    /// - Throws: ``JWKError`` for one that is written in another way than RFC 7518 permits, or is not on the curve.
    package func signingKey() throws(JWKError) -> P256.Signing.PublicKey? {
        guard members["kty"]?.text == "EC", members["crv"]?.text == "P-256" else { return nil }
        let point = try P256Point(jwk: members)
        guard let key = try? P256.Signing.PublicKey(rawRepresentation: point.key.rawRepresentation) else {
            throw JWKError(.notOnCurve)
        }
        return key
    }
}
