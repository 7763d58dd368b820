import Foundation
public import Testing

/// How much of the tests runs: the fast tier, unless the environment has `THOROUGH`.
///
/// A test of the fast tier takes less than a second, or is the one case of its promise with a real program.  What computes, tours
/// or kills for long carries ``Testing/Trait/thorough(_:)`` or takes fewer rounds; nothing of it is dropped.
public enum Tier {
    /// Whether everything runs: `Tests/run --thorough`.
    public static let isThorough = ProcessInfo.processInfo.environment["THOROUGH"] != nil

    /// How often a test repeats what chance varies.
    public static func rounds(_ fast: Int, thorough: Int) -> Int { isThorough ? thorough : fast }

    /// Every `step`th of a sweep's places: all of them in the thorough tier.
    public static func stride(_ step: Int) -> Int { rounds(step, thorough: 1) }

    /// Some of many cases, evenly spread from the first to the last; all of them in the thorough tier.
    public static func few<C: Collection>(_ all: C, _ count: Int) -> [C.Element] {
        let all = Array(all)
        guard !isThorough, all.count > count else { return all }
        return (0..<count).map { all[$0 * (all.count - 1) / max(1, count - 1)] }
    }

    /// `fast`, and in the thorough tier `others` too.
    public static func first<T>(_ fast: [T], then others: [T]) -> [T] { isThorough ? fast + others : fast }
}

extension Trait where Self == ConditionTrait {
    /// Skips the test or the suite in the fast tier.
    ///
    /// - Parameter reason: one sentence: what makes it long, and what of its promise stays in the fast tier.
    public static func thorough(_ reason: String) -> Self {
        .enabled(if: Tier.isThorough, "thorough: \(reason)")
    }
}
