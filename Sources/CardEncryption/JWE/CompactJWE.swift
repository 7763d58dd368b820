/// The compact form of a JWE (RFC 7516, section 7.1) with one of ``JWEAlgorithm`` and A256GCM.
///
/// The parser accepts nothing else: five parts, base64url without padding, a header without `crit` and `zip` that
/// names each member once, parts with the lengths that the algorithms determine.
public struct CompactJWE: Hashable, Sendable {
    /// The maximum length of a text in bytes.
    public static let maximumLength = 1 << 18

    /// The compact form.
    public let text: String
    public let algorithm: JWEAlgorithm
    /// The header.  Only ``JWEPrivateKey/open(_:_:)`` proves that it is the sender's.
    public let header: JWEHeader

    let ephemeralKey: P256Point?
    let encryptedKey: [UInt8]
    let initializationVector: [UInt8]
    let ciphertext: [UInt8]
    let tag: [UInt8]

    /// The additional authenticated data: the text of the first part (RFC 7516, section 5.1, step 14).
    var authenticatedData: [UInt8] { Array(text.utf8.prefix { $0 != UInt8(ascii: ".") }) }

    public init(parsing text: some StringProtocol) throws(JWEError) {
        let count = text.utf8.count
        guard count <= Self.maximumLength else { throw JWEError(.tooLong(count)) }
        let bytes = Array(text.utf8)
        let texts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard texts.count == 5 else { throw JWEError(.parts(texts.count)) }
        var parts: [[UInt8]] = []
        for (part, text) in zip(JWEError.Part.allCases, texts) {
            do {
                parts.append(try Base64.url.decode(text))
            } catch {
                throw JWEError(.base64, in: part, at: error.offset)
            }
        }
        self.text = String(text)
        let members: [JSON.Text: JSON]
        do {
            members = try JSON.object(parts[0])
        } catch {
            throw JWEError(.json(error.due), in: .header, at: error.offset)
        }
        (algorithm, ephemeralKey) = try Self.algorithm(of: members)
        header = try Self.header(of: members)
        (encryptedKey, initializationVector, ciphertext, tag) = (parts[1], parts[2], parts[3], parts[4])
        let keyLength: Int? =
            switch algorithm {
            case .ecdhES: 0
            case .ecdhESA256KW: 40
            // The length of the modulus, which only the key determines.
            case .rsaOAEP256: nil
            }
        for (part, count, due) in [
            (JWEError.Part.encryptedKey, encryptedKey.count, keyLength),
            (.initializationVector, initializationVector.count, 12), (.tag, tag.count, 16),
        ] {
            if let due, count != due { throw JWEError(.length(count, due: due), in: part) }
        }
    }

    private static func algorithm(of members: [JSON.Text: JSON]) throws(JWEError) -> (JWEAlgorithm, P256Point?) {
        guard members["crit"] == nil else { throw JWEError(.critical, in: .header) }
        guard members["zip"] == nil else { throw JWEError(.compressed, in: .header) }
        guard let name = members["alg"]?.text else { throw JWEError(.member("alg"), in: .header) }
        guard let algorithm = JWEAlgorithm(named: name) else { throw JWEError(.algorithm(name.string), in: .header) }
        guard let content = members["enc"]?.text else { throw JWEError(.member("enc"), in: .header) }
        guard content == JSON.Text(JWEAlgorithm.contentEncryption) else {
            throw JWEError(.contentEncryption(content.string), in: .header)
        }
        guard algorithm.keyType == "EC" else { return (algorithm, nil) }
        guard let key = members["epk"]?.object else { throw JWEError(.member("epk"), in: .header) }
        do {
            try JWK.requirePublic(key)
            return (algorithm, try P256Point(jwk: key))
        } catch {
            throw JWEError(.ephemeralKey, in: .header)
        }
    }

    private static func header(of members: [JSON.Text: JSON]) throws(JWEError) -> JWEHeader {
        func text(_ name: String) throws(JWEError) -> String? {
            guard let value = members[JSON.Text(name)] else { return nil }
            guard let text = value.text else { throw JWEError(.member(name), in: .header) }
            return text.string
        }
        func bytes(_ name: String) throws(JWEError) -> [UInt8]? {
            guard let text = try text(name) else { return nil }
            guard let bytes = try? Base64.url.decode(text.utf8) else { throw JWEError(.member(name), in: .header) }
            return bytes
        }
        var fields: [String: String] = [:]
        for case (let name, .string(let value)) in members where !JWEHeader.registeredNames.contains(name.string) {
            // Two names that are equivalent in Unicode cannot both be represented.
            guard fields.updateValue(value.string, forKey: name.string) == nil else {
                throw JWEError(.member(name.string), in: .header)
            }
        }
        return JWEHeader(
            keyID: try text("kid"), type: try text("typ"), contentType: try text("cty"),
            agreementPartyU: try bytes("apu"), agreementPartyV: try bytes("apv"),
            fields: fields)
    }
}

extension CompactJWE: CustomStringConvertible {
    public var description: String { text }
}
