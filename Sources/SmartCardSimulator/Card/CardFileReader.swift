import SmartCard

/// The meaning of a card file: statements in, a card out.
enum CardFileReader {
    typealias Statement = CardFileSyntax.Statement

    /// The kinds of card, and the statements that each accepts in addition to its radio identity.
    private static let kinds: [(name: String, keywords: [String])] = [
        ("emv", ["ppse", "application", "delay", "truncate", "torn"] + phoneKeywords),
        ("iso-dep", []),
        ("mifare-classic-1k", ["sector"]),
        ("ntag213", ["ndef", "page", "lock"]),
        ("ndef-type4", ["ndef", "size", "read-only", "mle", "mlc"]),
        ("felica", ["system"]),
        (
            "passport",
            [
                "mrz", "pace", "can", "pin", "puk", "tries", "bac", "data-group", "security-object",
                "chip-authentication", "active-authentication", "alter", "truncate", "most-read",
                "no-short-identifiers", "delay", "fault",
            ]
        ),
    ]

    /// - Parameter summary: a description of the card that replaces the file's own.
    static func card(_ card: Statement, summary: String? = nil) throws(CardFileError) -> CardFile {
        guard card.keyword == "card", let name = card.arguments.first,
            let kind = kinds.first(where: { $0.name == name.text })
        else {
            let names = kinds.map(\.name).joined(separator: ", ")
            throw card.error("a card file begins with “variant NAME” or with “card KIND”, KIND one of \(names)")
        }
        try card.arguments(count: 1...2, "card KIND \"what it is\"")
        let summary = summary ?? (card.arguments.count > 1 ? card.arguments[1].text : kind.name)
        var body = try Section(card, ["type-a", "type-b", "type-f"] + kind.keywords)
        var radio = try radio(&body)
        let content: CardFile.Kind
        switch kind.name {
        case "emv":
            try requireISODEP(radio, card)
            var phone = try phone(&body)
            if phone == nil, let keyword = phoneKeywords.first(where: { !body.all($0).isEmpty }) {
                throw card.error("“\(keyword)” is of a phone, which has “pass” or “smart-tap”")
            }
            let personality = try emv(&body)
            phone?.applications = personality.applications.map(\.aid.bytes)
            content = .emv(personality, phone: phone)
        case "mifare-classic-1k":
            content = .mifareClassic(try mifareClassic(&body, radio))
        case "ntag213":
            content = .ntag213(try ntag213(&body, radio))
        case "ndef-type4":
            try requireISODEP(radio, card)
            content = .ndefType4(try ndefType4(&body))
        case "felica":
            content = .felica(try felica(&body, &radio))
        case "passport":
            try requireISODEP(radio, card)
            content = .passport(try passport(&body))
        default:
            try requireISODEP(radio, card)
            content = .isoDEP
        }
        return CardFile(summary: summary, radio: radio, kind: content)
    }

    /// The statements of a block, to be taken by keyword.
    struct Section {
        let head: Statement
        private var statements: [Statement]

        /// - Throws: ``CardFileError`` at the first statement whose keyword is not among `keywords`.
        init(_ head: Statement, _ keywords: [String]) throws(CardFileError) {
            self.head = head
            statements = try head.section()
            if let unknown = statements.first(where: { !keywords.contains($0.keyword) }) {
                throw unknown.error("“\(unknown.keyword)” is not known inside “\(head.keyword)”")
            }
        }

        /// Takes the statements with `keyword`, in the order of the file.
        mutating func all(_ keyword: String) -> [Statement] {
            let taken = statements.filter { $0.keyword == keyword }
            statements.removeAll { $0.keyword == keyword }
            return taken
        }

        /// Takes the only statement with `keyword`; nil if there is none.
        mutating func one(_ keyword: String) throws(CardFileError) -> Statement? {
            let taken = all(keyword)
            if taken.count > 1 { throw taken[1].error("“\(keyword)” occurs twice") }
            return taken.first
        }

        mutating func required(_ keyword: String) throws(CardFileError) -> Statement {
            guard let statement = try one(keyword) else {
                throw head.error("“\(head.keyword)” lacks “\(keyword)”")
            }
            return statement
        }

        /// Takes the bytes after `keyword`; nil if it is not there.
        mutating func bytes(_ keyword: String, _ count: ClosedRange<Int>) throws(CardFileError) -> [UInt8]? {
            guard let statement = try one(keyword) else { return nil }
            return try statement.bytes(count)
        }

        /// Takes the data objects in the block of `keyword`; none if it is not there.
        mutating func objects(_ keyword: String) throws(CardFileError) -> [CardFileObject] {
            guard let statement = try one(keyword) else { return [] }
            return try statement.section().objects(admitting: [])
        }

        /// Takes a statement without arguments, whose presence is its meaning.
        mutating func flag(_ keyword: String) throws(CardFileError) -> Bool {
            guard let statement = try one(keyword) else { return false }
            try statement.withoutBlock()
            try statement.arguments(count: 0...0, keyword)
            return true
        }
    }

    // MARK: Radio

    private static func radio(_ body: inout Section) throws(CardFileError) -> VirtualCardRadio {
        let types: [(keyword: String, read: (Statement) throws(CardFileError) -> VirtualCardRadio)] = [
            ("type-a", typeA), ("type-b", typeB), ("type-f", typeF),
        ]
        var radio: VirtualCardRadio?
        for type in types {
            guard let statement = try body.one(type.keyword) else { continue }
            guard radio == nil else { throw statement.error("a card is of one type") }
            radio = try type.read(statement)
        }
        guard let radio else { throw body.head.error("the card lacks “type-a”, “type-b” or “type-f”") }
        return radio
    }

    private static func typeB(_ statement: Statement) throws(CardFileError) -> VirtualCardRadio {
        var section = try Section(statement, ["atqb"])
        let atqb = try section.required("atqb")
        let bytes = try atqb.bytes(12...12)
        guard bytes[0] == 0x50 else { throw atqb.error("an ATQB begins with 50") }
        return .typeB(atqb: bytes)
    }

    /// The systems are not known yet.
    private static func typeF(_ statement: Statement) throws(CardFileError) -> VirtualCardRadio {
        var section = try Section(statement, ["idm", "pmm"])
        let idm = try section.required("idm")
        let bytes = try idm.bytes(8...8)
        guard bytes[0] >> 4 == 0 else {
            throw idm.error("the upper four bits of an IDm are the number of the system: 0 here")
        }
        return .felica(idm: bytes, pmm: try section.required("pmm").bytes(8...8), systemCodes: [])
    }

    private static func typeA(_ statement: Statement) throws(CardFileError) -> VirtualCardRadio {
        var section = try Section(statement, ["uid", "atqa", "sak", "ats"])
        let uidStatement = try section.required("uid")
        let uid = try uidStatement.bytes(4...10)
        guard [4, 7, 10].contains(uid.count) else { throw uidStatement.error("a UID has 4, 7 or 10 bytes") }
        let atqa = try section.required("atqa").bytes(2...2)
        let sakStatement = try section.required("sak")
        let sak = try sakStatement.bytes(1...1)[0]
        // ISO/IEC 14443-3, 6.5.3.4: bit 6 of the SAK says that there is an ATS.
        guard let atsStatement = try section.one("ats") else {
            guard sak & 0x20 == 0 else { throw sakStatement.error("a SAK with bit 6 (20) needs “ats”") }
            return .typeA(uid: uid, atqa: atqa, sak: sak, ats: nil)
        }
        let ats = try atsStatement.bytes(1...254)
        guard sak & 0x20 != 0 else { throw atsStatement.error("an ATS needs bit 6 (20) in the SAK") }
        guard ATS(ats) != nil else {
            throw atsStatement.error("not an ATS: its first byte, TL, counts all of its \(ats.count) bytes")
        }
        return .typeA(uid: uid, atqa: atqa, sak: sak, ats: ats)
    }

    private static func requireISODEP(_ radio: VirtualCardRadio, _ card: Statement) throws(CardFileError) {
        switch radio {
        case .typeA(_, _, _, nil), .felica:
            throw card.error("this kind of card speaks ISO/IEC 14443-4: type B, or bit 6 (20) in the SAK, and “ats”")
        case .typeA, .typeB: break
        }
    }
}
