public import SmartCard

/// Test keys of a card and its issuer, with the lengths of a real card's keys, and their signatures (EMV Book 2, 5 and
/// 6).
///
/// The same lengths always give the same keys.  Anyone can compute the private keys, so the signatures prove nothing.
public struct TestCertification: Sendable {
    /// The lengths of the moduli and the exponents in bytes; exponents: 1 for 03, 3 for 010001.
    public struct Lengths: Hashable, Sendable {
        public var authority: Int
        public var issuer: Int
        public var issuerExponent: Int
        /// The length of the card's modulus; nil for a card that signs nothing itself.
        public var card: Int?
        public var cardExponent: Int

        public init(authority: Int, issuer: Int, issuerExponent: Int, card: Int?, cardExponent: Int) {
            self.authority = authority
            self.issuer = issuer
            self.issuerExponent = issuerExponent
            self.card = card
            self.cardExponent = cardExponent
        }
    }

    private let keys: CardAuthentication
    /// The key that a terminal needs to authenticate the card: one of ``VirtualCards/certificationAuthorityKeys`` if
    /// that is long enough.
    public let authority: CertificationAuthorityKey

    /// - Parameters:
    ///   - rid: 5 bytes.
    ///   - accountNumber: digits, 8 to 19.
    ///   - lengths: the lengths of the moduli and exponents, in bytes.
    ///   - staticDataFormat: 03, or 93 for online authorizations only (EMV Contactless Book C-3).
    ///   - dataAuthenticationCode: 2 bytes.
    /// - Returns: nil if EMV does not permit such lengths, or a key is longer than the one that certifies it.
    public init?(
        rid: [UInt8], accountNumber: [UInt8], lengths: Lengths, staticDataFormat: UInt8 = 0x03,
        dataAuthenticationCode: [UInt8] = [0xDA, 0xC0]
    ) {
        guard rid.count == 5, (8...19).contains(accountNumber.count), dataAuthenticationCode.count == 2,
            lengths.authority >= lengths.issuer, lengths.issuer >= lengths.card ?? 0,
            let authority = TestKeys.authority(rid: rid, length: lengths.authority),
            let issuer = RSAKey.minted("issuer", length: lengths.issuer, exponentLength: lengths.issuerExponent)
        else { return nil }
        var card: CardAuthentication.Certificate?
        if let length = lengths.card {
            guard let key = RSAKey.minted("card", length: length, exponentLength: lengths.cardExponent) else {
                return nil
            }
            card = .init(key: key, expires: Self.expires, serial: [0x00, 0x00, 0x02])
        }
        self.authority = authority.publicKey
        keys = CardAuthentication(
            authority: authority.key, authorityIndex: authority.publicKey.index,
            issuer: .init(key: issuer, expires: Self.expires, serial: [0x00, 0x00, 0x01]),
            issuerIdentifier: CardFileReader.packed(Array(accountNumber.prefix(6)), 4), card: card,
            pan: CardFileReader.packed(accountNumber, 10), staticDataFormat: staticDataFormat,
            dataAuthenticationCode: dataAuthenticationCode)
    }

    /// MMYY.
    private static let expires: [UInt8] = [0x12, 0x49]

    /// The objects that follow from the keys: 8F, 90, 92, 9F32, 93, and of a card that signs 9F46, 9F48, 9F47.
    ///
    /// - Parameter staticData: the static data to be authenticated (EMV Book 3, 10.3).
    /// - Returns: nil if libcrypto refuses.
    public func objects(staticData: [UInt8]) -> [TLVTag: [UInt8]]? {
        guard let values = keys.values(staticData: staticData) else { return nil }
        let tags: [(TLVTag, NamedValue)] = [
            (0x8F, .authorityIndex), (0x90, .issuerCertificate), (0x92, .issuerRemainder), (0x9F32, .issuerExponent),
            (0x93, .signedStaticData), (0x9F46, .cardCertificate), (0x9F48, .cardRemainder), (0x9F47, .cardExponent),
        ]
        return Dictionary(uniqueKeysWithValues: tags.compactMap { tag, name in values[name].map { (tag, $0) } })
    }

    /// Returns the Signed Dynamic Application Data (EMV Book 2, 6.5.1 and 6.6.1).
    ///
    /// - Parameters:
    ///   - format: Signed Data Format.
    ///   - dynamicData: ICC Dynamic Data.
    ///   - terminalData: data that the hash covers in addition.
    /// - Returns: nil if the card has no key, or the key is too short.
    public func signedDynamicData(format: UInt8, dynamicData: [UInt8], terminalData: [UInt8]) -> [UInt8]? {
        keys.signedDynamicData(format: format, dynamicData: dynamicData, terminalData: terminalData)
    }

    /// SHA-1, 20 bytes, as the Transaction Data Hash Code of CDA is made.
    public func hash(_ message: [UInt8]) -> [UInt8] { RSAKey.sha1(message) ?? [UInt8](repeating: 0, count: 20) }

    /// The block `authentication` of a card file for a card with these keys.
    public var cardFileText: String {
        func key(_ key: RSAKey) -> String {
            "{\nexponent \(key.exponent.hex)\nmodulus {\n\(key.modulus.hex)\n}\n"
                + "private-exponent {\n\(key.privateExponent.hex)\n}\n}"
        }
        func certificate(_ name: String, _ one: CardAuthentication.Certificate) -> String {
            "\(name) {\nkey \(key(one.key))\nexpires \(one.expires.hex)\nserial \(one.serial.hex)\n}\n"
        }
        return "authentication {\nauthority \([keys.authorityIndex].hex) \(key(keys.authority))\n"
            + certificate("issuer", keys.issuer) + (keys.card.map { certificate("card", $0) } ?? "")
            + "static-data-format \([keys.staticDataFormat].hex)\n"
            + "data-authentication-code \(keys.dataAuthenticationCode.hex)\n}\n"
    }
}
