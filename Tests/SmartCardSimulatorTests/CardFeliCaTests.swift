import SmartCard
import SmartCardSimulator
import TestSupport
import Testing

/// Packets as JIS X 6319-4 and Sony's FeliCa Card User's Manual, Excerpted Edition, chapter 4, have them.
@Suite struct CardFeliCaTests {
    /// The tag of nfcpy's tests (tests/test_tag_tt3.py), and a second system.
    static let file = """
        card felica {
        type-f {
        idm 01 02 03 04 05 06 07 08
        pmm FF FF FF FF FF FF FF FF
        }
        system 12FC {
        service 0009 000B {
        block 0 10010100 01000000 00000000 00100023
        block 1 d1020b53 70d10107 55036162 2e636f6d
        }
        }
        system 88B4 {
        service 104B {
        block 0 00112233 44556677 8899AABB CCDDEEFF
        }
        }
        }
        """

    /// nfcpy, test_polling: every system, this system, with its code, in 2 to 16 time slots.
    @Test func polling() throws {
        let card = try CardSession(file: Self.file)
        let bare = try hex("12 01 0102030405060708 FFFFFFFFFFFFFFFF")
        try expectEqual(card.native("06 00 FFFF 00 00"), bare)
        try expectEqual(card.native("06 00 12FC 00 00"), bare)
        try expectEqual(card.native("06 00 FFFF 01 00"), hex("14 01 0102030405060708 FFFFFFFFFFFFFFFF 12FC"))
        for slots in ["01", "03", "07", "0F"] { try expectEqual(card.native("06 00 12FC 00 \(slots)"), bare) }
        // FF stands for either byte; the upper four bits of the IDm are the number of the system.
        try expectEqual(card.native("06 00 12FF 00 00"), bare)
        try expectEqual(card.native("06 00 88FF 01 00"), hex("14 01 1102030405060708 FFFFFFFFFFFFFFFF 88B4"))
        try expectEqual(card.native("06 00 FFB4 01 00"), hex("14 01 1102030405060708 FFFFFFFFFFFFFFFF 88B4"))
        for silent in ["06 00 12FD 00 00", "06 00 FFFF 00 02", "06 00 FFFF 03 00", "05 00 FFFF 00", "07 00 FFFF 00 00"]
        {
            try expectEqual(card.native(silent), nil, "\(silent)")
        }
    }

    /// nfcpy, test_read_without_encryption: blocks 0 and 1 of service 000B; block 0 through two services.
    @Test func read() throws {
        let card = try CardSession(file: Self.file)
        let idm = "0102030405060708"
        let blocks = ["10010100 01000000 00000000 00100023", "d1020b53 70d10107 55036162 2e636f6d"]
        try expectEqual(
            card.native("12 06 \(idm) 01 0B00 02 8000 8001"),
            hex("2d 07 \(idm) 0000 02", blocks[0], blocks[1]))
        try expectEqual(
            card.native("14 06 \(idm) 02 0B00 0B00 02 8000 8100"),
            hex("2d 07 \(idm) 0000 02", blocks[0], blocks[0]))
        // A block number of two bytes, least significant first; the same block through the service that writes.
        try expectEqual(card.native("11 06 \(idm) 01 0900 01 000100"), hex("1d 07 \(idm) 0000 01", blocks[1]))
        // The other system.
        try expectEqual(
            card.native("10 06 1102030405060708 01 4B10 01 8000"),
            hex("1d 07 1102030405060708 0000 01 00112233445566778899AABBCCDDEEFF"))
        try expectEqual(card.native("10 06 \(idm) 01 4B10 01 8000"), hex("0c 07 \(idm) 01 A6"))
    }

    /// Status flag 1 is FF for the command as a whole, else the place in the list; flag 2 tells why (table of the
    /// manual, 4.5).
    @Test(arguments: [
        ("10 06 # 00 0B00 01 8000", "0c 07 # FF A1"), ("10 06 # 11 0B00 01 8000", "0c 07 # FF A1"),
        ("0e 06 # 01 0B00 00", "0c 07 # FF A2"),
        ("2e 06 # 01 0B00 10 \(String(repeating: "8000", count: 16))", "0c 07 # FF A2"),
        ("12 06 # 01 0B00 02 8000 8101", "0c 07 # 02 A3"), ("10 06 # 01 4B00 01 8000", "0c 07 # 01 A6"),
        ("10 06 # 01 0B00 01 9000", "0c 07 # 01 A7"), ("12 06 # 01 0B00 02 8000 8002", "0c 07 # 02 A8"),
        ("11 06 # 01 0B00 01 000001", "0c 07 # 01 A8"),
        ("20 08 # 01 0B00 01 8000 00112233445566778899AABBCCDDEEFF", "0c 09 # 01 A5"),
        ("20 08 # 01 0900 01 8002 00112233445566778899AABBCCDDEEFF", "0c 09 # 01 A8"),
    ])
    func refusals(command: String, answer: String) throws {
        let idm = "0102030405060708"
        let card = try CardSession(file: Self.file)
        var due = command.replacing("#", with: idm)
        // The length, for lists whose length is not worth counting.
        let packet = try [UInt8](hex: due)
        due = [UInt8(packet.count)].hex + packet.dropFirst().hex
        try expectEqual(card.native(due), hex(answer.replacing("#", with: idm)))
        // A refusal changes nothing.
        try expectEqual(card.native("0A 04 \(idm)"), hex("0B 05 \(idm) 00"))
        try expectEqual(
            card.native("10 06 \(idm) 01 0B00 01 8000"),
            hex("1d 07 \(idm) 0000 01 10010100 01000000 00000000 00100023"))
    }

    @Test func writes() throws {
        let card = try CardSession(file: Self.file)
        let idm = "0102030405060708"
        let (one, other) = (String(repeating: "11", count: 16), String(repeating: "22", count: 16))
        try expectEqual(card.native("32 08 \(idm) 01 0900 02 8001 8000 \(one) \(other)"), hex("0c 09 \(idm) 0000"))
        try expectEqual(
            card.native("12 06 \(idm) 01 0B00 02 8000 8001"), hex("2d 07 \(idm) 0000 02", other, one))
        // All or nothing.
        try expectEqual(card.native("32 08 \(idm) 01 0900 02 8000 8002 \(one) \(one)"), hex("0c 09 \(idm) 02 A8"))
        try expectEqual(card.native("10 06 \(idm) 01 0B00 01 8000"), hex("1d 07 \(idm) 0000 01", other))
    }

    /// Request Response, Request System Code; and what is met with silence.
    @Test func others() throws {
        let card = try CardSession(file: Self.file)
        try expectEqual(card.native("0A 04 1102030405060708"), "0B051102030405060708" + "00")
        try expectEqual(card.native("0A 0C 0102030405060708"), hex("0F 0D 0102030405060708 02 12FC 88B4"))
        for silent in [
            "", "00", "01", "02 06", "0A 04 2102030405060708", "0A 04 0102030405060709", "0B 04 0102030405060708",
            "0B 04 0102030405060708 00", "0B 0C 0102030405060708 00", "0A 12 0102030405060708",
            "0A 06 0102030405060708",
            "0C 06 0102030405060708 01 0B", "0E 06 0102030405060708 01 0B00 01", "0F 06 0102030405060708 01 0B00 01 80",
            "10 06 0102030405060708 01 0B00 01 0000", "11 06 0102030405060708 01 0B00 01 8000 00",
            "1F 08 0102030405060708 01 0900 01 8000 \(String(repeating: "00", count: 15))",
            "21 08 0102030405060708 01 0900 01 8000 \(String(repeating: "00", count: 17))",
        ] {
            try expectEqual(card.native(silent), nil, "\(silent)")
        }
        expectEqual(card.card.exchange([0x00, 0xA4, 0x04, 0x00]), nil, "it speaks no ISO-DEP")
        // And it is still there.
        #expect(try card.native("06 00 FFFF 00 00") != nil)
    }

    /// Every packet cut off and lengthened, and every byte of it changed.
    @Test(arguments: ["14060102030405060708020B000B000280008100", "0600FFFF0103"]) func hostile(packet: String) throws {
        let card = try CardSession(file: Self.file)
        let whole = try [UInt8](hex: packet)
        for index in whole.indices {
            for value in UInt8.min...UInt8.max {
                var mutant = whole
                mutant[index] = value
                _ = card.card.exchangeNative(mutant)
                _ = card.card.exchangeNative([UInt8(index)] + mutant[1...].prefix(max(index - 1, 0)))
            }
        }
    }

    /// NFC Forum Type 3 Tag: attribute information, its checksum over bytes 0 to 13, and the message it counts.
    @Test func builtIn() throws {
        let card = try CardSession("felica")
        try expectEqual(card.native("06 00 12FC 01 00"), hex("14 01 02FE000102030405 03014B024F4993FF 12FC"))
        let answer = try #require(try card.native("12 06 02FE000102030405 01 0B00 02 8000 8001"))
        let blocks = try Array([UInt8](hex: answer)[13...])
        let sum: Int = blocks[0..<14].reduce(0) { $0 + Int($1) }
        let checksum: Int = Int(blocks[14]) << 8 | Int(blocks[15])
        expectEqual(sum, checksum)
        expectEqual(blocks[13], 14)
        let record: [UInt8] = [0xD1, 0x01, 0x0A, 0x55, 0x04] + "swift.org".utf8
        expectEqual(Array(blocks[16..<30]), record)
    }
}
