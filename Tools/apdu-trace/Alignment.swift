/// Two lists aligned by as few lines that are in one of them alone as can be, in memory that grows with their lengths alone
/// (E. Myers, An O(ND) Difference Algorithm and Its Variations, 1986, 4b).
struct Alignment {
    /// Which of the first are not in the second, and which of the second not in the first.
    private(set) var removed: [Bool]
    private(set) var inserted: [Bool]

    /// What is in both lists.
    private let old: [Int]
    private let new: [Int]
    private let oldPlaces: [Int]
    private let newPlaces: [Int]
    /// How far along each diagonal one gets from the beginning, and from the end.
    private var forward: [Int]
    private var backward: [Int]

    init<Element: Hashable>(_ first: [Element], _ second: [Element]) {
        // Numbers are compared sooner than what they stand for.
        var numbers: [Element: Int] = [:]
        func number(_ element: Element) -> Int {
            if let number = numbers[element] { return number }
            numbers[element] = numbers.count
            return numbers.count - 1
        }
        let (first, second) = (first.map(number), second.map(number))
        let (known, knownAgain) = (Set(first), Set(second))
        removed = first.map { !knownAgain.contains($0) }
        inserted = second.map { !known.contains($0) }
        oldPlaces = removed.indices.filter { [removed] in !removed[$0] }
        newPlaces = inserted.indices.filter { [inserted] in !inserted[$0] }
        old = oldPlaces.map { first[$0] }
        new = newPlaces.map { second[$0] }
        forward = [Int](repeating: 0, count: old.count + new.count + 3)
        backward = forward
        align(0..<old.count, 0..<new.count)
    }

    private mutating func align(_ old: Range<Int>, _ new: Range<Int>) {
        var (old, new) = (old, new)
        while let first = old.first, let second = new.first, self.old[first] == self.new[second] {
            (old, new) = (old.dropFirst(), new.dropFirst())
        }
        while let first = old.last, let second = new.last, self.old[first] == self.new[second] {
            (old, new) = (old.dropLast(), new.dropLast())
        }
        guard !old.isEmpty, !new.isEmpty else {
            for index in old { removed[oldPlaces[index]] = true }
            for index in new { inserted[newPlaces[index]] = true }
            return
        }
        let (x, y) = middle(old, new)
        align(old.lowerBound..<x, new.lowerBound..<y)
        align(x..<old.upperBound, y..<new.upperBound)
    }

    /// A place that a shortest way from the beginning to the end passes through, neither of the two: where the ways from both
    /// meet.  Neither list is empty, and they differ at both ends.
    private mutating func middle(_ old: Range<Int>, _ new: Range<Int>) -> (Int, Int) {
        let (width, height) = (old.count, new.count)
        let delta = width - height
        // Diagonals go from -height to width, with one more at each side.
        let zero = height + 1
        forward[zero + 1] = 0
        backward[zero + 1] = 0
        var count = 0
        while true {
            // Diagonals that lie outside are left out.
            let diagonals = stride(
                from: -count + 2 * max(0, count - height), through: count - 2 * max(0, count - width), by: 2)
            for diagonal in diagonals {
                let isDown =
                    diagonal == -count
                    || diagonal != count && forward[zero + diagonal - 1] < forward[zero + diagonal + 1]
                var x = isDown ? forward[zero + diagonal + 1] : forward[zero + diagonal - 1] + 1
                while x < width, x - diagonal < height,
                    self.old[old.lowerBound + x] == self.new[new.lowerBound + x - diagonal]
                { x += 1 }
                forward[zero + diagonal] = x
                let opposite = delta - diagonal
                if delta % 2 != 0, abs(opposite) < count, (-height...width).contains(opposite),
                    x + backward[zero + opposite] >= width
                {
                    return (old.lowerBound + x, new.lowerBound + x - diagonal)
                }
            }
            for diagonal in diagonals {
                let isDown =
                    diagonal == -count
                    || diagonal != count && backward[zero + diagonal - 1] < backward[zero + diagonal + 1]
                var x = isDown ? backward[zero + diagonal + 1] : backward[zero + diagonal - 1] + 1
                while x < width, x - diagonal < height,
                    self.old[old.upperBound - 1 - x] == self.new[new.upperBound - 1 - (x - diagonal)]
                { x += 1 }
                backward[zero + diagonal] = x
                let opposite = delta - diagonal
                if delta % 2 == 0, abs(opposite) <= count, (-height...width).contains(opposite),
                    x + forward[zero + opposite] >= width
                {
                    return (old.upperBound - x, new.upperBound - (x - diagonal))
                }
            }
            count += 1
        }
    }
}
