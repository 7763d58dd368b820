/// The labels of a metric.  Their values are finite and known beforehand.
package protocol MetricLabels: Sendable {
    /// Every combination of values.
    static var all: [Self] { get }
    /// The labels' names and values.
    var pairs: [(name: String, value: String)] { get }
}

/// A label whose values are the cases of an enumeration: no text of a card, a page or a payment service can become one.
package protocol MetricLabel: MetricLabels, CaseIterable, RawRepresentable<String> {
    static var name: String { get }
}

extension MetricLabel {
    package static var all: [Self] { Array(allCases) }
    package var pairs: [(name: String, value: String)] { [(Self.name, rawValue)] }
}

/// The labels of a metric without any.
package struct NoLabels: MetricLabels {
    package static let all = [NoLabels()]
    package var pairs: [(name: String, value: String)] { [] }
}

/// Two labels of one metric.
package struct TwoLabels<First: MetricLabel, Second: MetricLabel>: MetricLabels {
    let first: First
    let second: Second

    package static var all: [Self] {
        First.allCases.flatMap { first in Second.allCases.map { Self(first: first, second: $0) } }
    }
    package var pairs: [(name: String, value: String)] { first.pairs + second.pairs }
}
