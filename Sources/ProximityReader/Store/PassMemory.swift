import Foundation
import Logging
import WalletPasses

/// The passes that were seen, so that none counts twice: in memory, and where payments may be stored also in a file, which
/// holds digests and times alone.
struct PassMemory {
    /// Returns the machine's time.
    let now: @Sendable () -> Date
    private(set) var freshness: VASFreshness
    /// Nil if nothing is stored.
    private let file: URL?

    /// Reads the file, if there is one.
    init(_ configuration: ProximityReaderSystem.ValidatedConfiguration) {
        now = configuration.now
        let tolerance = configuration.passes?.clockTolerance ?? 300
        freshness = VASFreshness(tolerance: tolerance)
        guard configuration.passes != nil, configuration.storeAndForward != nil else {
            file = nil
            return
        }
        let file = configuration.folder.appending(path: "passes.json")
        self.file = file
        guard let data = try? Data(contentsOf: file) else { return }
        guard let stored = try? JSONDecoder().decode(VASFreshness.self, from: data), stored.tolerance == tolerance
        else {
            logger.warning(
                "the passes seen before the start are not known: passes.json is damaged, or of other settings")
            return
        }
        freshness = stored
    }

    /// Keeps what a conversation has seen.
    ///
    /// - Parameter hasNew: true if a pass was read.
    mutating func keep(_ conversation: PassConversation, hasNew: Bool) {
        guard hasNew, case .opened(let reading) = conversation else { return }
        freshness = reading.freshness
        guard let file else { return }
        do {
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
            try JSONEncoder().encode(freshness).write(to: file, options: .atomic)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
        } catch {
            logger.error("the passes that were seen are not stored: \(type(of: error))")
        }
    }
}
