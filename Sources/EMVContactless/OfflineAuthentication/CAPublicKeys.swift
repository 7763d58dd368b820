import SmartCard

/// The keys that a terminal trusts, and the revoked certificates.
public struct CAPublicKeys: Sendable {
    private struct Name: Hashable {
        let environment: CAPublicKey.Environment
        let rid: [UInt8]
        let index: UInt8
    }

    private var keys: [Name: CAPublicKey] = [:]
    /// The revoked certificates.
    public var revoked: CertificateRevocationList

    /// Creates a set of keys.  If several keys have the same environment, RID and index, the last one counts.
    public init(
        _ keys: some Sequence<CAPublicKey> = [CAPublicKey](),
        revoked: CertificateRevocationList = CertificateRevocationList()
    ) {
        self.revoked = revoked
        for key in keys { insert(key) }
    }

    /// All keys, by environment, RID and index.
    public var all: [CAPublicKey] {
        keys.values.sorted {
            ($0.environment.rawValue, $0.rid.hex, $0.index) < ($1.environment.rawValue, $1.rid.hex, $1.index)
        }
    }

    /// Returns the key that cards with AIDs of `rid` name by `index`.
    public subscript(
        environment: CAPublicKey.Environment, rid: some Collection<UInt8>, index: UInt8
    ) -> CAPublicKey? {
        keys[Name(environment: environment, rid: Array(rid), index: index)]
    }

    /// Adds a key, replacing one with the same environment, RID and index.
    public mutating func insert(_ key: CAPublicKey) {
        keys[Name(environment: key.environment, rid: key.rid, index: key.index)] = key
    }

    /// Adds the keys and the revocations of `other`, whose keys replace those here.
    public mutating func merge(_ other: CAPublicKeys) {
        keys.merge(other.keys) { $1 }
        revoked.formUnion(other.revoked)
    }
}

/// A list of issuer public key certificates that a scheme has revoked (EMV Book 2, 5.3 step 10).
public typealias CertificateRevocationList = Set<RevokedCertificate>

/// One entry of a certificate revocation list.
public struct RevokedCertificate: Hashable, Sendable {
    /// The registered application provider identifier, 5 bytes.
    public let rid: [UInt8]
    /// The index of the certification authority public key that signed the certificate.
    public let index: UInt8
    /// The certificate serial number, 3 bytes.
    public let serialNumber: [UInt8]

    public init(rid: some Collection<UInt8>, index: UInt8, serialNumber: some Collection<UInt8>) {
        self.rid = Array(rid)
        self.index = index
        self.serialNumber = Array(serialNumber)
    }
}
