/// The members of the protected header besides the algorithms (RFC 7516, section 4.1).  Anybody can read them, nobody
/// can change them.
public struct JWEHeader: Hashable, Sendable {
    /// `kid`: the identifier of the recipient's key.
    public var keyID: String?
    /// `typ`: the media type of the whole JWE.
    public var type: String?
    /// `cty`: the media type of the sealed content.
    public var contentType: String?
    /// `apu`: information about the sender, an input to key derivation (RFC 7518, section 4.6.1.2).
    public var agreementPartyU: [UInt8]?
    /// `apv`: information about the recipient, likewise.
    public var agreementPartyV: [UInt8]?
    /// Further members, such as the reader's identity and the session.  Members of received headers that are not
    /// strings are omitted.
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

    /// The registered names (RFC 7516, section 4.1; RFC 7518, sections 4.6 to 4.8), which are not available for
    /// further members.
    static let registeredNames: Set<String> = [
        "alg", "enc", "zip", "jku", "jwk", "kid", "x5u", "x5c", "x5t", "x5t#S256", "typ", "cty", "crit", "epk", "apu",
        "apv", "iv", "tag", "p2s", "p2c",
    ]

    /// Returns the protected header for `algorithm` as JSON text.
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
