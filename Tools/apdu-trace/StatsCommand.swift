import ArgumentParser
import SmartCard
import SmartCardTrace
import ToolSupport

struct StatsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats", abstract: "Shows the durations of a trace's exchanges, by command and by phase.",
        discussion: """
            Host time is the time between an answer and the next command to the same card. Medians and percentiles use \
            the nearest rank, within 1 %.
            """)

    @OptionGroup var trace: TraceArgument

    @OptionGroup var format: JSONOption

    /// Times in milliseconds.
    private struct Row: Encodable {
        let name: String
        let count: Int
        let total: Double
        let minimum: Double
        let median: Double
        let percentile95: Double
        let percentile99: Double
        let maximum: Double

        init(_ name: String, _ times: DurationHistogram) {
            func milliseconds(_ nanoseconds: UInt64) -> Double { Double((nanoseconds + 500) / 1000) / 1000 }
            self.name = name
            count = times.count
            total = milliseconds(times.total)
            minimum = milliseconds(times.minimum)
            median = milliseconds(times.percentile(50))
            percentile95 = milliseconds(times.percentile(95))
            percentile99 = milliseconds(times.percentile(99))
            maximum = milliseconds(times.maximum)
        }
    }

    private struct Statistics: Encodable {
        /// From the first event to the last, in milliseconds.
        let duration: Double
        let failures: Int
        let unanswered: Int
        let all: Row
        let host: Row
        let phases: [Row]
        let commands: [Row]
    }

    func run() throws {
        let timing = try UnreadableTrace.naming(trace.file) {
            var reader = try TraceReader(path: trace.file)
            var timing = TraceTiming()
            while let event = try reader.next() { timing.add(event) }
            return timing
        }
        let statistics = Statistics(
            duration: Double((timing.duration + 500) / 1000) / 1000, failures: timing.failures,
            unanswered: timing.unanswered, all: Row("all", timing.all),
            host: Row("host, between exchanges", timing.host),
            phases: Phase.allCases.compactMap { phase in
                timing.phases[phase].map { Row(phase.name, $0) }
            },
            commands: timing.commands.map { Row($0, $1) }.sorted { ($1.total, $0.name) < ($0.total, $1.name) })
        if format.json { return try Report.print(statistics) }
        let unanswered = statistics.unanswered > 0 ? ", \(statistics.unanswered) without an answer" : ""
        let failed = plural(statistics.failures, "exchange")
        Terminal.print("trace     \(milliseconds(statistics.duration)) ms, \(failed) failed\(unanswered)")
        let titles = ["count", "total", "min", "median", "p95", "p99", "max"].map { right($0, 12) }.joined()
        Terminal.print(Terminal.styled("ms" + String(repeating: " ", count: 30) + titles, .dim))
        statistics.commands.forEach(print)
        Terminal.print(Terminal.styled("by phase", .dim))
        statistics.phases.forEach(print)
        print(statistics.all)
        print(statistics.host)
    }

    private func print(_ row: Row) {
        let times = [row.total, row.minimum, row.median, row.percentile95, row.percentile99, row.maximum]
        let name = row.name + String(repeating: " ", count: max(1, 32 - row.name.count))
        Terminal.print(name + right("\(row.count)", 12) + times.map(milliseconds).joined())
    }

    private func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(1, width - text.count)) + text
    }
}

/// The durations of a trace's exchanges, collected event by event, in memory that does not grow with their number.
struct TraceTiming {
    private struct Pending {
        let time: Duration
        let name: String
        let phase: Phase
    }

    /// Programs that send without waiting are few; more than this are not waited for.
    private static let maximumPending = 1_024

    private(set) var all = DurationHistogram()
    private(set) var host = DurationHistogram()
    private(set) var phases: [Phase: DurationHistogram] = [:]
    private(set) var commands: [String: DurationHistogram] = [:]
    private(set) var failures = 0
    private var dropped = 0
    private var pending: [TraceEvent.Layer: [Pending]] = [:]
    private var first: Duration?
    private var last = Duration.zero
    /// The time of the card's last answer, and its purpose.
    private var lastAnswer: Duration?
    private var lastPhase = Phase.other

    /// In nanoseconds.
    var duration: UInt64 { Self.nanoseconds(last - (first ?? .zero)) }
    var unanswered: Int { dropped + pending.values.reduce(0) { $0 + $1.count } }

    mutating func add(_ event: TraceEvent) {
        if first == nil { first = event.time }
        last = event.time
        switch event.what {
        case .sent(let layer, let bytes) where layer == .apdu || layer == .escape:
            if pending[layer, default: []].count == Self.maximumPending {
                pending[layer]?.removeFirst()
                dropped += 1
            }
            pending[layer, default: []].append(sent(layer, bytes, at: event.time))
        case .received(let layer, _): answered(layer, at: event.time)
        case .failed(.exchange(let layer), _):
            if answered(layer, at: event.time) { failures += 1 }
        case .connected, .disconnected, .reset: lastAnswer = nil
        default: break
        }
    }

    private mutating func sent(_ layer: TraceEvent.Layer, _ bytes: [UInt8], at time: Duration) -> Pending {
        let phase = Phase(layer, bytes, behind: lastPhase)
        guard layer == .apdu else { return Pending(time: time, name: layer.rawValue, phase: phase) }
        if let lastAnswer { host.add(Self.nanoseconds(time - lastAnswer)) }
        lastAnswer = nil
        lastPhase = phase
        let name = (try? CommandAPDU(bytes)).map { CommandName.name($0) ?? "\([$0.cla, $0.ins].hex)" }
        return Pending(time: time, name: name ?? layer.rawValue, phase: phase)
    }

    @discardableResult
    private mutating func answered(_ layer: TraceEvent.Layer, at time: Duration) -> Bool {
        guard let command = pending[layer]?.first else { return false }
        pending[layer]?.removeFirst()
        let duration = Self.nanoseconds(time - command.time)
        all.add(duration)
        phases[command.phase, default: DurationHistogram()].add(duration)
        commands[command.name, default: DurationHistogram()].add(duration)
        if layer == .apdu { lastAnswer = time }
        return true
    }

    private static func nanoseconds(_ duration: Duration) -> UInt64 {
        let (seconds, attoseconds) = max(duration, .zero).components
        let (whole, isTooMuch) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
        return isTooMuch ? .max : whole &+ UInt64(attoseconds) / 1_000_000_000
    }
}

/// The distribution of durations, to within 1 % for any number of them.
struct DurationHistogram {
    /// The number of bits of each number that count.
    private static let bits = 7

    private var counts: [Int32: Int] = [:]
    private(set) var count = 0
    private(set) var total: UInt64 = 0
    private var least = UInt64.max
    private(set) var maximum: UInt64 = 0

    var minimum: UInt64 { count > 0 ? least : 0 }

    mutating func add(_ nanoseconds: UInt64) {
        counts[Self.bucket(nanoseconds), default: 0] += 1
        count += 1
        let sum = total.addingReportingOverflow(nanoseconds)
        total = sum.overflow ? .max : sum.partialValue
        least = min(least, nanoseconds)
        maximum = max(maximum, nanoseconds)
    }

    /// By nearest rank, in nanoseconds; 0 if there are none.
    func percentile(_ percent: Int) -> UInt64 {
        var left = max(1, (count * percent + 99) / 100)
        for (bucket, number) in counts.sorted(by: { $0.key < $1.key }) {
            left -= number
            if left <= 0 { return min(max(Self.middle(of: bucket), minimum), maximum) }
        }
        return maximum
    }

    /// Numbers below 2^7 have their own; above, those that agree in their first seven bits share one.
    private static func bucket(_ number: UInt64) -> Int32 {
        let shift = max(0, UInt64.bitWidth - number.leadingZeroBitCount - bits)
        return Int32(shift) << bits | Int32(number >> shift)
    }

    private static func middle(of bucket: Int32) -> UInt64 {
        let shift = UInt64(bucket >> bits)
        return UInt64(bucket & (1 << bits - 1)) << shift + (UInt64(1) << shift) / 2
    }
}
