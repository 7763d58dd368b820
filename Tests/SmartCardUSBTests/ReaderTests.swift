import SmartCard
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing
import USBDevices
import USBTestSupport
import Waiting

@testable import SmartCardUSB

let selectPPSE = CommandAPDU.select(Array("2PAY.SYS.DDF01".utf8))

/// Returns the kind of the ``CardError`` that `body` throws; nil if it throws none.
func kind<R>(of body: () async throws -> R) async -> CardError.Kind? {
    do { _ = try await body() } catch { return (error as? CardError)?.kind }
    return nil
}

/// Waits until it is true.
func eventually(_ isTrue: () -> Bool) async -> Bool {
    do { try await wait(for: "it", until: isTrue) } catch { return false }
    return true
}

extension CCIDTimeLimits {
    /// For readers that do not answer.
    static var short: CCIDTimeLimits {
        var timeLimits = CCIDTimeLimits()
        timeLimits.exchange = .seconds(1)
        timeLimits.slotStatus = .seconds(1)
        timeLimits.powerOn = .seconds(1)
        timeLimits.escape = .seconds(1)
        timeLimits.abort = .seconds(1)
        timeLimits.drain = .milliseconds(20)
        timeLimits.resynchronization = .milliseconds(300)
        timeLimits.slowResynchronization = .milliseconds(300)
        return timeLimits
    }
}

func firstReader(on bus: SoftwareUSBBus, timeLimits: CCIDTimeLimits = CCIDTimeLimits()) async throws -> USBReader {
    try #require(try await USBReaders(on: bus, timeLimits: timeLimits).readers().first)
}

/// The driver over software readers in this process.
@Suite(.simulatedTime) struct ReaderTests {
    // MARK: Time

    /// From the command's way to libusb to its answer: the task sees that a second after the command, and may have waited for
    /// its turn.
    @Test func theTimeOfAnExchange() async throws {
        let host = HeldUpHost()
        let device = SoftwareACR122U()
        let visa = try #require(VirtualCards.named("visa"))
        device.insert(LateCard(visa, instruction: 0xA4, takes: 100) { host.holdUp(for: 1000) })
        let reader = try await firstReader(on: SoftwareUSBBus(device))
        let card = try await reader.connect()
        func exchange() async throws -> (stopwatch: Duration, around: Duration) {
            let stopwatch = ExchangeStopwatch()
            let start = Time.now
            _ = try await stopwatch.time { try await card.transmit(selectPPSE) }
            return (stopwatch.elapsed, Time.now - start)
        }
        let times = try await withTaskExecutorPreference(host) {
            async let first = exchange()
            async let second = exchange()
            return try await [first, second]
        }
        #expect(times.map(\.around) == [.seconds(1), .seconds(2)])
        #expect(times.map(\.stopwatch) == [.milliseconds(100), .milliseconds(100)])
        // Nor has what is addressed to the reader itself.
        let stopwatch = ExchangeStopwatch()
        _ = try await stopwatch.time { try await reader.transmitToReader(bytes("FF 00 40 0E 04 01 00 02 00")) }
        #expect(stopwatch.elapsed == .milliseconds(200))
        await reader.close()
    }

    // MARK: Sharing and life time

    @Test func readersOfOneNameShareAClaim() async throws {
        let bus = SoftwareUSBBus(SoftwareACR122U())
        let readers = USBReaders(on: bus)
        let (one, two) = (
            try #require(try await readers.readers().first), try #require(try await readers.readers().first)
        )
        async let first = one.transmitToReader(bytes("FF 00 48 00 00"))
        async let second = two.transmitToReader(bytes("FF 00 48 00 00"))
        #expect(try await first == second)
        #expect(bus.inUse.links == 1)
        await one.close()
        #expect(bus.inUse == (0, 0))
        // The claim is gone for both; the next call makes a new one.
        #expect(try await two.transmitToReader(bytes("FF 00 48 00 00")).count == 10)
        await two.close()
        #expect(bus.inUse == (0, 0))
    }

    @Test func closingWaitsForAnOpening() async throws {
        let (questions, continuation) = AsyncStream<[UInt8]>.makeStream()
        let device = ScriptedReader(functional: DescriptorTests.acr122u) { message in
            continuation.yield(message)
            return []
        }
        let bus = SoftwareUSBBus(device)
        var timeLimits = CCIDTimeLimits()
        timeLimits.resynchronization = .seconds(600)
        let readers = USBReaders(on: bus, timeLimits: timeLimits)
        let one = try #require(try await readers.readers().first)
        async let opening = kind { try await one.connect() }
        for await question in questions {
            async let closing: Void = one.close()
            device.send(ScriptedReader.answer(to: question), endpoint: 0x82)
            await closing
            break
        }
        #expect(bus.inUse == (0, 0))
        #expect(await opening != nil)
    }

    /// Nobody waits for the opening any more; closing does.
    @Test func closingWaitsForAnOpeningThatWasCancelled() async throws {
        let (questions, continuation) = AsyncStream<[UInt8]>.makeStream()
        let device = ScriptedReader(functional: DescriptorTests.acr122u) { message in
            continuation.yield(message)
            return []
        }
        let bus = SoftwareUSBBus(device)
        var timeLimits = CCIDTimeLimits()
        timeLimits.resynchronization = .seconds(600)
        let one = try #require(try await USBReaders(on: bus, timeLimits: timeLimits).readers().first)
        let opening = Task { try await one.connect() }
        for await question in questions {
            opening.cancel()
            await #expect(throws: CancellationError.self) { try await opening.value }
            #expect(bus.inUse.links == 1)
            async let closing: Void = one.close()
            device.send(ScriptedReader.answer(to: question), endpoint: 0x82)
            await closing
            break
        }
        #expect(bus.inUse == (0, 0))
    }

    @Test func whatIsLetGoIsGivenBack() async throws {
        let device = SoftwareACR122U()
        device.insert(try #require(VirtualCards.named("visa")))
        let bus = SoftwareUSBBus(device)
        do {
            let card = try await firstReader(on: bus).connect()
            // The reader has been let go; the card keeps the claim.
            #expect(try await card.transmit(selectPPSE).status == .success)
            #expect(bus.inUse.links == 1)
        }
        #expect(await eventually { bus.inUse == (0, 0) })
        do {
            let states = try await firstReader(on: bus).slotStates()
            for try await state in states where state.hasCard { break }
        }
        #expect(await eventually { bus.inUse == (0, 0) })
    }

    /// The reader is open already and let go at once: the stream alone keeps the claim, and gives it back.
    @Test func aStreamKeepsTheClaimHoweverSoonItBegins() async throws {
        let bus = SoftwareUSBBus(SoftwareACR122U())
        func states() async throws -> any AsyncSequence<SlotState, any Error> & Sendable {
            let reader = try await firstReader(on: bus)
            _ = try await reader.transmitToReader(bytes("FF 00 48 00 00"))
            return reader.slotStates()
        }
        for _ in 0..<50 {
            do {
                var iterator = try await states().makeAsyncIterator()
                #expect(try await iterator.next() == .empty)
                #expect(bus.inUse.links == 1)
            }
            #expect(await eventually { bus.inUse == (0, 0) })
        }
    }

    @Test func aReaderIsOpenedAnewAfterItWasPluggedInAgain() async throws {
        let bus = SoftwareUSBBus()
        let first = SoftwareACR122U()
        bus.plug(first)
        let reader = try await firstReader(on: bus)
        _ = try await reader.transmitToReader(bytes("FF 00 48 00 00"))
        first.unplug()
        bus.unplug()
        #expect(await kind { try await reader.transmitToReader(bytes("FF 00 48 00 00")) } == .readerGone)
        #expect(await eventually { bus.inUse == (0, 0) })
        bus.plug(SoftwareACR122U())
        #expect(try await reader.transmitToReader(bytes("FF 00 48 00 00")).count == 10)
    }

    @Test func openedByIdentity() async throws {
        let readers = USBReaders(on: SoftwareUSBBus(SoftwareACR122U()))
        let id = try #require(USBReaderID("072F:2200@1-2#0"))
        let reader = try await readers.reader(id)
        #expect(reader.id == id)
        #expect(reader.identity.name == "ACS ACR122U PICC Interface 072F:2200@1-2#0")
        #expect(reader.identity.backend == .usb && reader.identity.vendor == "ACS")
        let other = try #require(USBReaderID("072F:2200@1-3#0"))
        #expect(await kind { try await readers.reader(other) } == .readerGone)
    }

    @Test func readersOfOneModelHaveTheirPlaces() async throws {
        let bus = SoftwareUSBBus()
        bus.plug(SoftwareACR122U(), port: 2)
        bus.plug(SoftwareACR122U(), port: 4) { $0.ports = [1, 4] }
        #expect(Set(try await USBReaders(on: bus).readers().map(\.place)) == ["1-2", "1-1.4"])
    }

    /// An ACR1252U: one product, two interfaces (libccid's readers/ACR1252_Dual_Reader.txt).
    @Test func aSerialNumberOfTwoReadersIdentifiesNeither() async throws {
        let bus = SoftwareUSBBus()
        for port: UInt8 in [2, 3] {
            let reader = ScriptedReader(functional: DescriptorTests.acr122u, serialNumber: "2016") {
                [ScriptedReader.answer(to: $0)]
            }
            bus.plug(reader, port: port)
        }
        let readers = try await USBReaders(on: bus).readers()
        #expect(readers.map(\.id.place) == [.port(bus: 1, ports: [2]), .port(bus: 1, ports: [3])])
    }

    @Test func interfacesHaveTheirNames() async throws {
        let bus = SoftwareUSBBus()
        bus.plug(SoftwareACR122U()) { device in
            device.product = "ACR1252 Dual Reader"
            var sam = device.interfaces[0]
            sam.number = 1
            device.interfaces[0].name = "ACR1252 Dual-Reader PICC"
            sam.name = "ACR1252 Dual-Reader SAM"
            device.interfaces.append(sam)
        }
        #expect(
            try await USBReaders(on: bus).readers().map(\.identity.name) == [
                "ACS ACR1252 Dual Reader [ACR1252 Dual-Reader PICC] 072F:2200@1-2#0",
                "ACS ACR1252 Dual Reader [ACR1252 Dual-Reader SAM] 072F:2200@1-2:1#0",
            ])
    }

    /// A card that asks for three times its waiting time, and takes it (ISO/IEC 7816-3, 11.4.3).
    @Test func aWaitingTimeExtensionIsWaitedFor() async throws {
        var functional = DescriptorTests.acr122u
        functional.replaceSubrange(40..<44, with: bytes("30 04 01 00"))  // TPDU level, automatic IFSD
        let slow = Mutex<ScriptedReader?>(nil)
        let device = ScriptedReader(functional: functional) { message in
            switch message[0] {
            case 0x62: return [ScriptedReader.answer(to: message, bytes("3B 80 81 21 05 00"))]  // BWI 0, CWI 5
            case 0x6F where message[11] == 0xE3:
                // bBWI is the factor.  The exchange of this test's driver has a second.
                #expect(message[7] == 3)
                let device = slow.withLock { $0 }
                Task {
                    try? await Time.sleep(for: .milliseconds(1900))
                    device?.send(ScriptedReader.answer(to: message, bytes("00 00 02 90 00 92")), endpoint: 0x82)
                }
                return []
            case 0x6F: return [ScriptedReader.answer(to: message, bytes("00 C3 01 03 C1"))]
            default: return [ScriptedReader.answer(to: message)]
            }
        }
        slow.withLock { $0 = device }
        defer { slow.withLock { $0 = nil } }  // They hold each other.
        let card = try await firstReader(on: SoftwareUSBBus(device), timeLimits: .short).connect()
        #expect(try await card.transmit(CommandAPDU(bytes("00 A4 00 0C 02 3F 00"))).status == .success)
    }

    /// A block waiting time beyond the driver's limit of an exchange (ISO/IEC 7816-3, 11.4.3: BWI 4 is 1.4 s at 4 MHz).
    @Test func aCardHasItsBlockWaitingTime() async throws {
        var functional = DescriptorTests.acr122u
        functional.replaceSubrange(40..<44, with: bytes("30 04 01 00"))  // TPDU level, automatic IFSD
        let slow = Mutex<ScriptedReader?>(nil)
        let device = ScriptedReader(functional: functional) { message in
            switch message[0] {
            case 0x62: return [ScriptedReader.answer(to: message, bytes("3B 80 81 21 45 00"))]  // BWI 4, CWI 5
            case 0x6F:
                let device = slow.withLock { $0 }
                Task {
                    try? await Time.sleep(for: .milliseconds(600))
                    device?.send(ScriptedReader.answer(to: message, bytes("00 00 02 90 00 92")), endpoint: 0x82)
                }
                return []
            default: return [ScriptedReader.answer(to: message)]
            }
        }
        slow.withLock { $0 = device }
        defer { slow.withLock { $0 = nil } }  // They hold each other.
        var timeLimits = CCIDTimeLimits.short
        timeLimits.exchange = .milliseconds(200)
        let card = try await firstReader(on: SoftwareUSBBus(device), timeLimits: timeLimits).connect()
        #expect(try await card.transmit(CommandAPDU(bytes("00 A4 00 0C 02 3F 00"))).status == .success)
    }

    @Test func readersComeAndGo() async throws {
        let bus = SoftwareUSBBus()
        bus.plug(SoftwareACR122U())
        var events = USBReaders(on: bus).events().makeAsyncIterator()
        func next() async throws -> String {
            switch try await events.next() {
            case .attached(let reader): "+\(reader.id)"
            case .detached(let reader): "-\(reader.id)"
            case nil: "end"
            }
        }
        #expect(try await next() == "+072F:2200@1-2#0")
        bus.plug(SoftwareACR122U(), port: 4)
        #expect(try await next() == "+072F:2200@1-4#0")
        bus.unplug(port: 2)
        #expect(try await next() == "-072F:2200@1-2#0")
    }

    @Test func aNewConnectionEndsTheOneBefore() async throws {
        let device = SoftwareACR122U()
        device.insert(try #require(VirtualCards.named("visa")))
        let reader = try await firstReader(on: SoftwareUSBBus(device))
        let first = try await reader.connect()
        let second = try await reader.connect()
        #expect(await kind { try await first.transmit(selectPPSE) } == .cardReset)
        #expect(try await second.transmit(selectPPSE).status == .success)
    }

    // MARK: What readers do, and what goes over the bus

    @Test func anACR122UIsOpenedInThisOrder() async throws {
        let log = Mutex<[[UInt8]]>([])
        let device = ScriptedReader(
            functional: DescriptorTests.acr122u, vendor: 0x072F, product: 0x2200, hasInterrupt: true
        ) { message in
            log.withLock { $0.append(message) }
            // Visa's ATS in the ACR122U's manner
            let atr = bytes("3B 8B 80 01 0B 78 80 70 02 20 63 CB B6 80 0F 8D")
            return [ScriptedReader.answer(to: message, message[0] == 0x62 ? atr : [0x90, 0x00])]
        }
        let reader = try await firstReader(on: SoftwareUSBBus(device))
        let card = try await reader.connect()
        _ = try await card.transmit(CommandAPDU(bytes("00 B0 00 00 01")))
        await card.disconnect(.powerOff)
        let sent = log.withLock { $0 }
        #expect(sent.map(\.first) == [0x65, 0x62, 0x6F, 0x63])
        // bSeq goes up by one each time, from anywhere.
        let first = sent.first?[6] ?? 0
        #expect(sent.map { $0[6] } == (0..<4).map { first &+ $0 })
        #expect(sent[1] == bytes("62 00 00 00 00 00") + [first &+ 1] + bytes("00 00 00"))
        #expect(device.requests.isEmpty)
    }

    @Test func theWholeOfT1OverAReaderThatPassesBlocksOn() async throws {
        var functional = DescriptorTests.acr122u
        functional.replaceSubrange(40..<44, with: bytes("30 00 01 00"))  // TPDU level
        let log = Mutex<[[UInt8]]>([])
        let device = ScriptedReader(functional: functional) { message in
            log.withLock { $0.append(message) }
            switch message[0] {
            case 0x62:
                // Voltages from the lowest on; the card works at 3 V.
                return [
                    message[7] == 2
                        ? ScriptedReader.answer(to: message, bytes("3B 80 81 01 00"))
                        : ScriptedReader.answer(to: message, status: 0x41, error: 0xFE)
                ]
            case 0x6F where message[11] == 0xC1:
                return [ScriptedReader.answer(to: message, bytes("00 E1 01 FE 1E"))]
            case 0x6F:
                return [ScriptedReader.answer(to: message, bytes("00 00 02 90 00 92"))]
            default: return [ScriptedReader.answer(to: message)]
            }
        }
        let reader = try await firstReader(on: SoftwareUSBBus(device))
        let card = try await reader.connect()
        #expect(card.transmissionProtocol == .t1)
        #expect(try await card.transmit(CommandAPDU(bytes("00 A4 00 0C 02 3F 00"))).status == .success)
        let expected = [
            "65 00 00 00 00 00", "62 00 00 00 00 00 03 00 00", "62 00 00 00 00 00 02 00 00",
            "61 07 00 00 00 00 01 00 00 11 10 00 4D 00 20 00",  // libccid's bytes, too
            "6F 05 00 00 00 00 00 00 00 00 C1 01 FE 3E",
            "6F 0B 00 00 00 00 00 00 00 00 00 07 00 A4 00 0C 02 3F 00 92",
        ]
        let sent = log.withLock { $0 }.enumerated().map { index, message in
            (message.prefix(6) + (index == 0 ? [] : Array(message.dropFirst(7)))).hex(separator: " ")
        }
        #expect(sent == expected)
    }

    @Test func aReaderWithoutInterruptEndpointIsAsked() async throws {
        let isThere = Mutex(false)
        let device = ScriptedReader(functional: DescriptorTests.acr122u) { message in
            let isThere = isThere.withLock { $0 }
            let status: UInt8 = isThere ? (message[0] == 0x62 ? 0x00 : 0x01) : 0x02
            return [
                ScriptedReader.answer(to: message, status: status, message[0] == 0x62 ? bytes("3B 80 80 01 01") : [])
            ]
        }
        let reader = try await firstReader(on: SoftwareUSBBus(device))
        var states = reader.slotStates().makeAsyncIterator()
        #expect(try await states.next() == .empty)
        isThere.withLock { $0 = true }
        let start = Time.now
        #expect(try await states.next()?.hasCard == true)
        #expect(Time.now - start == CCIDSlot.pollingInterval)
        isThere.withLock { $0 = false }
        #expect(try await states.next() == .empty)
    }

    @Test func slotsAreApart() async throws {
        var functional = DescriptorTests.acr122u
        functional[4] = 2  // three slots, as an ACR1281U
        let device = ScriptedReader(functional: functional) { message in
            [
                message[0] == 0x62
                    ? message[5] == 1
                        ? ScriptedReader.answer(to: message, bytes("3B 80 80 01 01"))
                        : ScriptedReader.answer(to: message, status: 0x42, error: 0xFE)
                    : ScriptedReader.answer(to: message, [message[5], 0x90, 0x00])
            ]
        }
        let bus = SoftwareUSBBus(device)
        let readers = try await USBReaders(on: bus).readers()
        #expect(readers.map(\.id.slot) == [0, 1, 2])
        #expect(await kind { try await readers[0].connect() } == .cardAbsent)
        let card = try await readers[1].connect()
        #expect(try await card.transmit(CommandAPDU(bytes("00 B0 00 00"))).data == [1])
        #expect(bus.inUse.links == 1)
    }

    @Test func escapeAndItsRefusal() async throws {
        let device = ScriptedReader(functional: DescriptorTests.acr122u) { message in
            guard message[0] == 0x6B else { return [ScriptedReader.answer(to: message, status: 0x02)] }
            // libnfc#201: Touchatag
            return [
                message[10] == 0xE0
                    ? ScriptedReader.answer(to: message, status: 0x02, bytes("E1 00 00 00 01 00"))
                    : ScriptedReader.answer(to: message, status: 0x41, error: 0x05)
            ]
        }
        let reader = try await firstReader(on: SoftwareUSBBus(device))
        #expect(try await reader.transmitToReader(bytes("E0 00 00 18 00")) == bytes("E1 00 00 00 01 00"))
        #expect(await kind { try await reader.escape([0x01]) } == .unsupported)
    }
}
