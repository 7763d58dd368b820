import CBaseline
import Dispatch
import Foundation
import Synchronization

/// Two measurements by turns, A B A B …, so that what else the machine does meets both alike, and the median of their pairwise
/// ratios.
struct Comparison {
    enum Figure {
        /// What the processors compute for this process.  To be held up by others adds nothing to it.
        case processorTime
        /// Each time that a thread is held up by others counts, and whoever has more threads pays more.
        case time
    }

    private let figure: Figure
    private(set) var baseline: [Double] = []
    private(set) var ours: [Double] = []
    /// The shares of the machine's processors that this process could have, between the measurements.
    private var shares: [Double] = []

    private var ratios: [Double] { zip(ours, baseline).map { $0 / $1 }.sorted() }
    var ratio: Double { median(ratios) }

    /// The interval that contains the median of all ratios that there could be, at 99.9 %: of the measured ones, as many are below and
    /// above it as a coin that is thrown once for each pair would have it.
    private var interval: ClosedRange<Double> {
        let ratios = ratios
        let count = Double(ratios.count)
        let outside = max(Int((count - 3.3 * count.squareRoot()) / 2), 0)
        return ratios[outside]...ratios[ratios.count - 1 - outside]
    }

    /// True if this process could have nearly all of the machine, in most of the looks.
    private var isCalm: Bool { figure == .processorTime || median(shares) > 0.95 }

    private static let few = 31
    /// The pairs after which the machine is too noisy.
    private static let most = 31 * 16

    /// Measures until the interval is on one side of the limit, at most `most` pairs.
    ///
    /// - Parameters:
    ///   - figure: what both closures return, in nanoseconds.
    ///   - limit: nil: nothing is judged.
    ///   - pairs: the first ones.
    init(
        _ figure: Figure, limit: Double? = nil, pairs: Int = few, _ baseline: () async throws -> Double,
        _ ours: () async throws -> Double
    ) async rethrows {
        self.figure = figure
        var wanted = pairs
        while true {
            while self.ours.count < wanted {
                self.baseline.append(try await baseline())
                self.ours.append(try await ours())
                if figure == .time, limit != nil, self.ours.count.isMultiple(of: 8) {
                    shares.append(shareOfProcessors())
                }
            }
            guard let limit, verdict(limit).0 == .undecided, wanted < Self.most else { break }
            wanted *= 2
        }
    }

    private func verdict(_ limit: Double) -> (Outcome, String?) {
        let interval = interval
        if interval.upperBound <= limit { return (.kept, nil) }
        if interval.lowerBound > limit, isCalm { return (.exceeded, "NOT KEPT") }
        let range = "\(hundredths(interval.lowerBound)) to \(hundredths(interval.upperBound))"
        let others = isCalm ? "" : ", others had \(100 - Int(median(shares) * 100)) % of a processor"
        return (.undecided, "UNDECIDED, \(range) in \(ours.count) pairs\(others)")
    }

    func verdict(limit: Double) -> String {
        let (outcome, remark) = verdict(limit)
        return Limit.verdict("\(limit)", outcome, remark)
    }
}

/// Computes on all processors for 20 ms, and returns how much of one this process got, the least.
private func shareOfProcessors() -> Double {
    let least = Mutex(1.0)
    DispatchQueue.concurrentPerform(iterations: ProcessInfo.processInfo.activeProcessorCount) { _ in
        let (start, computed) = (ContinuousClock.now, baseline_thread_time())
        while .now - start < .milliseconds(20) {}
        let share = Double(baseline_thread_time() - computed) / nanoseconds(.now - start)
        least.withLock { $0 = min($0, share) }
    }
    return least.withLock { $0 }
}
