import SmartCard

/// The statements of `card passport`.
extension CardFileReader {
    /// EF.COM and DG1 follow from the other statements.
    static func passport(_ body: inout Section) throws(CardFileError) -> PassportCard.Configuration {
        let zone = try zone(try body.required("mrz"))
        var groups: [UInt8: [UInt8]] = [1: TLVTag(0x61).encode(TLVTag(0x5F1F).encode(Array(zone.text.utf8)))]
        for statement in body.all("data-group") {
            let number = UInt8(truncatingIfNeeded: try statement.number(0, "a data group", 2...16))
            guard groups[number] == nil else { throw statement.error("the data group occurs twice") }
            let content = try statement.content(from: 1)
            guard content.first == dataGroupTags[Int(number) - 1] else {
                throw statement.error(
                    "data group \(number) begins with the tag \([dataGroupTags[Int(number) - 1]].hex)")
            }
            groups[number] = content
        }
        let activeAuthenticationKey = try activeAuthentication(&body, &groups)
        var files: [UInt16: [UInt8]] = [0x011E: commonDataElements(of: groups.keys.sorted())]
        for (number, content) in groups { files[0x0100 | UInt16(number)] = content }
        if let statement = try body.one("security-object") { files[0x011D] = try securityObject(statement, of: groups) }
        if let statement = try body.one("alter"), statement.arguments.first?.text != "nothing" {
            try statement.arguments(count: 1...1, "alter NUMBER, or alter nothing")
            let number = UInt16(try statement.number(0, "a data group", 1...16))
            guard var content = files[0x0100 | number], let last = content.popLast() else {
                throw statement.error("the card does not have the data group")
            }
            content.append(last ^ 0x01)
            files[0x0100 | number] = content
        }
        var configuration = PassportCard.Configuration(keyInformation: zone.key, files: files)
        configuration.activeAuthenticationKey = activeAuthenticationKey
        if let statement = try body.one("pace"), let offer = try pace(statement) {
            configuration.pace = offer
            configuration.freeFiles[0x011C] = offer.cardAccess
        }
        if let statement = try body.one("can") {
            try statement.withoutBlock()
            try statement.arguments(count: 1...1, "can DIGITS")
            let digits = statement.arguments[0].text
            guard (1...32).contains(digits.utf8.count), digits.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else {
                throw statement.error("a card access number has 1 to 32 digits")
            }
            configuration.cardAccessNumber = digits
        }
        if let statement = try body.one("bac") {
            try statement.withoutBlock()
            let words = ["yes": true, "no": false]
            guard statement.arguments.count == 1, let isThere = words[statement.arguments[0].text] else {
                throw statement.error("“bac” is written: bac yes, or bac no")
            }
            configuration.hasBasicAccessControl = isThere
        }
        configuration.knowsShortIdentifiers = try !body.flag("no-short-identifiers")
        if let statement = try body.one("most-read") {
            try statement.withoutBlock()
            try statement.arguments(count: 1...1, "most-read NUMBER")
            configuration.mostRead = Int(try statement.number(0, "a number of bytes", 16...65_536))
        }
        return configuration
    }

    /// `active-authentication original`, or `copied`: DG15, and the key of the chip.
    private static func activeAuthentication(
        _ body: inout Section, _ groups: inout [UInt8: [UInt8]]
    ) throws(CardFileError) -> RSAKey? {
        guard let statement = try body.one("active-authentication") else { return nil }
        try statement.withoutBlock()
        let words = ["original": false, "copied": true]
        let usage = "active-authentication original, copied or none"
        try statement.arguments(count: 1...1, usage)
        if statement.arguments[0].text == "none" { return nil }
        guard let isCopy = words[statement.arguments[0].text] else {
            throw statement.error("“\(statement.keyword)” is written: \(usage)")
        }
        guard groups[15] == nil else { throw statement.error("DG15 stands here, too") }
        groups[15] = TestIssuingState.dataGroup15
        return TestIssuingState.activeAuthenticationKey(isCopy: isCopy)
    }

    /// `pace ecdh-gm CIPHER CURVE`; nil for `pace none`.
    private static func pace(_ statement: Statement) throws(CardFileError) -> PassportPACE.Offer? {
        try statement.withoutBlock()
        if statement.arguments.map(\.text) == ["none"] { return nil }
        let ciphers = PassportCipher.allCases.map(\.rawValue).joined(separator: ", ")
        try statement.arguments(count: 3...3, "pace ecdh-gm CIPHER CURVE, or pace none")
        guard statement.arguments[0].text == "ecdh-gm",
            let cipher = PassportCipher(rawValue: statement.arguments[1].text)
        else { throw statement.error("“pace” is written: pace ecdh-gm CIPHER CURVE, CIPHER one of \(ciphers)") }
        return PassportPACE.Offer(cipher: cipher, parameters: Int(try statement.number(2, "a curve", 8...18)))
    }

    /// `signed` or `signed-before-2020`, by the test issuing state; or bytes.
    private static func securityObject(
        _ statement: Statement, of groups: [UInt8: [UInt8]]
    ) throws(CardFileError) -> [UInt8] {
        let words = ["signed": false, "signed-before-2020": true]
        guard statement.block == nil, statement.arguments.count == 1,
            let signerHasExpired = words[statement.arguments[0].text]
        else { return try statement.content() }
        guard groups.count >= 2 else { throw statement.error("a signature is over two data groups at least") }
        guard let file = TestIssuingState.securityObject(of: groups, signerHasExpired: signerHasExpired) else {
            throw statement.error("libcrypto does not sign")
        }
        return file
    }

    /// The tags of DG1 to DG16 (ICAO 9303-10, 4.6.1).
    private static let dataGroupTags: [UInt8] = [
        0x61, 0x75, 0x63, 0x76, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6A, 0x6B, 0x6C, 0x6D, 0x6E, 0x6F, 0x70,
    ]

    /// EF.COM: LDS 1.7, Unicode 4.0.0, and the tags of the data groups (ICAO 9303-10, 4.6.1).
    private static func commonDataElements(of groups: [UInt8]) -> [UInt8] {
        TLVTag(0x60).encode(
            TLVTag(0x5F01).encode(Array("0107".utf8)) + TLVTag(0x5F36).encode(Array("040000".utf8))
                + TLVTag(0x5C).encode(groups.map { dataGroupTags[Int($0) - 1] }))
    }

    /// The zone of two or three lines, and the part of it that the key of Basic Access Control is of: number, date of
    /// birth and date of expiry, each with its check digit (ICAO 9303-11, 4.3.2).  The check digits may be wrong: the card
    /// has what is printed.
    private static func zone(_ statement: Statement) throws(CardFileError) -> (text: String, key: String) {
        try statement.withoutBlock()
        let lines = statement.arguments.map { Array($0.text.utf8) }
        let lengths = lines.map(\.count)
        let isAllowed = lines.joined().allSatisfy {
            0x30...0x39 ~= $0 || 0x41...0x5A ~= $0 || $0 == UInt8(ascii: "<")
        }
        guard isAllowed, lengths == [30, 30, 30] || lengths == [36, 36] || lengths == [44, 44] else {
            throw statement.error("“mrz” takes three lines of 30 characters, two of 36 or two of 44: A to Z, 0 to 9, <")
        }
        // TD1 has the number in the first line, and the dates at the beginning of the second (ICAO 9303-5, 4.2.2).
        let isTD1 = lines.count == 3
        let (first, dates) = isTD1 ? (lines[0].dropFirst(5), 0) : (lines[1].dropFirst(0), 13)
        var number = Array(first.prefix(10))
        if isTD1 || lengths == [36, 36], number[9] == UInt8(ascii: "<") {
            // The rest of a long number, with its check digit, is in the optional data.
            let optional = isTD1 ? lines[0].dropFirst(15) : lines[1].dropFirst(28)
            number = number.dropLast() + optional.prefix { $0 != UInt8(ascii: "<") }
        }
        let birth = lines[1].dropFirst(dates).prefix(7)
        let expiry = lines[1].dropFirst(dates + 8).prefix(7)
        return (
            String(decoding: lines.joined(), as: UTF8.self), String(decoding: number + birth + expiry, as: UTF8.self)
        )
    }
}
