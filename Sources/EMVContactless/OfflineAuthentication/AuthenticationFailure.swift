public import SmartCard

/// Why offline data authentication failed: what was looked at, and what was wrong with it.
///
/// It is a verdict on what a card sent, not an error of the program.  It holds nothing of the card's data.
public struct AuthenticationFailure: Error, Hashable, Sendable {
    /// What was looked at.
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

    /// What was wrong with it.
    public enum Reason: Hashable, Sendable {
        /// The card did not give this data object.
        case missing(TLVTag)
        /// This data object of the card is not what the books say it is.
        case malformed(TLVTag)
        /// The terminal has no key of this index.
        case unknownKey
        /// Its last day is over.
        case expired
        /// It is on the certificate revocation list.
        case revoked
        /// It has not as many bytes as the key that signed it, or fewer than its form needs.
        case length
        /// It is no number that the key can have signed.
        case range
        /// What was signed does not end with `BC`.
        case trailer
        /// What was signed does not begin with `6A`.
        case header
        /// The certificate format or signed data format is another one.
        case format
        /// The hash algorithm indicator is not 01, SHA-1.
        case hashAlgorithm
        /// The public key algorithm indicator is not 01, RSA.
        case keyAlgorithm
        /// The length of the public key is not that of its parts, or no key may have it.
        case keyLength
        /// The exponent is not 3 or 2^16 + 1, or has not the length that the certificate gives.
        case exponent
        /// What was signed is not what the card sent beside it.
        case hash
        /// The issuer identifier is not the beginning of the account number, or the account number in the certificate is
        /// not that of the application.
        case accountNumber
        /// A record that is signed is not coded as one template 70.
        case template
        /// The static data authentication tag list (9F4A) is not the tag of the AIP alone.
        case tagList
        /// The ICC dynamic data are longer than the signature, or shorter than what they must hold.
        case dynamicData
        /// The ICC dynamic number has not 2 to 8 bytes.
        case dynamicNumber
        /// The cryptogram information data that were signed are not those that the card sent in the clear.
        case cryptogramInformationData
        /// The data of the transaction that were signed are not those that were exchanged.
        case transactionData
        /// A version of fDDA other than 01.
        case version
    }

    public let subject: Subject
    public let reason: Reason

    public init(_ subject: Subject, _ reason: Reason) {
        self.subject = subject
        self.reason = reason
    }

    /// Whether the terminal verification results show it as “ICC data missing” besides (EMV Book 3, 7.5): the card says that
    /// it supports offline data authentication, and does not give what that takes.
    public var isDataMissing: Bool {
        guard case .missing(let tag) = reason else { return false }
        return Self.requiredObjects.contains(tag)
    }

    private static let requiredObjects: Set<TLVTag> = [0x8F, 0x90, 0x92, 0x93, 0x9F32, 0x9F46, 0x9F47, 0x9F48]
}

extension AuthenticationFailure: CustomStringConvertible {
    /// `issuer public key certificate: expired`
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
