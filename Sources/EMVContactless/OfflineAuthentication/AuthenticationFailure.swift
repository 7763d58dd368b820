public import SmartCard

/// The reason for which offline data authentication failed: the subject that was verified, and the fault in it.
///
/// It is a verdict on the card's data, not an error of the program.  It contains none of that data.
public struct AuthenticationFailure: Error, Hashable, Sendable {
    /// The subject that was verified.
    public enum Subject: String, Hashable, Sendable, CaseIterable {
        case caPublicKey = "certification authority public key"
        case issuerCertificate = "issuer public key certificate"
        case iccCertificate = "ICC public key certificate"
        case pinEnciphermentCertificate = "ICC PIN encipherment public key certificate"
        case accountNumber = "account number"
        case staticData = "static data to be authenticated"
        case signedStaticData = "signed static application data"
        case signedDynamicData = "signed dynamic application data"
        case cardAuthenticationRelatedData = "card authentication related data"
    }

    /// The fault in the subject.
    public enum Reason: Hashable, Sendable {
        /// The card did not supply this data object.
        case missing(TLVTag)
        /// This data object of the card violates the specification.
        case malformed(TLVTag)
        /// The terminal has no key with this index.
        case unknownKey
        /// The certificate or key has expired.
        case expired
        /// The certificate is on the revocation list.
        case revoked
        /// The length differs from that of the signing key, or is too short for the form.
        case length
        /// The key cannot have signed the number.
        case range
        /// The recovered data does not end with `BC`.
        case trailer
        /// The recovered data does not begin with `6A`.
        case header
        /// The certificate format or signed data format is wrong.
        case format
        /// The hash algorithm indicator is not 01, SHA-1.
        case hashAlgorithm
        /// The public key algorithm indicator is not 01, RSA.
        case keyAlgorithm
        /// The length of the public key differs from that of its parts, or is not permitted.
        case keyLength
        /// The exponent is not 3 or 2^16 + 1, or does not have the length that the certificate states.
        case exponent
        /// The signed data differs from the data that the card sent.
        case hash
        /// The issuer identifier is not the beginning of the account number, or the account number in the certificate
        /// is not that of the application.
        case accountNumber
        /// A signed record is not coded as one template 70.
        case template
        /// The static data authentication tag list (9F4A) is not the tag of the AIP alone.
        case tagList
        /// The ICC dynamic data is longer than the signature, or shorter than its mandatory contents.
        case dynamicData
        /// The ICC dynamic number does not have 2 to 8 bytes.
        case dynamicNumber
        /// The signed cryptogram information data differs from that sent in the clear.
        case cryptogramInformationData
        /// The signed transaction data differs from the data that was exchanged.
        case transactionData
        /// The version of fDDA is not 01.
        case version
    }

    public let subject: Subject
    public let reason: Reason

    public init(_ subject: Subject, _ reason: Reason) {
        self.subject = subject
        self.reason = reason
    }

    /// True if the terminal verification results also show “ICC data missing” (EMV Book 3, 7.5): the card states that
    /// it supports offline data authentication, and lacks data for it.
    public var isDataMissing: Bool {
        guard case .missing(let tag) = reason else { return false }
        return Self.requiredObjects.contains(tag)
    }

    private static let requiredObjects: Set<TLVTag> = [0x8F, 0x90, 0x92, 0x93, 0x9F32, 0x9F46, 0x9F47, 0x9F48]
}

extension AuthenticationFailure: CustomStringConvertible {
    /// The failure as text: `issuer public key certificate: expired`.
    public var description: String {
        let what =
            switch reason {
            case .missing(let tag): "\(tag) is missing"
            case .malformed(let tag): "\(tag) is malformed"
            case .unknownKey: "the terminal has no such key"
            case .expired: "expired"
            case .revoked: "revoked"
            case .length: "wrong length"
            case .range: "not signed with the key"
            case .trailer: "wrong trailer"
            case .header: "wrong header"
            case .format: "wrong format"
            case .hashAlgorithm: "unknown hash algorithm"
            case .keyAlgorithm: "unknown public key algorithm"
            case .keyLength: "wrong length of the key"
            case .exponent: "wrong exponent"
            case .hash: "wrong hash"
            case .accountNumber: "made for another account number"
            case .template: "a record is no template 70"
            case .tagList: "the static data authentication tag list is not 82"
            case .dynamicData: "wrong length of the ICC dynamic data"
            case .dynamicNumber: "wrong length of the ICC dynamic number"
            case .cryptogramInformationData: "made for other cryptogram information data"
            case .transactionData: "made for another transaction"
            case .version: "unknown version of fDDA"
            }
        return "\(subject.rawValue): \(what)"
    }
}
