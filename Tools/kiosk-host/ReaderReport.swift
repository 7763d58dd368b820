import CardReaders
import Foundation
import SmartCard
import ToolSupport

/// Tells the service manager, and whoever started the program, what has become of the kiosk's reader.
@MainActor final class ReaderReport {
    /// Describes the reader.  Only the machine's own readers are looked for.
    private let look: @Sendable () async -> String
    private var last: String?

    /// - Parameter isVirtual: true for a kiosk with a software reader, which is always there.
    init(isVirtual: Bool) { look = isVirtual ? { "reader: virtual" } : Self.lookAtMachine }

    @Sendable private static func lookAtMachine() async -> String {
        do {
            let reader = try await Machine().reader()
            return "reader: \(reader.identity.name)"
        } catch {
            return "no reader: \(error)"
        }
    }

    /// Looks at the reader, and tells what is new.
    func update() async {
        let state = await look()
        guard state != last else { return }
        // A reader that is there from the beginning is nothing to remark.
        if last != nil || state.hasPrefix("no ") { Terminal.remark(state) }
        last = state
        ServiceManager.tellStatus(state)
    }

    /// Looks at the reader twice within the manager's patience, and tells after each look that the program works; returns
    /// without a manager that watches.
    ///
    /// A program whose main actor, or whose way to the reader, hangs no longer tells it, and is started again.
    func keepAlive() async {
        guard let patience = ServiceManager.patience else { return }
        while (try? await Task.sleep(for: patience / 2)) != nil {
            await update()
            ServiceManager.tellAlive()
        }
    }
}
