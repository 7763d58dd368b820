import Crypto
import CryptoExtras

/// A JSON Web Key that is not what it must be: what, and in which member.
public struct JWKError: Error, Hashable, Sendable {
    public enum Reason: Hashable, Sendable {
        /// More bytes than ``JWERecipient/maximumJWKLength``.
        case tooLong(Int)
        /// Not a JSON object: the byte, and what was due there.
        case json(Int, due: String)
        /// Missing, or not of its kind.
        case malformed
        /// Neither `EC` nor `RSA`, or not the key type of the algorithm.
        case keyType
        /// Not `P-256`.
        case curve
        /// Not a point of the curve.
        case notOnCurve
        /// An RSA modulus of less than 2048 bits, or of bits that make no whole bytes, or that the cryptographic library
        /// refuses.
        case modulus
        /// The key is not for encryption, or not for this algorithm.
        case purpose
        /// Neither the key nor the caller names the algorithm.
        case noAlgorithm
        /// A private key where a public one is due.
        case privateKey
        /// The halves of the key do not belong together.
        case mismatch
    }

    public let reason: Reason
    /// The member; nil where it is the whole.
    public let member: String?

    init(_ reason: Reason, _ member: String? = nil) {
        self.reason = reason
        self.member = member
    }

    /// One sentence for a person: what to do next.
    public var hint: String {
        switch reason {
        case .noAlgorithm: "Add \"alg\" to the key, or say which algorithm it is for."
        case .privateKey: "Give the public key only, and replace this one: it has been where it does not belong."
        default: "Ask the recipient for a JWK on P-256 or with RSA of 2048 bits and more, for encryption."
        }
    }
}

extension JWKError: CustomStringConvertible {
    public var description: String {
        let what =
            switch reason {
            case .tooLong(let count): "\(count) bytes, which is more than \(JWERecipient.maximumJWKLength)"
            case .json(let offset, let due): "byte \(offset): not JSON: \(due) was due"
            case .malformed: "missing or malformed"
            case .keyType: "not the type of key that the algorithm takes"
            case .curve: "not P-256"
            case .notOnCurve: "no point of P-256"
            case .modulus: "no RSA key of 2048 bits and more, in whole bytes"
            case .purpose: "not a key for this algorithm"
            case .noAlgorithm: "no algorithm"
            case .privateKey: "a private key where the public one is due"
            case .mismatch: "the parts of the key do not belong together"
            }
        return "JWK" + (member.map { ", \"\($0)\"" } ?? "") + ": " + what
    }
}

/// The members of a JWK (RFC 7517, section 4) that every type of key has, agreeing with each other.
struct JWK {
    let members: [JSON.Text: JSON]
    let algorithm: JWEAlgorithm
    let keyID: String?

    /// What only private keys have (RFC 7518, sections 6.2.2, 6.3.2 and 6.4.1).
    static let privateMembers = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"]

    /// - Parameter algorithm: what the caller wants of it; nil for what `alg` says.
    init(_ text: some StringProtocol, algorithm wanted: JWEAlgorithm?, isPrivate: Bool) throws(JWKError) {
        let count = text.utf8.count
        guard count <= JWERecipient.maximumJWKLength else { throw JWKError(.tooLong(count)) }
        let members: [JSON.Text: JSON]
        do {
            members = try JSON.object(text.utf8)
        } catch {
            throw JWKError(.json(error.offset, due: error.due))
        }
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
            // A public key of ECDH does nothing by itself, and may say so (RFC 7518, section 4.6, names none for it).
            let none = !isPrivate && algorithm.keyType == "EC" && operations.array?.isEmpty == true
            guard none || !due.isDisjoint(with: names) else { throw JWKError(.purpose, "key_ops") }
        }
        if !isPrivate { try Self.requirePublic(members) }
    }

    static func requirePublic(_ members: [JSON.Text: JSON]) throws(JWKError) {
        for name in privateMembers where members[JSON.Text(name)] != nil { throw JWKError(.privateKey, name) }
    }

    func bytes(_ name: String) throws(JWKError) -> [UInt8] { try Self.bytes(name, of: members) }

    static func bytes(_ name: String, of members: [JSON.Text: JSON]) throws(JWKError) -> [UInt8] {
        guard let text = members[JSON.Text(name)]?.text, let bytes = try? Base64.url.decode(text.string.utf8),
            !bytes.isEmpty
        else {
            throw JWKError(.malformed, name)
        }
        return bytes
    }

    /// A Base64urlUInt: no more bytes than the number needs (RFC 7518, section 2).
    func number(_ name: String) throws(JWKError) -> [UInt8] {
        let bytes = try bytes(name)
        guard bytes[0] != 0 else { throw JWKError(.malformed, name) }
        return bytes
    }
}

extension JWK {
    /// Of `n` and `e`.
    func publicRSAKey() throws(JWKError) -> _RSA.Encryption.PublicKey {
        let (modulus, exponent) = (try number("n"), try number("e"))
        // Only the one that is read from DER is looked at whole, here and by who opens.
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

    /// Of `kty`, `crv`, `x` and `y` (RFC 7518, section 6.2.1).
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
