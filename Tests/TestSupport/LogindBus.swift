import Foundation

/// A message bus of its own with logind's stand-in of python-dbusmock.
public final class LogindBus: Sendable {
    /// Why there can be none here; nil if there can.
    public static var obstacle: String? {
        for program in ["dbus-daemon", "gdbus"] where !Program.isInstalled(program) {
            return "\(program) is not installed"
        }
        let isThere = FileManager.default.fileExists(atPath: "/usr/lib/python3/dist-packages/dbusmock")
        return isThere ? nil : "python3-dbusmock is not installed"
    }

    public let address: String
    private let daemon: Program
    private let logind: Program
    private static let name = "org.freedesktop.login1"

    public init() async throws {
        daemon = try Program([
            "dbus-daemon", "--session", "--nofork", "--print-address=1",
            "--address=unix:tmpdir=\(FileManager.default.temporaryDirectory.path)",
        ])
        // Printed once it listens.
        try await daemon.wait(for: "address") { $0.output.hasSuffix("\n") }
        address = daemon.output.trimmingCharacters(in: .newlines)
        logind = try Program(
            ["/usr/bin/python3", "-m", "dbusmock", "--system", "--template", "logind"],
            environment: ["DBUS_SYSTEM_BUS_ADDRESS": address])
        try await Self.gdbus("wait", address, ["--timeout", "60", Self.name])
    }

    /// Calls a method of logind, or of its stand-in.
    ///
    /// - Parameter path: the object's, below logind's own.
    public func call(_ path: String, _ method: String, _ arguments: String...) async throws {
        let object = ["--dest", Self.name, "--object-path", "/org/freedesktop/login1" + path]
        try await Self.gdbus("call", address, object + ["--method", method] + arguments)
    }

    private static func gdbus(_ command: String, _ address: String, _ arguments: [String]) async throws {
        try await Program.run(["gdbus", command, "--address", address] + arguments).check()
    }

    /// Tells that the machine is about to sleep, or awake again.
    public func tell(isAsleep: Bool) async throws {
        try await call(
            "", "org.freedesktop.DBus.Mock.EmitSignal", "\(Self.name).Manager", "PrepareForSleep", "b",
            "[<\(isAsleep)>]")
    }
}
