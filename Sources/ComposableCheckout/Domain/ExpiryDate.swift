public import FoundationEssentials

/// A month, such as that in which a card expires.
public struct YearMonth: Hashable, Comparable, Sendable {
    public let year: Int
    /// 1 to 12.
    public let month: Int

    /// - Returns: nil if `month` is not 1 to 12.
    public init?(year: Int, month: Int) {
        guard (1...12).contains(month) else { return nil }
        (self.year, self.month) = (year, month)
    }

    /// The month of a time in a time zone.
    public init(_ time: Date, in timeZone: TimeZone) {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = timeZone
        let parts = calendar.dateComponents([.year, .month], from: time)
        (year, month) = (parts.year ?? 0, parts.month ?? 1)
    }

    public static func < (a: YearMonth, b: YearMonth) -> Bool { (a.year, a.month) < (b.year, b.month) }
}

extension YearMonth {
    /// The number of years before and after the present one in which a year of two digits is looked for, and a card may
    /// expire.
    private static let span = 50

    /// Parses the expiry date of a card: `MM/YY`, `MM/YYYY`, either without the separator, and `YYYY-MM`, which browsers
    /// send for a month.  The digits may be of any script.
    ///
    /// - Parameters:
    ///   - text: as the customer typed it.
    ///   - now: the present month: a year of two digits is the one nearest to it.
    /// - Returns: nil if it is none of these, or 50 years away.
    public init?(expiry text: String, now: YearMonth) {
        var parts: [[Int]] = [[]]
        for scalar in text.unicodeScalars {
            if let digit = scalar.decimalDigit {
                parts[parts.count - 1].append(Int(digit))
            } else if "/.\u{FF0F}\u{2044}\u{2215}".unicodeScalars.contains(scalar) || scalar.isDigitSeparator {
                if parts.last?.isEmpty == false { parts.append([]) }
            } else {
                return nil
            }
            guard parts.count <= 3, parts.allSatisfy({ $0.count <= 6 }) else { return nil }
        }
        if parts.last?.isEmpty == true { parts.removeLast() }
        let digits: (month: [Int], year: [Int])
        switch parts.map(\.count) {
        case [4]: digits = (Array(parts[0].prefix(2)), Array(parts[0].suffix(2)))
        case [6]: digits = (Array(parts[0].prefix(2)), Array(parts[0].suffix(4)))
        case [1, 2], [2, 2], [1, 4], [2, 4]: digits = (parts[0], parts[1])
        case [4, 1], [4, 2]: digits = (parts[1], parts[0])
        default: return nil
        }
        let (month, written) = (Self.number(digits.month), Self.number(digits.year))
        var year = written
        if digits.year.count == 2 {
            // Of the hundred years around the present one.
            let first = now.year - Self.span
            year = first + ((written - first) % 100 + 100) % 100
        }
        guard abs(year - now.year) <= Self.span else { return nil }
        self.init(year: year, month: month)
    }

    private static func number(_ digits: [Int]) -> Int { digits.reduce(0) { $0 * 10 + $1 } }
}

/// The time at the terminal.
public struct CheckoutClock: Sendable {
    public let now: @Sendable () -> Date
    /// The terminal's time zone: a card is valid to the end of its month there.
    public let timeZone: TimeZone

    public init(timeZone: TimeZone = .current, now: @escaping @Sendable () -> Date = { Date() }) {
        (self.timeZone, self.now) = (timeZone, now)
    }

    /// The present month.
    public var month: YearMonth { YearMonth(now(), in: timeZone) }
}
