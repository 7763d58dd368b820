public import Foundation

/// The authorities that a reader believes, with the signers and revocation lists that go with them (ICAO 9303-12, 4).
///
/// None is shipped: whoever runs the reader decides whom to believe, and imports master lists, LDIF files or single
/// certificates with ``add(_:source:at:)``.
public struct TrustList: Sendable {
    /// The origin of an entry.
    public struct Origin: Hashable, Sendable, Codable {
        /// The name of a file, or whatever tells the source.
        public let source: String
        /// The date of the import.
        public let date: Date
    }

    /// Something in the list.
    public struct Entry: Hashable, Sendable {
        public enum Object: Hashable, Sendable {
            /// A country signing authority: believed if its own key signed it, or if a believed one did.
            case authority(Certificate)
            /// A document signer, for files that leave it out.  It is not believed for being here.
            case signer(Certificate)
            /// A revocation list, used once an authority's signature over it was verified.
            case revocationList(RevocationList)
        }

        public let object: Object
        public let origin: Origin
    }

    /// The entries.  An object that several sources contain is there once for each.
    public private(set) var entries: [Entry] = []
    private var objects: Set<Entry.Object> = []
    private var authoritiesByName: [DistinguishedName: [Certificate]] = [:]
    private(set) var signers: [Certificate] = []
    private(set) var revocationLists: [RevocationList] = []

    public init() {}

    /// The certificates of country signing authorities.
    public var authorities: [Certificate] {
        var seen: Set<Certificate> = []
        return entries.compactMap {
            if case .authority(let certificate) = $0.object, seen.insert(certificate).inserted {
                certificate
            } else {
                nil
            }
        }
    }

    /// The origin of a certificate of the list.
    public func origin(of certificate: Certificate) -> Origin? {
        entries.first { $0.object == .authority(certificate) || $0.object == .signer(certificate) }?.origin
    }

    /// The authorities that may be the issuer that a certificate or a list names.
    func authorities(for issuer: DistinguishedName, keyIdentifier: [UInt8]?) -> [Certificate] {
        authoritiesByName[issuer, default: []].filter { $0.mayIssue(for: issuer, keyIdentifier: keyIdentifier) }
    }

    /// Adds an object.
    ///
    /// - Returns: false if it was there already.
    @discardableResult mutating func add(_ object: Entry.Object, _ origin: Origin) -> Bool {
        guard objects.insert(object).inserted else {
            let isListed = entries.contains { $0.object == object && $0.origin.source == origin.source }
            if !isListed { entries.append(Entry(object: object, origin: origin)) }
            return false
        }
        entries.append(Entry(object: object, origin: origin))
        switch object {
        case .authority(let certificate): authoritiesByName[certificate.subject, default: []].append(certificate)
        case .signer(let certificate): signers.append(certificate)
        case .revocationList(let list): revocationLists.append(list)
        }
        return true
    }

    /// Removes what comes from a source and from no other, as before its next edition is imported.
    public mutating func remove(source: String) {
        let left = entries.filter { $0.origin.source != source }
        self = TrustList()
        for entry in left { add(entry.object, entry.origin) }
    }

    /// Adds a certificate that the caller believes.
    ///
    /// - Returns: false if it was there already.
    @discardableResult public mutating func add(authority: Certificate, source: String, at date: Date) -> Bool {
        add(.authority(authority), Origin(source: source, date: date))
    }
}
