import SmartCard
import TestSupport
import Testing

@testable import TravelDocument

/// The reader's side against OpenPACE as the chip.
@Suite struct OpenPACETests {
    static let ciphers = SessionCipher.allCases

    private static func file(_ length: Int) -> [UInt8] {
        TLVTag(0x75).encode((0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7) })
    }

    @Test("Every cipher with every curve opens the chip, and a file is read", arguments: Tier.few(ciphers, 1), 8...18)
    func elliptic(_ cipher: SessionCipher, _ parameters: Int) async throws {
        try await open(PACEInfo(.ecdhGenericMapping, cipher, domainParameters: parameters), length: 1000)
    }

    @Test("Every cipher with every group of RFC 5114 opens the chip", arguments: Tier.few(ciphers, 1), 0...2)
    func modular(_ cipher: SessionCipher, _ parameters: Int) async throws {
        try await open(PACEInfo(.dhGenericMapping, cipher, domainParameters: parameters), length: 300)
    }

    @Test("A file beyond the offsets of the even instruction is read under each cipher", arguments: ciphers)
    func longFile(_ cipher: SessionCipher) async throws {
        try await open(PACEInfo(.ecdhGenericMapping, cipher, domainParameters: 12), length: 40_000)
    }

    private func open(_ info: PACEInfo, length: Int) async throws {
        let file = Self.file(length)
        let card = try #require(OpenPACEChip(info, can: "123456", files: [0x0102: file]))
        let chip = TravelDocumentChip(over: card, longestAPDU: nil)
        let access = try await chip.open(with: AccessKey("123456", kind: .cardAccessNumber))
        expectEqual(access.method, .pace(info))
        try await expectEqual(chip.read(.dataGroup(2)), file)
    }

    @Test(
        "A group of 2048 bits is the limit of a reader of short commands, and nothing that the chip did",
        arguments: 1...2)
    func readerLimit(_ parameters: Int) async throws {
        let info = PACEInfo(.dhGenericMapping, .aes128, domainParameters: parameters)
        let card = try #require(OpenPACEChip(info, can: "123456", files: [:]))
        let error = await #expect(throws: AccessError.self) {
            try await TravelDocumentChip(over: card).open(with: AccessKey("123456", kind: .cardAccessNumber))
        }
        expectEqual(error?.failures, [.init(method: .pace(info), refusal: .readerLimit)])
    }

    @Test("A wrong number opens nothing")
    func wrongKey() async throws {
        let info = PACEInfo(.ecdhGenericMapping, .aes128, domainParameters: 13)
        let card = try #require(OpenPACEChip(info, can: "123456", files: [:]))
        let error = await #expect(throws: AccessError.self) {
            try await TravelDocumentChip(over: card).open(with: AccessKey("123457", kind: .cardAccessNumber))
        }
        expectEqual(error?.failures.map(\.refusal), [.wrongKey(triesLeft: nil)])
    }

    /// One shared secret in 256 begins with a zero byte.  It belongs to the secret; OpenPACE drops it in modular groups.
    @Test(
        "Many sessions are opened, in the thorough tier a thousand, none fails",
        arguments: [(PACEInfo.Variant.ecdhGenericMapping, 12), (.dhGenericMapping, 0)])
    func leadingZeros(_ variant: PACEInfo.Variant, _ parameters: Int) async throws {
        let info = PACEInfo(variant, .aes128, domainParameters: parameters)
        for number in 0..<Tier.rounds(10, thorough: 1000) {
            let card = try #require(OpenPACEChip(info, can: "123456", files: [:]))
            let chip = TravelDocumentChip(over: card)
            do { try await chip.open(with: AccessKey("123456", kind: .cardAccessNumber)) } catch {
                Issue.record("session \(number): \(error)")
                return
            }
        }
    }
}
