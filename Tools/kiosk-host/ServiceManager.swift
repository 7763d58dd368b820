import CServiceManager

/// The service manager that started this program, as sd_notify(3) reaches it.  Without one, nothing is told.
enum ServiceManager {
    /// Tells that the page is served.
    static func tellReady() { tell("READY=1") }

    /// Tells a state, as `systemctl status` shows it.
    static func tellStatus(_ text: String) {
        tell("STATUS=\(text.split(whereSeparator: \.isNewline).joined(separator: " "))")
    }

    /// Tells that the program works: `WATCHDOG=1`.
    static func tellAlive() { tell("WATCHDOG=1") }

    /// Tells that the program is ending.
    static func tellStopping() { tell("STOPPING=1") }

    /// The time after which the manager takes the program for dead (`WatchdogSec=`); nil if it does not watch it.
    static var patience: Duration? {
        var microseconds: UInt64 = 0
        guard sd_watchdog_enabled(0, &microseconds) > 0 else { return nil }
        return .microseconds(Int64(clamping: microseconds))
    }

    private static func tell(_ text: String) { _ = sd_notify(0, text) }
}
