import SmartCard
import Synchronization
import TestSupport
import Testing
import USBDevices
import USBTestSupport
import Waiting

@testable import SmartCardUSB

/// The interrupt endpoint and the first words with a reader: what is heard, what is put up with, what is not.
@Suite(.simulatedTime, .timeLimit(.minutes(2))) struct InterruptTests {
    /// Hears a card come and go; GetSlotStatus says the same.
    private final class Reader: Sendable {
        let isThere = Mutex(false)
        /// How often a slot was asked.
        let questions = Mutex([Int](repeating: 0, count: 5))

        func answer(_ message: [UInt8]) -> [[UInt8]] {
            if message[0] == 0x65 { questions.withLock { $0[Int(message[5])] += 1 } }
            let status: UInt8 = isThere.withLock { $0 } ? (message[0] == 0x62 ? 0x00 : 0x01) : 0x02
            let atr = message[0] == 0x62 ? bytes("3B 80 80 01 01") : []
            return [ScriptedReader.answer(to: message, status: status, atr)]
        }
    }

    private func device(_ reader: Reader, slots: UInt8 = 1) -> ScriptedReader {
        var functional = DescriptorTests.acr122u
        functional[4] = slots - 1
        return ScriptedReader(functional: functional, hasInterrupt: true) { reader.answer($0) }
    }

    @Test("only slots that a notification says have changed are asked, and one may end before the last slot")
    func changes() async throws {
        let reader = Reader()
        let device = device(reader, slots: 5)
        let slots = try await USBReaders(on: SoftwareUSBBus(device)).readers().sorted { $0.id.slot < $1.id.slot }
        try #require(slots.count == 5)
        var streams = slots.map { $0.slotStates().makeAsyncIterator() }
        for index in streams.indices { #expect(try await streams[index].next() == .empty) }
        reader.questions.withLock { $0 = [0, 0, 0, 0, 0] }
        // Slot 2 has changed; slots 0, 1 and 3 have a card but no change; of slot 4 there is no byte.
        device.send([0x50, 0b0111_0101], endpoint: 0x81)
        try await Time.sleep(for: .seconds(1))
        #expect(reader.questions.withLock { $0[2] } > 0)
        #expect(reader.questions.withLock { [$0[0], $0[1], $0[3], $0[4]] } == [0, 0, 0, 0])
        await slots[0].close()
    }

    /// Longer than the endpoint's packets, which is an error of the transfer.
    private static let noise = [UInt8](repeating: 0x50, count: 9)

    @Test("two errors of the endpoint are put up with, and two more after a message")
    func errorsApart() async throws {
        let reader = Reader()
        let device = device(reader)
        let slot = try await firstReader(on: SoftwareUSBBus(device))
        var states = slot.slotStates().makeAsyncIterator()
        #expect(try await states.next() == .empty)
        let asked = reader.questions.withLock { $0[0] }
        for message in [Self.noise, Self.noise, [0x50, 0x00], Self.noise, Self.noise] {
            device.send(message, endpoint: 0x81)
        }
        // A slot that nobody listens to any more would be asked meanwhile.
        try await Time.sleep(for: CCIDSlot.pollingInterval * 2)
        #expect(reader.questions.withLock { $0[0] } == asked)
        reader.isThere.withLock { $0 = true }
        device.send([0x50, 0x03], endpoint: 0x81)
        #expect(try await states.next()?.hasCard == true)
        await slot.close()
    }

    @Test("after three errors of the endpoint in a row its slot is asked instead")
    func errorsInARow() async throws {
        let reader = Reader()
        let device = device(reader)
        let slot = try await firstReader(on: SoftwareUSBBus(device))
        var states = slot.slotStates().makeAsyncIterator()
        #expect(try await states.next() == .empty)
        for _ in 0..<3 { device.send(Self.noise, endpoint: 0x81) }
        reader.isThere.withLock { $0 = true }
        #expect(try await states.next()?.hasCard == true)
        await slot.close()
    }

    @Test("a reader that says nothing is asked three times before a reset over USB, and three times after it")
    func silence() async throws {
        let device = ScriptedReader(functional: DescriptorTests.acr122u) { _ in [] }
        let reader = try await firstReader(on: SoftwareUSBBus(device), timeLimits: .short)
        #expect(await kind { try await reader.connect() } == .readerTimeout)
        #expect(device.messages.filter { $0.first == 0x65 }.count == 6 && device.resets == 1)
    }

    @Test("a card that was switched off is not switched on for those who watch")
    func switchedOff() async throws {
        let commands = Mutex<[UInt8]>([])
        let device = ScriptedReader(functional: DescriptorTests.acr122u, hasInterrupt: true) { message in
            let wasOn = commands.withLock { commands in
                commands.append(message[0])
                return commands.last { [0x62, 0x63].contains($0) } == 0x62
            }
            let atr = message[0] == 0x62 ? bytes("3B 80 80 01 01") : []
            return [ScriptedReader.answer(to: message, status: wasOn ? 0x00 : 0x01, atr)]
        }
        let reader = try await firstReader(on: SoftwareUSBBus(device))
        var states = reader.slotStates().makeAsyncIterator()
        #expect(try await states.next()?.hasCard == true)
        let card = try await reader.connect()
        await card.disconnect(.powerOff)
        let before = commands.withLock { $0.count }
        device.send([0x50, 0x03], endpoint: 0x81)
        try await Time.sleep(for: .seconds(1))
        #expect(commands.withLock { $0.count > before && !$0.dropFirst(before).contains(0x62) })
        await reader.close()
    }
}
