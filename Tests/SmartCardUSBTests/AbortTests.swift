import SmartCard
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing
import USBDevices
import USBTestSupport
import Waiting

@testable import SmartCardUSB

extension CCIDTimeLimits {
    /// Longer than a test may take, so that nothing ends by itself.
    fileprivate static var endless: CCIDTimeLimits {
        var timeLimits = CCIDTimeLimits()
        (timeLimits.exchange, timeLimits.escape, timeLimits.abort) = (.seconds(600), .seconds(600), .seconds(600))
        return timeLimits
    }
}

/// Abandoned commands and the commands after them (USB CCID 1.10, 5.3.1).
@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct AbortTests {
    /// A reader with a card that answers `00 B0 xx 00` by `xx 90 00` at once and `00 B1` when a test does so.
    private final class Bench: Sendable {
        let device: ScriptedReader
        let reader: USBReader
        private let messages: AsyncStream<[UInt8]>
        static let slow = bytes("00 B1 00 00 00")

        init(
            functional: [UInt8] = AbortTests.extended, vendor: UInt16 = 0x076B, product: UInt16 = 0x5022,
            knowsAbort: Bool = true, timeLimits: CCIDTimeLimits = .endless, atr: String = "3B 80 80 01 01",
            answer: @escaping ScriptedReader.Answer = { _ in [] }
        ) async throws {
            let (messages, continuation) = AsyncStream<[UInt8]>.makeStream()
            self.messages = messages
            device = ScriptedReader(
                functional: functional, vendor: vendor, product: product, knowsAbort: knowsAbort
            ) { message in
                continuation.yield(message)
                let apdu = message.dropFirst(10)
                switch message[0] {
                case 0x62: return [ScriptedReader.answer(to: message, bytes(atr))]
                case 0x6F where apdu.starts(with: [0x00, 0xB0]):
                    return [ScriptedReader.answer(to: message, [message[12], 0x90, 0x00])]
                case 0x6F, 0x6B, 0x72: return answer(message)
                default: return [ScriptedReader.answer(to: message)]
                }
            }
            reader = try await firstReader(on: SoftwareUSBBus(device), timeLimits: timeLimits)
        }

        /// The next message of a type, when it comes.
        func next(_ kind: UInt8) async throws -> [UInt8] {
            for await message in messages where message[0] == kind { return message }
            throw CancellationError()
        }

        func send(_ message: [UInt8]) { device.send(message, endpoint: 0x82) }

        /// What came from the first exchange on: bMessageType, 21 for a class request.
        var sent: [UInt8] { Array(device.traffic.compactMap(\.first).drop { $0 != 0x6F && $0 != 0x6B }) }
    }

    private static let extended = {
        var functional = DescriptorTests.acr122u
        functional.replaceSubrange(40..<44, with: bytes("40 00 04 00"))
        return functional
    }()

    private func isCancelled<R>(_ call: Task<R, any Error>) async -> Bool {
        guard case .failure(let error) = await call.result else { return false }
        return error is CancellationError
    }

    // MARK: Readers that can

    /// What a reader may still say of the command that is aborted.
    enum LastWords: CaseIterable {
        case none, failure, answer, beginning, moreTime

        func frames(_ message: [UInt8]) -> [[UInt8]] {
            let long = ScriptedReader.answer(to: message, [UInt8](repeating: 0xAA, count: 100))
            return switch self {
            case .none: []
            case .failure: [ScriptedReader.answer(to: message, status: 0x40, error: 0xFF)]
            case .answer: [Array(long.prefix(64)), Array(long.dropFirst(64))]
            case .beginning: [ScriptedReader.answer(to: message, last: 0x01, [0xAA])]
            case .moreTime: [ScriptedReader.answer(to: message, status: 0x80, error: 0x02)]
            }
        }
    }

    @Test(arguments: [AbortTests.extended, DescriptorTests.acr122u], LastWords.allCases)
    func aCancelledExchangeIsAborted(_ functional: [UInt8], _ lastWords: LastWords) async throws {
        let bench = try await Bench(functional: functional)
        let card = try await bench.reader.connectToCard()
        let call = Task { try await card.transmit(bytes: Bench.slow) }
        let command = try await bench.next(0x6F)
        call.cancel()
        #expect(await isCancelled(call))

        // The next one is there already, and waits for the abort.
        async let next = card.transmit(bytes: bytes("00 B0 07 00"))
        let abort = try await bench.next(0x72)
        for frame in lastWords.frames(command) { bench.send(frame) }
        bench.send(ScriptedReader.answer(to: abort))
        #expect(try await next == bytes("07 90 00"))

        #expect(bench.sent == [0x6F, 0x21, 0x72, 0x6F])
        #expect(abort[6] == command[6] &+ 1)
        // ABORT: wValue is bSlot and bSeq
        #expect(bench.device.requests == [[0x21, 0x01, abort[5], abort[6], 0, 0, 0, 0]])
    }

    @Test func anEscapeToo() async throws {
        let bench = try await Bench { message in
            message[0] == 0x72 ? [ScriptedReader.answer(to: message)] : []
        }
        let call = Task { try await bench.reader.escape([0x01]) }
        _ = try await bench.next(0x6B)
        call.cancel()
        #expect(await isCancelled(call))
        #expect(try await bench.reader.connectToCard().transmit(bytes: bytes("00 B0 07 00")) == bytes("07 90 00"))
        #expect(bench.sent == [0x6B, 0x21, 0x72, 0x62, 0x6F])
    }

    @Test func whoseTimeIsOverIsAborted() async throws {
        let bench = try await Bench(timeLimits: .short) { message in
            message[0] == 0x72 ? [ScriptedReader.answer(to: message)] : []
        }
        #expect(await kind { try await bench.reader.escape([0x01]) } == .readerTimeout)
        #expect(try await bench.reader.connectToCard().transmit(bytes: bytes("00 B0 07 00")) == bytes("07 90 00"))
        // 65: whether the reader answers at all.
        #expect(bench.sent == [0x6B, 0x21, 0x72, 0x65, 0x62, 0x6F])
    }

    @Test func anAbortWithoutAnswerHoldsNobodyUp() async throws {
        let bench = try await Bench(timeLimits: .short)
        let card = try await bench.reader.connectToCard()
        #expect(await kind { try await card.transmit(bytes: Bench.slow) } == .readerTimeout)
        #expect(try await card.transmit(bytes: bytes("00 B0 07 00")) == bytes("07 90 00"))
        #expect(bench.sent.starts(with: [0x6F, 0x21, 0x72]) && bench.sent.last == 0x6F)
    }

    @Test func aCommandInPartsEndsWithItsAbort() async throws {
        let bench = try await Bench { message in
            message[0] == 0x72 ? [ScriptedReader.answer(to: message)] : []
        }
        let card = try await bench.reader.connectToCard()
        let long = bytes("00 D6 00 00 00 02 58") + [UInt8](repeating: 0xAA, count: 600)
        let call = Task { try await card.transmit(bytes: long) }
        // wLevelParameter 0001, 0003: the command begins and goes on
        let first = try await bench.next(0x6F)
        #expect(first[8] == 0x01)
        bench.send(ScriptedReader.answer(to: first, last: 0x10))
        #expect(try await bench.next(0x6F)[8] == 0x03)
        call.cancel()
        #expect(await isCancelled(call))
        #expect(try await card.transmit(bytes: bytes("00 B0 07 00")) == bytes("07 90 00"))
        #expect(bench.sent == [0x6F, 0x6F, 0x21, 0x72, 0x6F])
    }

    @Test func interfacesThatTakeTurns() async throws {
        // An ACR1252
        let bench = try await Bench(vendor: 0x072F, product: 0x223B)
        let card = try await bench.reader.connectToCard()
        let call = Task { try await card.transmit(bytes: Bench.slow) }
        _ = try await bench.next(0x6F)
        call.cancel()
        #expect(await isCancelled(call))
        let abort = try await bench.next(0x72)
        async let next = card.transmit(bytes: bytes("00 B0 07 00"))
        bench.send(ScriptedReader.answer(to: abort))
        #expect(try await next == bytes("07 90 00"))
    }

    // MARK: Readers that cannot

    /// The ACR122U, which is known for it, and a reader that stalls ABORT.
    @Test(arguments: [(0x072F as UInt16, 0x2200 as UInt16, []), (0x076B, 0x5022, [0x21 as UInt8])])
    func aCancelledExchangeIsWaitedFor(_ vendor: UInt16, _ product: UInt16, _ requests: [UInt8]) async throws {
        let bench = try await Bench(vendor: vendor, product: product, knowsAbort: false)
        let card = try await bench.reader.connectToCard()
        let call = Task { try await card.transmit(bytes: Bench.slow) }
        let command = try await bench.next(0x6F)
        call.cancel()
        #expect(await isCancelled(call))
        async let next = card.transmit(bytes: bytes("00 B0 07 00"))
        // The answer is a response in two parts; both are fetched.
        bench.send(ScriptedReader.answer(to: command, last: 0x01, [0x01]))
        let second = try await bench.next(0x6F)
        #expect(second[8] == 0x10)
        bench.send(ScriptedReader.answer(to: second, last: 0x02, [0x90, 0x00]))
        #expect(try await next == bytes("07 90 00"))
        #expect(bench.sent.filter { $0 != 0x21 } == [0x6F, 0x6F, 0x6F])
        #expect(bench.device.requests.compactMap(\.first) == requests)
    }

    @Test func aLateAnswerIsNotTakenForTheNextOne() async throws {
        let bench = try await Bench(vendor: 0x072F, product: 0x2200, timeLimits: .short)
        let card = try await bench.reader.connectToCard()
        #expect(await kind { try await card.transmit(bytes: Bench.slow) } == .readerTimeout)
        let command = try await bench.next(0x6F)
        bench.send(ScriptedReader.answer(to: command, bytes("AA 90 00")))
        #expect(try await card.transmit(bytes: bytes("00 B0 07 00")) == bytes("07 90 00"))
    }

    @Test func blocksOfT1AreCounted() async throws {
        // TPDU level and T=1 alone: an exchange that is cancelled goes on, and the next one counts on from it.
        var functional = DescriptorTests.acr122u
        functional.replaceSubrange(40..<44, with: bytes("30 04 01 00"))
        let bench = try await Bench(functional: functional, atr: "3B 80 81 01 00")
        let card = try await bench.reader.connectToCard()
        let call = Task { try await card.transmit(bytes: bytes("00 B1 00 00")) }
        let first = try await bench.next(0x6F)
        #expect(Array(first.dropFirst(10)) == bytes("00 00 04 00 B1 00 00 B5"))
        call.cancel()
        #expect(await isCancelled(call))
        async let next = card.transmit(bytes: bytes("00 B1 00 00"))
        bench.send(ScriptedReader.answer(to: first, bytes("00 00 02 90 00 92")))
        let second = try await bench.next(0x6F)
        #expect(Array(second.dropFirst(10)) == bytes("00 40 04 00 B1 00 00 F5"))  // N(S) is 1
        bench.send(ScriptedReader.answer(to: second, bytes("00 40 02 90 00 D2")))
        #expect(try await next == [0x90, 0x00])
        #expect(bench.sent == [0x6F, 0x6F])
    }

    // MARK: One transfer and the other

    /// A link whose transfers end when the test says so.
    private final class HeldLink: USBLink {
        enum Transfer: Sendable {
            case write([UInt8], Completion)
            case read(Completion)
            case request(UInt16, Completion)
        }

        /// What has been begun, in order.
        let log = Mutex<[String]>([])
        let transfers: AsyncStream<Transfer>
        private let continuation: AsyncStream<Transfer>.Continuation

        init() { (transfers, continuation) = AsyncStream.makeStream() }

        func write(_ bytes: [UInt8], to endpoint: UInt8, timeout: Duration, _ completion: @escaping Completion) {
            log.withLock { $0.append("write") }
            continuation.yield(.write(bytes, completion))
        }
        func read(_ count: Int, from endpoint: UInt8, timeout: Duration?, _ completion: @escaping Completion) {
            log.withLock { $0.append("read") }
            continuation.yield(.read(completion))
        }
        func request(_ request: UInt8, value: UInt16, timeout: Duration, _ completion: @escaping Completion) {
            log.withLock { $0.append("request") }
            continuation.yield(.request(value, completion))
        }
        func cancel(_ endpoint: UInt8) {}
        func clearHalt(_ endpoint: UInt8) async throws(USBStatus) {}
        func close(_ completion: @escaping @Sendable () -> Void) { completion() }

        func write() async throws -> ([UInt8], Completion) {
            for await case .write(let bytes, let completion) in transfers { return (bytes, completion) }
            throw CancellationError()
        }
        func read() async throws -> Completion {
            for await case .read(let completion) in transfers { return completion }
            throw CancellationError()
        }
        func request() async throws -> Completion {
            for await case .request(_, let completion) in transfers { return completion }
            throw CancellationError()
        }
    }

    private func pipe(
        _ link: HeldLink, quirks: Set<ReaderQuirk> = [], deviceTurn: Turn? = nil
    ) throws -> CCIDPipe {
        let function = CCIDFunction(
            USBInterface(
                number: 0, interfaceClass: 0x0B,
                endpoints: [
                    .init(address: 0x02, attributes: 2, packetSize: 64),
                    .init(address: 0x82, attributes: 2, packetSize: 64),
                ], extra: DescriptorTests.acr122u))
        return CCIDPipe(
            link, try #require(function), quirks: quirks, timeLimits: .endless, sequence: 0,
            deviceTurn: deviceTurn)
    }

    @Test func cancelledWhileItIsBeingWritten() async throws {
        let link = HeldLink()
        let pipe = try pipe(link)
        let call = Task { try await pipe.perform(.xfrBlock([1])) }
        let (command, written) = try await link.write()
        let read = try await link.read()
        call.cancel()
        #expect(await isCancelled(call))
        // The bulk endpoint takes one message at a time, and ABORT belongs right before the next.
        async let next = pipe.perform(.xfrBlock([2]))
        link.log.withLock { $0.append("written") }
        written(.success([]))
        try await link.request()(.success([]))
        let (abort, abortWritten) = try await link.write()
        #expect(command[0] == 0x6F && abort.prefix(7) == [0x72, 0, 0, 0, 0, 0, 2])
        abortWritten(.success([]))
        // The transfer that waited for the first answer brings that to the abort.
        read(.success(ScriptedReader.answer(to: abort)))
        let (second, secondWritten) = try await link.write()
        secondWritten(.success([]))
        try await link.read()(.success(ScriptedReader.answer(to: second, [0x90, 0x00])))
        #expect(try await next.data == [0x90, 0x00])
        #expect(link.log.withLock { $0 } == ["write", "read", "written", "request", "write", "write", "read"])
    }

    @Test(arguments: [true, false])
    func answeredWhileABORTIsOnItsWay(_ isTaken: Bool) async throws {
        let link = HeldLink()
        let pipe = try pipe(link)
        let call = Task { try await pipe.perform(.xfrBlock([1])) }
        let (command, written) = try await link.write()
        written(.success([]))
        let read = try await link.read()
        call.cancel()
        let request = try await link.request()
        read(.success(ScriptedReader.answer(to: command, [0xAA])))
        async let next = pipe.perform(.xfrBlock([2]))
        request(isTaken ? .success([]) : .failure(.pipe))
        if isTaken {
            // A reader that has taken ABORT fails everything until Abort comes.
            let (abort, written) = try await link.write()
            #expect(abort[0] == 0x72)
            written(.success([]))
            try await link.read()(.success(ScriptedReader.answer(to: abort)))
        }
        let (second, secondWritten) = try await link.write()
        #expect(second[0] == 0x6F)
        secondWritten(.success([]))
        try await link.read()(.success(ScriptedReader.answer(to: second, [0x90, 0x00])))
        #expect(try await next.data == [0x90, 0x00])
    }

    @Test func theOtherInterfaceWaitsForACancelledCommand() async throws {
        let (links, turn) = ([HeldLink(), HeldLink()], Turn())
        let pipes = try links.map { try pipe($0, quirks: [.noAbort], deviceTurn: turn) }
        let call = Task { try await pipes[0].perform(.xfrBlock([1])) }
        let (command, written) = try await links[0].write()
        written(.success([]))
        let read = try await links[0].read()
        let isOver = Mutex(false)
        let other = Task {
            let (command, written) = try await links[1].write()
            #expect(isOver.withLock { $0 })
            written(.success([]))
            try await links[1].read()(.success(ScriptedReader.answer(to: command, [0xBB])))
        }
        async let answer = pipes[1].perform(.xfrBlock([2]))
        call.cancel()
        #expect(await isCancelled(call))
        isOver.withLock { $0 = true }
        read(.success(ScriptedReader.answer(to: command, [0xAA])))
        #expect(try await answer.data == [0xBB])
        try await other.value
    }

    @Test func anAnswerOverlapsItsCommand() async throws {
        // The end of a write may be told after the answer has come; the next message waits for it.
        let link = HeldLink()
        let pipe = try pipe(link)
        async let first = pipe.perform(.xfrBlock([1]))
        let (command, written) = try await link.write()
        try await link.read()(.success(ScriptedReader.answer(to: command, [0xAA])))
        #expect(try await first.data == [0xAA])
        async let second = pipe.perform(.xfrBlock([2]))
        written(.success([]))
        let (next, nextWritten) = try await link.write()
        nextWritten(.success([]))
        try await link.read()(.success(ScriptedReader.answer(to: next, [0xBB])))
        #expect(try await second.data == [0xBB])
    }
}
