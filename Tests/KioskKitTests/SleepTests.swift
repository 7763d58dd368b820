import Foundation
import KioskKit
import KioskTestSupport
import ProximityReader
import SmartCardSimulator
import TestSupport
import Testing

/// A machine that sleeps, as logind's stand-in of python-dbusmock tells it: the application calls nothing.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: LogindBus.obstacle == nil, "\(LogindBus.obstacle ?? "")"))
@MainActor struct SleepTests {
    @Test("the session manager has the reader ready again when the machine wakes, though nobody calls it")
    func theMachineSleeps() async throws {
        let bus = try await LogindBus()
        let bench = try await KioskBench(isPrepared: false) { $0.systemBus = bus.address }
        let manager = ReaderSessionManager(
            bench.service, pause: .milliseconds(20), tokenPause: .milliseconds(20))
        manager.start()
        try await wait(for: "ready") { manager.state.isReady }
        let tokens = await bench.psp.tokens
        try await bus.tell(isAsleep: true)
        try await wait(for: "suspension") { if case .suspended = manager.state { true } else { false } }
        try bench.insert()
        #expect(
            await thrown { _ = try await bench.service.charge(amount: 1, currency: "EUR") } == "readFromBackgroundError"
        )
        try await bus.tell(isAsleep: false)
        try await wait(for: "ready") { manager.state.isReady }
        #expect(await bench.psp.tokens == tokens, "its session is still good, and costs no other token")
        #expect(try await bench.service.charge(amount: 1, currency: "EUR").status == .approved)
    }
}
