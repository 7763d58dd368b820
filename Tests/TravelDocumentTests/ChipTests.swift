import CardReaders
import SmartCard
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing

@testable import TravelDocument

/// A chip of the simulator, opened and read through a software reader.
@Suite struct ChipTests {
    /// The zone of ICAO 9303-11, D.2.  // TEST
    static let zone = "L898902C<369080619406236"

    static func group(_ number: Int, _ length: Int) -> [UInt8] {
        TLVTag(rawValue: UInt32(ElementaryFile.dataGroup(number).tag ?? 0)).encode(
            (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ number) })
    }

    static func configuration(_ lengths: [Int: Int] = [1: 93]) -> PassportCard.Configuration {
        var files: [UInt16: [UInt8]] = [0x011E: TLVTag(0x60).encode([0x5F, 0x01, 0x04, 0x30, 0x31, 0x30, 0x37])]
        for (number, length) in lengths { files[0x0100 | UInt16(number)] = group(number, length) }
        return PassportCard.Configuration(keyInformation: zone, files: files)
    }

    /// Counts commands.
    final class Counting: CardChannel {
        private let base: any CardChannel
        private let count = Mutex(0)
        init(_ base: any CardChannel) { self.base = base }
        var commands: Int { count.withLock { $0 } }
        func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
            count.withLock { $0 += 1 }
            return try await base.transmit(command)
        }
    }

    static func chip(
        _ configuration: PassportCard.Configuration
    ) async throws -> (chip: TravelDocumentChip, channel: Counting) {
        let device = SoftwareACR122U()
        let reader = VirtualReader(device)
        device.insert(PassportCard(configuration))
        _ = try await reader.waitForCard()
        let card = try await reader.connect()
        let channel = Counting(Stack(for: reader).over(card))
        return (TravelDocumentChip(over: channel, connection: card), channel)
    }

    private func open(_ chip: TravelDocumentChip) async throws -> ChipAccess {
        try await chip.open(with: BasicAccessControlTests.key.get())
    }

    @Test("A chip without PACE is opened by Basic Access Control, and its files are read whole")
    func read() async throws {
        let (chip, _) = try await Self.chip(Self.configuration([1: 93, 2: 15_000, 14: 300]))
        let access = try await open(chip)
        #expect(access.method == .basicAccessControl && !access.isDowngraded && access.failures.isEmpty)
        for (number, length) in [(1, 93), (14, 300), (2, 15_000)] {
            try await expectEqual(chip.read(.dataGroup(number)), Self.group(number, length))
        }
        try await expectEqual(chip.read(.com).first, 0x60)
        await #expect(throws: FileError.absent) { try await chip.read(.dataGroup(11)) }
        for number in [3, 4] {
            await #expect(throws: ChipError.needsTerminalAuthentication(.dataGroup(number))) {
                try await chip.read(.dataGroup(number))
            }
        }
    }

    @Test("DG1 and DG2 of 15 kB take 67 commands: each response is as long as secure messaging lets it be")
    func commands() async throws {
        let (chip, channel) = try await Self.chip(Self.configuration([1: 93, 2: 15_000]))
        _ = try await open(chip)
        let before = channel.commands
        _ = try await chip.read(.dataGroup(1))
        _ = try await chip.read(.dataGroup(2))
        // 15,004 bytes, 231 at a time.
        expectEqual(channel.commands - before, 1 + 65)
    }

    @Test("A file of more than 32,767 bytes is read by the odd instruction, and its progress is told")
    func longFile() async throws {
        let (chip, _) = try await Self.chip(Self.configuration([2: 40_000]))
        _ = try await open(chip)
        let told = Mutex<[ReadingProgress]>([])
        let file = try await chip.read(.dataGroup(2)) { progress in told.withLock { $0.append(progress) } }
        expectEqual(file, Self.group(2, 40_000))
        let progress = told.withLock { $0 }
        expectEqual(progress.map(\.bytes), progress.map(\.bytes).sorted())
        expectEqual(progress.last, ReadingProgress(bytes: 40_004, length: 40_004))
    }

    @Test("A chip with a small buffer, without short identifiers, or that refuses to be asked for too much is read")
    func otherChips() async throws {
        var small = Self.configuration([2: 1000])
        small.mostRead = 100
        var plain = Self.configuration([2: 1000])
        plain.knowsShortIdentifiers = false
        var strict = Self.configuration([2: 1000])
        strict.fault = .refusesBeyondEnd
        for configuration in [small, plain, strict] {
            let (chip, _) = try await Self.chip(configuration)
            _ = try await open(chip)
            try await expectEqual(chip.read(.dataGroup(2)), Self.group(2, 1000))
            try await expectEqual(chip.read(.com).count, 9)
        }
    }

    @Test("A file that its chip cut off, one that claims a mebibyte, and one with another tag are refused")
    func damaged() async throws {
        var configuration = Self.configuration()
        configuration.files[0x0101] = Array(Self.group(1, 1000).prefix(500))
        configuration.files[0x0102] = [0x75, 0x83, 0x10, 0x00, 0x01] + [UInt8](repeating: 0, count: 600)
        configuration.files[0x010B] = Self.group(12, 100)
        configuration.files[0x010C] = [0x6C, 0x80] + [UInt8](repeating: 0, count: 100)
        let (chip, _) = try await Self.chip(configuration)
        _ = try await open(chip)
        for (number, error) in [(1, FileError.truncated), (2, .tooLong), (11, .malformed), (12, .malformed)] {
            await #expect(throws: error) { try await chip.read(.dataGroup(number)) }
        }
    }

    @Test("A response that was changed, one that is repeated and one without protection each end the session for good")
    func attacks() async throws {
        for (fault, error) in [
            (PassportCard.Fault.wrongMAC(response: 2), SecureMessagingError.notAuthenticated),
            (.replay(response: 2), .notAuthenticated), (.bareStatus(response: 2, 0x9000), .ended(.success)),
            (.bareStatus(response: 2, 0x6988), .ended(0x6988)),
        ] {
            var configuration = Self.configuration([1: 93, 2: 1000])
            configuration.fault = fault
            let (chip, channel) = try await Self.chip(configuration)
            _ = try await open(chip)
            try await expectEqual(chip.read(.dataGroup(1)), Self.group(1, 93))
            await #expect(throws: error) { try await chip.read(.dataGroup(2)) }
            // Nothing is sent any more.
            let before = channel.commands
            await #expect(throws: error) { try await chip.read(.dataGroup(1)) }
            expectEqual(channel.commands, before)
            // A new session reads it.
            _ = try await open(chip)
            _ = try await chip.read(.dataGroup(1))
        }
    }

    @Test("A wrong key opens nothing, and a chip that does not know it is not believed")
    func keys() async throws {
        let wrong = try AccessKey(documentNumber: "L898902D", dateOfBirth: "690806", dateOfExpiry: "940623")
        let (chip, _) = try await Self.chip(Self.configuration())
        let error = await #expect(throws: AccessError.self) { try await chip.open(with: wrong) }
        expectEqual(error?.failures.map(\.refusal), [.wrongKey(triesLeft: nil)])
        await #expect(throws: ChipError.notOpen) { try await chip.read(.dataGroup(1)) }

        var configuration = Self.configuration()
        configuration.fault = .doesNotKnowKey
        let (stranger, _) = try await Self.chip(configuration)
        let other = await #expect(throws: AccessError.self) { try await open(stranger) }
        expectEqual(other?.failures.map(\.refusal), [.chipNotAuthenticated])
    }

    @Test(
        "A chip that offers PACE alone in its own way is opened by the older protocol only if the caller allows it, and that is told"
    )
    func downgrade() async throws {
        var configuration = Self.configuration()
        // PACE with domain parameters of the chip's own; and one that the chip then does not know.
        configuration.freeFiles[0x011C] = TLVTag(0x31).encode(
            try hex("300F060A04007F00070202040202020102" + "3012060A04007F0007020204020202010202010D"))
        let (chip, _) = try await Self.chip(configuration)
        let error = await #expect(throws: AccessError.self) { try await open(chip) }
        expectEqual(error?.failures.map(\.refusal), [.unsupported, .status(0x6D00)])
        let access = try await chip.open(with: BasicAccessControlTests.key.get(), allowingDowngrade: true)
        #expect(access.isDowngraded && access.method == .basicAccessControl && access.failures.count == 2)
        try await expectEqual(chip.read(.dataGroup(1)), Self.group(1, 93))
    }

    @Test("A card that is not of a travel document is told so")
    func otherCards() async throws {
        let device = SoftwareACR122U()
        let reader = VirtualReader(device)
        device.insert(try #require(VirtualCards.named("visa")))
        _ = try await reader.waitForCard()
        let chip = TravelDocumentChip(over: Stack(for: reader).over(try await reader.connect()))
        await #expect(throws: ChipError.self) { try await open(chip) }
    }
}
