import SmartCard

/// The issuing state of the virtual passports, Utopia: a TEST country signing authority (CSCA) and a TEST document signer
/// (ICAO 9303-12).
///
/// Their private keys follow from their names, so that everybody has them, and whatever they sign proves nothing.
public enum TestIssuingState {
    /// The certificate of the country signing authority, in DER: what a reader has to trust for these passports.
    ///
    /// Blocks for about a second when it is first called, while the key is found.
    public static var authorityCertificate: [UInt8] { authority.certificate ?? [] }

    /// The data group digests, signed: EF.SOD (ICAO 9303-10, 4.6.2).
    ///
    /// - Parameters:
    ///   - groups: the data groups by number, each complete with its tag.
    ///   - signerHasExpired: true for a signer that was valid until the end of 2019.
    static func securityObject(of groups: [UInt8: [UInt8]], signerHasExpired: Bool) -> [UInt8]? {
        let digests = groups.sorted { $0.key < $1.key }.map { number, file in
            DER.sequence(DER.integer(number), DER.octets(RSAKey.sha256(file) ?? []))
        }
        // ICAO 9303-10, 4.6.2.3: version 0.
        let content = DER.sequence(DER.integer(0), DER.algorithm(.sha256), DER.sequence(digests))
        return signed(content, .ldsSecurityObject, signerHasExpired: signerHasExpired).map(TLVTag(0x77).encode)
    }

    /// EF.CardSecurity (ICAO 9303-10, 3.11.4): the variant of PACE, and the public key of the chip on its curve
    /// (ICAO 9303-11, 9.2.4), signed.
    static func cardSecurity(of offer: PassportPACE.Offer) -> [UInt8]? {
        let number = DER.integer(UInt8(truncatingIfNeeded: offer.parameters))
        guard let publicKey = (offer.group as? ChipCurve)?.publicKey(of: chipAuthenticationKey) else { return nil }
        let key = DER.sequence(
            DER.sequence(DER.oid(.standardizedDomainParameters), number), DER.bits(publicKey))
        let infos = DER.set(offer.info, DER.sequence(DER.oid(.chipAuthenticationPublicKey), key, number))
        return signed(infos, .securityObject, signerHasExpired: false)
    }

    /// The private key of chip authentication mapping, on every curve.
    static let chipAuthenticationKey =
        RSAKey.sha256(
            Array("swift-contactless TEST chip authentication mapping".utf8)) ?? []

    /// SignedData with the content and the signer's certificate (RFC 5652, 5).
    private static func signed(
        _ content: [UInt8], _ contentType: DER.Identifier, signerHasExpired: Bool
    ) -> [UInt8]? {
        guard let key = signerKey, let certificate = signerCertificate(hasExpired: signerHasExpired) else { return nil }
        // RFC 5652, 5.3 and 11: the signature is over the attributes as a SET.
        let attributes =
            DER.sequence(DER.oid(.contentType), DER.set(DER.oid(contentType)))
            + DER.sequence(DER.oid(.messageDigest), DER.set(DER.octets(RSAKey.sha256(content) ?? [])))
        guard let signature = key.signature(over: DER.set(attributes)) else { return nil }
        let signer = DER.sequence(
            DER.integer(1), DER.sequence(authority.name, DER.integer(signerHasExpired ? 2 : 3)), DER.algorithm(.sha256),
            DER.tagged(0xA0, attributes), DER.algorithm(.rsaEncryption), DER.octets(signature))
        let data = DER.sequence(
            DER.integer(3), DER.set(DER.algorithm(.sha256)),
            DER.sequence(DER.oid(contentType), DER.tagged(0xA0, DER.octets(content))),
            DER.tagged(0xA0, certificate), DER.set(signer))
        return DER.sequence(DER.oid(.signedData), DER.tagged(0xA0, data))
    }

    /// A key with which a chip proves that it is the original: 1536 bits, so that a signature fits a short response under
    /// secure messaging.
    ///
    /// - Parameter isCopy: true for the key of a chip that has only the files of another.
    static func activeAuthenticationKey(isCopy: Bool) -> RSAKey? {
        RSAKey.minted(isCopy ? "copied passport chip" : "passport chip", length: 192, exponentLength: 3)
    }

    /// DG15 with the public key of the original (ICAO 9303-10, 4.7.15).
    static var dataGroup15: [UInt8]? {
        activeAuthenticationKey(isCopy: false).map { TLVTag(0x6F).encode(DER.publicKeyInfo($0)) }
    }

    // MARK: Certificates

    private static let authority = makeAuthority()
    private static var signerKey: RSAKey? { RSAKey.minted("document signer", length: keyLength, exponentLength: 3) }
    /// 1984 bits.
    private static let keyLength = 248
    /// Subject key identifier of the authority, any number of its own.
    private static let authorityIdentifier: [UInt8] = [0x55, 0x54, 0x4F, 0x01]

    /// ICAO 9303-12, 7.1.1, profile of a CSCA.
    private static func makeAuthority() -> (key: RSAKey?, name: [UInt8], certificate: [UInt8]?) {
        let name = DER.name(country: "UT", "TEST CSCA")
        let key = RSAKey.minted("CSCA", length: keyLength, exponentLength: 3)
        let certificate = certificate(
            serial: 1, subject: name, issuer: name, validity: ("20150101000000Z", "20491231235959Z"), key,
            signedBy: key,
            extensions: [
                DER.extension(.basicConstraints, isCritical: true, DER.sequence(DER.true, DER.integer(0))),
                DER.extension(.keyUsage, isCritical: true, [0x03, 0x02, 0x01, 0x06]),
                DER.extension(.subjectKeyIdentifier, DER.octets(authorityIdentifier)),
            ])
        return (key, name, certificate)
    }

    /// ICAO 9303-12, 7.1.1, profile of a document signer, for documents of the types P and I.
    private static func signerCertificate(hasExpired: Bool) -> [UInt8]? {
        certificate(
            serial: hasExpired ? 2 : 3, subject: DER.name(country: "UT", "TEST document signer"),
            issuer: authority.name,
            validity: hasExpired ? ("20150101000000Z", "20191231235959Z") : ("20200101000000Z", "20491231235959Z"),
            signerKey, signedBy: authority.key,
            extensions: [
                DER.extension(.keyUsage, isCritical: true, [0x03, 0x02, 0x07, 0x80]),
                DER.extension(.authorityKeyIdentifier, DER.sequence(DER.tagged(0x80, authorityIdentifier))),
                DER.extension(
                    .documentTypeList, DER.sequence(DER.integer(0), DER.set(DER.printable("I"), DER.printable("P")))),
            ])
    }

    /// RFC 5280, 4.1.
    private static func certificate(
        serial: UInt8, subject: [UInt8], issuer: [UInt8], validity: (from: String, to: String), _ key: RSAKey?,
        signedBy issuerKey: RSAKey?, extensions: [[UInt8]]
    ) -> [UInt8]? {
        guard let key, let issuerKey else { return nil }
        let contents = DER.sequence(
            DER.tagged(0xA0, DER.integer(2)), DER.integer(serial), DER.algorithm(.sha256WithRSAEncryption), issuer,
            DER.sequence(DER.time(validity.from), DER.time(validity.to)), subject,
            DER.publicKeyInfo(key),
            DER.tagged(0xA3, DER.sequence(extensions)))
        guard let signature = issuerKey.signature(over: contents) else { return nil }
        return DER.sequence(contents, DER.algorithm(.sha256WithRSAEncryption), DER.bits(signature))
    }
}

/// The Distinguished Encoding Rules (ITU-T X.690), as far as certificates and signatures need them.
private enum DER {
    /// Object identifiers, encoded, as hexadecimal digits.
    enum Identifier: String {
        case rsaEncryption = "2A864886F70D010101"
        case sha256WithRSAEncryption = "2A864886F70D01010B"
        case sha256 = "608648016503040201"
        case signedData = "2A864886F70D010702"
        case contentType = "2A864886F70D010903"
        case messageDigest = "2A864886F70D010904"
        case countryName = "550406"
        case commonName = "550403"
        case subjectKeyIdentifier = "551D0E"
        case keyUsage = "551D0F"
        case basicConstraints = "551D13"
        case authorityKeyIdentifier = "551D23"
        /// 2.23.136.1.1.1 (ICAO 9303-10, 4.6.2).
        case ldsSecurityObject = "678108010101"
        /// id-SecurityObject, 0.4.0.127.0.7.3.2.1 (BSI TR-03110-3, A.1.2.5).
        case securityObject = "04007F0007030201"
        /// id-PK-ECDH, 0.4.0.127.0.7.2.2.1.2 (ICAO 9303-11, 9.2.4).
        case chipAuthenticationPublicKey = "04007F000702020102"
        /// 0.4.0.127.0.7.1.2 (ICAO 9303-11, 9.5.1).
        case standardizedDomainParameters = "04007F00070102"
        /// 2.23.136.1.1.6.2 (ICAO 9303-12, 7.1.1).
        case documentTypeList = "67810801010602"
    }

    static let `true`: [UInt8] = [0x01, 0x01, 0xFF]

    static func tagged(_ tag: UInt32, _ content: [UInt8]) -> [UInt8] { TLVTag(rawValue: tag).encode(content) }
    static func sequence(_ parts: [UInt8]...) -> [UInt8] { sequence(parts) }
    static func sequence(_ parts: [[UInt8]]) -> [UInt8] { tagged(0x30, Array(parts.joined())) }
    /// The parts stand in the order of their encodings (X.690, 11.6).
    static func set(_ parts: [UInt8]...) -> [UInt8] { tagged(0x31, Array(parts.joined())) }
    static func octets(_ bytes: [UInt8]) -> [UInt8] { tagged(0x04, bytes) }
    static func bits(_ bytes: [UInt8]) -> [UInt8] { tagged(0x03, [0x00] + bytes) }
    static func printable(_ text: String) -> [UInt8] { tagged(0x13, Array(text.utf8)) }
    /// `20200101000000Z`; up to 2049 without the century (RFC 5280, 4.1.2.5).
    static func time(_ text: String) -> [UInt8] { tagged(0x17, Array(text.utf8.dropFirst(2))) }
    static func oid(_ identifier: Identifier) -> [UInt8] {
        tagged(0x06, (try? [UInt8](hex: identifier.rawValue)) ?? [])
    }

    static func integer(_ number: UInt8) -> [UInt8] { integer([number]) }
    /// A natural number, most significant byte first.
    static func integer(_ bytes: [UInt8]) -> [UInt8] {
        tagged(0x02, (bytes.first.map { $0 & 0x80 != 0 } ?? true ? [0x00] : []) + bytes)
    }

    static func algorithm(_ identifier: Identifier) -> [UInt8] { sequence(oid(identifier), [0x05, 0x00]) }

    /// RFC 8017, A.1.1, in RFC 5280, 4.1.2.7.
    static func publicKeyInfo(_ key: RSAKey) -> [UInt8] {
        sequence(algorithm(.rsaEncryption), bits(sequence(integer(key.modulus), integer(key.exponent))))
    }

    static func name(country: String, _ common: String) -> [UInt8] {
        sequence(
            set(sequence(oid(.countryName), printable(country))),
            set(sequence(oid(.commonName), printable(common))))
    }

    static func `extension`(_ identifier: Identifier, isCritical: Bool = false, _ value: [UInt8]) -> [UInt8] {
        sequence(oid(identifier), isCritical ? `true` : [], octets(value))
    }
}
