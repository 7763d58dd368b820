import CoreMetrics
package import Waiting

/// A row of the table of metrics.
package struct MetricRow: Sendable {
    package enum Kind: String, Sendable {
        case counter, gauge
        /// Times in seconds.
        case histogram
    }

    /// The common beginning of all names.
    static let prefix = "contactless_"

    package let name: String
    package let kind: Kind
    /// A sentence that explains it.
    package let help: String
    /// The labels of each series.
    package let series: [[(name: String, value: String)]]
    /// The upper bounds of a histogram's buckets.
    package let bounds: [Double]
}

/// A metric of the table.  Its values go to the backend that the program has chosen (`MetricsSystem.bootstrap`); without one
/// they go nowhere.
package protocol Metric: Sendable {
    var row: MetricRow { get }
}

/// A number of events.
package struct Count<Labels: MetricLabels>: Metric {
    package let row: MetricRow

    init(_ name: String, _ help: String) { row = MetricRow(name, .counter, help, Labels.self) }

    package func add(_ labels: Labels, by number: Int = 1) {
        Counter(label: row.name, dimensions: labels.pairs).increment(by: number)
    }

    package func add() where Labels == NoLabels { add(NoLabels()) }

    package func add<First, Second>(
        _ first: First, _ second: Second, by number: Int = 1
    ) where Labels == TwoLabels<First, Second> {
        add(TwoLabels(first: first, second: second), by: number)
    }
}

/// A number that rises and falls.
package struct Level<Labels: MetricLabels>: Metric {
    package let row: MetricRow

    init(_ name: String, _ help: String) { row = MetricRow(name, .gauge, help, Labels.self) }

    package func set(_ labels: Labels, to value: Double) {
        Gauge(label: row.name, dimensions: labels.pairs).record(value)
    }

    package func set(to value: Double) where Labels == NoLabels { set(NoLabels(), to: value) }

    /// Sets it to 1 or 0.
    package func set(to isTrue: Bool) where Labels == NoLabels { set(to: isTrue ? 1 : 0) }
}

/// The times that something takes.
package struct Times<Labels: MetricLabels>: Metric {
    package let row: MetricRow

    /// - Parameter bounds: the upper bounds of the buckets, in seconds.
    init(_ name: String, _ help: String, bounds: [Double]) {
        row = MetricRow(name, .histogram, help, Labels.self, bounds: bounds)
    }

    package func add(_ labels: Labels, _ time: Duration) {
        Timer(label: row.name, dimensions: labels.pairs).recordSeconds(time / .seconds(1))
    }

    package func add(_ time: Duration) where Labels == NoLabels { add(NoLabels(), time) }

    /// Measures from an instant until now.
    package func add(_ labels: Labels, since start: Time.Instant) { add(labels, Time.now - start) }

    package func add(since start: Time.Instant) where Labels == NoLabels { add(NoLabels(), since: start) }
}

extension MetricRow {
    fileprivate init(
        _ name: String, _ kind: Kind, _ help: String, _ labels: (some MetricLabels).Type, bounds: [Double] = []
    ) {
        self.init(
            name: Self.prefix + name, kind: kind, help: help, series: labels.all.map(\.pairs), bounds: bounds)
    }
}
