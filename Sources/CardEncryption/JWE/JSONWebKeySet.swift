package import Crypto

/// Public keys on P-256 of a JSON Web Key Set (RFC 7517, section 5), in its order.
///
/// Keys of other types are left out, as the standard has it.
package struct JSONWebKeySet: Sendable {
    package struct Key: Sendable {
        /// `kid`
        package let keyID: String
        package let key: P256.Signing.PublicKey

        /// SHA-256 of the key's canonical JWK (RFC 7638, section 3), in Base64url: of its point, however it was written.
        package var thumbprint: String {
            let raw = key.rawRepresentation
            let (x, y) = (Base64.url.encode(raw.prefix(32)), Base64.url.encode(raw.suffix(32)))
            let canonical = #"{"crv":"P-256","kty":"EC","x":"\#(x)","y":"\#(y)"}"#
            return Base64.url.encode(Array(SHA256.hash(data: Array(canonical.utf8))))
        }
    }

    package let keys: [Key]

    /// The most keys that a set may have.
    static let maximumCount = 64

    /// - Throws: ``JWKError``, also for a private key, for a key without a name, and for a set of no key on P-256.
    package init(_ text: some StringProtocol) throws(JWKError) {
        let count = text.utf8.count
        guard count <= JWERecipient.maximumJWKLength else { throw JWKError(.tooLong(count)) }
        let members: [JSON.Text: JSON]
        do {
            members = try JSON.object(text.utf8)
        } catch {
            throw JWKError(.json(error.offset, due: error.due))
        }
        guard let items = members["keys"]?.array, items.count <= Self.maximumCount else {
            throw JWKError(.malformed, "keys")
        }
        var keys: [Key] = []
        for item in items {
            guard let members = item.object else { throw JWKError(.malformed, "keys") }
            try JWK.requirePublic(members)
            guard members["kty"]?.text == "EC", members["crv"]?.text == "P-256" else { continue }
            guard let keyID = members["kid"]?.text?.string else { throw JWKError(.malformed, "kid") }
            let point = try Self.coordinate("x", of: members) + Self.coordinate("y", of: members)
            guard let key = try? P256.Signing.PublicKey(rawRepresentation: point) else { throw JWKError(.notOnCurve) }
            keys.append(Key(keyID: keyID, key: key))
        }
        guard !keys.isEmpty else { throw JWKError(.curve, "keys") }
        self.keys = keys
    }

    /// Of 32 bytes, whether it was written with padding, with more zeros before it, or with fewer.
    private static func coordinate(_ name: String, of members: [JSON.Text: JSON]) throws(JWKError) -> [UInt8] {
        guard var text = members[JSON.Text(name)]?.text?.string[...] else { throw JWKError(.malformed, name) }
        while text.last == "=" { text.removeLast() }
        guard let bytes = try? Base64.url.decode(text.utf8) else { throw JWKError(.malformed, name) }
        let number = bytes.drop { $0 == 0 }
        guard number.count <= 32 else { throw JWKError(.malformed, name) }
        return [UInt8](repeating: 0, count: 32 - number.count) + number
    }
}
