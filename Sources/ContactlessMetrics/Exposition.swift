public import CoreMetrics
import Synchronization

/// A backend of swift-metrics that shows this package's metrics in the text format of Prometheus.
///
///     MetricsSystem.bootstrap(Exposition())
///
/// It has each counter and histogram from the start, with 0, a gauge once it is known, and nothing else: the metrics of
/// other libraries go nowhere, and its memory does not grow.  Applications with more metrics use another backend, which gets
/// this package's metrics as well.
public final class Exposition: MetricsFactory {
    /// The media type of ``text``, with the version of the format.
    public static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    private let series: [String: any Series]

    public init() {
        series = Dictionary(
            uniqueKeysWithValues: metrics.rows.flatMap { row in
                row.series.map { (Self.name(row.name, $0), Self.series(of: row)) }
            })
    }

    private static func series(of row: MetricRow) -> any Series {
        switch row.kind {
        case .counter: CounterSeries()
        case .gauge: GaugeSeries()
        case .histogram: HistogramSeries(row.bounds)
        }
    }

    /// The values of all metrics.
    public var text: String {
        metrics.rows.map { row in
            let lines = row.series.flatMap { labels in
                (series[Self.name(row.name, labels)]?.samples ?? []).map { sample in
                    "\(Self.name(row.name + sample.suffix, labels + sample.labels)) \(sample.value)\n"
                }
            }
            guard !lines.isEmpty else { return "" }
            return "# HELP \(row.name) \(row.help)\n# TYPE \(row.name) \(row.kind)\n" + lines.joined()
        }.joined()
    }

    /// The name of a series, as the text has it.  The values of the table need no escapes.
    private static func name(_ name: String, _ labels: [(name: String, value: String)]) -> String {
        guard !labels.isEmpty else { return name }
        return "\(name){\(labels.map { "\($0.name)=\"\($0.value)\"" }.joined(separator: ","))}"
    }

    private func find(_ label: String, _ dimensions: [(String, String)]) -> (any Series)? {
        series[Self.name(label, dimensions.map { (name: $0.0, value: $0.1) })]
    }

    // MARK: MetricsFactory

    public func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        find(label, dimensions) as? any CounterHandler ?? NOOPMetricsHandler.instance
    }

    public func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        find(label, dimensions) as? any RecorderHandler ?? NOOPMetricsHandler.instance
    }

    public func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        find(label, dimensions) as? any TimerHandler ?? NOOPMetricsHandler.instance
    }

    /// A series stays, whoever no longer needs it.
    public func destroyCounter(_ handler: any CounterHandler) {}
    public func destroyRecorder(_ handler: any RecorderHandler) {}
    public func destroyTimer(_ handler: any TimerHandler) {}
}

/// A line, or the lines of a histogram.
private struct Sample {
    var suffix = ""
    var labels: [(name: String, value: String)] = []
    let value: String
}

private protocol Series: Sendable {
    var samples: [Sample] { get }
}

private final class CounterSeries: Series, CounterHandler {
    private let value = Atomic<Int64>(0)

    func increment(by amount: Int64) { value.add(amount, ordering: .relaxed) }
    func reset() { value.store(0, ordering: .relaxed) }

    var samples: [Sample] { [Sample(value: "\(value.load(ordering: .relaxed))")] }
}

private final class GaugeSeries: Series, RecorderHandler {
    private let value = Mutex(Double?.none)

    func record(_ value: Int64) { record(Double(value)) }
    func record(_ value: Double) { self.value.withLock { $0 = value } }

    var samples: [Sample] { value.withLock { $0 }.map { [Sample(value: "\($0)")] } ?? [] }
}

private final class HistogramSeries: Series, TimerHandler {
    private struct Value {
        /// By bucket; the last is for all above the bounds.
        var counts: [Int]
        var sum = 0.0
    }

    private let bounds: [Double]
    private let value: Mutex<Value>

    init(_ bounds: [Double]) {
        self.bounds = bounds
        value = Mutex(Value(counts: Array(repeating: 0, count: bounds.count + 1)))
    }

    func recordNanoseconds(_ duration: Int64) {
        let seconds = Double(duration) / 1e9
        let bucket = bounds.firstIndex { seconds <= $0 } ?? bounds.count
        value.withLock { value in
            value.counts[bucket] += 1
            value.sum += seconds
        }
    }

    var samples: [Sample] {
        let value = value.withLock { $0 }
        var (samples, count) = ([Sample](), 0)
        for (bound, number) in zip(bounds.map { "\($0)" } + ["+Inf"], value.counts) {
            count += number
            samples.append(Sample(suffix: "_bucket", labels: [("le", bound)], value: "\(count)"))
        }
        return samples + [Sample(suffix: "_sum", value: "\(value.sum)"), Sample(suffix: "_count", value: "\(count)")]
    }
}
