import SmartCard
import Synchronization
import TestSupport
import Testing
import USBDevices
import USBTestSupport
import Waiting

@testable import SmartCardUSB

/// bMaxCCIDBusySlots, the last byte of the CCID descriptor: how many slots may have a command outstanding at once (USB CCID
/// 1.10, 5.1).
@Suite(.simulatedTime, .timeLimit(.minutes(2))) struct BusySlotsTests {
    /// An ACR122U's descriptor with two slots, automatic voltage, and so many busy ones.
    private func functional(busySlots: UInt8) -> [UInt8] {
        var descriptor = DescriptorTests.acr122u
        (descriptor[4], descriptor[40], descriptor[53]) = (0x01, 0x48, busySlots)
        return descriptor
    }

    /// Answers Escape when it is told to, and all else at once.
    private final class Reader: Sendable {
        /// The Escape commands that have come, in their order.
        let held = Mutex<[[UInt8]]>([])
        /// When one came, for those who wait.
        let (arrivals, arrival) = AsyncStream<Void>.makeStream()

        func answer(_ message: [UInt8]) -> [[UInt8]] {
            guard message[0] == 0x6B else { return [ScriptedReader.answer(to: message)] }
            held.withLock { $0.append(message) }
            arrival.yield()
            return []
        }
    }

    private func slots(busySlots: UInt8) async throws -> (reader: Reader, device: ScriptedReader, slots: [USBReader]) {
        let reader = Reader()
        let device = ScriptedReader(functional: functional(busySlots: busySlots)) { reader.answer($0) }
        let slots = try await USBReaders(on: SoftwareUSBBus(device)).readers().sorted { $0.id.slot < $1.id.slot }
        try #require(slots.count == 2)
        return (reader, device, slots)
    }

    /// Longer than one packet, so that the answers of both slots take several transfers.
    private static func long(_ slot: UInt8) -> [UInt8] { (0..<150).map { UInt8($0) ^ (slot << 7) } }

    @Test("with two busy slots, both have a command outstanding, and each gets its own answer in any order")
    func overlap() async throws {
        let (reader, device, slots) = try await slots(busySlots: 2)
        var arrivals = reader.arrivals.makeAsyncIterator()
        for _ in 0..<20 {
            async let first = slots[0].escape([0xE0, 0x00])
            async let second = slots[1].escape([0xE0, 0x01])
            // Both have come, and neither has been answered.
            _ = await (arrivals.next(), arrivals.next())
            let messages = reader.held.withLock { held in
                defer { held = [] }
                return held
            }
            #expect(Set(messages.map { $0[5] }) == [0, 1] && messages[0][6] != messages[1][6])
            for message in messages.sorted(by: { $0[5] > $1[5] }) {
                device.send(ScriptedReader.answer(to: message, Self.long(message[5])), endpoint: 0x82)
            }
            let answers = try await [first, second]
            #expect(answers == [Self.long(0), Self.long(1)])
        }
        await slots[0].close()
    }

    @Test("with one busy slot, the second command is sent after the first answer")
    func noOverlap() async throws {
        let (reader, device, slots) = try await slots(busySlots: 1)
        var arrivals = reader.arrivals.makeAsyncIterator()
        async let first = slots[0].escape([0xE0, 0x00])
        _ = await arrivals.next()
        async let second = slots[1].escape([0xE0, 0x01])
        try await Time.sleep(for: .seconds(1))
        let messages = reader.held.withLock { $0 }
        #expect(messages.map { $0[5] } == [0])
        device.send(ScriptedReader.answer(to: messages[0], [0x01]), endpoint: 0x82)
        _ = await arrivals.next()
        device.send(ScriptedReader.answer(to: reader.held.withLock { $0[1] }, [0x02]), endpoint: 0x82)
        let answers = try await [first, second]
        #expect(answers == [[0x01], [0x02]])
        await slots[0].close()
    }

    @Test("abandoning a command of one slot does not affect the other slot")
    func givenUp() async throws {
        let (reader, device, slots) = try await slots(busySlots: 2)
        var arrivals = reader.arrivals.makeAsyncIterator()
        let first = Task { try await slots[0].escape([0xE0, 0x00]) }
        async let second = slots[1].escape([0xE0, 0x01])
        _ = await (arrivals.next(), arrivals.next())
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        let message = try #require(reader.held.withLock { $0.first { $0[5] == 1 } })
        device.send(ScriptedReader.answer(to: message, [0x02]), endpoint: 0x82)
        #expect(try await second == [0x02])
        await slots[0].close()
    }

    @Test("closing the reader ends every wait")
    func givenBack() async throws {
        let reader = Reader()
        let device = ScriptedReader(functional: functional(busySlots: 2)) { reader.answer($0) }
        let bus = SoftwareUSBBus(device)
        let slots = try await USBReaders(on: bus).readers()
        var arrivals = reader.arrivals.makeAsyncIterator()
        let commands = slots.map { slot in Task { try await slot.escape([0xE0]) } }
        _ = await (arrivals.next(), arrivals.next())
        await slots[0].close()
        for command in commands {
            await #expect { try await command.value } throws: { ($0 as? CardError)?.kind == .disconnected }
        }
    }

    /// Its second transfer is not taken for a message of the slot that its sixth byte names.
    @Test("an answer in two transfers is one slot's")
    func twoTransfers() async throws {
        let (reader, device, slots) = try await slots(busySlots: 2)
        var arrivals = reader.arrivals.makeAsyncIterator()
        async let answer = slots[1].escape([0xE0, 0x01])
        _ = await arrivals.next()
        let data = [UInt8](repeating: 0x00, count: 150)
        let message = ScriptedReader.answer(to: reader.held.withLock { $0[0] }, data)
        device.send(Array(message.prefix(128)), endpoint: 0x82)
        device.send(Array(message.dropFirst(128)), endpoint: 0x82)
        #expect(try await answer == data)
        await slots[0].close()
    }

    @Test("a slot whose reader does not answer is told when its time is over")
    func timeLimit() async throws {
        let reader = Reader()
        let device = ScriptedReader(functional: functional(busySlots: 2)) { reader.answer($0) }
        let slots = try await USBReaders(on: SoftwareUSBBus(device), timeLimits: .short).readers()
        #expect(await kind { try await slots[0].escape([0xE0, 0x00]) } == .readerTimeout)
        await slots[0].close()
    }
}
