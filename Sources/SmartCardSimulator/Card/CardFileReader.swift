import SmartCard

/// The meaning of a card file: statements in, a card out.
enum CardFileReader {
    typealias Statement = CardFileSyntax.Statement

    private static let kinds = ["emv", "iso-dep", "mifare-classic-1k", "ntag213"]

    static func read(_ card: Statement) throws(CardFileError) -> CardFile {
        guard card.keyword == "card", let kind = card.arguments.first, kinds.contains(kind.text) else {
            throw card.error("a card file begins with “card KIND”, KIND one of \(kinds.joined(separator: ", "))")
        }
        try card.arguments(count: 1...2, "card KIND \"what it is\"")
        let summary = card.arguments.count > 1 ? card.arguments[1].text : kind.text
        var body = try Section(card)
        let radio = try radio(&body)
        let content: CardFile.Kind
        switch kind.text {
        case "emv":
            try requireISODEP(radio, card)
            content = .emv(try emv(&body))
        case "iso-dep":
            try requireISODEP(radio, card)
            content = .isoDEP
        case "mifare-classic-1k":
            content = .mifareClassic(try mifareClassic(&body, radio))
        default:
            content = .ntag213(try ntag213(&body, radio))
        }
        try body.end()
        return CardFile(summary: summary, radio: radio, kind: content)
    }

    /// The statements of a block, to be taken by keyword, so that what nobody took is known to be wrong.
    struct Section {
        let head: Statement
        private var statements: [Statement]

        init(_ head: Statement) throws(CardFileError) {
            self.head = head
            statements = try head.section()
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
            if taken.count > 1 { throw taken[1].error("“\(keyword)” stands here twice") }
            return taken.first
        }

        mutating func required(_ keyword: String) throws(CardFileError) -> Statement {
            guard let statement = try one(keyword) else {
                throw head.error("“\(head.keyword)” lacks “\(keyword)”")
            }
            return statement
        }

        /// Takes a statement that says all by being there.
        mutating func flag(_ keyword: String) throws(CardFileError) -> Bool {
            guard let statement = try one(keyword) else { return false }
            try statement.withoutBlock()
            try statement.arguments(count: 0...0, keyword)
            return true
        }

        /// Nothing must be left.
        func end() throws(CardFileError) {
            if let unknown = statements.first {
                throw unknown.error("“\(unknown.keyword)” is not known inside “\(head.keyword)”")
            }
        }
    }

    // MARK: Radio

    private static func radio(_ body: inout Section) throws(CardFileError) -> VirtualCardRadio {
        let a = try body.one("type-a")
        let b = try body.one("type-b")
        if let b {
            if let a { throw a.error("a card is of type A or of type B") }
            var section = try Section(b)
            let statement = try section.required("atqb")
            let atqb = try statement.bytes(12...12)
            guard atqb[0] == 0x50 else { throw statement.error("an ATQB begins with 50") }
            try section.end()
            return .typeB(atqb: atqb)
        }
        guard let a else { throw body.head.error("the card lacks “type-a” or “type-b”") }
        var section = try Section(a)
        let uidStatement = try section.required("uid")
        let uid = try uidStatement.bytes(4...10)
        guard [4, 7, 10].contains(uid.count) else { throw uidStatement.error("a UID has 4, 7 or 10 bytes") }
        let atqa = try section.required("atqa").bytes(2...2)
        let sakStatement = try section.required("sak")
        let sak = try sakStatement.bytes(1...1)[0]
        // ISO/IEC 14443-3, 6.5.3.4: bit 6 of the SAK says that there is an ATS.
        guard let atsStatement = try section.one("ats") else {
            guard sak & 0x20 == 0 else { throw sakStatement.error("a SAK with bit 6 (20) needs “ats”") }
            try section.end()
            return .typeA(uid: uid, atqa: atqa, sak: sak, ats: nil)
        }
        let ats = try atsStatement.bytes(1...254)
        guard sak & 0x20 != 0 else { throw atsStatement.error("an ATS needs bit 6 (20) in the SAK") }
        guard ATS(ats) != nil else {
            throw atsStatement.error("not an ATS: its first byte, TL, counts all of its \(ats.count) bytes")
        }
        try section.end()
        return .typeA(uid: uid, atqa: atqa, sak: sak, ats: ats)
    }

    private static func requireISODEP(_ radio: VirtualCardRadio, _ card: Statement) throws(CardFileError) {
        if case .typeA(_, _, _, nil) = radio {
            throw card.error("this kind of card speaks ISO/IEC 14443-4: bit 6 (20) in the SAK, and “ats”")
        }
    }
}
