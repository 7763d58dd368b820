import Foundation
import ProximityReader
import TestSupport
import Testing

private let hasMock = FileManager.default.fileExists(atPath: "/usr/lib/python3/dist-packages/dbusmock")

/// What happens when the machine sleeps, as logind's stand-in of python-dbusmock tells it on a bus of its own.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(
        if: Program.isInstalled("dbus-daemon") && Program.isInstalled("gdbus") && hasMock,
        "python3-dbusmock is not installed"))
struct SleepTests {
    @Test("while the machine sleeps nothing is read; when it wakes the session goes on")
    func theMachineSleeps() async throws {
        let bus = try await Bus()
        let bench = try await Bench { $0.systemBus = bus.address }
        let log = await EventLog(bench.reader)
        let session = try await bench.reader.prepare(using: bench.token())
        let read = Task { try await session.readPaymentCard(purchase) }
        try await log.wait(for: "readyForTap")

        // Until the terminal listens.
        while await !log.names.contains("notReady") { try await bus.emit(isAsleep: true) }
        await expect("readFromBackgroundError") { _ = try await read.value }
        await expect("readFromBackgroundError") { _ = try await session.readPaymentCard(purchase) }
        await expect("backgroundRequestNotAllowed") { _ = try await bench.reader.prepare(using: bench.token()) }

        try await bus.emit(isAsleep: false)
        try bench.insert("visa")
        // The signal takes its way.
        var result: PaymentCardReadResult?
        try await wait(for: "end of the sleep") {
            do {
                result = try await session.readPaymentCard(purchase)
            } catch PaymentCardReaderSession.ReadError.readFromBackgroundError {}
            return result != nil
        }
        #expect(result?.outcome == .success)
    }

    /// A message bus with logind's stand-in.
    private final class Bus {
        let address: String
        private let socket: String
        private let daemon: Program
        private let logind: Program

        init() async throws {
            socket = "/tmp/bus-\(UUID().uuidString.prefix(8))"
            daemon = try Program(["dbus-daemon", "--session", "--nofork", "--address=unix:path=\(socket)"])
            try await daemon.wait(for: "socket") { [socket] _ in FileManager.default.fileExists(atPath: socket) }
            address = "unix:path=\(socket)"
            logind = try Program(
                ["/usr/bin/python3", "-m", "dbusmock", "--system", "--template", "logind"],
                environment: ["DBUS_SYSTEM_BUS_ADDRESS": address])
            let wait = try await Program.run([
                "gdbus", "wait", "--address", address, "--timeout", "60", "org.freedesktop.login1",
            ])
            #expect(wait.status == 0, "\(wait) \(logind.error)")
        }

        deinit { try? FileManager.default.removeItem(atPath: socket) }

        func emit(isAsleep: Bool) async throws {
            let call = try await Program.run([
                "gdbus", "call", "--address", address, "--dest", "org.freedesktop.login1", "--object-path",
                "/org/freedesktop/login1", "--method", "org.freedesktop.DBus.Mock.EmitSignal",
                "org.freedesktop.login1.Manager", "PrepareForSleep", "b", "[<\(isAsleep)>]",
            ])
            #expect(call.status == 0, "\(call)")
        }
    }
}
