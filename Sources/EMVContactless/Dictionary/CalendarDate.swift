import SmartCard

/// A day of the Gregorian calendar.
public struct CalendarDate: Hashable, Sendable {
    public let year: Int
    /// The month, 1 to 12.
    public let month: Int
    /// The day, 1 to 31.
    public let day: Int

    /// Creates a date.
    ///
    /// - Returns: nil if there is no such day, or the year is not in 1 to 9999.
    public init?(year: Int, month: Int, day: Int) {
        guard (1...9999).contains(year), (1...12).contains(month), day >= 1 else { return nil }
        let isLeap = year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400))
        let days = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard day <= days[month - 1] else { return nil }
        self.year = year
        self.month = month
        self.day = day
    }

    /// Parses three bytes in format n, `YYMMDD`, as in tag 9A.  Years 00 to 49 belong to this century, 50 to 99 to the
    /// last (EMV Book 4, 6.7.3).
    public init?(packed bytes: some Collection<UInt8>) {
        guard bytes.count == 3, let month = ExpirationDate(packed: bytes), let last = bytes.dropFirst(2).first,
            last >> 4 < 10, last & 0x0F < 10
        else { return nil }
        self.init(year: month.year, month: month.month, day: Int(last >> 4) * 10 + Int(last & 0x0F))
    }
}

extension CalendarDate: Comparable {
    public static func < (a: CalendarDate, b: CalendarDate) -> Bool {
        (a.year, a.month, a.day) < (b.year, b.month, b.day)
    }
}

extension CalendarDate: CustomStringConvertible {
    /// The date as `2031-12-31`.
    public var description: String { "\(year)-\(month < 10 ? "0" : "")\(month)-\(day < 10 ? "0" : "")\(day)" }
}
