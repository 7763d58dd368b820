import EMVContactless
import SmartCard
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing
import USBDevices
import USBTestSupport

@testable import SmartCardUSB

/// Faults of readers, simulated for the driver in this process.
@Suite(.simulatedTime) struct FaultTests {
    static let inspector = CardInspector(unpredictableNumber: [0x12, 0x34, 0x56, 0x78], date: [0x26, 0x01, 0x31])

    /// Reads a card through and through; nil if nothing was in the way.
    static func read(_ reader: USBReader) async throws -> CardError? {
        do {
            let card = try await reader.connect()
            let inspection = try await inspector.inspect(card)
            await card.disconnect(.powerOff)
            return inspection.interruption
        } catch let error as CardError {
            return error
        }
    }

    @Test func aReaderThatHangsIsResetOnce() async throws {
        let device = SoftwareACR122U(faults: [SoftwareReaderFault(.hung)])
        device.insert(try #require(VirtualCards.named("visa")))
        let bus = SoftwareUSBBus(device)
        let reader = try await firstReader(on: bus, timeLimits: .short)
        #expect(try await Self.read(reader) == nil)
        await reader.close()
        #expect(bus.inUse == (0, 0))
    }

    @Test func aReaderThatHangsAfterAResetIsGivenUp() async throws {
        let bus = SoftwareUSBBus(SoftwareACR122U(faults: [SoftwareReaderFault(.hung, 2)]))
        let reader = try await firstReader(on: bus, timeLimits: .short)
        let error = await #expect(throws: CardError.self) { try await reader.connect() }
        #expect(error?.kind == .readerTimeout && error?.description.contains("reset over USB") == true)
        #expect(error?.hint.contains("Pull the reader out") == true)
        #expect(bus.inUse == (0, 0))
        // The second reset, of the next attempt, helps: this reader has no card.
        #expect(await kind { try await reader.connect() } == .cardAbsent)
    }

    /// What its last command has done is not known, and it is not sent again.
    @Test func aReaderThatHangsInMidSessionIsResetOnce() async throws {
        let device = SoftwareACR122U()
        let card = ObservedCard(try #require(VirtualCards.named("visa")))
        device.insert(card)
        let bus = SoftwareUSBBus(device)
        let reader = try await firstReader(on: bus, timeLimits: .short)
        var states = reader.slotStates().makeAsyncIterator()
        let first = try await reader.connect()
        #expect(try await first.transmit(selectPPSE).status == .success)
        #expect(try await states.next()?.hasCard == true)

        device.faults = [SoftwareReaderFault(.hung)]
        let error = await #expect(throws: CardError.self) { try await first.transmit(selectPPSE) }
        #expect(error?.kind == .readerTimeout && error?.description.contains("was reset over USB") == true)
        #expect(error?.hint.contains("Try again") == true)
        #expect(card.exchanges.count == 1)
        #expect(await kind { try await first.transmit(selectPPSE) } == .disconnected)
        // Whoever watches is told what has happened, not only that it is over.
        let told = await #expect(throws: CardError.self) { while try await states.next() != nil {} }
        #expect(told?.description == error?.description)

        let second = try await reader.connect()
        #expect(try await second.transmit(selectPPSE).status == .success)
        #expect(card.exchanges.count == 2)
        device.faults = [SoftwareReaderFault(.hung)]
        let last = await #expect(throws: CardError.self) { try await second.transmit(selectPPSE) }
        #expect(last?.kind == .readerTimeout && last?.description.contains("hangs again") == true)
        #expect(last?.hint.contains("Pull the reader out") == true)
        #expect(bus.inUse == (0, 0))

        // Plugged in anew it is as good as any.
        device.faults = []
        bus.plug(device)
        let third = try await reader.connect()
        device.faults = [SoftwareReaderFault(.hung)]
        let again = await #expect(throws: CardError.self) { try await third.transmit(selectPPSE) }
        #expect(again?.description.contains("was reset over USB") == true)
        #expect(try await reader.connect().transmit(selectPPSE).status == .success)
        #expect(card.exchanges.count == 3)
    }

    /// The transaction fails, nothing of it is sent again, and the next one works.
    @Test(arguments: [2, 5, 8, 11]) func hungAfterSoManyAnswers(_ answers: Int) async throws {
        let device = SoftwareACR122U()
        let card = ObservedCard(try #require(VirtualCards.named("two-applications")))
        device.insert(card)
        let bus = SoftwareUSBBus(device)
        let reader = try await firstReader(on: bus, timeLimits: .short)
        #expect(try await Self.read(reader) == nil)
        let whole = card.exchanges.map(\.command)
        card.forget()

        let count = Mutex(0)
        bus.tamper = { bytes in
            let isLast = count.withLock { count in
                count += 1
                return count == answers
            }
            if isLast { device.faults = [SoftwareReaderFault(.hung)] }
            return bytes
        }
        let error = try await Self.read(reader)
        #expect(error?.kind == .readerTimeout && error?.description.contains("was reset over USB") == true)
        let part = card.exchanges.map(\.command)
        #expect(part.count < whole.count && part == Array(whole.prefix(part.count)))

        card.forget()
        #expect(try await Self.read(reader) == nil)
        #expect(card.exchanges.map(\.command) == whole)
        await reader.close()
        #expect(bus.inUse == (0, 0))
    }

    @Test func unpluggedAtEveryTransfer() async throws {
        var transfer = 1
        while true {
            let device = SoftwareACR122U(faults: [SoftwareReaderFault(.unplug, transfer)])
            device.insert(try #require(VirtualCards.named("two-applications")))
            let bus = SoftwareUSBBus(device)
            let reader = try await firstReader(on: bus)
            let error = try await Self.read(reader)
            if device.isPluggedIn {
                #expect(error == nil)
                break
            }
            // The last command of all is the power-off, whose failure is nobody's concern.
            #expect(error == nil || error?.kind == .readerGone, "transfer \(transfer): \(String(describing: error))")
            #expect(await eventually { bus.inUse == (0, 0) }, "transfer \(transfer): \(bus.inUse)")
            // The next plug-in works.
            let next = SoftwareACR122U()
            next.insert(try #require(VirtualCards.named("two-applications")))
            bus.plug(next)
            #expect(try await reader.connect().transmit(selectPPSE).status == .success, "transfer \(transfer)")
            transfer += 1
        }
        // A whole EMV read has been walked through.
        #expect(transfer > 30, "\(transfer)")
    }

    @Test func removedAtEveryAPDU() async throws {
        var apdu = 0
        while true {
            let device = SoftwareACR122U(faults: [SoftwareReaderFault(.fieldLoss, apdu)])
            device.insert(try #require(VirtualCards.named("two-applications")))
            let reader = try await firstReader(on: SoftwareUSBBus(device))
            guard let error = try await Self.read(reader) else { break }
            #expect([.cardRemoved, .noAnswer].contains(error.kind), "APDU \(apdu): \(error)")
            // The next card is read.
            device.faults = []
            device.remove()
            device.insert(try #require(VirtualCards.named("mastercard")))
            #expect(try await reader.connect().transmit(selectPPSE).status == .success, "APDU \(apdu)")
            apdu += 1
        }
        #expect(apdu > 12, "\(apdu)")
    }

    @Test(arguments: [
        (SoftwareReaderFault(.truncatedAnswers, 1), [CardError.Kind.malformedAnswer]),
        (SoftwareReaderFault(.truncatedAnswers, 1000), [.readerTimeout]),  // an empty transfer, and nothing after it
        (SoftwareReaderFault(.oversizedLength), [.malformedAnswer]),
        (SoftwareReaderFault(.oversizedLength, 262), [.malformedAnswer]),
        (SoftwareReaderFault(.garbage, 1), [.malformedAnswer]), (SoftwareReaderFault(.garbage, 7), [.malformedAnswer]),
        (SoftwareReaderFault(.emptyAnswers), [.noAnswer]), (SoftwareReaderFault(.oneByteAnswers), [.malformedAnswer]),
        (SoftwareReaderFault(.wrongSequence), [.malformedAnswer]),
    ])
    func answersThatAreNone(_ fault: SoftwareReaderFault, _ kinds: [CardError.Kind]) async throws {
        let device = SoftwareACR122U()
        device.insert(try #require(VirtualCards.named("visa")))
        let bus = SoftwareUSBBus(device)
        let reader = try await firstReader(on: bus, timeLimits: .short)
        let card = try await reader.connect()
        device.faults = [fault]
        let found = await kind { try await card.transmit(selectPPSE) }
        #expect(found.map(kinds.contains) == true, "\(String(describing: found))")
        // It was only an answer: with the reader mended everything goes on.
        device.faults = []
        #expect(try await card.transmit(selectPPSE).status == .success)
        await reader.close()
        #expect(bus.inUse == (0, 0))
    }

    @Test(arguments: [
        SoftwareReaderFault(.staleFrame), SoftwareReaderFault(.sequenceBehind), SoftwareReaderFault(.slow, 30),
        SoftwareReaderFault(.timeExtension, 3),
    ])
    func whatAReaderMayDo(_ fault: SoftwareReaderFault) async throws {
        let device = SoftwareACR122U(faults: [fault])
        device.insert(try #require(VirtualCards.named("visa")))
        let reader = try await firstReader(on: SoftwareUSBBus(device))
        let card = try await reader.connect()
        for _ in 0..<3 { #expect(try await card.transmit(selectPPSE).status == .success) }
        // More than 64 bytes on the bus
        let long = try CommandAPDU(cla: 0, ins: 0xA4, p1: 4, p2: 0, data: [UInt8](repeating: 0xA0, count: 60), ne: 256)
        let bare = try #require(VirtualCards.named("visa"))
        #expect(try await card.transmit(long).bytes == bare.exchange(long.bytes))
        #expect(try await card.transmit(selectPPSE).status == .success)
    }

    @Test func staleFramesOnOpen() async throws {
        // Somebody before us has left answers of every number, the one that we begin with among them.
        for first in stride(from: 0, to: 256, by: 8) {
            let stale = (first..<first + 8).map { number in
                bytes("80 0A 00 00 00 00") + [UInt8(number)] + bytes("02 81 00 41 43 52 31 32 32 55 32 31 36")
            }
            let device = ScriptedReader(functional: DescriptorTests.acr122u, leftovers: stale) { message in
                [ScriptedReader.answer(to: message, message[0] == 0x62 ? bytes("3B 80 80 01 01") : [0x90, 0x00])]
            }
            let card = try await firstReader(on: SoftwareUSBBus(device), timeLimits: .short).connect()
            #expect(card.atr.bytes == bytes("3B 80 80 01 01"))
            #expect(try await card.transmit(selectPPSE).bytes == [0x90, 0x00])
        }
    }

    @Test func aMuteCard() async throws {
        let device = SoftwareACR122U(faults: [SoftwareReaderFault(.muteCard)])
        device.insert(try #require(VirtualCards.named("visa")))
        let reader = try await firstReader(on: SoftwareUSBBus(device))
        #expect(await kind { try await reader.connect() } == .cardMute)
        var states = reader.slotStates().makeAsyncIterator()
        #expect(try await states.next() == .muteCard)
    }

    @Test func anATRThatIsNoneDoesNotKeepAnybodyOut() async throws {
        let device = SoftwareACR122U(faults: [SoftwareReaderFault(.brokenATR)])
        device.insert(try #require(VirtualCards.named("visa")))
        let card = try await firstReader(on: SoftwareUSBBus(device)).connect()
        #expect(!card.atr.defects.isEmpty)
        #expect(try await card.transmit(selectPPSE).status == .success)
    }

    @Test func aReaderThatSaysNothing() async throws {
        let device = ScriptedReader(functional: DescriptorTests.acr122u) { _ in [] }
        let bus = SoftwareUSBBus(device)
        let reader = try await firstReader(on: bus, timeLimits: .short)
        #expect(await kind { try await reader.connect() } == .readerTimeout)
        #expect(await eventually { bus.inUse == (0, 0) })
    }

    @Test func readersThatCannotBeOpened() async throws {
        let bus = SoftwareUSBBus(SoftwareACR122U())
        let reader = try await firstReader(on: bus)
        let refusals: [(USBError.Obstacle, CardError.Kind)] = [
            (.heldByProgram, .readerBusy), (.heldByDriver("pn533_usb"), .readerBusy), (.denied, .permissionDenied),
            (.gone, .readerGone), (.noBus, .noService), (.omitted, .noService),
        ]
        for (obstacle, kindOfError) in refusals {
            bus.refusal.withLock { $0 = USBError(obstacle, .other) }
            #expect(await kind { try await reader.connect() } == kindOfError)
            do {
                for try await _ in reader.slotStates() {}
                Issue.record("no error")
            } catch {
                #expect((error as? CardError)?.kind == kindOfError)
            }
        }
        bus.refusal.withLock { $0 = nil }
        #expect(await kind { try await reader.connect() } == .cardAbsent)
    }

    @Test func everyAnswerWithEveryByteChanged() async throws {
        // Whatever single byte of an answer is wrong, the driver gives an error or an answer, in time.
        let device = SoftwareACR122U()
        device.insert(try #require(VirtualCards.named("visa")))
        let bus = SoftwareUSBBus(device)
        var timeLimits = CCIDTimeLimits.short
        timeLimits.exchange = .milliseconds(5)
        timeLimits.powerOn = .milliseconds(5)
        timeLimits.slotStatus = .milliseconds(5)
        timeLimits.total = .milliseconds(20)
        let reader = try await firstReader(on: bus, timeLimits: timeLimits)
        for index in 0..<12 {
            for bits in [0x01, 0x02, 0x40, 0x80, 0xFF] as [UInt8] {
                bus.tamper = { bytes in
                    var bytes = bytes
                    if bytes.indices.contains(index) { bytes[index] ^= bits }
                    return bytes
                }
                if let card = try? await reader.connect() { _ = try? await card.transmit(selectPPSE) }
            }
        }
        bus.tamper = nil
        await reader.close()
        let patient = try await firstReader(on: bus)
        #expect(try await patient.connect().transmit(selectPPSE).status == .success)
    }
}
