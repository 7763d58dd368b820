import Foundation
import Logging
import WalletPasses

/// The passes that were seen, so that none counts twice: in memory, and where payments may be stored also in a file, which
/// holds digests and times alone.
struct PassMemory {
    /// Returns the machine's time.
    let now: @Sendable () -> Date
    private(set) var freshness: VASFreshness
    /// The file; nil if nothing is stored.
    private let file: VASFreshnessFile?

    /// Reads the file, if there is one.  One that cannot be read stays as it is: what is seen is then kept in memory alone,
    /// and no pass from before the start is taken.
    init(_ configuration: ProximityReaderSystem.ValidatedConfiguration) {
        now = configuration.now
        let tolerance = configuration.passes?.clockTolerance ?? 300
        freshness = VASFreshness(tolerance: tolerance)
        guard configuration.passes != nil, configuration.storeAndForward != nil else {
            file = nil
            return
        }
        let stored = VASFreshnessFile(configuration.folder.appending(path: "passes.json").path)
        do throws(VASFreshnessFile.Failure) {
            freshness = try stored.load(tolerance: tolerance)
            file = stored
        } catch {
            logger.error("the passes seen before the start are not known: \(loggable(error))")
            freshness = VASFreshness(tolerance: tolerance, since: now())
            file = nil
        }
    }

    /// Keeps what a conversation has seen.
    ///
    /// - Parameter hasNew: true if a pass was read.
    mutating func keep(_ conversation: PassConversation, hasNew: Bool) {
        guard hasNew, case .opened(let reading) = conversation else { return }
        // Another read may have ended since this one began.
        freshness.add(reading.freshness)
        guard let file else { return }
        do {
            try FileManager.default.createDirectory(
                atPath: URL(filePath: file.path).deletingLastPathComponent().path, withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
            try file.save(freshness)
        } catch {
            logger.error("the passes that were seen are not stored: \(loggable(error))")
        }
    }
}
