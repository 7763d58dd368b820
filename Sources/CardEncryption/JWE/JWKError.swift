/// A JSON Web Key that is not what it must be: what, and in which member.
public struct JWKError: Error, Hashable, Sendable {
    public enum Reason: Hashable, Sendable {
        /// More bytes than ``JWK/maximumLength``.
        case tooLong(Int)
        /// Not a JSON object: the byte, and what was due there.
        case json(Int, due: String)
        /// Missing, or not of its kind.
        case malformed
        /// Not the key type of the algorithm, or one whose thumbprint nobody has defined.
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
        case .tooLong, .json: "See that the text is passed on unchanged, and names each member once."
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
            case .tooLong(let count): "\(count) bytes, which is more than \(JWK.maximumLength)"
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
