import Foundation

/// The machine's uptime and the identifier of its boot.
enum Machine {
    /// Returns the time since boot, including sleep (`CLOCK_BOOTTIME`, by proc_uptime(5)); 0 if the system does not
    /// report it.
    static func uptime() -> Duration { .seconds(Double(firstWord(of: "/proc/uptime")) ?? 0) }

    /// Returns a random identifier that changes with each boot; empty if the system has none.
    static func bootIdentifier() -> String { firstWord(of: "/proc/sys/kernel/random/boot_id") }

    private static func firstWord(of path: String) -> String {
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        return String(text.prefix { !$0.isWhitespace })
    }
}
