import CBaseline
import Foundation

/// Returns a figure of a process's memory in KiB (proc(5), status): `VmRSS` for now, `VmHWM` for the peak, `RssAnon` for what is in
/// no file.
func memory(_ field: String, of process: String = "self") -> Int {
    let status = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("\(field):") }
    return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0
}

/// Returns what this process has written (proc(5), io): `syscw` calls of write(2) and the like, `wchar` bytes.
func io(_ field: String) -> Int {
    let text = (try? String(contentsOfFile: "/proc/self/io", encoding: .utf8)) ?? ""
    let line = text.split(separator: "\n").first { $0.hasPrefix("\(field):") }
    return line?.split(whereSeparator: \.isWhitespace).last.flatMap { Int($0) } ?? 0
}

/// Returns the duration of `body` in nanoseconds.
func time(_ body: () async throws -> Void) async rethrows -> Double {
    let start = ContinuousClock.now
    try await body()
    return nanoseconds(ContinuousClock.now - start)
}

/// Returns the nanoseconds that the processors compute for this process in `body`, which others do not add to.
func processorTime(_ body: () async throws -> Void) async rethrows -> Double {
    let start = baseline_processor_time()
    try await body()
    return Double(baseline_processor_time() - start)
}

/// What one of many rounds asks of the allocator, once what is made only once has been made.  What libcrypto asks for is apart.
struct Allocations {
    let count: Int
    let bytes: Int
    let ofLibcrypto: Int

    /// - Parameter rounds: so many that what other threads allocate meanwhile, such as timers, is rounded away.
    init(rounds: Int, _ body: () async throws -> Void) async rethrows {
        for _ in 0..<2 { try await body() }
        let (count, bytes) = (baseline_allocations(), baseline_allocated_bytes())
        let ofLibcrypto = baseline_libcrypto_allocations()
        for _ in 0..<rounds { try await body() }
        func mean(_ difference: Int) -> Int { (difference + rounds / 2) / rounds }
        self.count = mean(baseline_allocations() - count)
        self.bytes = mean(baseline_allocated_bytes() - bytes)
        self.ofLibcrypto = mean(baseline_libcrypto_allocations() - ofLibcrypto)
    }

    /// - Parameter unoptimized: the limit in a debug build.
    func verdict(atMost limit: Int, unoptimized: Int) -> String {
        "\(count) allocations" + Limit.verdict(atMost: limit, unoptimized: unoptimized, count)
            + (ofLibcrypto > 0 ? " and \(ofLibcrypto) of libcrypto's" : "")
    }
}

/// Returns by how much the resident memory grows at most in `body`, in KiB: VmHWM, which writing 5 to clear_refs resets (proc(5)).
func peakGrowth(_ body: () async throws -> Void) async throws -> Int {
    try Data("5".utf8).write(to: URL(filePath: "/proc/self/clear_refs"))
    let before = memory("VmRSS")
    try await body()
    return max(memory("VmHWM") - before, 0)
}

func median(_ values: [Double]) -> Double {
    let sorted = values.sorted()
    return sorted.isEmpty ? 0 : sorted[sorted.count / 2]
}

/// Prints both medians and the ratio.
func report(_ comparison: Comparison, per: Double = 1, _ baseline: String, _ ours: String, limit: Double?) {
    print("  \(baseline): \(microseconds(median(comparison.baseline) / per))")
    print(
        "  \(ours): \(microseconds(median(comparison.ours) / per)), \(hundredths(comparison.ratio)) times"
            + (limit.map { comparison.verdict(limit: $0) } ?? ""))
}

/// Returns the number of times that each thread of this process went to sleep (proc(5), status).
func sleeps() -> [String: Int] {
    let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
    return threads.reduce(into: [:]) { counts, thread in
        let status = (try? String(contentsOfFile: "/proc/self/task/\(thread)/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches:") }
        counts[thread] = line?.split(whereSeparator: \.isWhitespace).last.flatMap { Int($0) }
    }
}

/// Returns the number of times that threads of this process wake while it waits; plus one for each thread that ends.
func wakeUps(in duration: Duration) async throws -> Int {
    let before = sleeps()
    try await Task.sleep(for: duration)
    let after = sleeps()
    return after.reduce(0) { $0 + $1.value - (before[$1.key] ?? 0) } + before.keys.count { after[$0] == nil }
}

func tenths(_ value: Double) -> String {
    let tenths = Int(value * 10 + 0.5)
    return "\(tenths / 10).\(tenths % 10)"
}

func hundredths(_ value: Double) -> String {
    let hundredths = Int(value * 100 + 0.5)
    return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100)"
}

func microseconds(_ nanoseconds: Double) -> String { "\(hundredths(nanoseconds / 1000)) µs" }

func milliseconds(_ nanoseconds: Double) -> String { "\(tenths(nanoseconds / 1e6)) ms" }

func nanoseconds(_ duration: Duration) -> Double {
    let (seconds, attoseconds) = duration.components
    return Double(seconds) * 1e9 + Double(attoseconds) / 1e9
}
