import SmartCard
import SmartCardSimulator
import TestSupport
import Testing

@Suite struct CardMIFAREClassicTests {
    static let deliveryKey = "FF FF FF FF FF FF"
    static let keyA = "A0 A1 A2 A3 A4 A5"
    static let keyB = "B0 B1 B2 B3 B4 B5"
    static let uid = "5E 8A 31 C4"

    /// Selects the card anew and opens the sector of `block`.
    private func open(_ card: CardSession, _ block: String, a key: String) throws -> String? {
        card.card.reset()
        return try card.native("60 \(block) \(key) \(Self.uid)")
    }

    private func open(_ card: CardSession, _ block: String, b key: String) throws -> String? {
        card.card.reset()
        return try card.native("61 \(block) \(key) \(Self.uid)")
    }

    /// The manufacturer block: UID, its check byte 5E ^ 8A ^ 31 ^ C4 = 21, SAK, ATQA.
    @Test func readsWithTheDeliveryKey() throws {
        let card = try CardSession("mifare-classic-1k")
        try expectEqual(open(card, "00", a: Self.deliveryKey), "")
        try expectEqual(card.native("30 00"), hex("5E8A31C4 21 08 0400 0000000000000000"))
        try expectEqual(open(card, "04", a: Self.deliveryKey), "")
        try expectEqual(card.native("30 04"), "73776966742D636F6E746163746C6573")
        // The trailer in transport configuration (MF1S50yyX/V1, 8.7.1): key A hidden, key B readable.
        try expectEqual(card.native("30 07"), hex("000000000000 FF078069 FFFFFFFFFFFF"))
    }

    @Test func authenticationIsOfOneSector() throws {
        let card = try CardSession("mifare-classic-1k")
        try expectEqual(card.native("30 04"), nil)  // none yet
        try expectEqual(card.native("30 04"), nil)  // and now it is silent
        try expectEqual(open(card, "04", a: "00 00 00 00 00 00"), nil)
        try expectEqual(open(card, "04", a: Self.deliveryKey), "")
        try expectEqual(card.native("30 08"), nil)  // another sector
        try expectEqual(card.native("60 04 \(Self.deliveryKey) \(Self.uid)"), nil)  // not selected
        card.card.reset()
        try expectEqual(card.native("60 04 \(Self.deliveryKey) 11 22 33 44"), nil)  // another card's UID
        try expectEqual(open(card, "40", a: Self.deliveryKey), nil)  // a 1K card ends with block 63
        try expectEqual(open(card, "3F", a: Self.deliveryKey), "")
        card.card.reset()
        try expectEqual(card.native("30 3F"), nil)  // reselected: closed again
        // 60 alone is GET_VERSION, which this card does not know.
        card.card.reset()
        try expectEqual(card.native("60"), nil)
    }

    /// A key B that can be read opens nothing (8.7.3, note 1).
    @Test func readableKeyBIsData() throws {
        let card = try CardSession("mifare-classic-1k")
        try expectEqual(open(card, "04", b: Self.deliveryKey), "")
        try expectEqual(card.native("30 04"), nil)
    }

    @Test func writes() throws {
        let card = try CardSession("mifare-classic-1k")
        _ = try open(card, "04", a: Self.deliveryKey)
        try expectEqual(card.native("A0 06 00112233445566778899AABBCCDDEEFF"), "")
        try expectEqual(card.native("30 06"), "00112233445566778899AABBCCDDEEFF")
        _ = try open(card, "00", a: Self.deliveryKey)
        try expectEqual(card.native("A0 00 00112233445566778899AABBCCDDEEFF"), nil)  // the manufacturer block
        // Sector 3: key A reads, key B writes (access bits 100).
        _ = try open(card, "0C", a: Self.keyA)
        try expectEqual(card.native("30 0C"), "00112233445566778899AABBCCDDEEFF")
        try expectEqual(card.native("A0 0C FFEEDDCCBBAA99887766554433221100"), nil)
        _ = try open(card, "0C", b: Self.keyB)
        try expectEqual(card.native("A0 0C FFEEDDCCBBAA99887766554433221100"), "")
        try expectEqual(card.native("30 0C"), "FFEEDDCCBBAA99887766554433221100")
    }

    /// The example of 8.6.2.1, table 4: the value 1234567 at address 17.
    @Test func valueBlockOfTheDataSheet() throws {
        let card = try CardSession(
            file: """
                card mifare-classic-1k {
                type-a {\n uid 5E8A31C4\n atqa 0004\n sak 08\n }
                sector 4 {\n value 1 1234567\n }
                }
                """)
        _ = try open(card, "11", a: Self.deliveryKey)
        try expectEqual(card.native("30 11"), hex("87D61200 78 29EDFF 87D61200 11 EE 11 EE"))
    }

    /// Sector 2, access bits 110: key A takes, key B gives.
    @Test func valueOperations() throws {
        let card = try CardSession("mifare-classic-1k")
        _ = try open(card, "08", a: Self.keyA)
        try expectEqual(card.native("C0 08 64000000"), "")  // 1000 - 100, in the transfer buffer
        try expectEqual(card.native("30 08"), hex("E8030000 17FCFFFF E8030000 08F708F7"))
        try expectEqual(card.native("B0 08"), "")
        try expectEqual(card.native("30 08"), hex("84030000 7BFCFFFF 84030000 08F708F7"))
        try expectEqual(card.native("C1 08 01000000"), nil)  // only key B
        _ = try open(card, "08", b: Self.keyB)
        try expectEqual(card.native("C1 08 64000000"), "")
        try expectEqual(card.native("B0 08"), "")
        // RESTORE copies block 8 to its backup, address included.
        try expectEqual(card.native("C2 08 00000000"), "")
        try expectEqual(card.native("B0 09"), "")
        try expectEqual(card.native("30 09"), hex("E8030000 17FCFFFF E8030000 08F708F7"))
        try expectEqual(card.native("C0 0A 00000000"), nil)  // not a value block
        _ = try open(card, "08", b: Self.keyB)
        try expectEqual(card.native("B0 08"), nil)  // nothing to transfer
        _ = try open(card, "08", b: Self.keyB)
        try expectEqual(card.native("C1 08 FFFFFF7F"), nil)  // over 2^31 - 1
    }

    /// The parts of a trailer have rights of their own (table 7): with 011 all of them are key B's.
    @Test func trailer() throws {
        let card = try CardSession("mifare-classic-1k")
        let trailer = "111111111111 78778869 222222222222"
        _ = try open(card, "0C", a: Self.keyA)
        try expectEqual(card.native("30 0F"), hex("000000000000 78778869 000000000000"))
        try expectEqual(card.native("A0 0F \(trailer)"), nil)
        _ = try open(card, "0C", b: Self.keyB)
        try expectEqual(card.native("A0 0F \(trailer)"), "")
        try expectEqual(open(card, "0C", b: "22 22 22 22 22 22"), "")
        try expectEqual(open(card, "0C", a: "11 11 11 11 11 11"), "")
        // Access bits that contradict their complements close the sector for ever (8.7.1).
        _ = try open(card, "04", a: Self.deliveryKey)
        try expectEqual(card.native("A0 07 FFFFFFFFFFFF 00000069 FFFFFFFFFFFF"), "")
        try expectEqual(card.native("30 04"), nil)
        _ = try open(card, "04", a: Self.deliveryKey)
        try expectEqual(card.native("30 04"), nil)
    }

    private func card(access: String, content: String = "value 0 1000") throws -> CardSession {
        try CardSession(
            file: """
                card mifare-classic-1k {
                type-a {\n uid 5E8A31C4\n atqa 0004\n sak 08\n }
                sector 1 {\n key-a A0A1A2A3A4A5\n access \(access) 69\n key-b B0B1B2B3B4B5\n \(content)\n }
                }
                """)
    }

    /// The keys that let an operation through, as the data sheet writes them.
    private func keys(_ card: CardSession, _ operations: String...) throws -> String {
        var allowed: [String] = []
        for (name, code, key) in [("A", "60", Self.keyA), ("B", "61", Self.keyB)] {
            card.card.reset()
            try expectEqual(card.native("\(code) 04 \(key) \(Self.uid)"), "")
            if try operations.allSatisfy({ try card.native($0) != nil }) { allowed.append(name) }
        }
        return allowed.isEmpty ? "-" : allowed.joined(separator: "|")
    }

    /// Table 8, row by row: C1 C2 C3; the access bits that say so, with 011 for the trailer; read, write, increment,
    /// and decrement, transfer, restore.
    @Test(arguments: [
        ("000", "7F0788", "A|B A|B A|B A|B"),
        ("010", "0F078F", "A|B - - -"),
        ("100", "787788", "A|B B - -"),
        ("110", "08778F", "A|B B B A|B"),
        ("001", "7F00F8", "A|B - - A|B"),
        ("011", "0F00FF", "B B - -"),
        ("101", "7870F8", "B - - -"),
        ("111", "0870FF", "- - - -"),
    ])
    func dataBlockRights(condition: String, access: String, expected: String) throws {
        let write = "A0 04 E8030000 17FCFFFF E8030000 04FB04FB"
        let rights = [
            try keys(card(access: access), "30 04"), try keys(card(access: access), write),
            try keys(card(access: access), "C1 04 01000000"),
            try keys(card(access: access), "C0 04 01000000", "B0 04", "C2 04 00000000", "B0 04"),
        ]
        expectEqual(rights.joined(separator: " "), expected, "\(condition)")
    }

    /// Table 7, row by row: which key writes key A and the access bits, reads and writes key B.
    @Test(arguments: [
        ("000", "FF0F00", "A - A A"),
        ("010", "7F0F08", "- - A -"),
        ("100", "F78F00", "B - - B"),
        ("110", "778F08", "- - - -"),
        ("001", "FF0780", "A A A A"),
        ("011", "7F0788", "B B - B"),
        ("101", "F78780", "- B - -"),
        ("111", "778788", "- - - -"),
    ])
    func trailerRights(condition: String, access: String, expected: String) throws {
        let (newA, newB) = ("11 11 11 11 11 11", "22 22 22 22 22 22")
        var rights = ["-", "-", "-", "-"]
        for name in ["A", "B"] {
            let card = try card(access: access)
            _ = name == "A" ? try open(card, "04", a: Self.keyA) : try open(card, "04", b: Self.keyB)
            if try card.native("30 07")?.hasSuffix("B0B1B2B3B4B5") == true { rights[2] = name }
            // The access bits stay as they are; byte 9 has their rights, and changes.
            _ = try card.native("A0 07 \(newA) \(access) 77 \(newB)")
            if try open(card, "04", a: newA) == "" { rights[0] = name }
            if try open(card, "04", b: newB) == "" { rights[3] = name }
            // Whichever key A is right now shows byte 9.
            if try open(card, "04", a: newA) == nil { _ = try open(card, "04", a: Self.keyA) }
            if try card.native("30 07")?.dropFirst(18).hasPrefix("77") == true { rights[1] = name }
        }
        expectEqual(rights.joined(separator: " "), expected, "\(condition)")
    }

    /// Each access bit stands in the trailer a second time, inverted; if one of the 24 is wrong, nothing goes (8.7.1).
    @Test(arguments: 0..<24)
    func contradictoryAccessBits(bit: Int) throws {
        var access = try [UInt8](hex: "78 77 88")
        access[bit / 8] ^= 1 << UInt8(bit % 8)
        try expectEqual(keys(card(access: access.hex), "30 04"), "-")
    }

    @Test func noISODEP() throws {
        try expectEqual(CardSession("mifare-classic-1k").card.exchange([0x00, 0xA4, 0x04, 0x00]), nil)
    }
}

@Suite struct CardNTAG213Tests {
    /// NTAG213/215/216, table 28.
    @Test func version() throws {
        try expectEqual(CardSession("ntag213").native("60"), hex("00 04 04 02 01 00 0F 03"))
    }

    /// UID and check bytes (8.5.1): BCC0 = 88 ^ 04 ^ 6D ^ 2A = CB, BCC1 = 91 ^ 5C ^ 70 ^ 80 = 3D; CC as delivered (8.5.6).
    @Test func identity() throws {
        try expectEqual(
            CardSession("ntag213").native("30 00"), hex("046D2ACB 915C7080 3D480000 E1101200"))
    }

    /// A TLV of an NDEF message with the record of NFC Forum URI RTD, prefix 04 (https://), and the terminator.
    @Test func message() throws {
        let card = try CardSession("ntag213")
        try expectEqual(card.native("30 04"), hex("03 0E D1 01 0A 55 04 73 77 69 66 74 2E 6F 72 67"))
        try expectEqual(card.native("30 08"), hex("FE 00 00 00 00000000 00000000 00000000"))
        try expectEqual(card.native("3A 04 08")?.count, 2 * 5 * 4)
    }

    /// READ rolls over to page 0 behind page 2C, password and PACK come as zeros (10.2); FAST_READ does not (10.3).
    @Test func rollOver() throws {
        let card = try CardSession("ntag213")
        try expectEqual(card.native("30 2A"), hex("00050000 00000000 00000000 046D2ACB"))
        try expectEqual(card.native("3A 29 2C"), hex("040000FF 00050000 00000000 00000000"))
        try expectEqual(card.native("30 2D"), nil)
        try expectEqual(card.native("30 00"), nil)  // silent until selected again
        card.card.reset()
        try expectEqual(card.native("3A 2C 2D"), nil)
        card.card.reset()
        try expectEqual(card.native("3A 05 04"), nil)
    }

    @Test func writes() throws {
        let card = try CardSession("ntag213")
        try expectEqual(card.native("A2 0A 01 02 03 04"), "")
        try expectEqual(card.native("A0 0B 05060708 000000000000000000000000"), "")  // COMPATIBILITY_WRITE
        try expectEqual(card.native("30 0A")?.hasPrefix("0102030405060708"), true)
        try expectEqual(card.native("A2 01 00 00 00 00"), nil)  // the UID
        card.card.reset()
        try expectEqual(card.native("A2 2D 00 00 00 00"), nil)
        card.card.reset()
        // The capability container is one-time programmable: bits only go to 1.
        try expectEqual(card.native("A2 03 00 00 00 0F"), "")
        try expectEqual(card.native("A2 03 00 00 00 00"), "")
        try expectEqual(card.native("30 03")?.hasPrefix("E110120F"), true)
    }

    /// Static lock bytes (8.5.2): bit 4 of byte 0 locks page 4, bit 1 freezes the bits of pages 4 to 9.
    @Test func staticLocks() throws {
        let card = try CardSession("ntag213")
        try expectEqual(card.native("A2 02 FF FF 12 00"), "")
        try expectEqual(card.native("30 02")?.hasPrefix("3D481200"), true)  // bytes 0 and 1 stay
        try expectEqual(card.native("A2 05 00 00 00 00"), "")
        try expectEqual(card.native("A2 02 00 00 20 04"), "")  // page 5 is frozen, page 10 is not
        try expectEqual(card.native("30 02")?.hasPrefix("3D481204"), true)
        try expectEqual(card.native("A2 04 00 00 00 00"), nil)
        card.card.reset()
        try expectEqual(card.native("A2 0A 00 00 00 00"), nil)
    }

    /// Dynamic lock bytes (8.5.3): bit 0 of byte 0 locks pages 16 and 17; byte 2 freezes and locks nothing, as a user
    /// found out (community.nxp.com/thread/399134: `00 00 3F` leaves pages 16 and 17 writable).
    @Test func dynamicLocks() throws {
        let card = try CardSession("ntag213")
        try expectEqual(card.native("A2 28 01 00 00 00"), "")
        try expectEqual(card.native("A2 11 00 00 00 00"), nil)
        card.card.reset()
        try expectEqual(card.native("A2 12 00 00 00 00"), "")
        try expectEqual(card.native("A2 28 00 00 3F 00"), "")
        try expectEqual(card.native("A2 12 00 00 00 00"), "")
        try expectEqual(card.native("A2 28 FF 0F 00 00"), "")  // frozen
        try expectEqual(card.native("30 28")?.hasPrefix("01003FBD"), true)
    }

    /// AUTH0 and PROT (8.8): writing from page 4 on needs the password, then reading too.
    @Test func password() throws {
        let card = try CardSession("ntag213")
        try expectEqual(card.native("1B FF FF FF FF"), "0000")  // as delivered
        try expectEqual(card.native("A2 2B 11 22 33 44"), "")
        try expectEqual(card.native("A2 2C AA BB 00 00"), "")
        try expectEqual(card.native("A2 29 04 00 00 04"), "")
        card.card.reset()
        try expectEqual(card.native("30 04")?.hasPrefix("030E"), true)
        try expectEqual(card.native("A2 05 00 00 00 00"), nil)
        card.card.reset()
        try expectEqual(card.native("1B FF FF FF FF"), nil)
        card.card.reset()
        try expectEqual(card.native("1B 11 22 33 44"), "AABB")
        try expectEqual(card.native("A2 2A 82 05 00 00"), "")  // PROT, two attempts
        try expectEqual(card.native("30 04")?.hasPrefix("030E"), true)
        card.card.reset()
        try expectEqual(card.native("30 03"), hex("E1101200 046D2ACB 915C7080 3D480000"))  // rolls over before AUTH0
        try expectEqual(card.native("30 04"), nil)
        for _ in 0..<2 {
            card.card.reset()
            try expectEqual(card.native("1B 00 00 00 00"), nil)
        }
        card.card.reset()
        try expectEqual(card.native("1B 11 22 33 44"), nil)  // too late
    }

    /// NFC_CNT_EN (8.7): one count a session, least significant byte first.
    @Test func counter() throws {
        let card = try CardSession("ntag213")
        try expectEqual(card.native("39 02"), nil)
        card.card.reset()
        try expectEqual(card.native("A2 2A 10 05 00 00"), "")
        _ = try card.native("30 00")
        _ = try card.native("30 00")
        card.card.reset()
        _ = try card.native("3A 00 01")
        try expectEqual(card.native("39 02"), "020000")
    }
}

@Suite struct CardISODEPTests {
    @Test(arguments: ["iso-dep", "type-b"])
    func holdsNothing(name: String) throws {
        let send = try CardSession(name)
        try expectEqual(send("00 A4 04 00 0E 32 50 41 59 2E 53 59 53 2E 44 44 46 30 31 00"), "6A82")
        try expectEqual(send("00 B0 00 00 00"), "6D00")
        try expectEqual(send("90 60 00 00 00"), "6E00")
        try expectEqual(send("00 A4"), "6700")
        try expectEqual(send.native("30 00"), nil)
    }

    /// ACS API v2.04: the ATS of a DESFire; the ATQB of the type B example.
    @Test func radio() throws {
        try expectEqual(
            CardSession("iso-dep").card.radio,
            .typeA(
                uid: [UInt8](hex: "04336C1D825980"), atqa: [0x03, 0x44], sak: 0x20,
                ats: [UInt8](hex: "067577810280")))
        try expectEqual(
            CardSession("type-b").card.radio, .typeB(atqb: [UInt8](hex: "50 12234556 1253544E 3381C3")))
    }
}

@Suite struct CardType4TagTests {
    /// A file of 32 bytes in hexadecimal, as in the example of NFC Forum Type 4 Tag Operation 2.0, Appendix B.
    static func card(_ statements: String) throws -> any VirtualCard {
        try CardFile(
            parsing: """
                card ndef-type4 {
                type-a {
                uid 04517E2A8C4D80
                atqa 0344
                sak 20
                ats 067577810280
                }
                \(statements)
                }
                """
        ).makeCard()
    }

    static func send(_ card: any VirtualCard, _ command: String) throws -> String? {
        try card.exchange([UInt8](hex: command))?.hex(separator: " ")
    }

    /// The command flow of Appendix C: application, capability container, NDEF file, read, write.
    @Test func appendixC() throws {
        let card = try Self.card("size 50")
        func send(_ command: String) throws -> String? { try Self.send(card, command) }
        try expectEqual(send("00 A4 00 0C 02 E1 03"), "6A 82")  // not before the application
        try expectEqual(send("00 A4 04 00 07 D2 76 00 00 85 01 01 00"), "90 00")
        try expectEqual(send("00 B0 00 00 02"), "69 86")
        try expectEqual(send("00 A4 00 0C 02 E1 03"), "90 00")
        try expectEqual(send("00 B0 00 00 0F"), "00 0F 20 00 3B 00 34 04 06 E1 04 00 32 00 00 90 00")
        try expectEqual(send("00 D6 00 00 01 FF"), "69 82")
        try expectEqual(send("00 A4 00 0C 02 E1 04"), "90 00")
        try expectEqual(send("00 B0 00 00 02"), "00 00 90 00")
        try expectEqual(send("00 D6 00 02 03 D0 00 00"), "90 00")
        try expectEqual(send("00 D6 00 00 02 00 03"), "90 00")
        try expectEqual(send("00 B0 00 00 05"), "00 03 D0 00 00 90 00")
    }

    @Test func refusals() throws {
        let card = try Self.card("size 50\nread-only\nmle 16\nmlc 4")
        func send(_ command: String) throws -> String? { try Self.send(card, command) }
        try expectEqual(send("00 A4 04 00 07 D2 76 00 00 85 01 00 00"), "6A 82")
        try expectEqual(send("00 A4 04 00 07 D2 76 00 00 85 01 01"), "90 00")
        try expectEqual(send("00 A4 00 00 02 E1 04"), "6A 86")
        try expectEqual(send("00 A4 00 0C 02 E1 03"), "90 00")
        try expectEqual(send("00 B0 00 00 0F"), "00 0F 20 00 10 00 04 04 06 E1 04 00 32 00 FF 90 00")
        try expectEqual(send("00 A4 00 0C 02 E1 04"), "90 00")
        try expectEqual(send("00 B0 00 00 11"), "67 00")  // more than MLe
        try expectEqual(send("00 B0 00 32 01"), "6B 00")  // behind the end
        try expectEqual(send("00 B0 00 31 02"), "00 62 82")  // over it
        try expectEqual(send("00 D6 00 00 02 00 00"), "69 82")
        try expectEqual(send("00 88 00 00 00"), "6D 00")
        try expectEqual(send("80 B0 00 00 00"), "6E 00")
        card.reset()
        try expectEqual(send("00 B0 00 00 02"), "69 86")

        let open = try Self.card("size 50\nmlc 4")
        for select in ["00 A4 04 00 07 D2760000850101 00", "00 A4 00 0C 02 E1 04"] { _ = try Self.send(open, select) }
        try expectEqual(Self.send(open, "00 D6 00 00 05 00 00 00 00 00"), "67 00")  // more than MLc
        try expectEqual(Self.send(open, "00 D6 00 30 04 00 00 00 00"), "6B 00")  // over the end
    }

    @Test(arguments: [
        ("size 4", "a number of bytes"), ("size 5\nndef D0000000", "has up to 3"), ("mle 14", "a number of bytes"),
        ("mlc 0", "a number of bytes"), ("page 4 00", "not known"), ("read-only yes", "read-only"),
    ])
    func mistakes(statements: String, reason: String) {
        #expect {
            _ = try Self.card(statements)
        } throws: {
            ($0 as? CardFileError)?.reason.contains(reason) == true
        }
    }
}
