import Foundation
import ProximityReader
import SmartCard
import SmartCardPCSC
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing
import Waiting

/// A place on the desk: a reader is plugged in there, or none is.
private final class Desk: CardReader {
    let identity: ReaderIdentity
    private let reader = Mutex<VirtualReader?>(nil)
    /// True for a reader that is there and tells nothing of its slot.
    private let isMute = Mutex(false)

    /// - Parameter name: of every reader that is plugged in.
    init(name: String = "ACS ACR122U PICC Interface 00 00") {
        identity = ReaderIdentity(name: name, backend: .virtual)
        plugIn()
    }

    var device: SoftwareACR122U? { reader.withLock { $0?.device } }

    @discardableResult func plugIn() -> SoftwareACR122U {
        let device = SoftwareACR122U()
        reader.withLock { $0 = VirtualReader(device) }
        return device
    }

    func unplug() { device?.unplug() }

    func mute(_ isMute: Bool) { self.isMute.withLock { $0 = isMute } }

    private func present() throws -> VirtualReader {
        guard let reader = reader.withLock({ $0 }) else { throw CardError(.readerGone) }
        return reader
    }

    func slotStates() -> any AsyncSequence<SlotState, any Error> & Sendable {
        if isMute.withLock({ $0 }) {
            return AsyncThrowingStream<SlotState, any Error> { $0.finish(throwing: CardError(.readerTimeout)) }
        }
        return (try? present().slotStates()) ?? AsyncThrowingStream<SlotState, any Error> { $0.finish() }
    }

    func connect() async throws -> any CardConnection { try await present().connect() }

    func transmitToReader(_ command: [UInt8]) async throws -> [UInt8] {
        try await present().transmitToReader(command)
    }
}

@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct PluggingTests {
    /// By its chip, and as any other reader.
    private static let names = ["ACS ACR122U PICC Interface 00 00", "Another Reader 00 00"]

    @Test("no session is made with a reader that is unplugged, and one is when it is plugged in", arguments: names)
    func prepare(_ name: String) async throws {
        let desk = Desk(name: name)
        let bench = try await Bench { $0.reader = .reader(desk) }
        desk.unplug()
        let log = await EventLog(bench.reader)
        await expect("unsupported") { _ = try await bench.reader.prepare(using: bench.token()) }
        #expect(await !log.names.contains("notReady"))
        let device = desk.plugIn()
        let session = try await bench.reader.prepare(using: bench.token())
        device.insert(try #require(VirtualCards.named("visa")))
        Task { [events = bench.reader.events] in
            for await event in events { if case .removeCard = event { device.remove() } }
        }
        #expect(try await session.readPaymentCard(purchase).outcome == .success)
    }

    @Test("an unplugged virtual reader is no reader either")
    func virtualReader() async throws {
        let bench = try await Bench()
        bench.device.unplug()
        await expect("unsupported") { _ = try await bench.reader.prepare(using: bench.token()) }
    }

    @Test(
        "unplugged while nothing is read or a card is awaited, plugged in again: the session tells, and goes on",
        arguments: names, [false, true])
    func unplugged(_ name: String, _ isReading: Bool) async throws {
        let desk = Desk(name: name)
        let bench = try await Bench { $0.reader = .reader(desk) }
        let session = try await bench.reader.prepare(using: bench.token())
        for _ in 0..<2 {
            let log = await EventLog(bench.reader)
            if isReading {
                let read = Task { try await session.readPaymentCard(purchase) }
                try await log.wait(for: "readyForTap")
                desk.unplug()
                await expect("readerNotAvailable") { _ = try await read.value }
                try await log.wait(for: "userInterfaceDismissed")
                try await log.wait(for: "notReady")
                #expect(
                    await Set(log.names) == ["readyForTap", "notReady", "readNotCompleted", "userInterfaceDismissed"])
            } else {
                desk.unplug()
                try await log.wait(for: "notReady")
                await expect("readerNotAvailable") { _ = try await session.readPaymentCard(purchase) }
            }
            let device = desk.plugIn()
            let card = try #require(VirtualCards.named("visa"))
            let customer = Task { [events = bench.reader.events] in
                for await event in events {
                    switch event {
                    case .readyForTap: device.insert(card)
                    case .removeCard: device.remove()
                    default: break
                    }
                }
            }
            #expect(try await session.readPaymentCard(purchase).outcome == .success)
            customer.cancel()
        }
    }

    @Test("presence is told to everybody who asks: as it is, and each time that the reader comes or goes")
    func presence() async throws {
        let desk = Desk()
        let bench = try await Bench { $0.reader = .reader(desk) }
        // Nobody has looked for the reader before.
        var early = ProximityReaderSystem.presence(of: bench.reader).makeAsyncIterator()
        #expect(await early.next() == true)
        let session = try await bench.reader.prepare(using: bench.token())
        for _ in 0..<2 {
            desk.unplug()
            #expect(await early.next() == false)
            desk.plugIn()
            #expect(await early.next() == true)
            var late = ProximityReaderSystem.presence(of: bench.reader).makeAsyncIterator()
            #expect(await late.next() == true)
        }
        _ = session
    }

    @Test("a reader that did not answer once is looked for again", arguments: names)
    func mute(_ name: String) async throws {
        let desk = Desk(name: name)
        let bench = try await Bench { $0.reader = .reader(desk) }
        let session = try await bench.reader.prepare(using: bench.token())
        var presence = ProximityReaderSystem.presence(of: bench.reader).makeAsyncIterator()
        #expect(await presence.next() == true)
        desk.mute(true)
        await #expect(throws: PaymentCardReaderError.self) { try await bench.reader.prepare(using: bench.token()) }
        #expect(await presence.next() == false)
        desk.mute(false)
        #expect(await presence.next() == true)
        _ = session
    }

    @Test("unplugged in the moment in which it is found, a reader is not taken for one that is there")
    func unpluggedAtOnce() async throws {
        for _ in 0..<50 {
            let bench = try await Bench { $0.reader = .reader(LeavingReader(1...1)) }
            let log = await EventLog(bench.reader)
            do {
                _ = try await bench.reader.prepare(using: bench.token())
            } catch PaymentCardReaderError.unsupported {
                continue
            }
            try await log.wait(for: "notReady")
            await bench.end()
        }
    }

    @Test("a reader that leaves as soon as it is found is looked for until it stays, and then watched")
    func leaving() async throws {
        let reader = LeavingReader(2...3)
        let bench = try await Bench { $0.reader = .reader(reader) }
        let log = await EventLog(bench.reader)
        let session = try await bench.reader.prepare(using: bench.token())
        reader.leave()
        try await log.wait(for: "notReady", 3)
        // What is told when the fourth watch has begun is the fourth's.
        try await wait(for: "the fourth watch") { reader.watches >= 4 }
        reader.leave()
        try await log.wait(for: "notReady", 4)
        _ = session
        await bench.end()
    }
}

@Suite(.pcscExclusive, .timeLimit(.minutes(5))) struct PCSCSessionTests {
    @Test(
        "through pcscd: unplugged and plugged in again, the session goes on",
        .enabled(if: PrivatePCSCD.obstacle == nil, "\(PrivatePCSCD.obstacle ?? "")"))
    func pcsc() async throws {
        let process = try await VirtualReaderProcess(host: "umockdev", arguments: ["--card", "visa"])
        PCSCSocket.point(to: process.socket)
        let bench = try await Bench { $0.reader = .pcsc }
        let log = await EventLog(bench.reader)
        let session = try await bench.reader.prepare(using: bench.token())
        let customer = Task { [events = bench.reader.events] in
            for await event in events { if case .removeCard = event { try process.perform("remove") } }
        }
        /// pcscd takes a while to see a reader, and its driver gives up on one whose process waits for a processor.
        func read() async throws -> PaymentCardReadResult {
            var result: PaymentCardReadResult?
            try await wait(for: "reader") {
                do {
                    result = try await session.readPaymentCard(purchase)
                } catch let error as PaymentCardReaderSession.ReadError {
                    switch error {
                    case .readerNotAvailable, .readerInitializationFailed, .readerServiceError: return false
                    default: throw error
                    }
                }
                return true
            }
            return try #require(result)
        }
        #expect(try await read().outcome == .success)
        await log.clear()
        try process.perform("unplug")
        try await log.wait(for: "notReady")
        await expect("unsupported") { _ = try await bench.reader.prepare(using: bench.token()) }
        try process.perform("plug")
        try process.perform("insert visa")
        #expect(try await read().outcome == .success)
        customer.cancel()
        // Other tests count who talks to the service that is at this path by then.
        await bench.end()
    }
}

@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct CardsInTheFieldTests {
    @Test("two cards are asked to be one; the one that stays pays")
    func collision() async throws {
        let bench = try await Bench()
        let session = try await bench.reader.prepare(using: bench.token())
        let log = await EventLog(bench.reader)
        try bench.insert("visa")
        try bench.insert("mastercard")
        let cards = bench.device.cards
        let read = Task { try await session.readPaymentCard(purchase) }
        try await log.wait(for: "readRetry")
        #expect(await log.names == ["readyForTap", "readRetry"])
        bench.device.remove(cards[1])
        try await log.wait(for: "removeCard")
        bench.device.remove()
        #expect(try await read.value.applicationTypeIdentifier == "A0000000031010")
        try await log.wait(for: "userInterfaceDismissed")
        #expect(
            await log.names == [
                "readyForTap", "readRetry", "readyForTap", "cardDetected", "removeCard", "readCompleted",
                "userInterfaceDismissed",
            ])
    }

    @Test("a read is cancelled while there are too many cards")
    func cancelled() async throws {
        let bench = try await Bench()
        let session = try await bench.reader.prepare(using: bench.token())
        let log = await EventLog(bench.reader)
        for name in ["visa", "mastercard"] { try bench.insert(name) }
        let read = Task { try await session.readPaymentCard(purchase) }
        try await log.wait(for: "readRetry")
        #expect(try await session.cancelRead())
        await expect("readCancelled") { _ = try await read.value }
    }

    @Test(
        "a card that is left on the reader pays for nobody else, whatever came of its read",
        arguments: ["visa", "visa-decline"], [false, true])
    func left(_ card: String, _ isImmediate: Bool) async throws {
        var options = PaymentCardReader.Options()
        options.returnReadResultImmediately = isImmediate
        let bench = try await Bench(options: options)
        let session = try await bench.reader.prepare(using: bench.token())
        let log = await EventLog(bench.reader)
        try bench.insert(card)
        let first = try? await session.readPaymentCard(purchase)
        #expect((first != nil) == (card == "visa"))
        await log.clear()
        let second = Task { try await session.readPaymentCard(purchase) }
        try await log.wait(for: "removeCard")
        #expect(await !log.names.contains("readyForTap"))
        try bench.present("visa")
        #expect(try await second.value.outcome == .success)
        #expect(await log.names.firstIndex(of: "readyForTap") ?? 0 > log.names.firstIndex(of: "removeCard") ?? 0)
    }

    @Test("a card that is left on the reader is waited for, whatever reads were refused or cancelled meanwhile")
    func leftBehindOthers() async throws {
        var options = PaymentCardReader.Options()
        options.returnReadResultImmediately = true
        let bench = try await Bench(options: options) {
            $0.storeAndForward = .init(
                limits: ["EUR": .init(perPayment: 100, total: 100)], maximumCount: 1, maximumAge: .seconds(3600))
        }
        _ = try await bench.reader.prepare(using: bench.token())
        let session = try await bench.reader.prepareStoreAndForward()
        let log = await EventLog(bench.reader)
        try bench.insert("visa")
        #expect(try await session.readPaymentCard(purchase).outcome == .success)
        await expect("readerMemoryFull") { _ = try await session.readPaymentCard(purchase) }
        let online = try await bench.reader.prepare(using: bench.token())
        let cancelled = Task { try await online.readPaymentCard(purchase) }
        try await log.wait(for: "removeCard", 2)
        cancelled.cancel()
        await expect("readCancelled") { _ = try await cancelled.value }
        await log.clear()
        let last = Task { try await online.readPaymentCard(purchase) }
        try await log.wait(for: "removeCard")
        try await Time.sleep(for: .milliseconds(500))
        #expect(await !log.names.contains("readyForTap"))
        try bench.present("visa")
        #expect(try await last.value.outcome == .success)
    }

    @Test("a read returns when the card is gone, or if wanted while it is there")
    func returning() async throws {
        for isImmediate in [false, true] {
            var options = PaymentCardReader.Options()
            options.returnReadResultImmediately = isImmediate
            let bench = try await Bench(options: options)
            let session = try await bench.reader.prepare(using: bench.token())
            let log = await EventLog(bench.reader)
            try bench.insert("visa")
            let read = Task { try await session.readPaymentCard(purchase) }
            if isImmediate { _ = try await read.value }
            try await log.wait(for: "readCompleted")
            #expect(await !log.names.contains("userInterfaceDismissed"))
            bench.device.remove()
            #expect(try await read.value.outcome == .success)
            try await log.wait(for: "userInterfaceDismissed")
        }
    }

    @Test("a telephone that has to be asked first is presented twice")
    func telephone() async throws {
        let bench = try await Bench()
        let session = try await bench.reader.prepare(using: bench.token())
        let log = await EventLog(bench.reader)
        try bench.insert("phone")
        let read = Task { try await session.readPaymentCard(purchase) }
        try await log.wait(for: "readCompleted")
        bench.device.remove()
        #expect(try await read.value.outcome == .success)
        try await log.wait(for: "userInterfaceDismissed")
        #expect(
            await log.names == [
                "readyForTap", "cardDetected", "removeCard", "readRetry", "readyForTap", "cardDetected", "removeCard",
                "readCompleted", "userInterfaceDismissed",
            ])
    }

    @Test("a card that goes too early is asked for again; one that always does could not be read")
    func lost() async throws {
        let bench = try await Bench()
        let session = try await bench.reader.prepare(using: bench.token())
        let log = await EventLog(bench.reader)
        bench.device.faults = [SoftwareReaderFault(.fieldLoss, 2)]
        try bench.insert("visa")
        let read = Task { try await session.readPaymentCard(purchase) }
        try await log.wait(for: "readyForTap", 2)
        #expect(await log.names == ["readyForTap", "cardDetected", "readRetry", "readyForTap"])
        bench.device.faults = []
        bench.device.remove()
        bench.device.insert(try #require(VirtualCards.named("visa")))
        try await log.wait(for: "removeCard")
        bench.device.remove()
        #expect(try await read.value.outcome == .success)
    }

    @Test("a cancellation that comes while a card is there ends the read when that card has gone")
    func cancelledWithACard() async throws {
        let reader = HangingReader()
        let bench = try await Bench { $0.reader = .reader(reader) }
        let session = try await bench.reader.prepare(using: bench.token())
        let log = await EventLog(bench.reader)
        let read = Task { try await session.readPaymentCard(purchase) }
        try await log.wait(for: "cardDetected")
        #expect(try await session.cancelRead() == false)
        read.cancel()
        // It comes back and goes again, until the read has heard of the cancellation.
        let going = Task {
            while !Task.isCancelled {
                try await Time.sleep(for: .milliseconds(500))
                reader.end()
            }
        }
        await expect("readCancelled") { _ = try await read.value }
        going.cancel()
    }

    @Test("a card is not charged that comes when the session or its token is over")
    func late() async throws {
        for (lifetime, expected) in [(48.0 * 3600, "readerSessionExpired"), (3600, "readerTokenExpired")] {
            let bench = try await Bench()
            let session = try await bench.reader.prepare(using: bench.token(lifetime: lifetime))
            let log = await EventLog(bench.reader)
            let read = Task { try await session.readPaymentCard(purchase) }
            try await log.wait(for: "readyForTap")
            bench.passTime(24 * 3600 + 1)
            try bench.insert("visa")
            await expect(expected) { _ = try await read.value }
            try await log.wait(for: "notReady")
        }
    }

    @Test("a session tells when its time is over, though nobody reads")
    func timeIsOver() async throws {
        let bench = try await Bench { $0.clockTick = .milliseconds(10) }
        _ = try await bench.reader.prepare(using: bench.token())
        let log = await EventLog(bench.reader)
        bench.passTime(24 * 3600 + 1)
        try await log.wait(for: "notReady")
    }

    @Test("a reader that hangs with a card in it holds nobody up, and nor does one that hangs without")
    func hangs() async throws {
        let reader = HangingReader()
        let bench = try await Bench {
            $0.reader = .reader(reader)
            $0.transactionTime = .milliseconds(200)
        }
        let session = try await bench.reader.prepare(using: bench.token())
        await expect("readerServiceError") { _ = try await session.readPaymentCard(purchase) }
        // The next one is not held up by it.
        await expect("readerServiceError") { _ = try await session.readPaymentCard(purchase) }
        _ = try await bench.reader.prepare(using: bench.token())
        reader.end()
    }
}

/// Tells whoever asks that it is there; of those who watch it, it leaves some at once.
private final class LeavingReader: CardReader {
    let identity = ReaderIdentity(name: "leaves", backend: .virtual)
    private let leaving: Set<Int>
    private struct State {
        var streams = 0
        var watch: AsyncThrowingStream<SlotState, any Error>.Continuation?
    }
    private let state = Mutex(State())

    /// - Parameter leaving: the watches that it leaves at once, from 1 on.
    init(_ leaving: ClosedRange<Int>) { self.leaving = Set(leaving) }

    /// How often it has been watched: it is asked once before.
    var watches: Int { state.withLock { $0.streams / 2 } }

    func leave() { state.withLock { $0.watch }?.finish() }

    func slotStates() -> any AsyncSequence<SlotState, any Error> & Sendable {
        let (states, continuation) = AsyncThrowingStream.makeStream(of: SlotState.self)
        let leavesAtOnce = state.withLock { state in
            state.streams += 1
            guard state.streams.isMultiple(of: 2) else { return false }
            state.watch = continuation
            return leaving.contains(state.streams / 2)
        }
        if leavesAtOnce { continuation.finish() } else { continuation.yield(.empty) }
        return states
    }
    func connect() async throws -> any CardConnection { throw CardError(.readerGone) }
    func transmitToReader(_ command: [UInt8]) async throws -> [UInt8] { throw CardError(.unsupported) }
}

/// With a card that never answers, to whom waiting for it is nothing that could be cancelled.
private final class HangingReader: CardReader, CardConnection {
    let identity = ReaderIdentity(name: "hangs", backend: .virtual)
    let atr = ATR([0x3B, 0x80, 0x80, 0x01, 0x01])
    let transmissionProtocol = TransmissionProtocol.t1
    private let waiting = Mutex<[CheckedContinuation<Void, Never>]>([])

    func slotStates() -> any AsyncSequence<SlotState, any Error> & Sendable {
        AsyncThrowingStream<SlotState, any Error> { $0.yield(.card(atr, exclusivelyHeld: false)) }
    }
    func connect() async throws -> any CardConnection { self }
    func transmitToReader(_ command: [UInt8]) async throws -> [UInt8] { throw CardError(.unsupported) }
    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        await withCheckedContinuation { continuation in waiting.withLock { $0.append(continuation) } }
        throw CardError(.cardRemoved)
    }
    func reset() async throws {}
    func disconnect(_ disposition: CardDisposition) async {}

    func end() {
        let all = waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
        for continuation in all { continuation.resume() }
    }
}
