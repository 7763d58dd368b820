/// An error in a JSON Web Key, with the member concerned.
public struct JWKError: Error, Hashable, Sendable {
    public enum Reason: Hashable, Sendable {
        /// The text has more bytes than ``JWK/maximumLength``.
        case tooLong(Int)
        /// The text is not a JSON object, with the byte and the expected token.
        case json(Int, due: String)
        /// The member is missing, or has a value of the wrong type.
        case malformed
        /// The key type is not the algorithm's, or has no defined thumbprint.
        case keyType
        /// The curve is not `P-256`.
        case curve
        /// The point is not on the curve.
        case notOnCurve
        /// The RSA modulus has fewer than 2048 bits, or no whole number of bytes, or the cryptographic library refuses
        /// it.
        case modulus
        /// The key is not for encryption, or not for this algorithm.
        case purpose
        /// Neither the key nor the caller names the algorithm.
        case noAlgorithm
        /// The key is private, and a public one is required.
        case privateKey
        /// The halves of the key do not match.
        case mismatch
    }

    public let reason: Reason
    /// The member; nil for the whole key.
    public let member: String?

    init(_ reason: Reason, _ member: String? = nil) {
        self.reason = reason
        self.member = member
    }

    /// A sentence that tells a person what to do next.
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
