import SmartCard
import SmartCardSimulator
import SmartCardSimulatorHosts
import TestSupport
import Testing
import USBTestSupport

@testable import SmartCardUSB

/// Debian's libusb with a software reader that has an interface for cards and one for a SAM.
@Suite(.preloaded, .serialized, .enabled(if: Preloaded.obstacle == nil, "\(Preloaded.obstacle ?? "")"))
struct ACR1252UTests {
    private func readers(of device: SoftwareACR1252U) async throws -> (cards: USBReader, sam: USBReader) {
        _ = try await MockBus.shared().replug(device)
        let found = try await USBReaders().readers()
        try #require(found.count == 2)
        return (found[0], found[1])
    }

    /// Names as libccid and pcscd make them of the same descriptors, with the place at their end.
    @Test func bothSlotsAreNamed() async throws {
        let device = SoftwareACR1252U()
        device.insert(try #require(VirtualCards.named("visa")))
        let (cards, sam) = try await readers(of: device)
        #expect(
            [cards, sam].map(\.identity.name) == [
                "ACS ACR1252 Dual Reader [ACR1252 Dual Reader PICC] 072F:223B@1-2#0",
                "ACS ACR1252 Dual Reader [ACR1252 Dual Reader SAM] 072F:223B@1-2:1#0",
            ])
        #expect(try await cards.connect().atr.bytes == bytes("3B 86 80 01 20 63 CB B6 80 0F B6"))
        #expect(await kind { try await sam.connect() } == .cardAbsent)
        await cards.close()
        await sam.close()
    }

    /// The answers of ACS's reference manual, and the defaults that people with a reader have read from it.
    @Test func escapeCommandsReachTheReader() async throws {
        let (cards, _) = try await readers(of: SoftwareACR1252U())
        for (command, answer) in [
            ("E0 00 00 18 00", "E1 00 00 00 0F 41 43 52 31 32 35 32 55 5F 56 31 30 31 2E 30"),
            ("E0 00 00 20 00", "E1 00 00 00 01 FF"),
            ("E0 00 00 23 00", "E1 00 00 00 01 8F"),
            ("E0 00 00 29 01 02", "E1 00 00 00 01 02"),
            ("E0 00 00 29 00", "E1 00 00 00 01 02"),
            ("E0 00 00 28 01 01", "E1 00 00 00 01 00"),
            ("E0 00 00 25 01 00", "E1 00 00 00 01 00"),
        ] {
            #expect(try await cards.escape(bytes(command)).hex(separator: " ") == answer)
        }
        #expect(await kind { try await cards.escape(bytes("E0 00 00 7E 00")) } == .unsupported)
        await cards.close()
    }

    @Test func aReaderWhosePollingIsOffSeesNoCard() async throws {
        let device = SoftwareACR1252U()
        let (cards, _) = try await readers(of: device)
        _ = try await cards.escape(bytes("E0 00 00 23 01 8E"))
        device.insert(try #require(VirtualCards.named("visa")))
        var states = cards.slotStates().makeAsyncIterator()
        #expect(try await states.next() == .empty)
        _ = try await cards.escape(bytes("E0 00 00 23 01 8F"))
        guard case .card? = try await states.next() else {
            Issue.record("no card")
            return
        }
        await cards.close()
    }

    /// In parts both ways: dwMaxCCIDMessageLength is 522 (USB CCID 1.10, 6.1.4 and 6.2.1).
    @Test(arguments: [1, 505, 506, 1500, 4000]) func extendedAPDUsGoInParts(_ count: Int) async throws {
        let device = SoftwareACR1252U()
        device.insert(Echo())
        let (cards, _) = try await readers(of: device)
        let card = try await cards.connect()
        let data = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        let command = try CommandAPDU(
            [0x00, 0xCB, 0x00, 0x00, 0x00, UInt8(count >> 8), UInt8(count & 0xFF)] + data + [0x00, 0x00])
        #expect(try await card.transmit(command).data == data)
        await cards.close()
    }

    /// A reset would take the other interface's commands along.
    @Test func aReaderIsResetOnlyWhenItsOtherInterfaceIsFree() async throws {
        let device = SoftwareACR1252U()
        device.insert(Echo())
        let (cards, sam) = try await readers(of: device)
        #expect(await kind { try await sam.connect() } == .cardAbsent)
        device.faults = [SoftwareReaderFault(.hung)]
        #expect(await kind { try await cards.connect() } == .readerTimeout)
        await sam.close()
        #expect(await kind { try await cards.connect() } == nil)
        await cards.close()
    }

    /// acsccid#15, LudovicRousseau/PCSC#54.
    @Test func aReaderThatRefusesLongCommandsSaysSo() async throws {
        let device = SoftwareACR1252U(refusesLongAPDUs: true)
        device.insert(Echo())
        let (cards, _) = try await readers(of: device)
        let card = try await cards.connect()
        let command = try CommandAPDU([0x00, 0xCB, 0x00, 0x00, 0x00, 0x04, 0x00] + [UInt8](repeating: 0, count: 1024))
        let error = await #expect(throws: CardError.self) { try await card.transmit(command) }
        #expect(error?.kind == .notTransacted && error?.description.contains("C3") == true)
        #expect(try await card.transmit(CommandAPDU([0x00, 0xCB, 0x00, 0x00, 0x01, 0x55])).data == [0x55])
        await cards.close()
    }
}

/// A type A card that echoes commands.
private final class Echo: VirtualCard {
    let radio = VirtualCardRadio.typeA(
        uid: bytes("04 1C 2B 3A 49 58 67"), atqa: [0x03, 0x44], sak: 0x20, ats: bytes("06 75 77 81 02 80"))

    func reset() {}
    func exchange(_ command: [UInt8]) -> [UInt8]? {
        (try? CommandAPDU(command)).map { $0.data + [0x90, 0x00] }
    }
    func exchangeNative(_ command: [UInt8]) -> [UInt8]? { nil }
}
