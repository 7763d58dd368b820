import EMVContactless
import SmartCard
import TestSupport
import Testing

/// EMV Book 3, 10.4.
///
/// The cases marked U, with their values and results, are those of emv-utils (tests/emv_processing_restrictions_test.c).
@Suite struct ProcessingRestrictionsTests {
    /// A card of the Netherlands, good for everything, in a Dutch shop.
    private static let card: [TLVTag: String] = [
        0x9F08: "13 13", 0x9F07: "FF C0", 0x5F28: "05 28", 0x5F24: "25 05 11", 0x5F25: "25 05 11",
    ]
    private static let terminal: [TLVTag: String] = [
        0x9F09: "13 13", 0x9F35: "22", 0x9F40: "F0 00 00 00 00", 0x9F1A: "05 28",
    ]

    /// - Parameters:
    ///   - card: what differs from the card above; nil: it does not give the object.
    ///   - terminal: what differs from the terminal above.
    private func check(
        _ kind: Transaction.Kind = .purchase, other: UInt64 = 0, date: String = "25 05 11",
        card: [TLVTag: String?] = [:], terminal: [TLVTag: String?] = [:]
    ) throws -> String {
        func values(_ common: [TLVTag: String], _ changes: [TLVTag: String?]) throws -> [TLVTag: [UInt8]] {
            var values = common
            for (tag, value) in changes { values[tag] = value }
            return try values.mapValues { try wire($0) }
        }
        let card = try values(Self.card, card)
        let terminal = try values(Self.terminal, terminal)
        return ProcessingRestrictions.check(
            try transaction(kind, amount: 10_00, other: other, date: date), card: { card[$0] },
            terminal: { terminal[$0] }
        ).bytes.hex
    }

    @Test func noRestrictions() throws {
        try expectEqual(check(), "0000000000")  // U
    }

    /// U
    @Test func allRestrictions() throws {
        try expectEqual(
            check(.cash, card: [0x9F08: "13 14", 0x9F07: "7F C0", 0x5F24: "25 05 10", 0x5F25: "25 05 12"]),
            "00F0000000")
    }

    /// 10.4.1
    @Test func applicationVersions() throws {
        try expectEqual(check(card: [0x9F08: "13 14"]), "0080000000")  // U
        try expectEqual(check(card: [0x9F08: "13"]), "0080000000")
        try expectEqual(check(card: [0x9F08: nil]), "0000000000")
        try expectEqual(check(card: [0x9F08: nil], terminal: [0x9F09: nil]), "0000000000")
        try expectEqual(check(terminal: [0x9F09: nil]), "0080000000")
    }

    /// 10.4.2, and Book 4, Annex A1: who is an ATM.
    @Test(
        arguments: [
            ("14", "80 00 00 00 00", true), ("15", "FF 00 00 00 00", true), ("16", "80 00 00 00 00", true),
            ("14", "70 00 00 00 00", false), ("13", "80 00 00 00 00", false), ("17", "80 00 00 00 00", false),
            ("24", "80 00 00 00 00", false), (nil, "80 00 00 00 00", false), ("14", nil, false),
        ] as [(String?, String?, Bool)])
    func atATMs(_ type: String?, _ capabilities: String?, _ isATM: Bool) throws {
        let terminal: [TLVTag: String?] = [0x9F35: type, 0x9F40: capabilities]
        // Good everywhere but at ATMs, and good at ATMs alone.
        try expectEqual(check(card: [0x9F07: "FD C0"], terminal: terminal), isATM ? "0010000000" : "0000000000")
        try expectEqual(check(card: [0x9F07: "FE C0"], terminal: terminal), isATM ? "0000000000" : "0010000000")  // U
    }

    /// 10.4.2, table 36: one bit for each service and place, without which it is not allowed.
    @Test(
        arguments: [
            (.cash, 0, true, "80 00"), (.cash, 0, false, "40 00"),
            (.purchase, 0, true, "20 00"), (.purchase, 0, false, "10 00"),
            (.purchase, 0, true, "08 00"), (.purchase, 0, false, "04 00"),
            (.purchaseWithCashback, 1, true, "20 80"), (.purchaseWithCashback, 1, false, "10 40"),
            (.purchaseWithCashback, 1, true, "08 80"), (.purchaseWithCashback, 1, false, "04 40"),
            // Without an amount there is no cashback.
            (.purchaseWithCashback, 0, true, "20 00"),
            (.refund, 0, true, "00 00"), (.refund, 0, false, "00 00"),
        ] as [(Transaction.Kind, UInt64, Bool, String)])
    func usage(_ kind: Transaction.Kind, _ other: UInt64, _ isDomestic: Bool, _ needed: String) throws {
        let country = isDomestic ? "05 28" : "08 40"
        let bytes = try wire(needed)
        // What is needed is enough.
        let enough = [bytes[0] | 0x01, bytes[1]]
        try expectEqual(check(kind, other: other, card: [0x9F07: enough.hex, 0x5F28: country]), "0000000000")
        // All but one bit of it is not, whatever else the card may be used for.
        for bit in 0..<16 where (UInt16(bytes[0]) << 8 | UInt16(bytes[1])) & 1 << bit != 0 {
            let goodsAndServices: UInt16 = isDomestic ? 0x2800 : 0x1400
            let mask: UInt16 = 1 << bit & goodsAndServices != 0 ? goodsAndServices : 1 << bit
            let control = ~mask
            let value = [UInt8(control >> 8), UInt8(control & 0xFF)].hex
            try expectEqual(
                check(kind, other: other, card: [0x9F07: value, 0x5F28: country]), "0010000000", "\(value)")
            // 10.4.2: without the issuer's country there is no telling.
            try expectEqual(check(kind, other: other, card: [0x9F07: value, 0x5F28: nil]), "0000000000")
        }
    }

    /// 10.4.2: a card without the object may be used for everything; one whose object makes no sense for nothing.
    @Test func usageThatMakesNoSense() throws {
        for kind in Transaction.Kind.allCases {
            try expectEqual(check(kind, card: [0x9F07: nil]), "0000000000")
            try expectEqual(check(kind, card: [0x9F07: "FF"]), "0010000000")
            try expectEqual(check(kind, card: [0x9F07: "FF C0 00"]), "0010000000")
        }
        // U
        try expectEqual(check(.purchaseWithCashback, other: 1, card: [0x9F07: "FF 80", 0x5F28: "08 40"]), "0010000000")
    }

    /// 10.4.3; Book 4, 6.7.3: 50 to 99 are years of the last century.
    @Test(
        arguments: [
            ("25 05 10", "25 05 11", "25 05 11", "0020000000"),  // U
            ("25 05 12", "25 05 11", "25 05 11", "0040000000"),  // U
            ("25 05 11", nil, "25 05 11", "0000000000"), ("25 05 11", nil, nil, "0040000000"),
            ("25 05 11", "99 12 31", "49 12 31", "0000000000"), ("25 05 11", "50 01 01", "50 01 01", "0040000000"),
            ("25 05 11", "49 12 31", "99 12 31", "0060000000"),
            // Days that there are not: the 31st of June, month 13, no digits, two bytes
            ("25 05 11", "25 05 11", "25 06 31", "0040000000"), ("25 05 11", "25 02 30", "25 05 11", "0020000000"),
            ("25 05 11", "24 13 01", "25 13 01", "0060000000"), ("25 05 11", "2A 01 01", "2A 01 01", "0060000000"),
            ("25 05 11", "25 01", "25 12", "0060000000"),
        ] as [(String, String?, String?, String)])
    func dates(_ today: String, _ effective: String?, _ expiration: String?, _ expected: String) throws {
        try expectEqual(check(date: today, card: [0x5F25: effective, 0x5F24: expiration]), expected)
    }
}

func transaction(
    _ kind: Transaction.Kind, amount: UInt64, other: UInt64 = 0, date: String = "26 11 21"
) throws -> Transaction {
    let day = try #require(CalendarDate(packed: wire(date)))
    let time = try #require(TerminalTime(day))
    let currency = try #require(Currency["EUR"])
    return try #require(
        Transaction(
            kind, amount: amount, amountOther: other, currency: currency, time: time, unpredictableNumber: [1, 2, 3, 4])
    )
}
