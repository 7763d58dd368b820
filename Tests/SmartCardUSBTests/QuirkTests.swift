import SmartCard
import SmartCardPN532
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing
import USBDevices
import USBTestSupport
import Waiting

@testable import SmartCardUSB

/// Each known departure of readers from the specification, simulated.
@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct QuirkTests {
    private static let atr = bytes("3B 80 80 01 01")

    /// A reader with a card, that answers XfrBlock and Escape as `answer` says and all else properly.
    private func reader(
        vendor: UInt16 = 0x072F, product: UInt16 = 0x2200, release: UInt16 = 0x0216, hasInterrupt: Bool = false,
        timeLimits: CCIDTimeLimits = CCIDTimeLimits(), answer: @escaping ScriptedReader.Answer
    ) async throws -> (USBReader, ScriptedReader) {
        let device = ScriptedReader(
            functional: DescriptorTests.acr122u, vendor: vendor, product: product, hasInterrupt: hasInterrupt
        ) { message in
            let own = answer(message)
            if !own.isEmpty { return own }
            return switch message[0] {
            case 0x62: [ScriptedReader.answer(to: message, Self.atr)]
            case 0x6F, 0x6B: []
            default: [ScriptedReader.answer(to: message)]
            }
        }
        let bus = SoftwareUSBBus()
        bus.plug(device) { $0.release = release }
        return (try await firstReader(on: bus, timeLimits: timeLimits), device)
    }

    @Test func entriesAddUp() {
        let new = KnownReader.quirks(vendorID: 0x072F, productID: 0x2200, release: 0x0216)
        #expect(new.contains(.noAbort) && !new.contains(.presenceByInterruptOnly))
        let old = KnownReader.quirks(vendorID: 0x072F, productID: 0x2200, release: 0x0204)
        #expect(old.isSuperset(of: [.noAbort, .presenceByInterruptOnly]))
        #expect(KnownReader.quirks(vendorID: 0x076B, productID: 0x5022, release: 0x0100) == [])
        // What no reader is known for has no place in the table.
        #expect(KnownReader.all.reduce(into: Set()) { $0.formUnion($1.quirks) } == Set(ReaderQuirk.allCases))
    }

    // MARK: Heeded with every reader

    /// libnfc#476, nfcpy#154: bError is what the reader last thought of something, and says nothing of a success.
    @Test(arguments: [0x81 as UInt8, 0xFE])
    func bErrorSticks(_ error: UInt8) async throws {
        let (reader, _) = try await reader { message in
            message[0] == 0x6F ? [ScriptedReader.answer(to: message, error: error, [0x90, 0x00])] : []
        }
        #expect(try await reader.connectToCard().transmit(selectPPSE).status == .success)
    }

    /// libnfc#263: a card that does not answer is a success with no data, and bError FE or 81.
    @Test func anEmptyAnswerIsAMuteCard() async throws {
        let (reader, _) = try await reader { message in
            message[0] == 0x6F ? [ScriptedReader.answer(to: message, error: 0xFE)] : []
        }
        let card = try await reader.connectToCard()
        #expect(await kind { try await card.transmit(selectPPSE) } == .noAnswer)
        #expect(await kind { try await reader.transmitToReader(bytes("FF 00 48 00 00")) } == .noAnswer)
    }

    /// nfcpy#105: firmware 2.15 answers `FF 00 51` by one byte, others by two, and none by a status word.
    @Test(arguments: [(ACR122UProfile.firmware215, [0x7F] as [UInt8]), (.firmware216, [0x90, 0x7F])])
    func answersOfOneOrTwoBytes(_ profile: ACR122UProfile, _ expected: [UInt8]) async throws {
        let device = SoftwareACR122U(profile: profile)
        device.insert(try #require(VirtualCards.named("visa")))
        let reader = try await firstReader(on: SoftwareUSBBus(device))
        #expect(try await reader.transmitToReader(bytes("FF 00 51 7F 00")) == expected)
        #expect(try await reader.connectToCard().transmit(bytes: bytes("FF 00 51 7F 00")) == expected)
        try await ACR122U(over: reader).setOperatingParameter(PICCOperatingParameter(rawValue: 0x7F))
        #expect(try await ACR122U(over: reader).operatingParameter().rawValue == 0x7F)
    }

    /// ACS API v2.04, 5.2 to 5.4: whatever is wrong, a MIFARE Classic's answer is `63 00`, and the card then is silent.
    @Test func mifareFailsWithoutCause() async throws {
        let device = SoftwareACR122U()
        device.insert(try #require(VirtualCards.named("mifare-classic-1k")))
        let card = try await firstReader(on: SoftwareUSBBus(device)).connectToCard()
        #expect(try await card.transmit(bytes: bytes("FF 82 00 00 06 FF FF FF FF FF FF")) == [0x90, 0x00])
        #expect(try await card.transmit(bytes: bytes("FF 86 00 00 05 01 00 08 60 00")) == [0x63, 0x00])
        #expect(try await card.transmit(bytes: bytes("FF B0 00 08 10")) == [0x63, 0x00])
        // It is selected anew for the next one to work.
        let classic = MIFAREClassic(card)
        await #expect(throws: TagError.authenticationFailed(block: 8)) {
            try await classic.authenticate(block: 8, with: .delivery)
        }
        try await classic.authenticate(block: 4, with: .delivery)
        #expect(try await classic.readBlock(4).count == 16)
    }

    /// libnfc#535, libnfc#576, pyscard#18: neither SET_INTERFACE nor the class requests for rates.
    @Test func nothingIsAskedThatReadersChokeOn() async throws {
        let (reader, device) = try await reader(hasInterrupt: true) { message in
            message[0] == 0x6F ? [ScriptedReader.answer(to: message, [0x90, 0x00])] : []
        }
        let card = try await reader.connectToCard()
        _ = try await card.transmit(selectPPSE)
        await card.disconnect(.powerOff)
        await reader.close()
        #expect(device.requests == [])
    }

    // MARK: Of the table

    @Test func commandsByXfrBlock() async throws {
        let (reader, device) = try await reader { message in
            message[0] == 0x6F ? [ScriptedReader.answer(to: message, status: 0x02, [0x90, 0x02])] : []
        }
        #expect(try await reader.transmitToReader(bytes("FF 00 40 0E 04 00 00 00 00")) == [0x90, 0x02])
        #expect(device.messages.map(\.first) == [0x65, 0x6F], "no card, no IccPowerOn")
        #expect(await kind { try await reader.transmitToReader(bytes("00 A4 00 00")) } == .unsupported)
    }

    @Test(arguments: [(0x072F as UInt16, 0x2200 as UInt16, [0x00] as [UInt8]), (0x076B, 0x5022, [0x03, 0x02, 0x01])])
    func anyVoltage(_ vendor: UInt16, _ product: UInt16, _ expected: [UInt8]) async throws {
        let (reader, device) = try await reader(vendor: vendor, product: product) { message in
            message[0] == 0x62 ? [ScriptedReader.answer(to: message, status: 0x41, error: 0xFE)] : []
        }
        #expect(await kind { try await reader.connectToCard() } == .cardMute)
        // bPowerSelect
        #expect(device.messages.filter { $0[0] == 0x62 }.map { $0[7] } == expected)
    }

    /// nfcpy#154: firmware 2.15 and 2.16 call the slot empty in the answers to what its card has done.
    @Test(arguments: [(0x072F as UInt16, 0x2200 as UInt16, CardError.Kind.noAnswer), (0x076B, 0x5022, .cardRemoved)])
    func falseStatusInExchanges(_ vendor: UInt16, _ product: UInt16, _ expected: CardError.Kind) async throws {
        let (reader, _) = try await reader(vendor: vendor, product: product) { message in
            switch message[0] {
            case 0x6F where message[11] == 0xB0: [ScriptedReader.answer(to: message, status: 0x42, error: 0xFE)]
            case 0x6F: [ScriptedReader.answer(to: message, status: 0x02, [0x90, 0x00])]
            default: []
            }
        }
        let card = try await reader.connectToCard()
        #expect(try await card.transmit(selectPPSE).status == .success)
        #expect(await kind { try await card.transmit(bytes: bytes("00 B0 00 00 00")) } == expected)
        // Whether the session is over
        #expect(
            await kind { try await card.transmit(selectPPSE) } == (expected == .noAnswer ? nil : .cardRemoved))
    }

    /// acsccid: with firmware 2.00 to 2.04 GetSlotStatus says absent, whatever lies there.
    @Test func presenceByInterruptOnly() async throws {
        let (reader, device) = try await reader(release: 0x0203, hasInterrupt: true) { message in
            [ScriptedReader.answer(to: message, status: 0x02, message[0] == 0x62 ? Self.atr : [])]
        }
        var states = reader.slotStates().makeAsyncIterator()
        #expect(try await states.next()?.hasCard == true)
        device.send([0x50, 0x02], endpoint: 0x81)
        #expect(try await states.next() == .empty)
        device.send([0x50, 0x03], endpoint: 0x81)
        #expect(try await states.next()?.hasCard == true)
    }

    /// acsccid: bSeq of the answer is one too low, but only after a message of more than 64 bytes.
    @Test func sequenceBehindAfterLongMessage() async throws {
        let (reader, device) = try await reader { message in
            guard message[0] == 0x6F else { return [] }
            var behind = ScriptedReader.answer(to: message, [0xAA, 0x90, 0x00])
            behind[6] &-= 1
            // To a short message that is a stale answer, and the true one follows.
            return message.count > 64 ? [behind] : [behind, ScriptedReader.answer(to: message, [0xBB, 0x90, 0x00])]
        }
        let card = try await reader.connectToCard()
        let data = [UInt8](repeating: 0, count: 50)
        #expect(try await card.transmit(bytes: bytes("00 D6 00 00 32") + data) == [0xAA, 0x90, 0x00])  // 65 bytes
        #expect(try await card.transmit(bytes: bytes("00 D6 00 00 31") + data.dropLast()) == [0xBB, 0x90, 0x00])
        #expect(device.messages.suffix(2).map(\.count) == [65, 64])
    }

    /// nfcpy#154: IccPowerOn without a card.
    @Test(arguments: [(0x072F as UInt16, 0x2200 as UInt16, CardError.Kind.cardAbsent), (0x076B, 0x5022, nil)])
    func emptyATRWithoutCard(_ vendor: UInt16, _ product: UInt16, _ expected: CardError.Kind?) async throws {
        let (reader, _) = try await reader(vendor: vendor, product: product) { message in
            message[0] == 0x62 ? [ScriptedReader.answer(to: message, error: 0x81, [0x3B, 0x00])] : []
        }
        #expect(await kind { try await reader.connectToCard() } == expected)
    }

    /// libccid gives these a second for the first slot status; the others are asked again sooner.
    @Test(arguments: [(0x04E6 as UInt16, 0x5790 as UInt16, 1), (0x076B, 0x5022, 2)])
    func slowStart(_ vendor: UInt16, _ product: UInt16, _ questions: Int) async throws {
        var timeLimits = CCIDTimeLimits()
        (timeLimits.resynchronization, timeLimits.slowResynchronization) = (.milliseconds(500), .seconds(600))
        let (first, continuation) = AsyncStream<[UInt8]>.makeStream()
        let count = Mutex(0)
        let (reader, device) = try await reader(vendor: vendor, product: product, timeLimits: timeLimits) { message in
            let isFirst = count.withLock { count in
                count += message[0] == 0x65 ? 1 : 0
                return count == 1 && message[0] == 0x65
            }
            guard isFirst else { return [] }
            continuation.yield(message)
            return [[]]  // an empty transfer says nothing
        }
        async let card = reader.connectToCard()
        for await message in first {
            // Later than the others are patient.
            try await Time.sleep(for: .seconds(1))
            device.send(ScriptedReader.answer(to: message), endpoint: 0x82)
            break
        }
        _ = try await card
        #expect(count.withLock { $0 } == questions)
    }

    /// libccid keeps the interfaces of an ACR1252 apart in time.
    @Test(arguments: [(0x223B as UInt16, true), (0x2200, false)])
    func oneInterfaceAtATime(_ product: UInt16, _ takesTurns: Bool) async throws {
        let bus = TwoInterfaces(product: product)
        let readers = try await USBReaders(on: bus).readers()
        #expect(readers.map(\.id.interface) == [0, 1])
        let cards = [try await readers[0].connectToCard(), try await readers[1].connectToCard()]
        async let first = cards[0].transmit(selectPPSE)
        var messages = bus.messages.makeAsyncIterator()
        func next() async throws -> TwoInterfaces.Message {
            while let message = await messages.next() { if message.bytes[0] == 0x6F { return message } }
            throw CancellationError()
        }
        let one = try await next()
        async let second = cards[1].transmit(selectPPSE)
        if takesTurns {
            // The other one would come, were it to.
            try await Time.sleep(for: .seconds(1))
            one.answer()
            try await next().answer()
        } else {
            let two = try await next()
            two.answer()
            one.answer()
        }
        #expect(try await first.status == .success)
        #expect(try await second.status == .success)
        #expect(bus.mostAtOnce == (takesTurns ? 1 : 2))
    }

    /// ACS API v2.04, 6.2: `FF 00 40 P2 04 T1 T2 N B` is answered after N x (T1 + T2) x 100 ms.
    @Test func blockingLights() async throws {
        let quirks: Set<ReaderQuirk> = [.blockingLights]
        // T1 = 1 s, T2 = 0.5 s, three times
        #expect(CCIDTimeLimits.extra(for: bytes("FF 00 40 50 04 0A 05 03 01"), quirks) == .milliseconds(4500))
        #expect(CCIDTimeLimits.extra(for: bytes("FF 00 40 50 04 FF FF FF 01"), quirks) == .milliseconds(13_005_000))
        #expect(CCIDTimeLimits.extra(for: bytes("FF 00 40 0E 04 00 00 00 00"), quirks) == .zero)
        #expect(CCIDTimeLimits.extra(for: bytes("FF 00 40 0E"), quirks) == .zero)
        #expect(CCIDTimeLimits.extra(for: bytes("FF 00 48 00 00"), quirks) == .zero)
        #expect(CCIDTimeLimits.extra(for: bytes("FF 00 40 50 04 0A 05 03 01"), []) == .zero)
        // PC/SC part 3 allows a transparent exchange 90 s, whatever the reader.
        #expect(CCIDTimeLimits.extra(for: bytes("FF C2 01 00 00"), []) == .seconds(80))

        // Two times 0.5 s and 0.5 s, where an exchange may take 1 s
        let reader = try await firstReader(on: SoftwareUSBBus(SoftwareACR122U()), timeLimits: .short)
        #expect(try await reader.transmitToReader(bytes("FF 00 40 0F 04 05 05 02 00")) == [0x90, 0x03])
    }

    /// acsccid: firmware 2.06 is told by IccPowerOff, until it succeeds, ten times at most.
    @Test(arguments: [(0x0206 as UInt16, 3, 3), (0x0206, 20, 10), (0x0216, 3, 0)])
    func looksAfterPowerOff(_ release: UInt16, _ success: Int, _ expected: Int) async throws {
        var timeLimits = CCIDTimeLimits()
        timeLimits.firstLook = .milliseconds(1)
        let count = Mutex(0)
        let (reader, device) = try await reader(release: release, timeLimits: timeLimits) { message in
            guard message[0] == 0x63 else { return [] }
            let isDone = count.withLock { count in
                count += 1
                return count >= success
            }
            return [ScriptedReader.answer(to: message, status: isDone ? 0x01 : 0x41)]
        }
        _ = try await reader.connectToCard()
        #expect(device.messages.count { $0[0] == 0x63 } == expected)
        #expect(device.messages.last?[0] == 0x62)
    }
}

/// A device with two CCID interfaces and a card at each; XfrBlock is answered when a test says so.
private final class TwoInterfaces: USBBus {
    struct Message: Sendable {
        let bytes: [UInt8]
        let answer: @Sendable () -> Void
    }

    let messages: AsyncStream<Message>
    private let continuation: AsyncStream<Message>.Continuation
    private let device: USBDevice
    private let unanswered = Mutex((now: 0, most: 0))

    init(product: UInt16) {
        (messages, continuation) = AsyncStream.makeStream()
        device = USBDevice(
            bus: 1, address: 2, ports: [2], vendorID: 0x072F, productID: product, release: 0x0100,
            interfaces: [0, 1].map { number in
                USBInterface(
                    number: number, interfaceClass: 0x0B,
                    endpoints: [
                        .init(address: 0x02, attributes: 2, packetSize: 64),
                        .init(address: 0x82, attributes: 2, packetSize: 64),
                    ], extra: DescriptorTests.acr122u)
            })
    }

    /// How many commands have been on their way at the same time.
    var mostAtOnce: Int { unanswered.withLock { $0.most } }

    func devices() async -> [USBDevice] { [device] }
    func open(_ device: USBDevice, interface: UInt8) async -> any USBLink { Link(self) }
    func changes() -> AsyncStream<Void> { AsyncStream { _ in } }

    private final class Link: USBLink {
        private struct State {
            var answers: [[UInt8]] = []
            var reader: Completion?
        }

        private let bus: TwoInterfaces
        private let state = Mutex(State())

        init(_ bus: TwoInterfaces) { self.bus = bus }

        func write(_ message: [UInt8], to endpoint: UInt8, timeout: Duration, _ completion: @escaping Completion) {
            completion(.success([]))
            bus.unanswered.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
            let answer: @Sendable () -> Void = { [self] in
                bus.unanswered.withLock { $0.now -= 1 }
                let data: [UInt8] = [0x62: bytes("3B 80 80 01 01"), 0x6F: [0x90, 0x00]][message[0]] ?? []
                deliver(ScriptedReader.answer(to: message, data))
            }
            bus.continuation.yield(Message(bytes: message, answer: answer))
            if message[0] != 0x6F { answer() }
        }

        private func deliver(_ answer: [UInt8]) {
            let reader: Completion? = state.withLock { state in
                defer { state.reader = nil }
                if state.reader == nil { state.answers.append(answer) }
                return state.reader
            }
            reader?(.success(answer))
        }

        func read(_ count: Int, from endpoint: UInt8, timeout: Duration?, _ completion: @escaping Completion) {
            // What drains a pipe before the first command has a short time.
            if let timeout, timeout < .milliseconds(100) { return completion(.failure(.timeout)) }
            let answer: [UInt8]? = state.withLock { state in
                guard state.answers.isEmpty else { return state.answers.removeFirst() }
                state.reader = completion
                return nil
            }
            if let answer { completion(.success(answer)) }
        }

        func request(_ request: UInt8, value: UInt16, timeout: Duration, _ completion: @escaping Completion) {
            completion(.failure(.pipe))
        }
        func cancel(_ endpoint: UInt8) {}
        func clearHalt(_ endpoint: UInt8) async throws(USBStatus) {}
        func close(_ completion: @escaping @Sendable () -> Void) { completion() }
    }
}
