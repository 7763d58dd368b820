import SmartCard
import Synchronization
import TestSupport
import Testing
import USBDevices
import USBTestSupport
import Waiting

@testable import SmartCardUSB

/// A reader that is given back while it has still something to say: its next owner, a kernel driver perhaps, would take that for
/// the answer to the first command (an “invalid frame” of pn533_usb).
@Suite(.simulatedTime, .timeLimit(.minutes(2))) struct GivingBackTests {
    /// Answers Escape when it is told to, and all else at once.
    private struct Bench {
        let device: ScriptedReader
        let bus: SoftwareUSBBus
        let reader: USBReader
        /// The Escape commands that have come.
        var commands: AsyncStream<[UInt8]>.Iterator

        /// - Parameter settling: how long an answer is waited for.
        init(settling: Duration, knowsAbort: Bool = false) async throws {
            let (commands, command) = AsyncStream<[UInt8]>.makeStream()
            self.commands = commands.makeAsyncIterator()
            device = ScriptedReader(functional: DescriptorTests.acr122u, knowsAbort: knowsAbort) { message in
                guard message[0] == 0x6B else { return [ScriptedReader.answer(to: message)] }
                command.yield(message)
                return []
            }
            bus = SoftwareUSBBus(device)
            var timeLimits = CCIDTimeLimits()
            (timeLimits.settling, timeLimits.escape) = (settling, .seconds(600))
            reader = try await firstReader(on: bus, timeLimits: timeLimits)
        }
    }

    @Test("the answer to a command that was given up is fetched before the reader is given back")
    func fetched() async throws {
        var bench = try await Bench(settling: .seconds(100))
        let (device, bus, reader) = (bench.device, bench.bus, bench.reader)
        let command = Task { try await reader.escape([0xE0, 0x00]) }
        let message = try #require(await bench.commands.next())
        command.cancel()
        await #expect(throws: CancellationError.self) { try await command.value }
        let closing = Task { await reader.close() }
        try await Time.sleep(for: .seconds(99))
        #expect(bus.inUse.links == 1)
        device.send(ScriptedReader.answer(to: message, [0x01]), endpoint: 0x82)
        await closing.value
        #expect(bus.inUse == (0, 0) && device.resets == 0)
    }

    @Test("also before a reader that was let go is")
    func letGo() async throws {
        let (device, bus, message) = try await {
            var bench = try await Bench(settling: .seconds(100))
            let command = Task { [reader = bench.reader] in try await reader.escape([0xE0, 0x00]) }
            let message = try #require(await bench.commands.next())
            command.cancel()
            await #expect(throws: CancellationError.self) { try await command.value }
            return (bench.device, bench.bus, message)
        }()
        #expect(bus.inUse.links == 1)
        device.send(ScriptedReader.answer(to: message, [0x01]), endpoint: 0x82)
        try await wait(for: "the end of the link") { bus.inUse == (0, 0) }
        #expect(device.resets == 0)
    }

    @Test("whoever waits for an answer when the reader is given back is told at once")
    func told() async throws {
        var bench = try await Bench(settling: .seconds(100))
        let (device, bus, reader) = (bench.device, bench.bus, bench.reader)
        let commands = (0..<2).map { _ in Task { try await reader.escape([0xE0, 0x00]) } }
        let message = try #require(await bench.commands.next())
        // One that comes after the reader was given back opens it anew.
        let slot = try #require(reader.interface.withLock { $0 }?.slots.first)
        try await wait(for: "the second command") { slot.turn.waitingCount > 0 }
        let closing = Task { await reader.close() }
        for command in commands {
            await #expect { try await command.value } throws: { ($0 as? CardError)?.kind == .disconnected }
        }
        #expect(bus.inUse.links == 1)
        device.send(ScriptedReader.answer(to: message, [0x01]), endpoint: 0x82)
        await closing.value
        #expect(bus.inUse == (0, 0))
        // The second was never sent.
        #expect(device.messages.count { $0[0] == 0x6B } == 1)
    }

    @Test("an answer that does not come is reset away")
    func reset() async throws {
        var bench = try await Bench(settling: .milliseconds(50))
        let reader = bench.reader
        let command = Task { try await reader.escape([0xE0, 0x00]) }
        _ = try #require(await bench.commands.next())
        await reader.close()
        #expect(bench.bus.inUse == (0, 0) && bench.device.resets == 1)
        await #expect { try await command.value } throws: { ($0 as? CardError)?.kind == .disconnected }
    }

    @Test("a reader that has nothing more to say is given back as it is")
    func idle() async throws {
        let bench = try await Bench(settling: .seconds(100))
        _ = try? await bench.reader.connect()
        await bench.reader.close()
        #expect(bench.bus.inUse == (0, 0) && bench.device.resets == 0)
    }
}
