import Foundation
import Synchronization
import ToolSupport

/// Chromium in kiosk mode, with a profile that exists as long as it runs.
final class Browser: Sendable {
    /// The one that runs, for a signal that ends this program.
    private static let running = Mutex<Browser?>(nil)

    /// Ends the browser, if there is one.
    static func close() { running.withLock { $0 }?.close() }

    private let process = Process()
    private let profile = FileManager.default.temporaryDirectory.appending(path: "kiosk-host-\(UUID().uuidString)")

    /// Switches that leave the customer nothing but the page.
    private static let switches = [
        "--kiosk", "--incognito", "--no-first-run", "--noerrdialogs", "--disable-pinch",
        "--overscroll-history-navigation=0", "--disable-translate", "--disable-features=Translate",
        "--disable-component-update", "--disable-background-networking", "--disable-sync", "--password-store=basic",
    ]

    /// Starts the browser.
    ///
    /// - Parameters:
    ///   - address: the page.
    ///   - arguments: further ones.
    ///   - ended: is called when it has ended: true if it was in use, false if it could not begin.
    init(_ address: URL, _ arguments: [String], ended: @escaping @Sendable (Bool) -> Void) throws {
        let names = ["chromium", "chromium-browser", "google-chrome"]
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin").split(separator: ":")
        let files = names.flatMap { name in folders.map { URL(filePath: "\($0)/\(name)") } }
        guard let executable = files.first(where: { FileManager.default.isExecutableFile(atPath: $0.path) }) else {
            throw ToolError.usage("no browser", "Install one: apt install chromium.")
        }
        try FileManager.default.createDirectory(
            at: profile, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        process.executableURL = executable
        process.arguments =
            Self.switches + arguments + ["--user-data-dir=\(profile.path)", "--app=\(address.absoluteString)"]
        process.standardInput = FileHandle.nullDevice
        let start = ContinuousClock.now
        process.terminationHandler = { process in
            ended(process.terminationStatus == 0 || ContinuousClock.now - start > .seconds(10))
        }
        do { try process.run() } catch {
            throw ToolError.usage("\(executable.path) cannot be run", "Check that it starts on this screen.")
        }
        Self.running.withLock { $0 = self }
    }

    /// Ends the browser within some seconds, and removes its profile.
    private func close() {
        process.terminationHandler = nil
        process.terminate()
        // A thread of Dispatch blocks signals, and what it starts inherits that.
        for _ in 0..<40 where process.isRunning { usleep(50_000) }
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
        try? FileManager.default.removeItem(at: profile)
    }
}
