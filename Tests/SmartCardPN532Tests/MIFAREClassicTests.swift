import SmartCard
import SmartCardPN532
import SmartCardSimulator
import TestSupport
import Testing

/// Commands: ACS ACR122U API v2.04, 5.2 to 5.5.  Access bits: NXP MF1S50yyX/V1, 8.7, and AN10787 (MAD).
@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct MIFAREClassicTests {
    /// Published examples of keys (TEST).
    static let keyA = MIFAREClassic.Key.a(bytes("A0 A1 A2 A3 A4 A5"))
    static let keyB = MIFAREClassic.Key.b(bytes("B0 B1 B2 B3 B4 B5"))

    static func card() async throws -> MIFAREClassic {
        MIFAREClassic(try await virtualReader(VirtualCards.named("mifare-classic-1k")).connect())
    }

    static func error(_ body: () async throws -> some Any) async -> TagError? {
        do {
            _ = try await body()
            return nil
        } catch {
            return error as? TagError
        }
    }

    /// ACS API v2.04, 5.2 to 5.5: the examples.
    @Test func commands() async throws {
        let reader = ScriptedReader([
            "FF 82 00 00 06 FF FF FF FF FF FF": "90 00", "FF 86 00 00 05 01 00 04 60 00": "90 00",
            "FF B0 00 04 10": "00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F 90 00",
            "FF D6 00 04 10 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F": "90 00",
            "FF D7 00 05 05 00 00 00 00 01": "90 00", "FF B1 00 05 04": "00 00 00 01 90 00",
            "FF D7 00 05 02 03 06": "90 00", "FF D7 00 05 05 01 00 00 00 05": "90 00",
            "FF D7 00 05 05 02 FF FF FF FC": "90 00",
        ])
        let card = MIFAREClassic(reader)
        let block = bytes("00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F")
        try await card.authenticate(block: 4, with: .delivery)
        #expect(try await card.readBlock(4) == block)
        try await card.writeBlock(4, block)
        try await card.storeValue(1, in: 5)
        #expect(try await card.readValue(5) == 1)
        try await card.copyValue(from: 5, to: 6)
        try await card.increment(5, by: 5)
        try await card.decrement(5, by: -4)
    }

    @Test func readAndWrite() async throws {
        let card = try await Self.card()
        try await card.authenticate(block: 5, with: .delivery)
        #expect(try await card.readBlock(4) == Array("swift-contactles".utf8))
        try await card.writeBlock(6, [UInt8](0..<16))
        #expect(try await card.readBlock(6) == [UInt8](0..<16))
        #expect(
            try await card.readSector(1, with: .delivery)
                == Array("swift-contactless  sample card  ".utf8) + [UInt8](0..<16))
        #expect(await Self.error { try await card.writeBlock(6, [1]) } == .wrongLength(1, expected: 16))
        #expect(
            await Self.error { try await card.authenticate(block: 4, with: .a([1])) } == .wrongLength(1, expected: 6))
    }

    /// A refusal shuts the card until it is selected anew (MF1S50yyX/V1, 8.2), which has been done.
    @Test func wrongKeys() async throws {
        let card = try await Self.card()
        #expect(
            await Self.error { try await card.authenticate(block: 8, with: .delivery) }
                == .authenticationFailed(block: 8))
        #expect(
            await Self.error { try await card.authenticate(block: 200, with: .delivery) }
                == .authenticationFailed(block: 200))
        #expect(await Self.error { try await card.readBlock(4) } == .refused("to read 4"))
        try await card.authenticate(block: 4, with: .delivery)
        #expect(await Self.error { try await card.readBlock(8) } == .refused("to read 8"))
        // The refusal has shut sector 1.
        #expect(await Self.error { try await card.readBlock(4) } == .refused("to read 4"))
        try await card.authenticate(block: 4, with: .delivery)
        #expect(try await card.readBlock(4).count == 16)

        let script = ScriptedReader([
            "FF 82 00 00 06 FF FF FF FF FF FF": "90 00", "FF 86 00 00 05 01 00 04 60 00": "63 00",
        ])
        _ = await Self.error { try await MIFAREClassic(script).authenticate(block: 4, with: .delivery) }
        #expect(script.history().last == "reset")
    }

    /// The purse of the built-in card: key A spends, key B fills up.
    @Test func values() async throws {
        let card = try await Self.card()
        try await card.authenticate(block: 8, with: Self.keyA)
        #expect(try await card.readValue(8) == 1000)
        try await card.decrement(8, by: 10)
        #expect(try await card.readValue(8) == 990)
        try await card.copyValue(from: 8, to: 9)
        #expect(try await card.readValue(9) == 990)
        #expect(await Self.error { try await card.increment(8, by: 1) } == .refused("the operation on the value of 8"))
        try await card.authenticate(block: 8, with: Self.keyB)
        try await card.increment(8, by: 110)
        #expect(try await card.readValue(8) == 1100)
        try await card.storeValue(-5, in: 8)
        #expect(try await card.readValue(8) == -5)
        #expect(try await Array(card.readBlock(8).prefix(8)) == bytes("FB FF FF FF 04 00 00 00"))
        #expect(await Self.error { try await card.readValue(10) } == .notAValue(block: 10))
    }

    // MARK: Sectors and access bits

    @Test func sectors() {
        #expect(
            [0, 3, 4, 63, 127, 128, 143, 144, 255].map { MIFAREClassic.sector(of: $0) } == [
                0, 0, 1, 15, 31, 32, 32, 33, 39,
            ])
        #expect(MIFAREClassic.blocks(of: 15) == 60...63 && MIFAREClassic.blocks(of: 31) == 124...127)
        #expect(MIFAREClassic.blocks(of: 32) == 128...143 && MIFAREClassic.trailer(of: 39) == 255)
        #expect(MIFAREClassic.blocks(of: 40) == nil && MIFAREClassic.trailer(of: -1) == nil)
    }

    /// On delivery (8.7.1); MAD and NDEF sectors (AN10787, AN1305); the purse and the last sector of the built-in card.
    @Test(arguments: [
        ("FF 07 80", [0, 0, 0, 1] as [UInt8]), ("78 77 88", [4, 4, 4, 3]), ("7F 07 88", [0, 0, 0, 3]),
        ("4C 37 8B", [6, 6, 0, 3]),
    ])
    func accessBits(hex: String, codes: [UInt8]) throws {
        let conditions = try #require(MIFAREAccessConditions(bytes(hex)))
        #expect((0..<4).map { conditions.code($0) } == codes)
        var made = MIFAREAccessConditions.delivery
        for (index, code) in codes.enumerated() { made = try #require(made.setting(index, to: code)) }
        #expect(made == conditions && made.bytes == bytes(hex))
    }

    @Test func everyAccessCondition() throws {
        var valid = 0
        for b6 in 0...UInt8.max {
            for b7 in 0...UInt8.max {
                // Byte 8 follows from the other two.
                let b8 = (~b7 & 0x0F) << 4 | ~b6 >> 4
                guard let conditions = MIFAREAccessConditions([b6, b7, b8]) else { continue }
                valid += 1
                #expect(conditions.bytes == [b6, b7, b8])
                #expect(MIFAREAccessConditions([b6, b7, b8 ^ 0x01]) == nil)
                _ = (conditions.data(0), conditions.trailer)
            }
        }
        #expect(valid == 4096)
        for broken in ["", "FF", "FF 07", "FF 07 80 69", "00 00 00", "FF FF FF"] {
            #expect(MIFAREAccessConditions(bytes(broken)) == nil)
        }
        #expect(MIFAREAccessConditions.delivery.setting(4, to: 0) == nil)
        #expect(MIFAREAccessConditions.delivery.setting(0, to: 8) == nil)
        #expect(MIFAREAccessConditions.delivery.code(4) == nil && MIFAREAccessConditions.delivery.data(3) == nil)
    }

    /// Tables 7 and 8.
    @Test func rights() throws {
        let delivery = MIFAREAccessConditions.delivery
        // Key B can be read, so it opens nothing.
        let open = try #require(delivery.data(0))
        #expect([open.read, open.write, open.increment, open.decrement] == [.a, .a, .a, .a])
        #expect(delivery.trailer.writeKeyA == .a && delivery.trailer.readKeyB == .a)
        let purse = try #require(MIFAREAccessConditions(bytes("4C 37 8B")))
        let money = try #require(purse.data(0))
        #expect([money.read, money.write, money.increment, money.decrement] == [.both, .b, .b, .both])
        #expect(purse.trailer.writeAccessBits == .b && purse.trailer.readKeyB == .none)
        #expect("\(purse.trailer.readAccessBits), \(purse.trailer.writeKeyA)" == "key A or B, key B")
    }

    @Test func trailers() async throws {
        let card = try await Self.card()
        #expect(try await card.accessConditions(of: 2, with: Self.keyA).bytes == bytes("4C 37 8B"))
        #expect(try await card.accessConditions(of: 1, with: .delivery) == .delivery)
        // 000000 for access bits would shut the sector for ever.
        #expect(
            await Self.error { try await card.writeBlock(7, [UInt8](repeating: 0, count: 16)) } == .invalidAccessBits)
        let conditions = try #require(MIFAREAccessConditions(bytes("7F 07 88")))
        try await card.authenticate(block: 7, with: .delivery)
        try await card.writeTrailer(
            of: 1, keyA: bytes("A0 A1 A2 A3 A4 A5"), keyB: bytes("B0 B1 B2 B3 B4 B5"), conditions: conditions)
        #expect(
            await Self.error { try await card.authenticate(block: 4, with: .delivery) }
                == .authenticationFailed(block: 4))
        #expect(try await card.accessConditions(of: 1, with: Self.keyB) == conditions)
        #expect(await Self.error { try await card.readSector(40, with: Self.keyA) } == .refused("sector 40"))
    }

    /// Keys do not print, whatever prints them.
    @Test func keysDoNotPrint() {
        var dumped = ""
        dump(Self.keyA, to: &dumped)
        for text in ["\(Self.keyA)", String(reflecting: Self.keyA), dumped, String(describing: [Self.keyA])] {
            #expect(!text.contains("160") && !text.lowercased().contains("a0"), "\(text)")
        }
    }

    @Test(arguments: ["", "90", "00 90 00", "00 01 02 03 04 90 00", "6A 81"])
    func hostileReader(answer: String) async throws {
        let script = ScriptedReader(always: bytes(answer))
        let card = MIFAREClassic(script)
        await #expect(throws: (any Error).self) { _ = try await card.readBlock(4) }
        await #expect(throws: (any Error).self) { _ = try await card.readValue(4) }
        await #expect(throws: (any Error).self) { try await card.writeBlock(4, [UInt8](repeating: 0, count: 16)) }
        await #expect(throws: (any Error).self) { _ = try await card.readSector(1, with: .delivery) }
    }
}
