import Foundation
import KioskKit
import KioskTestSupport
import ProximityReader
import SmartCardSimulator
import TestSupport
import Testing

private let hasMock = FileManager.default.fileExists(atPath: "/usr/lib/python3/dist-packages/dbusmock")

/// A machine that sleeps, as logind's stand-in of python-dbusmock tells it: the application calls nothing.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(
        if: Program.isInstalled("dbus-daemon") && Program.isInstalled("gdbus") && hasMock,
        "python3-dbusmock is not installed"))
@MainActor struct SleepTests {
    @Test("the session manager has the reader ready again when the machine wakes, though nobody calls it")
    func theMachineSleeps() async throws {
        let socket = "/tmp/bus-\(UUID().uuidString.prefix(8))"
        defer { try? FileManager.default.removeItem(atPath: socket) }
        let daemon = try Program(["dbus-daemon", "--session", "--nofork", "--address=unix:path=\(socket)"])
        try await daemon.wait(for: "socket") { _ in FileManager.default.fileExists(atPath: socket) }
        let address = "unix:path=\(socket)"
        let logind = try Program(
            ["/usr/bin/python3", "-m", "dbusmock", "--system", "--template", "logind"],
            environment: ["DBUS_SYSTEM_BUS_ADDRESS": address])
        let waiting = try await Program.run([
            "gdbus", "wait", "--address", address, "--timeout", "60", "org.freedesktop.login1",
        ])
        #expect(waiting.status == 0, "\(waiting) \(logind.error)")
        func emit(isAsleep: Bool) async throws {
            let call = try await Program.run([
                "gdbus", "call", "--address", address, "--dest", "org.freedesktop.login1", "--object-path",
                "/org/freedesktop/login1", "--method", "org.freedesktop.DBus.Mock.EmitSignal",
                "org.freedesktop.login1.Manager", "PrepareForSleep", "b", "[<\(isAsleep)>]",
            ])
            #expect(call.status == 0, "\(call)")
        }

        let bench = try await KioskBench(isPrepared: false) { $0.systemBus = address }
        let manager = ReaderSessionManager(
            bench.service, pause: .milliseconds(20), tokenPause: .milliseconds(20))
        manager.start()
        try await wait(for: "ready") { manager.state.isReady }
        let tokens = await bench.psp.tokens
        try await emit(isAsleep: true)
        try await wait(for: "suspension") { if case .suspended = manager.state { true } else { false } }
        try bench.insert()
        #expect(
            await thrown { _ = try await bench.service.charge(amount: 1, currency: "EUR") } == "readFromBackgroundError"
        )
        try await emit(isAsleep: false)
        try await wait(for: "ready") { manager.state.isReady }
        #expect(await bench.psp.tokens == tokens, "its session is still good, and costs no other token")
        #expect(try await bench.service.charge(amount: 1, currency: "EUR").status == .approved)
    }
}
