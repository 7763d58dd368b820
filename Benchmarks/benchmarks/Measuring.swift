import Foundation
import Synchronization

/// The limits, and the number of times that one was exceeded.
enum Limit {
    private static let missed = Mutex(0)

    static var areKept: Bool { missed.withLock { $0 == 0 } }

    /// Checks only figures that do not depend on the machine: counts, and ratios at one and a half times their limit.
    static let gateOption = "--gate"
    static let isGate = CommandLine.arguments.contains(gateOption)

    /// Returns ` (limit 3 µs)`, with a remark if the limit is exceeded.
    static func verdict(_ text: String, isKept: Bool) -> String {
        if isKept { return " (limit \(text))" }
        missed.withLock { $0 += 1 }
        return " (limit \(text): NOT KEPT)"
    }

    /// Returns the verdict on a time in nanoseconds.
    static func verdict(_ limit: Duration, _ time: Double) -> String {
        verdict(microseconds(nanoseconds(limit)), isKept: isGate || time <= nanoseconds(limit))
    }

    /// Returns the verdict on a count, or on the ratio of two times in the same run.
    static func verdict(atMost limit: Double, _ ratio: Double) -> String {
        verdict("\(limit)", isKept: ratio <= limit * (isGate ? 1.5 : 1))
    }
}

/// Returns a figure of this process's memory in KiB (proc(5), status): `VmRSS` for now, `VmHWM` for the peak.
func memory(_ field: String) -> Int {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("\(field):") }
    return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0
}

/// Returns the duration of `body` in nanoseconds.
func time(_ body: () async throws -> Void) async rethrows -> Double {
    let start = ContinuousClock.now
    try await body()
    return nanoseconds(ContinuousClock.now - start)
}

/// Alternates two measurements, so that other load on the machine affects both alike.
func paired(
    times: Int, _ baseline: () throws -> Void, _ ours: () throws -> Void
) rethrows -> (baseline: [Double], ours: [Double]) {
    func time(_ body: () throws -> Void) rethrows -> Double {
        let start = ContinuousClock.now
        try body()
        return nanoseconds(ContinuousClock.now - start)
    }
    var result: (baseline: [Double], ours: [Double]) = ([], [])
    for _ in 0..<times {
        result.baseline.append(try time(baseline))
        result.ours.append(try time(ours))
    }
    return result
}

func median(_ values: [Double]) -> Double {
    let sorted = values.sorted()
    return sorted.isEmpty ? 0 : sorted[sorted.count / 2]
}

/// Prints both medians and their ratio.
func report(
    _ results: (baseline: [Double], ours: [Double]), per: Double, _ baseline: String, _ ours: String, limit: Double?
) {
    let (a, b) = (median(results.baseline) / per, median(results.ours) / per)
    let hundredths = Int(b / a * 100 + 0.5)
    let ratio = "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100)"
    print("  \(baseline): \(microseconds(a))")
    print(
        "  \(ours): \(microseconds(b)), \(ratio) times"
            + (limit.map { Limit.verdict(atMost: $0, b / a) } ?? ""))
}

/// Returns the number of times that threads of this process wake in five seconds, by the kernel's count of sleeps
/// (proc(5)); plus one for each thread that ends.
func wakeUpsInFiveSeconds() async throws -> Int {
    let before = voluntarySwitches()
    try await Task.sleep(for: .seconds(5))
    let after = voluntarySwitches()
    return after.reduce(0) { $0 + $1.value - (before[$1.key] ?? 0) } + before.keys.count { after[$0] == nil }
}

private func voluntarySwitches() -> [String: Int] {
    let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
    return threads.reduce(into: [:]) { switches, thread in
        let status = (try? String(contentsOfFile: "/proc/self/task/\(thread)/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches:") }
        switches[thread] = line?.split(whereSeparator: \.isWhitespace).last.flatMap { Int($0) }
    }
}

func tenths(_ value: Double) -> String {
    let tenths = Int(value * 10 + 0.5)
    return "\(tenths / 10).\(tenths % 10)"
}

func microseconds(_ nanoseconds: Double) -> String {
    let hundredths = Int(nanoseconds / 10 + 0.5)
    return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100) µs"
}

func nanoseconds(_ duration: Duration) -> Double {
    let (seconds, attoseconds) = duration.components
    return Double(seconds) * 1e9 + Double(attoseconds) / 1e9
}
