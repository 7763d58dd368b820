/// What the sender says in the protected header besides the algorithms (RFC 7516, section 4.1).  Everybody can read it,
/// nobody can change it.
public struct JWEHeader: Hashable, Sendable {
    /// `kid`: which key of the recipient's it is sealed to.
    public var keyID: String?
    /// `typ`: media type of the whole.
    public var type: String?
    /// `cty`: media type of what is sealed.
    public var contentType: String?
    /// `apu`: who agrees upon the key with the recipient; goes into its derivation (RFC 7518, section 4.6.1.2).
    public var agreementPartyU: [UInt8]?
    /// `apv`: the recipient, likewise.
    public var agreementPartyV: [UInt8]?
    /// Further members, such as the reader's identity and the session.  Members of received headers that are not strings are
    /// left out.
    public var fields: [String: String]

    public init(
        keyID: String? = nil, type: String? = nil, contentType: String? = nil, agreementPartyU: [UInt8]? = nil,
        agreementPartyV: [UInt8]? = nil, fields: [String: String] = [:]
    ) {
        self.keyID = keyID
        self.type = type
        self.contentType = contentType
        self.agreementPartyU = agreementPartyU
        self.agreementPartyV = agreementPartyV
        self.fields = fields
    }

    /// Names with a meaning of their own (RFC 7516, section 4.1; RFC 7518, sections 4.6 to 4.8): no further members.
    static let registeredNames: Set<String> = [
        "alg", "enc", "zip", "jku", "jwk", "kid", "x5u", "x5c", "x5t", "x5t#S256", "typ", "cty", "crit", "epk", "apu",
        "apv", "iv", "tag", "p2s", "p2c",
    ]

    /// As the protected header of `algorithm`, a JSON text.
    ///
    /// - Parameter ephemeralKey: x and y of `epk`.
    func json(algorithm: JWEAlgorithm, ephemeralKey: P256Point?) throws(JWEError) -> String {
        for name in fields.keys.sorted() where Self.registeredNames.contains(name) {
            throw JWEError(.registeredName(name), in: .header)
        }
        var members = [("alg", JSON.quoted(algorithm.rawValue)), ("enc", JSON.quoted(JWEAlgorithm.contentEncryption))]
        for case (let name, let value?) in [("kid", keyID), ("typ", type), ("cty", contentType)] {
            members.append((name, JSON.quoted(value)))
        }
        if let ephemeralKey { members.append(("epk", ephemeralKey.jwk)) }
        for case (let name, let value?) in [("apu", agreementPartyU), ("apv", agreementPartyV)] {
            members.append((name, JSON.quoted(Base64.url.encode(value))))
        }
        members += fields.sorted { $0.key < $1.key }.map { ($0.key, JSON.quoted($0.value)) }
        return "{" + members.map { JSON.quoted($0) + ":" + $1 }.joined(separator: ",") + "}"
    }
}
