import SmartCardSimulator
import TestSupport
import Testing

/// What a card makes of its issuer's answer.  Cryptograms and MACs were computed with PyEMV 1.5.0 (`ac.generate_arpc_1`,
/// `ac.generate_arpc_2`, `kd.derive_visa_sm_sk`, `sm.generate_command_mac`) from the keys in the card files.
@Suite struct CardIssuerUpdateTests {
    private static let select = "00 A4 04 00 07 A0 00 00 00 03 10 10 00"
    /// TTQ 36 80 C0 00, 12.34, UN 11223344, EUR.
    private static let gpo = "80 A8 00 00 12 83 10 3680C000 000000001234 11223344 0978 00"
    private static let right = "00 82 00 00 0A 3866196A29768AC9 3030"
    private static let putData = "04 DA 9F 17 09 05 BC307922A260627C"
    private static let block = "84 1E 00 00 08 C2AD41B68945FB76"
    private static let unblock = "84 18 00 00 08 3CD2E79B5A221F19"

    /// After an online request, and another time in the field.
    private func answered(_ card: String = "visa-update") throws -> CardSession {
        let send = try CardSession(card)
        _ = try send(Self.select)
        #expect(try send(Self.gpo).contains("9F2608C7C5A68F187C18C6"))
        send.card.reset()
        _ = try send(Self.select)
        return send
    }

    /// EMV Book 2, 8.2.1, and Book 3, 6.5.4.
    @Test(arguments: [
        (right, "9000"), ("00 82 00 00 0A A620C72F2FB4EE33 3035", "9000"),  // approved, and declined
        ("00 82 00 00 0A 3866196A29768AC9 3035", "6300"), ("00 82 00 00 0A 3866196A29768AC8 3030", "6300"),
        ("00 82 00 00 08 3866196A29768AC9", "6300"), ("00 82 00 00 07 3866196A29768A", "6700"),
        ("00 82 00 00 11 3866196A29768AC9 3030 00000000000000", "6700"),
        ("00 82 00 01 0A 3866196A29768AC9 3030", "6A86"),
    ])
    func authentication(_ command: String, _ status: String) throws {
        let send = try answered()
        try expectEqual(send(command), status)
        // Once after each SELECT, whatever came of it.
        try expectEqual(send(Self.right), status.hasPrefix("67") || status.hasPrefix("6A") ? "9000" : "6985")
        _ = try send(Self.select)
        try expectEqual(send(Self.right), "9000")
    }

    /// EMV Book 2, 8.2.2: `visa` with CVN 18, and the answer to the ARQC of ``CardEMVTests/visaTransaction()``.
    @Test(arguments: [
        ("08 E11AEF06 00820000", "9000"), ("10 C6536D26 00820000 0102030405060708", "9000"),
        ("08 E11AEF06 00820001", "6300"), ("10 C6536D26 00820000 0102030405060709", "6300"),
        ("0A E11AEF06 00820000 3030", "6300"),
    ])
    func cardStatusUpdates(_ data: String, _ status: String) throws {
        let text = try #require(VirtualCards.all.first { $0.name == "visa" }).text
        let update =
            "issuer-update {\n response-cryptogram method-2\n script-key 0123456789ABCDEFFEDCBA9876543210\n }\n"
        let send = try CardSession(
            file: text.replacing("        cryptogram {  ", with: update + "cryptogram {  "))
        _ = try send(Self.select)
        #expect(try send(CardEMVTests.visaGPO).contains("9F26084A8CF7AC9A9378A0"))
        try expectEqual(send("00 82 00 00 " + data), status)
    }

    @Test func scripts() throws {
        let send = try answered()
        try expectEqual(send("80 CA 9F 17 00"), "9F1701039000")
        try expectEqual(send(Self.right), "9000")
        try expectEqual(send(Self.putData), "9000")
        try expectEqual(send("80 CA 9F 17 00"), "9F1701059000")
        // The counter is the card's own; nothing else is there.
        try expectEqual(send("04 DA 9F 36 0A 0001 BC307922A260627C"), "6A86")
        try expectEqual(send("04 DA 9F 13 0A 0001 BC307922A260627C"), "6A86")
        try expectEqual(send(Self.block), "9000")
        send.card.reset()
        #expect(try send(Self.select).hasSuffix("6283"))
        try expectEqual(send(Self.gpo), "6985")
        try expectEqual(send("80 CA 9F 17 00"), "9F1701059000")
        #expect(try send(Self.right) == "9000" && send(Self.unblock) == "9000")
        #expect(try send(Self.select).hasSuffix("9000"))
        #expect(try send(Self.gpo).hasSuffix("9000"))
    }

    /// A wrong MAC, none, that of another command, and more data than the object has.
    @Test(arguments: [
        ("04 DA 9F 17 09 05 BC307922A260627D", "6988"), ("04 DA 9F 17 09 06 BC307922A260627C", "6988"),
        ("04 DA 9F 17 01 05", "6988"), ("84 1E 00 00 08 3CD2E79B5A221F19", "6988"), ("84 1E 00 00", "6988"),
        ("84 1E 00 01 08 C2AD41B68945FB76", "6A86"),
    ])
    func badScripts(_ command: String, _ status: String) throws {
        let send = try answered()
        _ = try send(Self.right)
        try expectEqual(send(command), status)
        #expect(try send("80 CA 9F 17 00") == "9F1701039000" && send(Self.select).hasSuffix("9000"))
    }

    /// Without the issuer's authentication, after a wrong one, and once it has been selected anew.
    @Test func scriptsOfNobody() throws {
        let send = try answered()
        try expectEqual(send(Self.putData), "6985")
        #expect(try send("00 82 00 00 0A 0000000000000000 3030") == "6300" && send(Self.block) == "6985")
        _ = try send(Self.select)
        try expectEqual(send(Self.right), "9000")
        send.card.reset()
        _ = try send(Self.select)
        try expectEqual(send(Self.putData), "6985")
    }

    /// An answer is to the last online request alone.
    @Test func noRequest() throws {
        let send = try CardSession("visa-update")
        try expectEqual(send(Self.right), "6985")
        _ = try send(Self.select)
        try expectEqual(send(Self.right), "6985")
        let other = try answered()
        _ = try other(Self.gpo)
        try expectEqual(other(Self.right), "6300")
        // Other cards know none of this.
        let visa = try CardSession("visa")
        _ = try visa(Self.select)
        #expect(try visa(Self.right) == "6D00" && visa(Self.putData) == "6D00")
    }

    @Test(arguments: [
        ("response-cryptogram method-3", "method-1, method-2"), ("script-key 00", "16 bytes"), ("", "script-key"),
        ("mac 00", "mac"),
    ])
    func mistakes(_ line: String, _ complaint: String) throws {
        let text = try #require(VirtualCards.all.first { $0.name == "visa-update" }).text
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { original in
            let word = line.split(separator: " ").first ?? "script-key"
            let isMeant = original.contains("  \(word) ") || word == "mac" && original.contains("  script-key ")
            return isMeant ? Substring(line) : original
        }
        let error = #expect(throws: CardFileError.self) { try CardFile(parsing: lines.joined(separator: "\n")) }
        expectEqual(error?.reason.contains(complaint), true, "\(String(describing: error))")
    }
}
