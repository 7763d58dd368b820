import Foundation

/// The machine's own account of time and of its starts.
enum Machine {
    /// Since its start, asleep or not (`CLOCK_BOOTTIME`, by proc_uptime(5)); 0 if the system does not tell.
    static func uptime() -> Duration { .seconds(Double(firstWord(of: "/proc/uptime")) ?? 0) }

    /// Random, and another one after each start; empty if the system has none.
    static func bootIdentifier() -> String { firstWord(of: "/proc/sys/kernel/random/boot_id") }

    private static func firstWord(of path: String) -> String {
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        return String(text.prefix { !$0.isWhitespace })
    }
}
