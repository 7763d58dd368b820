public import SmartCard

/// Offline data authentication (EMV Book 2, 5 and 6; EMV Contactless Book C-3, Annex C): the terminal's trusted keys
/// for one transaction, and the verification of the card with them.
///
/// A kernel passes the data that it read, and converts the verdict to its terminal verification results:
///
///     let oda = OfflineDataAuthentication(keys: .published, environment: .live, aid: aid, date: date)
///     switch oda.iccKey(signing: records, data: { objects[$0] }) {
///     case .success(let key): …       // then key.cda(…), key.dda(…) or key.fdda(…)
///     case .failure(let failure): …   // CDA failed; and ICC data missing, if failure.isDataMissing
///     }
///
/// `data` returns the value of a data object of the card, or nil if the card did not send it.
public struct OfflineDataAuthentication: Sendable {
    private let keys: CAPublicKeys
    private let environment: CAPublicKey.Environment
    private let rid: [UInt8]
    private let date: CalendarDate

    /// Creates the keys for one transaction.
    ///
    /// - Parameters:
    ///   - keys: the keys that the terminal trusts.
    ///   - environment: the environment of the keys to use.
    ///   - aid: the selected application; its RID determines whose keys to use.
    ///   - date: the transaction date.
    public init(keys: CAPublicKeys, environment: CAPublicKey.Environment, aid: AID, date: CalendarDate) {
        self.keys = keys
        self.environment = environment
        rid = Array(aid.rid)
        self.date = date
    }

    /// Returns true if the terminal has the key that a card names by `index` (8F).
    func hasKey(index: UInt8) -> Bool { keys[environment, rid, index] != nil }

    /// Retrieves the issuer public key from 8F, 90, 92 and 9F32 (EMV Book 2, 5.2 and 5.3).
    public func issuerKey(data: (TLVTag) -> [UInt8]?) -> Result<IssuerPublicKey, AuthenticationFailure> {
        Result { () throws(AuthenticationFailure) in try retrieveIssuerKey(data) }
    }

    /// Retrieves the ICC public key, which also covers `records`, with the issuer's key and 9F46, 9F47 and 9F48 (EMV
    /// Book 2, 6.2 to 6.4).
    public func iccKey(
        signing records: StaticDataToBeAuthenticated, data: (TLVTag) -> [UInt8]?
    ) -> Result<ICCPublicKey, AuthenticationFailure> {
        Result { () throws(AuthenticationFailure) in
            let issuerKey = try retrieveIssuerKey(data)
            return try retrieveICCKey(.icc, issuerKey, data, staticData: try records.input(data))
        }
    }

    /// Retrieves the ICC PIN encipherment public key with the issuer's key and 9F2D, 9F2E and 9F2F (EMV Book 2, 7.1).
    public func pinEnciphermentKey(data: (TLVTag) -> [UInt8]?) -> Result<ICCPublicKey, AuthenticationFailure> {
        Result { () throws(AuthenticationFailure) in
            try retrieveICCKey(.pinEncipherment, try retrieveIssuerKey(data), data, staticData: [])
        }
    }

    /// Performs static data authentication: verifies 93, the issuer's signature of `records` (EMV Book 2, 5.4).
    ///
    /// - Parameters:
    ///   - records: the signed records, in the order in which they were read.
    ///   - purpose: the purpose in this transaction.  A signature for the other purpose fails.
    ///   - data: the card's values by tag.
    public func sda(
        of records: StaticDataToBeAuthenticated, for purpose: SignaturePurpose = .offlineApproval,
        data: (TLVTag) -> [UInt8]?
    ) -> Result<SignedStaticData, AuthenticationFailure> {
        Result { () throws(AuthenticationFailure) in
            let issuerKey = try retrieveIssuerKey(data)
            let staticData = try records.input(data)
            guard let signature = data(0x93), !signature.isEmpty else {
                throw AuthenticationFailure(.signedStaticData, .missing(0x93))
            }
            // EMV Book 2, table 7: format 03, hash algorithm, data authentication code 2, padding.
            let recovered = try RecoveredData(
                .signedStaticData, signature, by: issuerKey.key, format: purpose.format(0x03), minimumLength: 5)
            try recovered.verify(algorithm: recovered[2], rest: staticData)
            return SignedStaticData(issuerKey: issuerKey, dataAuthenticationCode: Array(recovered[3..<5]))
        }
    }

    private func retrieveIssuerKey(_ data: (TLVTag) -> [UInt8]?) throws(AuthenticationFailure) -> IssuerPublicKey {
        // EMV Book 2, 5.2: the index and the RID name the key.
        guard let value = data(0x8F) else { throw AuthenticationFailure(.caPublicKey, .missing(0x8F)) }
        guard value.count == 1 else { throw AuthenticationFailure(.caPublicKey, .malformed(0x8F)) }
        guard let authority = keys[environment, rid, value[0]] else {
            throw AuthenticationFailure(.caPublicKey, .unknownKey)
        }
        if let last = authority.expiration, last < date { throw AuthenticationFailure(.caPublicKey, .expired) }
        let certificate = try PublicKeyCertificate(.issuer, data, by: authority.key, on: date)

        // EMV Book 2, 5.3 step 8: the leftmost 3 to 8 digits of the account number.
        let identifier = certificate.identifier
        guard identifier.isFilled, (3...8).contains(identifier.digits.count),
            try accountNumber(data).starts(with: identifier.digits)
        else { throw AuthenticationFailure(.issuerCertificate, .accountNumber) }

        // EMV Book 2, 5.3 step 10.
        let name = RevokedCertificate(rid: rid, index: authority.index, serialNumber: certificate.serialNumber)
        guard !keys.revoked.contains(name) else { throw AuthenticationFailure(.issuerCertificate, .revoked) }
        return IssuerPublicKey(
            caIndex: authority.index, serialNumber: certificate.serialNumber, key: certificate.key)
    }

    private func retrieveICCKey(
        _ form: PublicKeyCertificate.Form, _ issuerKey: IssuerPublicKey, _ data: (TLVTag) -> [UInt8]?,
        staticData: [UInt8]
    ) throws(AuthenticationFailure) -> ICCPublicKey {
        let certificate = try PublicKeyCertificate(
            form, data, by: issuerKey.key, staticData: staticData, on: date)
        // EMV Book 2, 6.4 step 8.
        let identifier = certificate.identifier
        guard identifier.isFilled, try accountNumber(data) == identifier.digits else {
            throw AuthenticationFailure(form.subject, .accountNumber)
        }
        return ICCPublicKey(issuerKey: issuerKey, serialNumber: certificate.serialNumber, key: certificate.key)
    }

    /// Returns the digits of the account number: 5A, or the part of 57 before the separator `D` if the card did not
    /// send 5A, as contactless cards may.
    private func accountNumber(
        _ data: (TLVTag) -> [UInt8]?
    ) throws(AuthenticationFailure) -> ArraySlice<UInt8> {
        let tag: TLVTag = data(0x5A) != nil ? 0x5A : 0x57
        guard let value = data(tag) else { throw AuthenticationFailure(.accountNumber, .missing(0x5A)) }
        let number = PackedDigits(value)
        let isWhole = tag == 0x5A ? number.isFilled : number.rest.first == 0xD
        guard isWhole, (8...19).contains(number.digits.count) else {
            throw AuthenticationFailure(.accountNumber, .malformed(tag))
        }
        return number.digits
    }
}

/// The public key of an issuer, retrieved from its certificate.
public struct IssuerPublicKey: Hashable, Sendable {
    /// The index of the certification authority public key that signed the certificate (8F).
    public let caIndex: UInt8
    /// The certificate serial number, 3 bytes.
    public let serialNumber: [UInt8]
    let key: RSAPublicKey

    /// The modulus, most significant byte first.
    public var modulus: [UInt8] { key.modulus }
    /// The exponent, most significant byte first, as the card sent it.
    public var exponent: [UInt8] { key.exponent }
}

/// The public key of a card, retrieved from its certificate.
public struct ICCPublicKey: Hashable, Sendable {
    public let issuerKey: IssuerPublicKey
    /// The certificate serial number, 3 bytes.
    public let serialNumber: [UInt8]
    let key: RSAPublicKey

    /// The modulus, most significant byte first.
    public var modulus: [UInt8] { key.modulus }
    /// The exponent, most significant byte first, as the card sent it.
    public var exponent: [UInt8] { key.exponent }
}

/// The data that static data authentication verified.
public struct SignedStaticData: Hashable, Sendable {
    public let issuerKey: IssuerPublicKey
    /// The data authentication code, data element 9F45, 2 bytes.
    public let dataAuthenticationCode: [UInt8]
}
