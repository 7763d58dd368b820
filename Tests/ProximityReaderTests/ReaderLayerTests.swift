import ProximityReader
import SmartCard
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing
import USBTestSupport

@testable import CardReaders
@testable import SmartCardUSB

/// What is between the terminal and its cards: the layers of the reader that it has, and that reader's driver.
@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct ReaderLayerTests {
    /// GET PROCESSING OPTIONS, of class 80, which has no chaining: the rest of the transaction fits.
    @Test("the terminal sends no command that is too long for its reader")
    func longestCommand() async throws {
        let device = SoftwareACR122U()
        let model = Model("of 30 bytes", names: [], commands: .none, extendedAPDUs: .failBeyond(30))
        let driver = VirtualReader(device)
        let reader = MachineReader(
            id: "short", name: "Short", usbID: nil, version: nil, model: model, reason: .chosen,
            identity: driver.identity, driver: driver)
        let bench = try await Bench { $0.reader = .reader(reader) }
        let session = try await bench.reader.prepare(using: bench.token())
        let log = await EventLog(bench.reader)
        let card = ObservedCard(try #require(VirtualCards.named("visa")))
        device.insert(card)
        let read = Task { try await session.readPaymentCard(purchase) }
        try await wait(for: "the end of the transaction") {
            await log.names.contains(where: ["readRetry", "readCompleted", "readNotCompleted"].contains)
        }
        let instructions = card.exchanges.map { $0.command[1] }
        #expect(instructions.contains(0xA4) && !instructions.contains(0xA8))
        read.cancel()
        device.remove()
        _ = try? await read.value
    }

    @Test(
        "a reader that hangs in the middle of a payment is reset once, the watch is told, and the next payment succeeds",
        arguments: [true, false])
    func hangs(_ hasChip: Bool) async throws {
        let device: any SoftwareReader = hasChip ? SoftwareACR122U() : SoftwareACR1252U()
        let bus = SoftwareUSBBus(device)
        var timeLimits = CCIDTimeLimits()
        (timeLimits.exchange, timeLimits.escape, timeLimits.slotStatus) = (.seconds(1), .seconds(1), .seconds(1))
        let reader = try #require(
            try await Machine(.usb, usb: USBReaders(on: bus, timeLimits: timeLimits)).readers().preferred)
        let bench = try await Bench { $0.reader = .reader(reader) }
        let session = try await bench.reader.prepare(using: bench.token())
        let log = await EventLog(bench.reader)
        let ends = Task {
            do { for try await _ in reader.slotStates() {} } catch { return "\(error)" }
            return "no error"
        }

        let card = ObservedCard(try #require(VirtualCards.named("visa")))
        let hasHung = Mutex(false)
        bus.tamper = { bytes in
            // The answer to GET PROCESSING OPTIONS is the last.
            let isDue = hasHung.withLock { hasHung in
                guard !hasHung, card.exchanges.contains(where: { $0.command[1] == 0xA8 }) else { return false }
                hasHung = true
                return true
            }
            if isDue { device.faults = [SoftwareReaderFault(.hung)] }
            return bytes
        }
        let read = Task { try await session.readPaymentCard(purchase) }
        try await log.wait(for: "readyForTap")
        device.insert(card)
        await expect("readerNotAvailable") { _ = try await read.value }
        #expect(await ends.value.contains("it hung and was reset over USB"))
        try await log.wait(for: "notReady")
        // Nothing was sent to the card again.
        #expect(card.exchanges.count(where: { $0.command[1] == 0xA8 }) == 1)

        device.remove(nil)
        let customer = Task { [events = bench.reader.events] in
            for await event in events {
                switch event {
                case .readyForTap: device.insert(card)
                case .removeCard: device.remove(nil)
                default: break
                }
            }
        }
        #expect(try await session.readPaymentCard(purchase).outcome == .success)
        customer.cancel()
        await bench.end()
        await reader.close()
        #expect(bus.inUse == (0, 0))
    }
}
