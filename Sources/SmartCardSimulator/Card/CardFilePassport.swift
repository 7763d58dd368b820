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
        let offer: PassportPACE.Offer? = if let statement = try body.one("pace") { try pace(statement) } else { nil }
        let chipAuthentication = try chipAuthentication(&body, &groups, of: zone.text, offer)
        let activeAuthenticationKey = try activeAuthentication(&body, &groups)
        var files: [UInt16: [UInt8]] = [0x011E: commonDataElements(of: groups.keys.sorted())]
        for (number, content) in groups { files[0x0100 | UInt16(number)] = content }
        if let statement = try body.one("security-object") { files[0x011D] = try securityObject(statement, of: groups) }
        try alter(&body, &files)
        var configuration = PassportCard.Configuration(keyInformation: zone.key, files: files)
        configuration.activeAuthenticationKey = activeAuthenticationKey
        configuration.chipAuthentication = chipAuthentication
        if let offer {
            configuration.pace = offer
            configuration.freeFiles[0x011C] = offer.cardAccess
            if offer.mapping == .chipAuthentication {
                guard let file = TestIssuingState.cardSecurity(of: offer) else {
                    throw body.head.error("libcrypto does not sign")
                }
                configuration.cardSecurity = file
            }
        }
        configuration.numbers[.cardAccessNumber] = try digits(of: "can", &body)
        configuration.numbers[.pin] = try digits(of: "pin", &body)
        configuration.numbers[.puk] = try digits(of: "puk", &body)
        configuration.tries = try tries(&body)
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
        if let statement = try body.one("delay") {
            try statement.withoutBlock()
            try statement.arguments(count: 1...1, "delay MILLISECONDS")
            configuration.delay = .milliseconds(try statement.number(0, "milliseconds", 0...600_000))
        }
        configuration.fault = try fault(&body)
        return configuration
    }

    // MARK: Faults

    /// `alter NUMBER` and `truncate NUMBER BYTES`: what happened to a data group after it was signed.
    private static func alter(_ body: inout Section, _ files: inout [UInt16: [UInt8]]) throws(CardFileError) {
        for (keyword, usage, count) in [("alter", "alter NUMBER", 1), ("truncate", "truncate NUMBER BYTES", 2)] {
            guard let statement = try body.one(keyword) else { continue }
            try statement.withoutBlock()
            if statement.arguments.map(\.text) == ["nothing"] { continue }
            try statement.arguments(count: count...count, "\(usage), or \(keyword) nothing")
            let identifier = 0x0100 | UInt16(try statement.number(0, "a data group", 1...16))
            guard var content = files[identifier] else {
                throw statement.error("the card does not have the data group")
            }
            if keyword == "alter" {
                content[content.count - 1] ^= 0x01
            } else {
                content = Array(content.prefix(Int(try statement.number(1, "bytes", 0...65_536))))
            }
            files[identifier] = content
        }
    }

    /// `fault NAME …`, or `fault none`.
    private static func fault(_ body: inout Section) throws(CardFileError) -> PassportCard.Fault? {
        guard let statement = try body.one("fault") else { return nil }
        try statement.withoutBlock()
        func response(from first: UInt64 = 1) throws(CardFileError) -> Int {
            Int(try statement.number(1, "the number of a response", first...65_536))
        }
        switch (statement.arguments.first?.text, statement.arguments.count) {
        case ("none", 1): return nil
        case ("wrong-mac", 2): return .wrongMAC(response: try response())
        case ("replay", 2): return .replay(response: try response(from: 2))
        case ("bare-status", 3): return .bareStatus(response: try response(), try statement.status(2))
        case ("ends-session", 2): return .endsSession(response: try response())
        case ("does-not-know-key", 1): return .doesNotKnowKey
        case ("refuses-beyond-end", 1): return .refusesBeyondEnd
        default:
            throw statement.error(
                """
                “fault” is written: wrong-mac RESPONSE, replay RESPONSE, bare-status RESPONSE STATUS, ends-session RESPONSE, \
                does-not-know-key, refuses-beyond-end or none
                """)
        }
    }

    /// `tries NUMBER [STATUS]`, or `tries unlimited`.
    private static func tries(_ body: inout Section) throws(CardFileError) -> (count: Int, blocked: StatusWord)? {
        guard let statement = try body.one("tries") else { return nil }
        try statement.withoutBlock()
        if statement.arguments.map(\.text) == ["unlimited"] { return nil }
        try statement.arguments(count: 1...2, "tries NUMBER [STATUS], or tries unlimited")
        let count = Int(try statement.number(0, "a number of tries", 1...15))
        return (count, statement.arguments.count > 1 ? try statement.status(1) : 0x63C0)
    }

    // MARK: Keys

    /// `can DIGITS`, `pin DIGITS` or `puk DIGITS`.
    private static func digits(of keyword: String, _ body: inout Section) throws(CardFileError) -> String? {
        guard let statement = try body.one(keyword) else { return nil }
        try statement.withoutBlock()
        try statement.arguments(count: 1...1, "\(keyword) DIGITS")
        let digits = statement.arguments[0].text
        guard (1...32).contains(digits.utf8.count), digits.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else {
            throw statement.error("“\(keyword)” takes 1 to 32 digits")
        }
        return digits
    }

    /// `chip-authentication CIPHER CURVE`, with `copied` for a chip without the key: DG14, and the key of the chip.
    private static func chipAuthentication(
        _ body: inout Section, _ groups: inout [UInt8: [UInt8]], of zone: String, _ offer: PassportPACE.Offer?
    ) throws(CardFileError) -> PassportChipAuthentication? {
        guard let statement = try body.one("chip-authentication") else { return nil }
        try statement.withoutBlock()
        var words = statement.arguments.map(\.text)
        if words == ["none"] { return nil }
        let isCopy = words.last == "copied"
        if isCopy { words.removeLast() }
        guard words.count == 2, let cipher = PassportCipher(rawValue: words[0]) else {
            throw statement.error(
                "“\(statement.keyword)” is written: CIPHER CURVE [copied], or none, CIPHER one of \(PassportCipher.names)"
            )
        }
        let parameters = Int(try statement.number(1, "a curve", 8...18))
        guard groups[14] == nil else { throw statement.error("DG14 stands here, too") }
        func authentication(isCopy: Bool) -> PassportChipAuthentication? {
            PassportChipAuthentication(cipher, parameters: parameters, document: zone, isCopy: isCopy)
        }
        guard let infos = authentication(isCopy: false)?.securityInfos, let chip = authentication(isCopy: isCopy) else {
            throw statement.error("libcrypto does not have the curve")
        }
        // What EF.CardAccess says, signed (ICAO 9303-11, 9.2); the parts of a SET in the order of X.690, 11.6.
        let access = offer.flatMap { try? TLVList($0.cardAccess, padding: []) }?.first?.children
        let parts = (access?.map { Array($0.encoded) } ?? []) + infos
        let set = parts.sorted { $0.lexicographicallyPrecedes($1) }
        groups[14] = TLVTag(0x6E).encode(TLVTag(0x31).encode(Array(set.joined())))
        return chip
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

    /// `pace MAPPING CIPHER NUMBER`; nil for `pace none`.
    private static func pace(_ statement: Statement) throws(CardFileError) -> PassportPACE.Offer? {
        try statement.withoutBlock()
        if statement.arguments.map(\.text) == ["none"] { return nil }
        try statement.arguments(count: 3...3, "pace MAPPING CIPHER NUMBER, or pace none")
        guard let mapping = PassportPACE.Mapping(rawValue: statement.arguments[0].text),
            let cipher = PassportCipher(rawValue: statement.arguments[1].text)
        else {
            let mappings = PassportPACE.Mapping.allCases.map(\.rawValue).joined(separator: ", ")
            throw statement.error(
                "“pace” is written: pace MAPPING CIPHER NUMBER, MAPPING one of \(mappings), CIPHER one of \(PassportCipher.names)"
            )
        }
        let number = try statement.number(2, "the number of domain parameters", mapping.parameters)
        guard let offer = PassportPACE.Offer(mapping, cipher, parameters: number) else {
            throw statement.error(
                mapping == .chipAuthentication
                    ? "chip authentication mapping is not defined with triple DES"
                    : "integrated mapping is not defined on P-224")
        }
        return offer
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

extension CardFileSyntax.Statement {
    /// The argument numbered `index` as a status word: four hexadecimal digits.
    func status(_ index: Int) throws(CardFileError) -> StatusWord {
        let text = arguments[index].text
        guard text.utf8.count == 4, text.allSatisfy(\.isHexDigit), let word = UInt16(text, radix: 16) else {
            throw error("“\(text)” is not a status word: four hexadecimal digits")
        }
        return StatusWord(rawValue: word)
    }
}
