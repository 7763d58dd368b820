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

    /// Those that come with the library.
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
    /// What a terminal must know to authenticate the cards that come with the library.
    public static var certificationAuthorityKeys: [CertificationAuthorityKey] {
        TestKeys.builtIn.authorities.map(\.publicKey)
    }
}
