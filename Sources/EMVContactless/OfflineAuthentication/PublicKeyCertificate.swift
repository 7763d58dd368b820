import SmartCard

/// The recovered data of a signature with message recovery (EMV Book 2, A2.1): `6A`, the signed part of the message,
/// its hash, `BC`.
///
/// Bytes are counted as in the tables of EMV Book 2, from the header on.
struct RecoveredData {
    private let bytes: [UInt8]
    private let subject: AuthenticationFailure.Subject

    /// Recovers data from a signature.
    ///
    /// - Parameters:
    ///   - format: the required byte after the header.
    ///   - minimumLength: the number of bytes in the table without hash and trailer, with empty variable fields.
    init(
        _ subject: AuthenticationFailure.Subject, _ signature: [UInt8], by key: RSAPublicKey, format: UInt8,
        minimumLength: Int
    ) throws(AuthenticationFailure) {
        // EMV Book 2, steps 1 to 4 of 5.3, 5.4, 6.4, 6.5.2 and 6.6.2.
        guard signature.count == key.modulus.count, signature.count >= minimumLength + 21 else {
            throw AuthenticationFailure(subject, .length)
        }
        guard let bytes = key.recover(signature) else { throw AuthenticationFailure(subject, .range) }
        self.subject = subject
        self.bytes = bytes
        try require(bytes[bytes.count - 1] == 0xBC, .trailer)
        try require(bytes[0] == 0x6A, .header)
        try require(bytes[1] == format, .format)
    }

    subscript(offset: Int) -> UInt8 { bytes[offset] }
    subscript(range: Range<Int>) -> ArraySlice<UInt8> { bytes[range] }
    /// The end of the signed part of the message, at which its hash begins.
    var end: Int { bytes.count - 21 }

    /// Verifies the hash over the signed part and `rest`, the part of the message outside the signature.
    func verify(algorithm: UInt8, rest: [UInt8]) throws(AuthenticationFailure) {
        try require(algorithm == 0x01, .hashAlgorithm)
        try require(sha1(bytes[1..<end] + rest).elementsEqual(bytes[end..<end + 20]), .hash)
    }

    func require(_ condition: Bool, _ reason: AuthenticationFailure.Reason) throws(AuthenticationFailure) {
        guard condition else { throw AuthenticationFailure(subject, reason) }
    }
}

/// A public key certificate that was recovered and checked.
struct PublicKeyCertificate {
    /// A form of certificate; the three forms differ only slightly (EMV Book 2, tables 6 and 14; 7.1).
    struct Form {
        let subject: AuthenticationFailure.Subject
        let certificate: TLVTag
        let remainder: TLVTag
        let exponent: TLVTag
        let format: UInt8
        /// The length of the issuer identifier or the account number in bytes.
        let identifierLength: Int

        static let issuer = Form(
            subject: .issuerCertificate, certificate: 0x90, remainder: 0x92, exponent: 0x9F32, format: 0x02,
            identifierLength: 4)
        static let icc = Form(
            subject: .iccCertificate, certificate: 0x9F46, remainder: 0x9F48, exponent: 0x9F47, format: 0x04,
            identifierLength: 10)
        static let pinEncipherment = Form(
            subject: .pinEnciphermentCertificate, certificate: 0x9F2D, remainder: 0x9F2F, exponent: 0x9F2E,
            format: 0x04, identifierLength: 10)
    }

    /// The issuer identifier or the account number.
    let identifier: PackedDigits
    /// 3 bytes.
    let serialNumber: [UInt8]
    let key: RSAPublicKey

    /// Recovers a certificate, and checks everything but the identifier and the revocation list.
    ///
    /// - Parameters:
    ///   - data: returns the value of a data object of the card.
    ///   - staticData: the data that the certificate signs besides its own contents.
    init(
        _ form: Form, _ data: (TLVTag) -> [UInt8]?, by authority: RSAPublicKey, staticData: [UInt8] = [],
        on date: CalendarDate
    ) throws(AuthenticationFailure) {
        func object(_ tag: TLVTag) throws(AuthenticationFailure) -> [UInt8] {
            guard let value = data(tag), !value.isEmpty else {
                throw AuthenticationFailure(form.subject, .missing(tag))
            }
            return value
        }
        let certificate = try object(form.certificate)
        let exponent = try object(form.exponent)
        // The fields after the identifier: expiration 2, serial number 3, hash algorithm, key algorithm, length of the
        // modulus, length of the exponent; then the modulus, or the part that fits.
        let fields = 2 + form.identifierLength
        let keyStart = fields + 9
        let recovered = try RecoveredData(
            form.subject, certificate, by: authority, format: form.format, minimumLength: keyStart)
        let keyLength = Int(recovered[fields + 7])
        let room = recovered.end - keyStart

        // EMV Book 2, 5.1 and 6.1: the part of the modulus that does not fit is the remainder; if there is none, a
        // card omits it or leaves it empty.
        let remainder = data(form.remainder) ?? []
        if keyLength > room, remainder.isEmpty { throw AuthenticationFailure(form.subject, .missing(form.remainder)) }
        try recovered.require(keyLength <= room || remainder.count == keyLength - room, .keyLength)
        try recovered.require(Int(recovered[fields + 8]) == exponent.count, .exponent)

        // EMV Book 2, 5.3 steps 5 to 7, 6.4 steps 5 to 7.
        try recovered.verify(algorithm: recovered[fields + 5], rest: remainder + exponent + staticData)

        // EMV Book 2, 5.3 step 9, 6.4 step 9: valid through the last day of the month.  The field is MMYY.
        guard let expiration = ExpirationDate(packed: [recovered[fields + 1], recovered[fields]]) else {
            throw AuthenticationFailure(form.subject, .malformed(form.certificate))
        }
        try recovered.require(!expiration.isOver(on: date), .expired)

        // EMV Book 2, 5.3 step 11, 6.4 step 10.
        try recovered.require(recovered[fields + 6] == 0x01, .keyAlgorithm)
        try recovered.require((1...RSAPublicKey.maximumLength).contains(keyLength), .keyLength)

        // EMV Book 2, 5.3 step 12, 6.4 step 11: `BB` fills the space after the modulus.
        let modulus = recovered[keyStart..<recovered.end] + remainder
        guard let key = RSAPublicKey(modulus: Array(modulus.prefix(keyLength)), exponent: exponent) else {
            throw AuthenticationFailure(form.subject, .exponent)
        }
        identifier = PackedDigits(recovered[2..<fields])
        serialNumber = Array(recovered[fields + 2..<fields + 5])
        self.key = key
    }
}

/// Format cn, two digits per byte (EMV Book 3, 4.3): the digits, and the rest from the first `A` to `F` on.
struct PackedDigits {
    let digits: ArraySlice<UInt8>
    let rest: ArraySlice<UInt8>

    init(_ bytes: some Collection<UInt8>) {
        var halves: [UInt8] = []
        halves.reserveCapacity(bytes.count * 2)
        for byte in bytes {
            halves.append(byte >> 4)
            halves.append(byte & 0x0F)
        }
        digits = halves.prefix { $0 < 10 }
        rest = halves[digits.endIndex...]
    }

    /// True if nothing but padding with `F` follows the digits.
    var isFilled: Bool { rest.allSatisfy { $0 == 0xF } }
}
