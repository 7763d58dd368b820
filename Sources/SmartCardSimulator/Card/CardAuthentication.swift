import SmartCard

/// The key chain and signatures that prove a card is its issuer's (EMV Book 2, 5 and 6).
///
/// Each key in the chain is certified by the one before it.
struct CardAuthentication: Hashable, Sendable {
    /// The contents of a certificate apart from its key.
    struct Certificate: Hashable, Sendable {
        var key: RSAKey
        /// MMYY, 2 bytes.
        var expires: [UInt8]
        /// 3 bytes.
        var serial: [UInt8]
    }

    /// The key of the certification authority.  The card shows only its index.
    var authority: RSAKey
    var authorityIndex: UInt8
    var issuer: Certificate
    /// The leftmost digits of the account number, padded with F, 4 bytes.
    var issuerIdentifier: [UInt8]
    /// The card's own key; nil for a card that signs nothing itself.
    var card: Certificate?
    /// The account number, padded with F, 10 bytes.
    var pan: [UInt8]
    /// The Signed Data Format of static data: 03, or 93 for online authorizations only (EMV Contactless Book C-3).
    var staticDataFormat: UInt8
    /// 2 bytes.
    var dataAuthenticationCode: [UInt8]

    /// Returns the objects of the card that follow from its keys, by their names in a card file.
    ///
    /// - Parameter staticData: the static data to be authenticated (EMV Book 3, 10.3).
    /// - Returns: nil if libcrypto refuses.
    func values(staticData: [UInt8]) -> [NamedValue: [UInt8]]? {
        // EMV Book 2, 5.1: the format, the issuer identifier, and the fields that every certificate contains.
        guard let first = certify(issuer, [0x02] + issuerIdentifier, by: authority, staticData: []),
            let signed = signedStaticData(staticData)
        else { return nil }
        var values: [NamedValue: [UInt8]] = [
            .authorityIndex: [authorityIndex], .signedStaticData: signed,
            .issuerCertificate: first.certificate, .issuerRemainder: first.remainder,
            .issuerExponent: issuer.key.exponent,
        ]
        if let card {
            // EMV Book 2, 6.1.
            guard let second = certify(card, [0x04] + pan, by: issuer.key, staticData: staticData) else { return nil }
            values[.cardCertificate] = second.certificate
            values[.cardRemainder] = second.remainder
            values[.cardExponent] = card.key.exponent
        }
        return values
    }

    /// Returns a certificate, and the rest of the key that does not fit into it.
    private func certify(
        _ subject: Certificate, _ head: [UInt8], by signer: RSAKey, staticData: [UInt8]
    ) -> (certificate: [UInt8], remainder: [UInt8])? {
        let key = subject.key
        // Hash algorithm SHA-1, public key algorithm RSA, the lengths of modulus and exponent.
        let fields =
            head + subject.expires + subject.serial
            + [0x01, 0x01, UInt8(truncatingIfNeeded: key.modulus.count), UInt8(truncatingIfNeeded: key.exponent.count)]
        let room = signer.modulus.count - 22 - fields.count
        let remainder = Array(key.modulus.dropFirst(room))
        let certificate = signer.sign(
            recoverable: fields + Self.filled(Array(key.modulus.prefix(room)), room),
            rest: remainder + key.exponent + staticData)
        return certificate.map { ($0, remainder) }
    }

    /// Signed Static Application Data (EMV Book 2, 5.1).
    private func signedStaticData(_ staticData: [UInt8]) -> [UInt8]? {
        let fields = [staticDataFormat, 0x01] + dataAuthenticationCode
        return issuer.key.sign(
            recoverable: Self.filled(fields, issuer.key.modulus.count - 22), rest: staticData)
    }

    /// Returns the Signed Dynamic Application Data (EMV Book 2, 6.5.1 and 6.6.1).
    ///
    /// - Parameters:
    ///   - format: Signed Data Format.
    ///   - dynamicData: ICC Dynamic Data.
    ///   - terminalData: data that the hash covers in addition.
    /// - Returns: nil if the card has no key, or the key is too short.
    func signedDynamicData(format: UInt8, dynamicData: [UInt8], terminalData: [UInt8]) -> [UInt8]? {
        guard let key = card?.key, dynamicData.count <= key.modulus.count - 25 else { return nil }
        let fields = [format, 0x01, UInt8(truncatingIfNeeded: dynamicData.count)] + dynamicData
        return key.sign(recoverable: Self.filled(fields, key.modulus.count - 22), rest: terminalData)
    }

    /// `BB` up to `count` bytes.
    private static func filled(_ bytes: [UInt8], _ count: Int) -> [UInt8] {
        bytes + [UInt8](repeating: 0xBB, count: max(0, count - bytes.count))
    }
}
