import Foundation
import KioskKit
import KioskTestSupport
import ProximityReader
import SmartCard
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing

/// How often a payment service is asked for tokens that are of no use.
@Suite(.timeLimit(.minutes(5))) @MainActor struct TokenPaceTests {
    /// Lets so many pauses begin, and no more.
    private func clock(ending after: Int) -> (StoppedClock, AsyncStream<Void>) {
        let (done, continuation) = AsyncStream.makeStream(of: Void.self)
        let count = Counter()
        let clock = StoppedClock {
            guard await count.next() >= after else { return }
            continuation.finish()
            try? await Task.sleep(for: .seconds(600))
        }
        return (clock, done)
    }

    private actor Counter {
        private var count = 0
        func next() -> Int {
            count += 1
            return count
        }
    }

    @Test("a reader that is not there costs no token, however often it is looked for")
    func unplugged() async throws {
        let bench = try await KioskBench(isPrepared: false)
        bench.device.unplug()
        let (clock, done) = clock(ending: 50)
        let manager = ReaderSessionManager(bench.service, clock: clock)
        manager.start()
        for await _ in done {}
        #expect(await bench.psp.tokens == 0)
        #expect(clock.pauses.allSatisfy { $0 == .seconds(2) })
    }

    /// A place for readers: the one that is plugged in last is there.
    private final class Place: CardReader {
        private struct Plugged {
            let device = SoftwareACR122U()
            let reader: VirtualReader
            init() { reader = VirtualReader(device) }
        }
        private let plugged = Mutex(Plugged())
        private var reader: VirtualReader { plugged.withLock { $0.reader } }
        func unplug() { plugged.withLock { $0.device }.unplug() }
        func plug() { plugged.withLock { $0 = Plugged() } }
        var identity: ReaderIdentity { reader.identity }
        func slotStates() -> any AsyncSequence<SlotState, any Error> & Sendable { reader.slotStates() }
        func connect() async throws -> any CardConnection { try await reader.connect() }
        func transmitToReader(_ command: [UInt8]) async throws -> [UInt8] { try await reader.transmitToReader(command) }
    }

    @Test("a reader that comes and goes costs no other token while the session is good, and one when it is over")
    func returning() async throws {
        let place = Place()
        let bench = try await KioskBench(isPrepared: false) { $0.reader = .reader(place) }
        await bench.psp.setTokenLifetime(3600)
        try await bench.service.initialize()
        for _ in 0..<10 {
            let events = bench.reader.events
            place.unplug()
            for await event in events { if case .notReady = event { break } }
            place.plug()
            // The look for the one before may still be under way.
            while (try? await bench.service.initialize()) == nil { await Task.yield() }
        }
        #expect(await bench.psp.tokens == 1)
        bench.passTime(3601)
        try await bench.service.initialize()
        #expect(await bench.psp.tokens == 2)
    }

    @Test("a payment service that is deaf to the end of its time keeps no reader preparing")
    func deaf() async throws {
        let bench = try await KioskBench(isPrepared: false)
        await bench.psp.holdTokens()
        let isLetGo = Mutex(false)
        let fetch = Task { [psp = bench.psp] in
            defer { isLetGo.withLock { $0 = true } }
            return try await psp.fetchReaderToken(within: .milliseconds(10))
        }
        try await wait(for: "end of its time") { isLetGo.withLock { $0 } }
        await bench.psp.release()
        await #expect(throws: PaymentServiceError.self) { _ = try await fetch.value }
    }

    @Test("a token that is of no use is followed by another after a minute, and after more each time")
    func useless() async throws {
        let bench = try await KioskBench(isPrepared: false)
        await bench.psp.setTokenLifetime(-1)
        let (clock, done) = clock(ending: 7)
        let manager = ReaderSessionManager(bench.service, clock: clock)
        manager.start()
        for await _ in done {}
        #expect(await bench.psp.tokens == 7)
        for (pause, least) in zip(clock.pauses, [60, 120, 240, 480, 960, 960, 960]) {
            #expect(pause >= .seconds(least) && pause <= .seconds(least) * 1.25)
        }
    }
}
