import SmartCard
import TestSupport
import Testing

@testable import SmartCardSimulator

/// Integrated data storage (EMV Contactless Book C-2).
@Suite struct CardStorageTests {
    private static let known = "8199829983998499"
    private static let stranger = "0102030405060708"
    private static let summary = "1223344556677889"

    private func options(_ storageOperator: String) -> String { "80 A8 00 00 0C 83 0A \(storageOperator) 0276 00" }

    /// GENERATE AC with what DSDOL asks for: DS Input (Card), DS Digest H, DS ODS Info, DS ODS Term.
    private func generateAC(_ p1: String, _ stored: String = "") throws -> String {
        let command = try [UInt8](hex: CardEMVTests.generateAC(p1, amount: "000000001234"))
        let data = command.dropFirst(5).dropLast() + (try [UInt8](hex: stored))
        return (Array(command[..<4]) + [UInt8(truncatingIfNeeded: data.count)] + data + [0]).hex
    }

    // MARK: Functions

    /// FelipeRodriguezFonte/CryptoCarver, MastercardDataStorageTest.java: the example of a test tool, DSPK and OWHF2 after
    /// Book C-2, 8.2.
    @Test func publishedDigest() throws {
        let storage = DataStorage(
            identifier: try [UInt8](hex: "5168624300900697"), summary: try [UInt8](hex: Self.summary), availability: 0)
        expectEqual(storage.partialKey.hex, "66887C5600B47C5600B40CC2")
        let (input, owner) = (try [UInt8](hex: Self.summary), try [UInt8](hex: Self.known))
        expectEqual(storage.digest(of: input, owner, control: 0x80)?.hex, "659C8EBFAA816DB5")
        expectEqual(storage.digest(of: input, owner, control: 0x40)?.hex, "659C8EBFAA816DB5")
        // Both permanent and volatile: no operator.
        expectEqual(
            storage.digest(of: input, owner, control: 0xC0),
            storage.digest(of: input, [0, 0, 0, 0, 0, 0, 0, 0], control: 0x80))
        expectEqual(storage.digest(of: [1], owner, control: 0x80), nil)
    }

    /// The same, two captures of OWHF1, the second with everything another.
    @Test(arguments: [
        ("000000001234", "0840", 0x90 as UInt8, "11223344", "FC96571A6E95FFA4"),
        ("000000009902", "0978", 0x60, "99887766", "80D66F2CFC670881"),
    ])
    func publishedSummary(
        amount: String, currency: String, control: UInt8, storageNumber: String, expected: String
    ) throws {
        let storage = DataStorage(
            identifier: try [UInt8](hex: "5168624300900697"), summary: try [UInt8](hex: Self.summary), availability: 0)
        let summary = storage.summary(
            after: DataStorage.Circumstances(
                amount: try [UInt8](hex: amount), currency: try [UInt8](hex: currency), referenceControl: control,
                unpredictableNumber: [0x11, 0x22, 0x33, 0x44], storageNumber: try [UInt8](hex: storageNumber)))
        expectEqual(summary?.hex, expected)
    }

    // MARK: Reading

    /// Summary and data for an operator with a slot; summary, availability and number without data for another; nothing for
    /// none.
    @Test func reading() throws {
        let send = try CardSession("mastercard-storage")
        #expect(
            try send(CardEMVTests.selectMastercard).contains(
                "9F38069F5C089F1A02" + "BF0C129F5D03010100" + "9F5E09541333008901043401"))
        let own = try send(options(Self.known))
        let number = own.dropFirst(own.count - 44).prefix(8)
        expectEqual(
            own,
            try hex(
                "77 30 82 02 1980 94 08 10010101 20010200 9F7D 08 \(Self.summary)", "9F7F 04 \(number)",
                "9F6F 01 80 9F54 09 74656E207269646573", "9000"))
        _ = try send(CardEMVTests.selectMastercard)
        let other = try send(options(Self.stranger))
        #expect(
            other.hasPrefix(
                try hex("77 24 82 02 1980 94 08 10010101 20010200 9F7D 08 \(Self.summary) 9F5F 01 C0 9F7F 04")))
        _ = try send(CardEMVTests.selectMastercard)
        try expectEqual(
            send(options("0000000000000000")), hex("77 0E 82 02 1980 94 08 10010101 20010200", "9000"))
        try expectEqual(send(generateAC("90", String(repeating: "00", count: 17))), "6700")
        #expect(try send(generateAC("90")).hasPrefix("7781A29F270180"))
    }

    // MARK: Writing

    private struct Written {
        let answer: String
        let dynamicData: String
        let number: String
    }

    private func write(
        _ send: CardSession, _ storageOperator: String, _ stored: String, p1: String = "50"
    ) async throws -> Written {
        _ = try send(CardEMVTests.selectMastercard)
        let options = CardSignatureTests.Objects(answers: [try send(options(storageOperator))])
        let answer = try send(generateAC(p1, stored))
        let key = try #require(TestKeys.builtIn.keys["card-1024"])
        let block = try await Recovery.blocks([
            .init(
                modulus: key.modulus, exponent: key.exponent,
                bytes: CardSignatureTests.Objects(answers: [answer])[0x9F4B], rest: [0x11, 0x22, 0x33, 0x44])
        ])[0]
        #expect(block.hasPrefix("6A0501") && block.hasSuffix(" hash BC"))
        let count = try [UInt8](hex: String(block.dropFirst(6).prefix(2)))[0]
        return Written(
            answer: answer, dynamicData: String(block.dropFirst(8).prefix(2 * Int(count))),
            number: options[0x9F7F].hex)
    }

    /// DS Summary 2 and 3 behind the hash: before and after.  Who knows the preimage of the digest writes; the summary after
    /// that is OWHF1's, computed again by another program.
    @Test(
        .enabled(if: Program.isInstalled("python3") && Program.isInstalled("openssl"), "python3 or openssl is missing"))
    func writing() async throws {
        let send = try CardSession("mastercard-storage")
        // The input 1223344556677889, a digest for next time, permanent, five bytes of data without filling.
        let next = "AABBCCDDEEFF0011"
        let first = try await write(send, Self.known, "\(Self.summary) \(next) 80 0102030405")
        #expect(first.answer.hasPrefix("7781A29F270140"))
        expectEqual(first.dynamicData.count, 2 * 54)
        #expect(first.dynamicData.dropFirst(18).hasPrefix("40" + "50A0796D7B58A922"))
        #expect(first.dynamicData.dropFirst(2 * 38).prefix(16) == Self.summary)
        let after = String(first.dynamicData.suffix(16))
        let expected = try await summary(Self.summary, number: first.number, p1: 0x50)
        expectEqual(after, expected)
        _ = try send(CardEMVTests.selectMastercard)
        let read = try send(options(Self.known))
        #expect(read.contains("9F7D08" + after) && read.contains("9F54050102030405"))
        // Who does not know it does not.
        let second = try await write(send, Self.known, "\(Self.summary) \(next) 80 06")
        #expect(second.answer.hasPrefix("7781A29F270140"))
        #expect(second.dynamicData.suffix(32) == after + after)
        // And has the transaction declined if he wants it then (DS ODS Info, bit 4); such an AAC is signed.
        let third = try await write(send, Self.known, "\(Self.summary) \(next) 88 06")
        #expect(third.answer.hasPrefix("7781A29F270100"))
        #expect(third.dynamicData.suffix(32) == after + after)
        _ = try send(CardEMVTests.selectMastercard)
        #expect(try send(options(Self.known)).contains("9F54050102030405"))
    }

    /// An operator without a slot takes one that is free; not of a kind that is not.
    @Test(.enabled(if: Program.isInstalled("python3"), "python3 is not installed"))
    func takingASlot() async throws {
        let zeros = "0000000000000000"
        let send = try CardSession(file: "variant mastercard-storage {\navailability 40\n}\n")
        let refused = try await write(send, Self.stranger, "\(zeros) \(zeros) 80 0A0B")
        #expect(refused.dynamicData.suffix(32) == Self.summary + Self.summary)
        let taken = try await write(send, Self.stranger, "\(zeros) \(zeros) 40 0A0B")
        #expect(taken.dynamicData.suffix(16) != Self.summary)
        _ = try send(CardEMVTests.selectMastercard)
        let read = try send(options(Self.stranger))
        #expect(read.contains("9F6F0140" + "9F54020A0B") && !read.contains("9F5F"))
        // The other operator's slot is as it was.
        _ = try send(CardEMVTests.selectMastercard)
        #expect(try send(options(Self.known)).contains("9F540974656E207269646573"))
    }

    /// An AAC is signed in this card, and reading alone is signed by the same summary twice; behind that, relay resistance.
    @Test(.enabled(if: Program.isInstalled("python3"), "python3 is not installed"))
    func signedBesides() async throws {
        let declined = try await write(try CardSession("mastercard-storage"), Self.known, "", p1: "10")
        #expect(declined.answer.hasPrefix("7781A29F270100"))
        #expect(declined.dynamicData.dropFirst(18).hasPrefix("00" + "7EEB5CC4FF20DD4B"))
        #expect(declined.dynamicData.suffix(32) == Self.summary + Self.summary)

        let send = try CardSession("mastercard-storage-rrp")
        _ = try send(CardEMVTests.selectMastercard)
        #expect(try send(options(Self.known)).contains("82021981"))
        let relay = try send("80 EA 00 00 04 A1A2A3A4 00").dropFirst(4).dropLast(4)
        let answer = try send(generateAC("90"))
        let key = try #require(TestKeys.builtIn.keys["card-1024"])
        let block = try await Recovery.blocks([
            .init(
                modulus: key.modulus, exponent: key.exponent,
                bytes: CardSignatureTests.Objects(answers: [answer])[0x9F4B], rest: [0x11, 0x22, 0x33, 0x44])
        ])[0]
        #expect(block.hasPrefix("6A0501" + "44"))
        #expect(block.contains(Self.summary + Self.summary + "A1A2A3A4" + relay + "BB"))
    }

    /// OWHF1 in Python over the single DES of openssl.
    private func summary(_ before: String, number: String, p1: UInt8) async throws -> String {
        let program = """
            import subprocess, sys
            h = bytes.fromhex
            def des(key, block, *more):
                key = key if len(key) == 16 else key * 2
                return subprocess.run(["openssl", "enc", "-des-ede", "-nopad", "-K", key.hex(), *more],
                    input=block, capture_output=True, check=True).stdout
            def xor(a, b): return bytes(x ^ y for x, y in zip(a, b))
            before, number = h(sys.argv[1]), h(sys.argv[2])
            left, right = h("6C1A4200B202"), h("00B202084402")
            one = xor(before, h("00000000") + h("1234") + number[2:])
            two = bytes([int(sys.argv[3]) & 0xF0 | 0x10 | 0x09, 0x78]) + h("11223344") + number[:2]
            key = xor(des(left + number[:2], one), one)
            print(xor(xor(des(key + right + number[2:], two), one), two).hex().upper())
            """
        let outcome = try await Program.run(["python3", "-c", program, before, number, "\(p1)"])
        expectEqual(outcome.status, 0, "\(outcome)")
        return String(outcome.output.prefix(16))
    }

    @Test(arguments: [
        ("slot 8199829983998499", "slot 81998299839984", "8 bytes"),
        ("9F5E 5413330089010434 01", "9F5E 54133300", "DS ID"),
        ("9F5C 08", "9F5C 04", "9F5C of 8 bytes"), ("DF60 08", "9F02 06", "no use for"),
        ("summary      1223344556677889", "", "lacks “summary”"),
    ])
    func mistakes(old: String, new: String, reason: String) throws {
        let text = try #require(VirtualCards.all.first { $0.name == "mastercard-storage" }).text
        #expect(text.contains(old))
        let error = #expect(throws: CardFileError.self) {
            try CardFile(parsing: text.replacing(old, with: new))
        }
        expectEqual(error?.reason.contains(reason), true, "\(error?.reason ?? "")")
    }
}
