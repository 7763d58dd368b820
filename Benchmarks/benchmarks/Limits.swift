import Synchronization

/// How a part ends, and all of them: the exit status.
enum Outcome: Int32, Comparable {
    case kept = 0
    /// The machine is too noisy to tell whether a ratio keeps its limit (sysexits.h: EX_TEMPFAIL).
    case undecided = 75
    /// A part could not measure (EX_SOFTWARE).
    case failed = 70
    case exceeded = 1

    private var weight: Int {
        switch self {
        case .kept: 0
        case .undecided: 1
        case .failed: 2
        case .exceeded: 3
        }
    }

    static func < (a: Outcome, b: Outcome) -> Bool { a.weight < b.weight }
}

/// The limits.  What is judged is a count, or a ratio to a C program in the same run (``Comparison``); a time is only printed.
enum Limit {
    private static let worst = Mutex(Outcome.kept)

    /// The worst that was found in this process.
    static var outcome: Outcome { worst.withLock { $0 } }

    /// Judges counts only: neither times nor their ratios are taken, as in a debug build on a shared machine.
    static let gateOption = "--gate"
    static let isGate = CommandLine.arguments.contains(gateOption)

    /// Returns ` (limit 3)`, with a remark if the limit is exceeded.
    static func verdict(_ text: String, isKept: Bool) -> String {
        isKept ? verdict(text, .kept) : verdict(text, .exceeded, "NOT KEPT")
    }

    /// Returns the verdict on a count.
    ///
    /// - Parameter unoptimized: the limit in a debug build, where the compiler takes nothing away.
    static func verdict(atMost limit: Int, unoptimized: Int? = nil, _ count: Int) -> String {
        let limit = isOptimized ? limit : unoptimized ?? limit
        return verdict("\(limit)", isKept: count <= limit)
    }

    static func verdict(_ text: String, _ outcome: Outcome, _ remark: String? = nil) -> String {
        worst.withLock { $0 = max($0, outcome) }
        return " (limit \(text)\(remark.map { ": \($0)" } ?? ""))"
    }

    static var isOptimized: Bool {
        #if DEBUG
        false
        #else
        true
        #endif
    }
}
