import Crypto
import CryptoExtras

/// A JWK for a ``JWEAlgorithm``: the members that all types of keys share (RFC 7517, section 4), which must agree.
struct JWEKey {
    let members: [JSON.Text: JSON]
    let algorithm: JWEAlgorithm
    let keyID: String?

    /// Checks the members.
    ///
    /// - Parameter algorithm: the algorithm that the caller requires; nil to use `alg`.
    init(_ members: [JSON.Text: JSON], algorithm wanted: JWEAlgorithm?, isPrivate: Bool) throws(JWKError) {
        self.members = members
        func member(_ name: String) throws(JWKError) -> JSON.Text? {
            guard let value = members[JSON.Text(name)] else { return nil }
            guard let text = value.text else { throw JWKError(.malformed, name) }
            return text
        }
        keyID = try member("kid")?.string
        let named = try member("alg")
        if wanted == nil, let named, JWEAlgorithm(named: named) == nil { throw JWKError(.purpose, "alg") }
        guard let algorithm = wanted ?? named.flatMap(JWEAlgorithm.init(named:)) else { throw JWKError(.noAlgorithm) }
        self.algorithm = algorithm
        if let named, JWEAlgorithm(named: named) != algorithm { throw JWKError(.purpose, "alg") }
        guard try member("kty") == algorithm.keyType else { throw JWKError(.keyType, "kty") }
        if let use = try member("use"), use != "enc" { throw JWKError(.purpose, "use") }
        if let operations = members["key_ops"] {
            let names = operations.array?.compactMap(\.text) ?? []
            let due = isPrivate ? algorithm.privateOperations : algorithm.publicOperations
            // A public ECDH key performs no operation by itself, and may say so (RFC 7518, section 4.6, names none for
            // it).
            let none = !isPrivate && algorithm.keyType == "EC" && operations.array?.isEmpty == true
            guard none || !due.isDisjoint(with: names) else { throw JWKError(.purpose, "key_ops") }
        }
    }

    func bytes(_ name: String) throws(JWKError) -> [UInt8] { try JWK.bytes(name, of: members) }
    func number(_ name: String) throws(JWKError) -> [UInt8] { try JWK.number(name, of: members) }

    /// Returns the RSA key of `n` and `e`.
    func publicRSAKey() throws(JWKError) -> _RSA.Encryption.PublicKey {
        let (modulus, exponent) = (try number("n"), try number("e"))
        // Only a key that is parsed from DER is fully checked, here and by the recipient.
        guard let key = try? _RSA.Encryption.PublicKey(n: modulus, e: exponent),
            let key = try? _RSA.Encryption.PublicKey(derRepresentation: key.derRepresentation)
        else { throw JWKError(.modulus, "n") }
        return key
    }
}

/// A public key on P-256: a point that is on the curve.
struct P256Point: Hashable, Sendable {
    let key: P256.KeyAgreement.PublicKey

    init(_ key: P256.KeyAgreement.PublicKey) { self.key = key }

    /// Creates the point from `kty`, `crv`, `x` and `y` (RFC 7518, section 6.2.1).
    init(jwk members: [JSON.Text: JSON]) throws(JWKError) {
        guard members["kty"]?.text == "EC" else { throw JWKError(.keyType, "kty") }
        guard members["crv"]?.text == "P-256" else { throw JWKError(.curve, "crv") }
        let (x, y) = (try JWK.bytes("x", of: members), try JWK.bytes("y", of: members))
        for (name, bytes) in [("x", x), ("y", y)] where bytes.count != 32 { throw JWKError(.malformed, name) }
        guard let key = try? P256.KeyAgreement.PublicKey(rawRepresentation: x + y) else { throw JWKError(.notOnCurve) }
        self.key = key
    }

    static func == (a: P256Point, b: P256Point) -> Bool { a.key.rawRepresentation == b.key.rawRepresentation }
    func hash(into hasher: inout Hasher) { hasher.combine(key.rawRepresentation) }

    /// The members between the braces.
    var members: String {
        let raw = key.rawRepresentation
        let (x, y) = (Base64.url.encode(raw.prefix(32)), Base64.url.encode(raw.suffix(32)))
        return #""kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)""#
    }
    var jwk: String { "{\(members)}" }
}
