import Crypto

/// A JSON Web Key that is not what it must be: what, and in which member.
public struct JWKError: Error, Hashable, Sendable {
    public enum Reason: Hashable, Sendable {
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
        /// An RSA modulus of less than 2048 bits, or that the cryptographic library refuses.
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
            case .json(let offset, let due): "byte \(offset): not JSON: \(due) was due"
            case .malformed: "missing or malformed"
            case .keyType: "not the type of key that the algorithm takes"
            case .curve: "not P-256"
            case .notOnCurve: "no point of P-256"
            case .modulus: "no RSA key of 2048 bits and more"
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
    let members: [String: JSON]
    let algorithm: JWEAlgorithm
    let keyID: String?

    /// - Parameter algorithm: what the caller wants of it; nil for what `alg` says.
    init(_ text: some StringProtocol, algorithm wanted: JWEAlgorithm?, isPrivate: Bool) throws(JWKError) {
        let members: [String: JSON]
        do {
            members = try JSON.object(text.utf8)
        } catch {
            throw JWKError(.json(error.offset, due: error.due))
        }
        self.members = members
        func string(_ name: String) throws(JWKError) -> String? {
            guard let value = members[name] else { return nil }
            guard let string = value.string else { throw JWKError(.malformed, name) }
            return string
        }
        keyID = try string("kid")
        let named = try string("alg")
        if wanted == nil, let named, JWEAlgorithm(named: named) == nil { throw JWKError(.purpose, "alg") }
        guard let algorithm = wanted ?? named.flatMap(JWEAlgorithm.init(named:)) else { throw JWKError(.noAlgorithm) }
        self.algorithm = algorithm
        if let named, named != algorithm.rawValue { throw JWKError(.purpose, "alg") }
        guard try string("kty") == algorithm.keyType else { throw JWKError(.keyType, "kty") }
        if let use = try string("use"), use != "enc" { throw JWKError(.purpose, "use") }
        if let operations = members["key_ops"] {
            let names = operations.array?.compactMap(\.string) ?? []
            let due = isPrivate ? algorithm.privateOperations : algorithm.publicOperations
            // A public key of ECDH does nothing by itself, and may say so (RFC 7518, section 4.6, names none for it).
            let none = !isPrivate && algorithm.keyType == "EC" && operations.array?.isEmpty == true
            guard none || !due.isDisjoint(with: names) else { throw JWKError(.purpose, "key_ops") }
        }
        guard isPrivate || members["d"] == nil else { throw JWKError(.privateKey, "d") }
    }

    func bytes(_ name: String) throws(JWKError) -> [UInt8] { try Self.bytes(name, of: members) }

    static func bytes(_ name: String, of members: [String: JSON]) throws(JWKError) -> [UInt8] {
        guard let text = members[name]?.string, let bytes = try? Base64.url.decode(text.utf8), !bytes.isEmpty else {
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

/// A public key on P-256: a point that is on the curve.
struct P256Point: Hashable, Sendable {
    /// 32 bytes each, most significant first.
    let x: [UInt8]
    let y: [UInt8]

    init(_ key: P256.KeyAgreement.PublicKey) {
        let raw = Array(key.rawRepresentation)
        (x, y) = (Array(raw.prefix(32)), Array(raw.suffix(32)))
    }

    /// Of `kty`, `crv`, `x` and `y` (RFC 7518, section 6.2.1).
    init(jwk members: [String: JSON]) throws(JWKError) {
        guard members["kty"]?.string == "EC" else { throw JWKError(.keyType, "kty") }
        guard members["crv"]?.string == "P-256" else { throw JWKError(.curve, "crv") }
        (x, y) = (try JWK.bytes("x", of: members), try JWK.bytes("y", of: members))
        for (name, bytes) in [("x", x), ("y", y)] where bytes.count != 32 { throw JWKError(.malformed, name) }
        guard (try? P256.KeyAgreement.PublicKey(rawRepresentation: x + y)) != nil else { throw JWKError(.notOnCurve) }
    }

    func publicKey() throws -> P256.KeyAgreement.PublicKey { try P256.KeyAgreement.PublicKey(rawRepresentation: x + y) }

    /// The members between the braces.
    var members: String {
        #""kty":"EC","crv":"P-256","x":"\#(Base64.url.encode(x))","y":"\#(Base64.url.encode(y))""#
    }
    var jwk: String { "{\(members)}" }
}
