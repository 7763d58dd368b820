import SmartCard
import Synchronization
import TestSupport
import Testing
import Waiting

@testable import SmartCardSimulator

@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct VirtualReaderTests {
    /// A reader that reports at once, and a host with little patience.
    static func reader(_ faults: SoftwareReaderFault..., card: (any VirtualCard)? = TableCard.desfire) -> VirtualReader
    {
        var profile = ACR122UProfile.firmware216
        profile.detectionDelay = .zero
        let device = SoftwareACR122U(profile: profile, faults: faults)
        if let card { device.insert(card) }
        return VirtualReader(device, limit: .milliseconds(100))
    }

    static let readBinary = CommandAPDU(unchecked: (0x00, 0xB0, 0x00, 0x00), ne: 256)

    static func kind(_ body: () async throws -> Void) async -> CardError.Kind? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? CardError)?.kind
        }
    }

    @Test func exchange() async throws {
        let reader = Self.reader()
        expectEqual(reader.identity.backend, .virtual)
        let card = try await reader.connect()
        expectEqual(card.atr.bytes, bytes("3B 86 80 01 06 75 77 81 02 80 00"))
        expectEqual(card.transmissionProtocol, .t1)
        try await expectEqual(card.transmit(Self.readBinary), ResponseAPDU(status: StatusWord(0x90, 0x00)))
        let firmware = try await reader.transmitToReader(bytes("FF 00 48 00 00"))
        expectEqual(String(decoding: firmware, as: UTF8.self), "ACR122U216")
        await expectEqual(Self.kind { _ = try await reader.transmitToReader([0x00, 0xA4]) }, .unsupported)
    }

    @Test func readerCommandsNeedNoCard() async throws {
        let reader = Self.reader(card: nil)
        try await expectEqual(reader.transmitToReader(bytes("FF 00 50 00 00")), [0x90, 0xFF])
        await expectEqual(Self.kind { _ = try await reader.connect() }, .cardAbsent)
    }

    /// 2 times (100 + 100) ms, which is four times the host's patience.
    @Test func lightsAreWaitedFor() async throws {
        let reader = Self.reader(card: nil)
        let start = Time.now
        try await expectEqual(reader.transmitToReader(bytes("FF 00 40 0E 04 01 01 02 00")), [0x90, 0x02])
        #expect(Time.now - start == .milliseconds(400))
    }

    /// By the time when the answer was due: the host has seen it a second later.
    @Test(arguments: [[], [SoftwareReaderFault(.timeExtension)]])
    func theTimeOfAnExchange(_ faults: [SoftwareReaderFault]) async throws {
        let host = HeldUpHost()
        let device = SoftwareACR122U(faults: faults)
        device.insert(LateCard(TableCard.desfire, instruction: 0xB0, takes: 20) { host.holdUp(for: 1000) })
        let card = try await VirtualReader(device).connect()
        let stopwatch = ExchangeStopwatch()
        let start = Time.now
        try await withTaskExecutorPreference(host) {
            _ = try await stopwatch.time { try await card.transmit(Self.readBinary) }
        }
        #expect(Time.now - start == .seconds(1))
        // A reader that asks for more time, three times, takes 400 ms longer.
        #expect(stopwatch.elapsed == .milliseconds(faults.isEmpty ? 20 : 420))
    }

    @Test func disconnectResetAndSecondConnection() async throws {
        let table = TableCard.desfire
        let reader = Self.reader(card: table)
        let first = try await reader.connect()
        let second = try await reader.connect()
        await expectEqual(Self.kind { _ = try await first.transmit(Self.readBinary) }, .cardReset)
        _ = table.history()
        try await second.reset()
        expectEqual(table.history(), ["reset"])
        try await expectEqual(second.transmit(Self.readBinary).status, StatusWord(0x90, 0x00))
        await second.disconnect(.powerOff)
        await second.disconnect(.powerOff)
        await expectEqual(Self.kind { _ = try await second.transmit(Self.readBinary) }, .disconnected)
        await expectEqual(Self.kind { try await second.reset() }, .disconnected)
        let third = try await reader.connect()
        await first.disconnect(.powerOff)
        try await expectEqual(third.transmit(Self.readBinary).status, StatusWord(0x90, 0x00))
    }

    @Test func removal() async throws {
        let reader = Self.reader()
        let card = try await reader.connect()
        reader.device.remove()
        await expectEqual(Self.kind { _ = try await card.transmit(Self.readBinary) }, .cardRemoved)
        await expectEqual(Self.kind { _ = try await reader.connect() }, .cardAbsent)
        // Another card in its place is not this one.
        reader.device.insert(TableCard.desfire)
        #expect([.cardRemoved, .cardReset].contains(await Self.kind { _ = try await card.transmit(Self.readBinary) }))
        _ = try await reader.connect()
    }

    @Test func lengths() async throws {
        let card = try await Self.reader().connect()
        let longest = CommandAPDU(unchecked: (0x00, 0xD6, 0x00, 0x00), data: [UInt8](repeating: 0, count: 255), ne: 256)
        expectEqual(longest.bytes.count, 261)
        try await expectEqual(card.transmit(longest).status, StatusWord(0x90, 0x00))
        let extended = try CommandAPDU(
            cla: 0x00, ins: 0xD6, p1: 0x00, p2: 0x00, data: [UInt8](repeating: 0, count: 256))
        await expectEqual(Self.kind { _ = try await card.transmit(extended) }, .tooLong)
    }

    // MARK: Presence

    @Test func states() async throws {
        let reader = Self.reader(card: nil)
        let card = TableCard.desfire
        let other = reader.slotStates()
        var states: [SlotState] = []
        for try await state in reader.slotStates() {
            states.append(state)
            switch states.count {
            case 1: reader.device.insert(card)
            case 2: reader.device.remove()
            case 3: reader.device.unplug()
            default: break
            }
        }
        let present = SlotState.card(ATR(bytes("3B 86 80 01 06 75 77 81 02 80 00")), exclusivelyHeld: false)
        expectEqual(states, [.empty, present, .empty])
        // A stream of its own
        var seen: [SlotState] = []
        for try await state in other { seen.append(state) }
        expectEqual(seen, states)
        await expectEqual(Self.kind { _ = try await reader.connect() }, .readerGone)
        // After the end
        await expectEqual(Self.kind { _ = try await reader.waitForCard() }, .readerGone)
    }

    @Test func swap() async throws {
        let reader = Self.reader()
        var states: [Bool] = []
        for try await state in reader.slotStates() {
            states.append(state.hasCard)
            if states.count == 1 {
                reader.device.remove()
                reader.device.insert(TableCard.typeA(sak: 0x08))
            }
            if states.count == 3 { break }
        }
        expectEqual(states, [true, false, true])
    }

    @Test func waitingIsCancelled() async throws {
        let reader = Self.reader(card: nil)
        let wait = Task { try await reader.waitForCard() }
        try await Time.sleep(for: .seconds(3600))
        let start = Time.now
        wait.cancel()
        await #expect(throws: CancellationError.self) { _ = try await wait.value }
        #expect(Time.now == start)
    }

    @Test func exchangeIsCancelled() async throws {
        let reader = Self.reader()
        let card = try await reader.connect()
        reader.device.faults = [SoftwareReaderFault(.slow, 60_000)]
        let task = Task { try await card.transmit(Self.readBinary) }
        try await Time.sleep(for: .milliseconds(20))
        let start = Time.now
        task.cancel()
        await #expect(throws: CancellationError.self) { _ = try await task.value }
        #expect(Time.now == start)
        // The answer that nobody waits for does not disturb the next.
        reader.device.faults = []
        try await expectEqual(card.transmit(Self.readBinary).status, StatusWord(0x90, 0x00))
    }

    /// A stream without its reader keeps working; nothing keeps reader and device alive for ever.
    @Test func lifetimes() async throws {
        weak var device: SoftwareACR122U?
        do {
            let reader = Self.reader()
            device = reader.device
            for try await _ in reader.slotStates() { break }
            for try await state in Self.reader().slotStates() where state.hasCard { break }
        }
        try await wait(for: "its end") { device == nil }
    }

    // MARK: Faults

    @Test(arguments: [
        (SoftwareReaderFault(.emptyAnswers), CardError.Kind.noAnswer),
        (SoftwareReaderFault(.oneByteAnswers), .malformedAnswer),
        (SoftwareReaderFault(.truncatedAnswers), .malformedAnswer),
        (SoftwareReaderFault(.oversizedLength), .malformedAnswer),
        (SoftwareReaderFault(.garbage), .malformedAnswer), (SoftwareReaderFault(.fieldLoss), .cardRemoved),
        (SoftwareReaderFault(.wrongSequence), .malformedAnswer), (SoftwareReaderFault(.slow, 60_000), .readerTimeout),
        (SoftwareReaderFault(.timeExtension, 1000), .readerTimeout), (SoftwareReaderFault(.unplug), .readerGone),
        (SoftwareReaderFault(.muteCard), .noAnswer),
    ])
    func faultsDuringAnExchange(fault: SoftwareReaderFault, kind: CardError.Kind) async throws {
        let reader = Self.reader()
        let card = try await reader.connect()
        reader.device.faults = [fault]
        await expectEqual(Self.kind { _ = try await card.transmit(Self.readBinary) }, kind)
        // All but three are over with the fault.
        guard ![.fieldLoss, .unplug].contains(fault.kind) else { return }
        reader.device.faults = []
        try await expectEqual(card.transmit(Self.readBinary).status, StatusWord(0x90, 0x00))
    }

    @Test(arguments: [
        SoftwareReaderFault(.staleFrame), SoftwareReaderFault(.sequenceBehind), SoftwareReaderFault(.timeExtension, 2),
        SoftwareReaderFault(.slow, 20),
    ])
    func faultsThatAreBorne(fault: SoftwareReaderFault) async throws {
        let reader = Self.reader(fault)
        let card = try await reader.connect()
        let long = CommandAPDU(unchecked: (0x00, 0xD6, 0x00, 0x00), data: [UInt8](repeating: 0, count: 100))
        for command in [Self.readBinary, long, Self.readBinary] {
            try await expectEqual(card.transmit(command).status, StatusWord(0x90, 0x00))
        }
        try await expectEqual(reader.transmitToReader(bytes("FF 00 50 00 00")), [0x90, 0xFF])
    }

    @Test func muteCard() async throws {
        let reader = Self.reader(SoftwareReaderFault(.muteCard))
        await expectEqual(Self.kind { _ = try await reader.connect() }, .cardMute)
        for try await state in reader.slotStates() {
            expectEqual(state, .muteCard)
            break
        }
    }

    @Test func brokenATR() async throws {
        let card = try await Self.reader(SoftwareReaderFault(.brokenATR)).connect()
        expectEqual(card.atr.bytes, [UInt8](repeating: 0xFF, count: 33))
        #expect(!card.atr.defects.isEmpty)
    }

    /// Wherever the plug is pulled, the caller learns it, and at once.
    @Test func unplugAnywhere() async throws {
        for transfer in 1...12 {
            let reader = Self.reader(SoftwareReaderFault(.unplug, transfer))
            let kind = await Self.kind {
                let card = try await reader.connect()
                for _ in 0..<20 { _ = try await card.transmit(Self.readBinary) }
            }
            expectEqual(kind, .readerGone, "transfer \(transfer)")
            var last: SlotState?
            for try await state in reader.slotStates() { last = state }
            #expect(last == nil || last != .unknown)
        }
    }

    @Test func manyTasks() async throws {
        let reader = Self.reader()
        let card = try await reader.connect()
        let answers = try await withThrowingTaskGroup(of: StatusWord.self) { group in
            for _ in 0..<50 {
                group.addTask { try await card.transmit(Self.readBinary).status }
                group.addTask {
                    _ = try await reader.transmitToReader(bytes("FF 00 48 00 00"))
                    return StatusWord(0x90, 0x00)
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        expectEqual(answers, [StatusWord](repeating: StatusWord(0x90, 0x00), count: 100))
    }
}
