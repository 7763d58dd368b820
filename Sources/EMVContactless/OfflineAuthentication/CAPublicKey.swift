import SmartCard

/// The public key of a certification authority, with which a payment scheme signs its issuers' keys (EMV Book 2,
/// 11.2.2).
public struct CAPublicKey: Hashable, Sendable {
    /// The environment in which a key is used.  A terminal that takes money must not have the keys of test cards.
    public enum Environment: String, Hashable, Sendable, CaseIterable {
        case live, test
    }

    public let environment: Environment
    /// The registered application provider identifier, 5 bytes.
    public let rid: [UInt8]
    /// The index by which the cards of that provider name the key (8F).
    public let index: UInt8
    /// The last day on which the key is valid; nil if none was published.
    public let expiration: CalendarDate?
    /// The checksum, 20 bytes: SHA-1 over RID, index, modulus and exponent.
    public let checksum: [UInt8]
    let key: RSAPublicKey

    /// The modulus, most significant byte first.
    public var modulus: [UInt8] { key.modulus }
    /// The exponent, most significant byte first, as it was published.
    public var exponent: [UInt8] { key.exponent }

    /// Creates a key.
    ///
    /// - Throws: ``CAPublicKeyError`` if EMV does not permit the key, or the key does not match its checksum.
    public init(
        environment: Environment, rid: [UInt8], index: UInt8, modulus: [UInt8], exponent: [UInt8], checksum: [UInt8],
        expiration: CalendarDate? = nil
    ) throws(CAPublicKeyError) {
        guard rid.count == 5 else { throw .rid }
        guard (64...RSAPublicKey.maximumLength).contains(modulus.count) else { throw .modulus }
        guard let key = RSAPublicKey(modulus: modulus, exponent: exponent) else { throw .exponent }
        guard sha1(rid + [index] + modulus + exponent) == checksum else { throw .checksum }
        self.environment = environment
        self.rid = rid
        self.index = index
        self.expiration = expiration
        self.checksum = checksum
        self.key = key
    }
}

/// An error in the values of a certification authority's public key.
public enum CAPublicKeyError: String, Error, Hashable, Sendable, CustomStringConvertible {
    case rid = "a RID has 5 bytes"
    case modulus = "a modulus has 64 to 248 bytes"
    case exponent = "the exponent is 3 or 65537, in 1 to 3 bytes"
    case checksum = "the checksum is not that of RID, index, modulus and exponent"

    public var description: String { rawValue }
}
