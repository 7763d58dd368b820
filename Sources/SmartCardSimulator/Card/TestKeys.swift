import SmartCard

/// The keys that a card file can name: those of `Cards/test.keys`, all of them TEST keys.
struct TestKeys: Sendable {
    struct Authority: Sendable {
        var publicKey: CertificationAuthorityKey
        var key: RSAKey
    }

    var authorities: [Authority] = []
    /// The keys of issuers and cards by their names.
    var keys: [String: RSAKey] = [:]

    /// The keys that come with the library.
    static let builtIn = (try? TestKeys(parsing: PackageResources.test_keys)) ?? TestKeys()

    private init() {}

    /// Reads a file of keys.
    init(parsing bytes: [UInt8]) throws(CardFileError) {
        let file = try CardFileSyntax.parse(bytes)
        guard file.keyword == "keys" else { throw file.error("a file of keys begins with “keys”") }
        var section = try CardFileReader.Section(file, ["authority", "key"])
        for statement in section.all("authority") {
            try statement.arguments(count: 2...2, "authority RID INDEX { … }")
            let name = try statement.value().bytes([:])
            guard name.count == 6 else { throw statement.error("a RID has 5 bytes, an index 1") }
            var body = try CardFileReader.Section(
                statement, ["expires", "checksum"] + CardFileReader.keyStatements)
            let expires = try body.required("expires").bytes(3...3)
            let checksum = try body.required("checksum").bytes(20...20)
            let key = try CardFileReader.key(&body)
            authorities.append(
                Authority(
                    publicKey: CertificationAuthorityKey(
                        rid: Array(name.prefix(5)), index: name[5], modulus: key.modulus, exponent: key.exponent,
                        checksum: checksum, expires: expires),
                    key: key))
        }
        for statement in section.all("key") {
            try statement.arguments(count: 1...1, "key NAME { … }")
            var body = try CardFileReader.Section(statement, CardFileReader.keyStatements)
            keys[statement.arguments[0].text] = try CardFileReader.key(&body)
        }
    }

    func authority(rid: [UInt8], index: UInt8) -> RSAKey? {
        authorities.first { $0.publicKey.rid == rid && $0.publicKey.index == index }?.key
    }

    // MARK: Authorities of every scheme

    /// The schemes without cards in the library whose cards may occur in traces: American Express, Discover, JCB,
    /// UnionPay, Interac, and the two in the file of keys.
    private static let schemes: [[UInt8]] = [
        [0xA0, 0x00, 0x00, 0x00, 0x03], [0xA0, 0x00, 0x00, 0x00, 0x04], [0xA0, 0x00, 0x00, 0x00, 0x25],
        [0xA0, 0x00, 0x00, 0x01, 0x52], [0xA0, 0x00, 0x00, 0x00, 0x65], [0xA0, 0x00, 0x00, 0x03, 0x33],
        [0xA0, 0x00, 0x00, 0x02, 0x77],
    ]

    /// The authorities of the file, and for each scheme one with each length of key that they have.
    static let all: [Authority] = schemes.reduce(into: builtIn.authorities) { all, rid in
        for length in Set(builtIn.authorities.map(\.key.modulus.count)).sorted()
        where !all.contains(where: { $0.publicKey.rid == rid && $0.key.modulus.count == length }) {
            if let one = minted(rid: rid, length: length) { all.append(one) }
        }
    }

    /// The authority of a scheme with a key of `length` bytes: one of ``all`` if there is such a one.
    ///
    /// - Returns: nil if EMV has no keys of that length.
    static func authority(rid: [UInt8], length: Int) -> Authority? {
        all.first { $0.publicKey.rid == rid && $0.key.modulus.count == length } ?? minted(rid: rid, length: length)
    }

    private static func minted(rid: [UInt8], length: Int) -> Authority? {
        let key =
            builtIn.authorities.first { $0.key.modulus.count == length }?.key
            ?? RSAKey.minted("authority", length: length, exponentLength: 1)
        guard let key else { return nil }
        // D0 to EE, where no scheme has published a key; the usual lengths of keys have an index each.
        let index = 0xD0 + UInt8(length % 31)
        guard let checksum = RSAKey.sha1(rid + [index] + key.modulus + key.exponent) else { return nil }
        return Authority(
            publicKey: CertificationAuthorityKey(
                rid: rid, index: index, modulus: key.modulus, exponent: key.exponent, checksum: checksum,
                expires: [0x49, 0x12, 0x31]),
            key: key)
    }
}

/// The public key of a certification authority (EMV Book 2, 11.2.2) that has certified virtual cards.
///
/// Its private half is published with the library, so a terminal that takes money must not know it.
public struct CertificationAuthorityKey: Hashable, Sendable {
    /// Registered application provider identifier, 5 bytes.
    public let rid: [UInt8]
    /// Certification Authority Public Key Index (8F), at which no scheme has published a key.
    public let index: UInt8
    /// Most significant byte first.
    public let modulus: [UInt8]
    /// 03 or 010001.
    public let exponent: [UInt8]
    /// SHA-1 over RID, index, modulus and exponent.
    public let checksum: [UInt8]
    /// The last day of its use, YYMMDD in binary coded decimal, 3 bytes.
    public let expires: [UInt8]
}

extension VirtualCards {
    /// The keys that a terminal needs to authenticate the library's cards, and cards made from traces with keys of the
    /// usual lengths.
    public static var certificationAuthorityKeys: [CertificationAuthorityKey] { TestKeys.all.map(\.publicKey) }
}
