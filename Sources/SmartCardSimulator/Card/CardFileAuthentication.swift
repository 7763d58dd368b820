import SmartCard

/// The statements of `authentication`, and of keys.
extension CardFileReader {
    /// The statements of a key.
    static let keyStatements = ["exponent", "modulus", "private-exponent"]

    /// A key written out.
    static func key(_ body: inout Section) throws(CardFileError) -> RSAKey {
        let exponent = try body.required("exponent").bytes(1...3)
        let modulus = try body.required("modulus").lines(admitting: []).bytes([:])
        let privateExponent = try body.required("private-exponent").lines(admitting: []).bytes([:])
        guard let key = RSAKey(modulus: modulus, exponent: exponent, privateExponent: privateExponent) else {
            throw body.head.error(
                "not an RSA key: 64 to 248 bytes of modulus, its highest bit set, the exponent 03 or 010001, and a "
                    + "private exponent that belongs to them")
        }
        return key
    }

    /// Reads a key, either named or written out.
    private static func key(_ statement: Statement) throws(CardFileError) -> RSAKey {
        if statement.block != nil {
            try statement.arguments(count: 0...0, "key { … }")
            var body = try Section(statement, keyStatements)
            return try key(&body)
        }
        try statement.arguments(count: 1...1, "key NAME, or key { … }")
        guard let key = TestKeys.builtIn.keys[statement.arguments[0].text] else {
            let names = TestKeys.builtIn.keys.keys.sorted().joined(separator: ", ")
            throw statement.error("there is no key “\(statement.arguments[0].text)”, only \(names)")
        }
        return key
    }

    static func authentication(
        _ statement: Statement, _ aid: AID, _ accountNumber: [UInt8]?
    ) throws(CardFileError) -> CardAuthentication {
        guard let digits = accountNumber else {
            throw statement.error("certificates need the account number, 5A or 57, which the application lacks")
        }
        var section = try Section(
            statement,
            ["authority", "issuer", "card", "static-data-format", "data-authentication-code"])
        let (authority, index) = try authority(section.required("authority"), aid)

        let issuerStatement = try section.required("issuer")
        var issuerBody = try Section(issuerStatement, ["key", "expires", "serial", "identifier"])
        let issuer = try certificate(&issuerBody, by: authority)
        // The leftmost 3 to 8 digits of the account number (EMV Book 2, 5.1), 6 unless the file says otherwise.
        let identifier = try issuerBody.bytes("identifier", 4...4) ?? packed(Array(digits.prefix(6)), 4)

        var card: CardAuthentication.Certificate?
        if let cardStatement = try section.one("card") {
            var cardBody = try Section(cardStatement, ["key", "expires", "serial"])
            card = try certificate(&cardBody, by: issuer.key)
        }
        return CardAuthentication(
            authority: authority, authorityIndex: index, issuer: issuer, issuerIdentifier: identifier, card: card,
            pan: packed(digits, 10),
            staticDataFormat: try section.bytes("static-data-format", 1...1)?[0] ?? 0x03,
            dataAuthenticationCode: try section.bytes("data-authentication-code", 2...2) ?? [0xDA, 0xC0])
    }

    /// Computes the values that follow from the keys.
    static func add(
        _ authentication: CardAuthentication, _ at: Statement, _ application: inout EMVApplication
    ) throws(CardFileError) {
        var staticData: [UInt8] = []
        for (address, record) in application.records.sorted(by: { $0.key < $1.key }) where record.isSigned {
            let bytes = record.objects.encoded()
            guard let content = address.sfi > 10 ? bytes : recordContent(bytes) else {
                throw at.error("the signed record \(address.sfi) \(address.number) is not one template 70")
            }
            staticData += content
        }
        // The Static Data Authentication Tag List may name the AIP and nothing else (EMV Book 2, 5.1.1).
        if application.recordObjects.value(of: 0x9F4A) == [0x82] {
            staticData += application.processingOptions.authenticated?.objects.value(of: 0x82) ?? []
        }
        guard let values = authentication.values(staticData: staticData) else {
            throw at.error("the keys do not sign")
        }
        application.authentication = authentication
        application.keyValues = values
    }

    /// Returns the part of a record of files 1 to 10 that enters the signature: everything after the tag and length of
    /// its template (EMV Book 3, 10.3), however the length is encoded.
    private static func recordContent(_ record: [UInt8]) -> [UInt8]? {
        guard record.count >= 2, record[0] == 0x70 else { return nil }
        let lengthBytes = record[1] < 0x80 ? 0 : Int(record[1] & 0x7F)
        guard lengthBytes <= 2, record.count >= 2 + lengthBytes else { return nil }
        let length =
            lengthBytes == 0 ? Int(record[1]) : record[2..<(2 + lengthBytes)].reduce(0) { $0 << 8 | Int($1) }
        let content = record.dropFirst(2 + lengthBytes)
        return content.count == length ? Array(content) : nil
    }

    /// Reads `authority INDEX`: one of the library's keys under the RID of the application, or a key written out.
    private static func authority(
        _ statement: Statement, _ aid: AID
    ) throws(CardFileError) -> (key: RSAKey, index: UInt8) {
        try statement.arguments(count: 1...1, "authority INDEX, or authority INDEX { … }")
        let bytes = try statement.value().bytes([:])
        guard bytes.count == 1 else { throw statement.error("the index of a key is 1 byte") }
        if statement.block != nil {
            var body = try Section(statement, keyStatements)
            return (try key(&body), bytes[0])
        }
        let rid = Array(aid.bytes.prefix(5))
        guard let key = TestKeys.builtIn.authority(rid: rid, index: bytes[0]) else {
            let all = TestKeys.builtIn.authorities.map { "\($0.publicKey.rid.hex) \([$0.publicKey.index].hex)" }
            throw statement.error(
                "there is no authority \(rid.hex) \(bytes.hex), only \(all.joined(separator: ", "))")
        }
        return (key, bytes[0])
    }

    private static func certificate(
        _ body: inout Section, by signer: RSAKey
    ) throws(CardFileError) -> CardAuthentication.Certificate {
        let keyStatement = try body.required("key")
        let key = try key(keyStatement)
        guard key.modulus.count <= signer.modulus.count else {
            throw keyStatement.error("the key is longer than the one that certifies it")
        }
        return CardAuthentication.Certificate(
            key: key, expires: try body.required("expires").bytes(2...2),
            serial: try body.required("serial").bytes(3...3))
    }

    /// Packs digits, two in a byte, padded with F.
    static func packed(_ digits: [UInt8], _ count: Int) -> [UInt8] {
        let nibbles = digits + [UInt8](repeating: 0x0F, count: max(0, 2 * count - digits.count))
        return (0..<count).map { nibbles[2 * $0] << 4 | nibbles[2 * $0 + 1] }
    }
}
