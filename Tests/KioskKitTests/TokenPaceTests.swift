import Foundation
import KioskKit
import KioskTestSupport
import ProximityReader
import SmartCard
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing
import Waiting

/// How often a payment service is asked for tokens that are of no use.
@Suite(.simulatedTime, .timeLimit(.minutes(5))) @MainActor struct TokenPaceTests {
    @Test("a reader that is not there costs no token, however often it is looked for, and is found within two seconds")
    func unplugged() async throws {
        let place = Place()
        let bench = try await KioskBench(isPrepared: false) { $0.reader = .reader(place) }
        place.unplug()
        let manager = ReaderSessionManager(bench.service, pause: .seconds(2))
        manager.start()
        for _ in 0..<50 {
            try await Time.sleep(for: .seconds(2))
            guard case .failed = manager.state else {
                Issue.record("\(manager.state)")
                return
            }
        }
        #expect(await bench.psp.tokens == 0)
        place.plug()
        let start = Time.now
        try await wait(for: "reader") { if case .ready = manager.state { true } else { false } }
        #expect(await bench.psp.tokens == 1)
        #expect(Time.now - start <= .seconds(2))
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
            try await wait(for: "the reader") { (try? await bench.service.initialize()) != nil }
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
        let manager = ReaderSessionManager(bench.service)
        manager.start()
        try await wait(for: "tokens") { await bench.psp.tokens == 8 }
        withExtendedLifetime(manager) {}
        let fetches = await bench.psp.fetches
        for (pause, least) in zip(
            zip(fetches, fetches.dropFirst()).map { $1 - $0 }, [60, 120, 240, 480, 960, 960, 960])
        {
            #expect(pause >= .seconds(least) && pause <= .seconds(least) * 1.25)
        }
    }
}
