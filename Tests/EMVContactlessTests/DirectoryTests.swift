import EMVContactless
import SmartCard
import TestSupport
import Testing

@Suite("Directory entries")
struct DirectoryTests {
    private func aid(_ hex: String) throws -> AID { try #require(AID([UInt8](hex: hex))) }

    @Test("There are at least 100 applications, each once")
    func applications() throws {
        #expect(KnownApplication.all.count >= 100)
        expectEqual(Set(KnownApplication.all.map(\.aid)).count, KnownApplication.all.count)
        #expect(KnownApplication.all.allSatisfy { !$0.scheme.isEmpty && !$0.product.isEmpty })
    }

    /// AIDs as the schemes' own documents give them.
    @Test(
        "Well-known applications and their kernels",
        arguments: [
            ("A0000000031010", "Visa", 3), ("A0000000032010", "Electron", 3), ("A0000000041010", "Mastercard", 2),
            ("A0000000043060", "Maestro", 2), ("A000000025010801", "American Express", 4), ("A0000000651010", "JCB", 5),
            ("A0000001523010", "Discover", 6), ("A0000003241010", "Zip", 6), ("A000000333010102", "UnionPay Credit", 7),
            ("A0000002771010", "Interac", 0), ("A0000006581010", "Mir", 0), ("A0000005241010", "RuPay", 0),
            ("D5780000021010", "BankAxept", 0), ("A0000000421010", "CB", 0), ("A00000038410", "eftpos", 0),
        ])
    func known(_ hex: String, _ product: String, _ kernel: UInt32) throws {
        let found = try #require(KnownApplication.matching(aid(hex)))
        #expect(found.product.contains(product))
        expectEqual(found.kernel.rawValue, kernel)
    }

    @Test("The longest AID that the card's begins with is taken")
    func partial() throws {
        try expectEqual(KnownApplication.matching(aid("A000000003101001FF"))?.product, "Visa Credit")
        try expectEqual(KnownApplication.matching(aid("A00000000310100301"))?.product, "Visa Debit or Credit")
        try expectEqual(KnownApplication.matching(aid("A0000000039999")), nil)
        try expectEqual(KnownApplication.scheme(of: aid("A0000000039999")), "Visa")
        try expectEqual(KnownApplication.scheme(of: aid("A0000009999999")), nil)
    }

    @Test("Kernel Identifier, tag 9F2A")
    func kernelIdentifier() throws {
        func requested(_ hex: String?, _ name: String = "A0000000031010") throws -> UInt32? {
            KernelIdentifier.requested(by: try hex.map { try [UInt8](hex: $0) }, aid: try aid(name))?.rawValue
        }
        // Absent or empty: the RID decides; a RID without kernel leaves it open.
        try expectEqual(requested(nil), 3)
        try expectEqual(requested(""), 3)
        try expectEqual(requested(nil, "A0000006581010"), 0)
        // Book B, table 3-6; the schemes' other RIDs are not in it.
        let table = ["04": 2, "03": 3, "25": 4, "65": 5, "05": 0, "98": 0] as [String: UInt32]
        for (rid, kernel) in table { try expectEqual(requested(nil, "A0000000\(rid)1010"), kernel) }
        try expectEqual(requested(nil, "A0000001523010"), 6)
        try expectEqual(requested(nil, "A000000333010101"), 7)
        // Bits 8 and 7 are 00 or 01: the first byte alone, whatever follows.
        try expectEqual(requested("02"), 2)
        try expectEqual(requested("03 FF FF"), 3)
        try expectEqual(requested("41"), 0x41)
        try expectEqual(requested("00"), 0)
        // 10 or 11: three bytes, or the entry is skipped.
        try expectEqual(requested("82 08 26"), 0x820826)
        try expectEqual(requested("C1 00 01 FF FF"), 0xC10001)
        try expectEqual(requested("82"), nil)
        try expectEqual(requested("C1 00"), nil)
        expectEqual(KernelIdentifier(rawValue: 0x820826).shortKernelID, 2)
        #expect(KernelIdentifier(rawValue: 0x820826).isDomestic)
        expectEqual("\(KernelIdentifier(rawValue: 0x820826))", "domestic kernel 820826")
        expectEqual("\(KernelIdentifier(rawValue: 3))", "Kernel 3 (Visa)")
    }

    @Test("Application priority: 1 comes first, none last, the confirmation bit aside")
    func priority() {
        func priority(_ byte: UInt8?) -> ApplicationPriority { ApplicationPriority(byte.map { [$0] }) }
        let order: [UInt8?] = [0x02, nil, 0x81, 0x80, 0x0F, 0x00]
        expectEqual(order.map { priority($0).rank }, [2, 16, 1, 16, 15, 16])
        #expect(priority(0x81) < priority(0x02))
        #expect(priority(0x0F) < priority(0x80))
        #expect(priority(0x80).requiresConfirmation)
        #expect(!priority(nil).requiresConfirmation)
    }

    @Test("Status words in the context of a command")
    func status() {
        expectEqual(
            StatusWord(rawValue: 0x6984).meaning(for: .getProcessingOptions)?.contains("another interface"), true)
        expectEqual(StatusWord(rawValue: 0x6985).meaning(for: .getProcessingOptions)?.contains("next"), true)
        expectEqual(StatusWord(rawValue: 0x6986).meaning(for: .getProcessingOptions)?.contains("phone"), true)
        expectEqual(StatusWord(rawValue: 0x6A81).meaning(for: .select)?.contains("card is blocked"), true)
        expectEqual(StatusWord(rawValue: 0x6283).meaning(for: .select), "the application is blocked")
        expectEqual(StatusWord(rawValue: 0x63C1).meaning(for: .verify), "wrong PIN, 1 try left")
        expectEqual(StatusWord(rawValue: 0x63C0).meaning(for: .verify), "wrong PIN, no tries left")
        expectEqual(StatusWord(rawValue: 0x9000).meaning(for: .select), nil)
    }

    @Test("Commands are recognized by class and instruction")
    func commands() throws {
        expectEqual(EMVCommand(try CommandAPDU([0x00, 0xA4, 0x04, 0x00, 0x00])), .select)
        expectEqual(
            EMVCommand(try CommandAPDU([0x80, 0xA8, 0x00, 0x00, 0x02, 0x83, 0x00, 0x00])), .getProcessingOptions)
        expectEqual(EMVCommand(try CommandAPDU([0x00, 0xB2, 0x01, 0x0C, 0x00])), .readRecord)
        expectEqual(EMVCommand(try CommandAPDU([0xFF, 0xCA, 0x00, 0x00, 0x00])), .getData)
        expectEqual(EMVCommand(try CommandAPDU([0x00, 0xB0, 0x00, 0x00, 0x00])), nil)
    }
}
