/// The items that a conversion loses: a description of each kind, and its count.
public struct Omissions: Hashable, Sendable {
    /// In the order in which they were first met.
    public private(set) var counts: [(what: String, count: Int)] = []
    /// The index of each description by its address, which is faster to look up than its text.
    private var indices: [Int: Int] = [:]

    mutating func add(_ what: StaticString, count: Int = 1) {
        guard count > 0 else { return }
        let place = Int(bitPattern: what.utf8Start)
        if let index = indices[place] {
            counts[index].count += count
            return
        }
        let what = "\(what)"
        let index = counts.firstIndex { $0.what == what } ?? counts.count
        if index == counts.count { counts.append((what, 0)) }
        indices[place] = index
        counts[index].count += count
    }

    public static func == (left: Self, right: Self) -> Bool {
        left.counts.elementsEqual(right.counts) { $0 == $1 }
    }

    public func hash(into hasher: inout Hasher) {
        for (what, count) in counts {
            hasher.combine(what)
            hasher.combine(count)
        }
    }
}
