import Foundation
import KioskKit
import ProximityReader
import SmartCardSimulator
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
