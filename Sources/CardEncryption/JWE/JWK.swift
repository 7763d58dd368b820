import Crypto

/// A public JSON Web Key (RFC 7517) of any type and for any purpose: a JSON object that names no member twice.
public struct JWK: Hashable, Sendable {
    /// The maximum length in bytes of a text that contains keys: a key, a set of keys, or the claims of a token.
    public static let maximumLength = 1 << 16

    let members: [JSON.Text: JSON]

    /// Parses a text that is a JWK and nothing else.
    ///
    /// - Throws: ``JWKError``, also for a private or symmetric key.
    public init(_ text: some StringProtocol) throws(JWKError) {
        try self.init(members: Self.object(text.utf8))
    }

    /// Parses a key that is a member of a JSON object, such as `card_data_key` in the claims of a token.
    ///
    /// - Parameters:
    ///   - name: the name of the member.
    ///   - json: the whole object as received; no object in it may name a member twice (RFC 7519, section 4).
    /// - Returns: nil if there is no such member.
    /// - Throws: ``JWKError``, also for a private or symmetric key.
    public init?(member name: String, of json: some Collection<UInt8>) throws(JWKError) {
        guard let value = try Self.object(json)[JSON.Text(name)] else { return nil }
        guard let members = value.object else { throw JWKError(.malformed, name) }
        try self.init(members: members)
    }

    /// Parses the keys of a JWK Set (RFC 7517, section 5), in order; the set may be empty.
    ///
    /// - Throws: ``JWKError``, also for a private or symmetric key.
    public static func set(_ text: some StringProtocol) throws(JWKError) -> [JWK] {
        guard let items = try object(text.utf8)["keys"]?.array else { throw JWKError(.malformed, "keys") }
        var keys: [JWK] = []
        for item in items {
            guard let members = item.object else { throw JWKError(.malformed, "keys") }
            keys.append(try JWK(members: members))
        }
        return keys
    }

    private init(members: [JSON.Text: JSON]) throws(JWKError) {
        try Self.requirePublic(members)
        self.members = members
    }

    static func object(_ text: some Collection<UInt8>) throws(JWKError) -> [JSON.Text: JSON] {
        guard text.count <= maximumLength else { throw JWKError(.tooLong(text.count)) }
        do {
            return try JSON.object(text)
        } catch {
            throw JWKError(.json(error.offset, due: error.due))
        }
    }

    /// The key's `kid`, if it is a string.
    public var keyID: String? { members["kid"]?.text?.string }

    // MARK: Thumbprint

    /// The members in the thumbprint of each type of key, in order (RFC 7638, section 3.2; for `OKP`, RFC 8037,
    /// section 2).
    private static let thumbprintMembers: [JSON.Text: [String]] = [
        "EC": ["crv", "kty", "x", "y"], "OKP": ["crv", "kty", "x"], "RSA": ["e", "kty", "n"],
    ]
    /// The number of bytes of a coordinate (RFC 7518, section 6.2.1.2; RFC 8037, section 2).
    private static let coordinateLengths: [JSON.Text: Int] = [
        "P-256": 32, "P-384": 48, "P-521": 66, "Ed25519": 32, "X25519": 32, "Ed448": 57, "X448": 56,
    ]

    /// Returns the thumbprint: the SHA-256 of the key material (RFC 7638), in base64url.  It is the same for the same
    /// key, whatever the notation of its JWK.
    ///
    /// - Throws: ``JWKError``: `keyType` for a type other than `EC`, `RSA` and `OKP`, `curve` for an unknown curve,
    ///   `malformed` for a member that is missing or does not have the notation of RFC 7518.
    public func thumbprint() throws(JWKError) -> String {
        guard let type = members["kty"]?.text, let names = Self.thumbprintMembers[type] else {
            throw JWKError(.keyType, "kty")
        }
        var parts: [String] = []
        for name in names {
            switch name {
            case "kty": parts.append(JSON.quoted("kty") + ":" + JSON.quoted(type.string))
            case "crv":
                guard let curve = members["crv"]?.text, Self.coordinateLengths[curve] != nil else {
                    throw JWKError(.curve, "crv")
                }
                parts.append(JSON.quoted("crv") + ":" + JSON.quoted(curve.string))
            default:
                let bytes = type == "RSA" ? try Self.number(name, of: members) : try Self.bytes(name, of: members)
                if let curve = members["crv"]?.text, type != "RSA", Self.coordinateLengths[curve] != bytes.count {
                    throw JWKError(.malformed, name)
                }
                parts.append(JSON.quoted(name) + ":" + JSON.quoted(Base64.url.encode(bytes)))
            }
        }
        return Base64.url.encode(Array(SHA256.hash(data: Array("{\(parts.joined(separator: ","))}".utf8))))
    }

    // MARK: Members

    /// The members that only private keys have (RFC 7518, sections 6.2.2, 6.3.2 and 6.4.1).
    private static let privateMembers = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"]

    static func requirePublic(_ members: [JSON.Text: JSON]) throws(JWKError) {
        for name in privateMembers where members[JSON.Text(name)] != nil { throw JWKError(.privateKey, name) }
    }

    /// Returns a member of base64url with at least one byte.
    static func bytes(_ name: String, of members: [JSON.Text: JSON]) throws(JWKError) -> [UInt8] {
        guard let text = members[JSON.Text(name)]?.text, let bytes = try? Base64.url.decode(text.string.utf8),
            !bytes.isEmpty
        else { throw JWKError(.malformed, name) }
        return bytes
    }

    /// Returns a Base64urlUInt: no more bytes than the number needs (RFC 7518, section 2).
    static func number(_ name: String, of members: [JSON.Text: JSON]) throws(JWKError) -> [UInt8] {
        let bytes = try bytes(name, of: members)
        guard bytes[0] != 0 else { throw JWKError(.malformed, name) }
        return bytes
    }
}

extension JWK: CustomStringConvertible {
    /// The key as JSON text for ``init(_:)``; members in the order of their names, no spaces.
    public var description: String { JSON.object(members).written }
}
